"""Figures of a conditional mean: left-out predictions, errors, quantiles of y, scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._text import count, number
from muhat.figures._comparison import filter_kind
from muhat.figures._plot import (
    BLACK,
    BLUE,
    RED,
    SKY,
    Axis,
    Plot,
    Reading,
    Series,
    histogram_readings,
)
from muhat.figures._testing import MAX_BINS, MIN_BINS, ROWS_PER_BIN
from muhat.filters import name_of

MAX_DOTS = 1000
"""Dots of a scatter; of more rows, random ones are drawn."""

MAX_INTERVALS = 200
"""Rows that are drawn with their intervals; of more, random ones."""


def predictions_plot(
    name: str, truth: Array, predicted: Array, title: str = "", said: str = "", note: str = ""
) -> Plot:
    """Return predictions against true values.

    Parameters
    ----------
    name : str
        What is predicted.
    truth, predicted : arrays of shape (n,)
        The values; rows without a prediction (NaN) are not drawn.
    title, said, note : str
        The title, what each dot is, and a few words behind the title.
    """
    rows = np.flatnonzero(np.isfinite(predicted))
    n = len(rows)
    drawn = ""
    if n > MAX_DOTS:
        rows = np.random.default_rng(0).permutation(rows)[:MAX_DOTS]
        drawn = f" {MAX_DOTS:,} of {n:,} rows are drawn."
    x, y = predicted[rows], truth[rows]
    readings = []
    for a, b, row in zip(x, y, rows, strict=True):
        text = f"{number(b)}, predicted {number(a)} (row {row + 1})"
        readings.append((float(a), float(b), text))
    axis = Axis.around(f"predicted {name}", np.concatenate([x, y]))
    ends = np.array([axis.low, axis.high])
    return Plot(
        title or f"{name}: left-out predictions against true values",
        f"{said or 'Each dot is a row, predicted from all other rows.'} On the line, the "
        f"prediction equals the true value.{drawn}",
        f"A cloud of {len(rows):,} dots, and the diagonal on which predictions equal true values; "
        f"the correlation is {number(_correlation(x, y))}.",
        axis,
        Axis(f"true {name}", axis.low, axis.high),
        [
            Series("rows", "points", x, y, colour=BLUE, readings=readings),
            Series("prediction = truth", "line", ends, ends, colour=BLACK, readings=()),
        ],
        by_point=True,
        is_square=True,
        note=note,
    )


def intervals_plot(
    name: str, x: Array, predicted: Array, ends: Array, feature: str, title: str, note: str
) -> Plot:
    """Return predictions with their intervals along a feature.

    Parameters
    ----------
    name : str
        What is predicted.
    x, predicted : arrays of shape (n,)
        The feature, and the predictions.
    ends : array of shape (n, 2)
        The ends of the intervals.
    feature, title, note : str
        The name of the feature, the title, and a few words behind it.
    """
    n = len(x)
    some, drawn = np.arange(n), ""
    if n > MAX_INTERVALS:
        some = np.random.default_rng(0).permutation(n)[:MAX_INTERVALS]
        drawn = f" {MAX_INTERVALS:,} of {n:,} rows are drawn."
    low, high = ends[some].T
    readings = []
    for row, place in zip(some, x[some], strict=True):
        text = (
            f"{number(predicted[row])}, {number(ends[row, 0])} to {number(ends[row, 1])} "
            f"(row {row + 1})"
        )
        readings.append((float(place), float(predicted[row]), text))
    return Plot(
        title,
        f"Dots: predictions, {note}.{drawn}",
        f"{len(some):,} dots along {feature}, from {number(low.min())} to {number(high.max())}.",
        Axis.around(feature, x[some]),
        Axis.around(f"predicted {name}", ends[some]),
        [
            Series("intervals", "ranges", x[some], low, high, colour=RED, readings=()),
            Series(
                "predictions", "points", x[some], predicted[some], colour=RED, readings=readings
            ),
        ],
        by_point=True,
        has_legend=False,
        note=note,
    )


def _correlation(x: Array, y: Array) -> float | None:
    if len(x) < 2 or not np.ptp(x) or not np.ptp(y):
        return None
    return float(np.corrcoef(x, y)[0, 1])


def errors_plot(name: str, errors: Array) -> Plot:
    """Return the histogram of the errors of left-out predictions: shape (n,)."""
    n_bins = min(MAX_BINS, max(MIN_BINS, len(errors) // ROWS_PER_BIN))
    counts, edges = np.histogram(errors, bins=n_bins)
    middle, nine = np.quantile(np.abs(errors), [0.5, 0.9])
    words = f"Half of the errors are smaller than {number(middle)}, 90 % smaller than "
    words += f"{number(nine)}, in absolute value."
    readings = histogram_readings(edges, counts, "row")
    return Plot(
        f"{name}: errors of left-out predictions",
        f"Error: true value minus prediction. {words}",
        f"A histogram of errors from {number(edges[0])} to {number(edges[-1])}. {words}",
        Axis(f"true minus predicted {name}", float(edges[0]), float(edges[-1])),
        Axis("rows", 0, 1.08 * max(1, int(counts.max()))),
        [
            Series("rows", "bars", edges, counts.astype(float), colour=BLUE, readings=readings),
            Series("no error", "rule", np.zeros(1), np.array([]), colour=BLACK),
        ],
    )


def quantiles_plot(
    name: str,
    values: Array,
    levels: Sequence[float],
    quantiles: Array,
    rows: Array,
    outputs: Array,
    output_name: str = "y",
    is_moved: bool = False,
) -> Plot:
    """Return quantiles of y along one feature, as bands, and the rows.

    Parameters
    ----------
    name : str
        The feature.
    values : array of shape (points,)
        Places along the feature.
    levels : sequence of float
        The levels of the quantiles, ascending.
    quantiles : array of shape (points, levels)
        The quantiles.
    rows, outputs : arrays of shape (n,)
        The feature and y of the rows.
    output_name : str, default='y'
        What y is called.
    is_moved : bool, default=False
        Whether the rows, too, are shown as if the other features were at their medians.
    """
    n_bands = len(levels) // 2
    series = []
    for low in range(n_bands):
        high = len(levels) - 1 - low
        label = f"{100 * levels[low]:g} to {100 * levels[high]:g} %"
        shade = (low + 1) / (n_bands + 2)
        lower, upper = quantiles[:, low], quantiles[:, high]
        series.append(Series(label, "band", values, lower, upper, colour=BLUE, shade=shade))
    label, dots = "rows", "the rows"
    if is_moved:
        label = "rows, other columns at medians"
        dots = "the rows, adjusted for the other columns: the residual of a row plus its "
        dots += "prediction with the other columns at their medians"
    series.append(Series(label, "points", rows, outputs, colour=BLACK))
    if len(levels) % 2:
        series.append(Series("median", "line", values, quantiles[:, n_bands], colour=RED))
    everything = np.concatenate([quantiles.ravel(), outputs])
    return Plot(
        f"Quantiles of {output_name} along one column",
        f"Bands: the expected range of {output_name} for each value of {name}. Dots: {dots}.",
        f"Bands around a line of medians, along {name}.",
        Axis.around(name, np.concatenate([values, rows])),
        Axis.around(output_name, everything[np.isfinite(everything)]),
        series,
    )


def fan_plot(name: str, quantiles: Array, rows: Array) -> Plot:
    """Return the 5, 25, 50, 75 and 95 % quantiles of y at rows, in the order of their medians.

    Parameters
    ----------
    name : str
        What y is called.
    quantiles : array of shape (n, 5)
        The quantiles at the rows.
    rows : array of shape (n,)
        The numbers of the rows, from 0.
    """
    order = np.argsort(quantiles[:, 2], kind="stable")
    quantiles, rows = quantiles[order], rows[order]
    x = np.arange(1.0, len(rows) + 1)
    low, high = float(quantiles.min()), float(quantiles.max())
    width = number(float(np.median(quantiles[:, 4] - quantiles[:, 0])))
    series = []
    for label, lower, upper, colour in (("90 %", 0, 4, SKY), ("50 %", 1, 3, BLUE)):
        readings = _ranges_read(x, quantiles[:, [lower, upper]], rows)
        ends = quantiles[:, lower], quantiles[:, upper]
        series.append(Series(label, "band", x, *ends, colour=colour, readings=readings))
    medians = []
    for place, median, row in zip(x, quantiles[:, 2], rows, strict=True):
        medians.append((float(place), float(median), f"{number(median)} (row {row + 1})"))
    series.append(Series("median", "line", x, quantiles[:, 2], colour=BLUE, readings=medians))
    return Plot(
        f"{name}: the likely range",
        f"Quantiles at {count(len(rows), 'row')}, sorted by the median. 90 % of all values of y "
        "are expected in the pale band, and 50 % in the darker one.",
        f"Bands around a rising line of medians, from {number(low)} to {number(high)}; the median "
        f"width of the 90 % band is {width}.",
        Axis("rows, sorted by the median", 1, max(2, len(rows))),
        Axis.around(name, quantiles),
        series,
    )


def _ranges_read(x: Array, ranges: Array, rows: Array) -> list[Reading]:
    readings = []
    for place, (lower, upper), row in zip(x, ranges, rows, strict=True):
        text = f"{number(lower)} to {number(upper)} (row {row + 1})"
        readings.append((float(place), float(upper), text))
    return readings


def filter_scores_plot(choices: Sequence[Any], best: Any) -> Plot:
    """Return the leave-one-out error of every filter along its grid; ``best`` is the one chosen."""
    series, places, scores = [], [], []
    for each in choices:
        curve = _filter_scores(each, each is best)
        series.append(curve)
        places.append(curve.x)
        scores.append(curve.y[np.isfinite(curve.y)])
    x, y = np.concatenate(places), np.concatenate(scores)
    least, most = float(y.min()), float(np.quantile(y, 0.9))
    margin = 0.06 * (most - least) or abs(least) or 1.0
    chosen = f"{name_of(best.filter)} with {choice_setting(best)}"
    return Plot(
        "Leave-one-out curves",
        "The error of left-out rows against how strongly each filter smooths: little on the left, "
        "strongly on the right. The dot marks the chosen parameter.",
        f"Curves with one valley each; the lowest point is that of {chosen}, {number(best.score)}.",
        Axis("λ, or 1/t for iterations", float(x.min()), float(x.max()), is_log=True),
        Axis("mean squared error of left-out rows", least - margin, most + margin),
        series,
    )


def _filter_scores(choice: Any, is_best: bool) -> Series:
    grid = np.asarray(choice.grid, dtype=float)
    symbol = choice.filter.symbol
    places = grid
    if symbol == "t":
        places = 1 / grid  # more iterations smooth less
    readings = []
    for x, y, parameter in zip(places, choice.scores, grid, strict=True):
        readings.append((float(x), float(y), f"{number(y)} at {symbol} = {number(parameter)}"))
    name = name_of(choice.filter)
    kind = filter_kind(name)
    return Series(
        f"{name} ({choice_setting(choice)})",
        "line",
        places,
        choice.scores,
        colour=kind.colour,
        marker=kind.marker,
        key=name,
        chosen=(float(places[choice.index]), choice.score),
        is_strong=is_best,
        readings=readings,
    )


def choice_setting(choice: Any) -> str:
    """Return the chosen parameter of a filter as text."""
    return f"{choice.filter.symbol} = {number(choice.parameter)}"


def bandwidths_plot(bandwidths: Array, scores: Array) -> Plot:
    """Return the leave-one-out error at each bandwidth: both of shape (bandwidths,)."""
    place = int(np.nanargmin(scores))
    words = f"The error is smallest at {number(bandwidths[place])}."
    chosen = (float(bandwidths[place]), float(scores[place]))
    low, high = float(bandwidths.min()) / 1.1, 1.1 * float(bandwidths.max())
    return Plot(
        "Bandwidths",
        f"The error of left-out rows at each bandwidth that was tried. {words}",
        f"A curve over {count(len(bandwidths), 'bandwidth')}. {words}",
        Axis("bandwidth", low, high, is_log=True),
        Axis.around("mean squared error", scores[np.isfinite(scores)], 0.08),
        [Series("bandwidths", "line", bandwidths, scores, colour=BLUE, chosen=chosen)],
    )
