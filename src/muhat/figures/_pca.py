"""Figures of kernel PCA: how many components, what they explain and follow, and a map of rows."""

from __future__ import annotations

import numpy as np

from muhat._arrays import Array
from muhat._text import count, number, shortened
from muhat._wording import setting_text
from muhat.figures._plot import (
    BLUE,
    GREY,
    PALETTE,
    Axis,
    Bar,
    Bars,
    Plot,
    Reading,
    Series,
)
from muhat.filters import TruncatedSVD
from muhat.pca import ComponentChoice, ComponentPath, ComponentsResult, KernelPCA

MAX_COMPONENTS_DRAWN = 20
"""Components whose variance is drawn, and columns whose correlation is."""

MAX_POINTS = 2000
"""Rows on a map: the most unusual ones and a random sample of the others."""

MAX_LABELS = 8
"""Labels with a colour of their own on a map; rows of others are grey."""

MARKERS = "os^Dvph*"
"""Markers of the labels on a map, for readers without colours."""


def components_plot(path: ComponentPath) -> Plot:
    """Return the reconstruction error of left-out rows, with its standard error.

    It is drawn against the number of components, or against λ or t of another filter.
    """
    x = np.asarray(path.grid, float)
    errors = path.errors
    spread = np.nan_to_num(path.standard_errors)
    lower, upper = np.maximum(errors - spread, 0), errors + spread
    chosen = (float(x[path.index]), float(errors[path.index]))
    setting = _setting(path, path.index)
    what, note = "the model has", f"marked: {setting}"
    if path.is_chosen:
        what, note = "was chosen", f"{note}, chosen"
    readings = _readings(path)
    curve = Series("mean error", "line", x, errors, colour=BLUE, chosen=chosen, readings=readings)
    return Plot(
        "Error of left-out rows",
        "The reconstruction error of left-out rows, ± one standard error. "
        f"The dot is what {what}. The error is smallest when most is kept, so look for where "
        "the curve becomes flat.",
        f"A curve of the error of {path.n_rows:,} left-out rows; at {setting} it is "
        f"{number(chosen[1])} ± {number(spread[path.index])}.",
        _parameter_axis(path),
        Axis("squared error in the RKHS", 0.0, 1.05 * float(upper.max()) or 1.0),
        [Series("± one standard error", "band", x, lower, upper, colour=BLUE), curve],
        note=note,
    )


def _parameter_axis(path: ComponentPath) -> Axis:
    """Return the axis of the candidates: linear for components, logarithmic for λ and t."""
    least, most = float(path.grid[0]), float(path.grid[-1])
    if isinstance(path.filter, TruncatedSVD):
        return Axis("number of components", least, max(most, 1.0))
    return Axis(path.filter.symbol, least, max(most, 1.01 * least), is_log=True)


def _setting(path: ComponentPath, index: int) -> str:
    """Return a candidate as text."""
    value = path.grid[index]
    if not isinstance(path.filter, TruncatedSVD):
        return setting_text(path.filter.symbol, float(value))
    if value == 1:
        return "1 component"
    return f"{int(value)} components"


def _readings(path: ComponentPath) -> list[Reading]:
    """Return the error and its standard error at every candidate, as text."""
    readings = []
    for index, error in enumerate(path.errors):
        spread = number(path.standard_errors[index])
        text = f"{number(error)} ± {spread} at {_setting(path, index)}"
        readings.append((float(path.grid[index]), float(error), text))
    return readings


def noise_plot(choice: ComponentChoice) -> Plot:
    """Return how well each number of components separates signal from noise."""
    most_drawn = max(MAX_COMPONENTS_DRAWN, 3 * choice.n_components)
    is_finite = np.isfinite(choice.scores) & (choice.grid <= most_drawn)
    x, scores = choice.grid[is_finite].astype(float), choice.scores[is_finite]
    spread = np.nan_to_num(choice.standard_errors[is_finite])
    dot = (
        "The dot is the smallest number of components with a score within one standard error of "
        "the lowest, or with 95 % of the variance of left-out rows explained."
    )
    summary = f"{choice.n_components} is recommended"
    marked, note = choice.n_components, f"marked: {count(choice.n_components, 'component')}"
    if choice.best == 0:
        dot = "The dot is the lowest score, without any component: none is recommended."
        summary = "none is recommended"
        marked, note = 0, "marked: the lowest, at 0 components"
    taken = int(np.argmin(np.abs(x - marked)))
    chosen = (float(x[taken]), float(scores[taken]))
    readings: list[Reading] = []
    for place, score in enumerate(scores):
        text = f"{number(score)} ± {number(spread[place])} at {count(int(x[place]), 'component')}"
        readings.append((float(x[place]), float(score), text))
    curve = Series("score", "line", x, scores, colour=BLUE, chosen=chosen, readings=readings)
    band = Series("± one standard error", "band", x, scores - spread, scores + spread, colour=BLUE)
    most, least = float((scores + spread).max()), float((scores - spread).min())
    low = max(0.0, least - 0.5 * (most - least))
    return Plot(
        "How many components",
        "The score is the mean squared error of left-out rows in a column, divided by (1 − D/d)². "
        "D is the number of columns, of d, in which the components fit the noise of a row itself. "
        f"A low score is good. {dot}",
        f"A curve over numbers of components, least at {choice.best}; {summary}.",
        Axis("number of components", 0.0, max(float(x[-1]), 1.0)),
        Axis("score (low is good)", low, most + 0.05 * (most - low) or 1.0),
        [band, curve],
        note=note,
    )


def variance_bars(pca: KernelPCA) -> Bars:
    """Return the shares of the kernel's variance that components have."""
    bars = []
    for k, share in enumerate(pca.explained_variance_ratio_[:MAX_COMPONENTS_DRAWN]):
        bars.append(Bar(f"component {k + 1}", float(share), f"{100 * share:.3g} %"))
    return Bars(
        "Variance of the components",
        "The share of the kernel's variance that each component explains. A kernel spreads its "
        "variance over very many components: low shares are normal and do not indicate noise.",
        ("component", "share of the kernel's variance"),
        bars,
        axis="share of the kernel's variance",
    )


def loadings_bars(result: ComponentsResult, component: int = 0) -> Bars:
    """Return the correlations of columns with a component, the largest first."""
    bars = []
    for place in result.leading_columns(component)[:MAX_COMPONENTS_DRAWN]:
        r = float(result.correlations[place, component])
        bars.append(Bar(result.columns[place], r, f"r = {r:.2f}".replace("-", "−")))
    return Bars(
        f"Columns correlated with component {component + 1}",
        "The correlation of each column with the scores, the strongest first; negative ones to the "
        "left. Components can be curved: a column without correlation can still be related.",
        ("column", "correlation"),
        bars,
        axis="correlation",
    )


def scores_plot(result: ComponentsResult) -> Plot:
    """Return a map of the rows: two scores, or one and the error where there is one component."""
    x = result.scores[:, 0]
    y, title = result.errors, "reconstruction error (left out)"
    if result.scores.shape[1] > 1:
        y, title = result.scores[:, 1], "component 2"
    kept = _rows_drawn(result)
    series = []
    for place, (label, rows) in enumerate(_labelled_rows(result, kept)):
        colour, marker = BLUE, ""
        if result.labels is not None:
            colour, marker = PALETTE[1 + place % (len(PALETTE) - 2)], MARKERS[place % len(MARKERS)]
        if label == "other":
            colour = GREY
        readings = _row_readings(result, x, y, rows)
        dots = Series(
            label, "points", x[rows], y[rows], colour=colour, marker=marker, readings=readings
        )
        series.append(dots)
    drawn = "Each dot is a row"
    if len(kept) < len(x):
        drawn = f"Dots are {len(kept):,} of {len(x):,} rows, including the most unusual ones"
    shares = result.pca.explained_variance_ratio_
    return Plot(
        "Map of the rows",
        f"{drawn}. Rows that are close to each other are similar. Large distances mean little.",
        f"A scatter plot of {len(kept):,} rows by their first scores.",
        Axis.around(f"component 1 ({100 * shares[0]:.3g} % of the kernel's variance)", x),
        Axis.around(title, y),
        series,
        by_point=True,
        note=f"{len(x):,} rows",
    )


def _rows_drawn(result: ComponentsResult) -> Array:
    """Return the places of the rows on a map."""
    order = result.unusual
    if len(order) <= MAX_POINTS:
        return np.sort(order)
    half = MAX_POINTS // 2
    others = np.random.default_rng(0).permutation(order[half:])[: MAX_POINTS - half]
    return np.sort(np.concatenate([order[:half], others]))


def _labelled_rows(result: ComponentsResult, kept: Array) -> list[tuple[str, Array]]:
    """Return the rows of the most frequent labels, in the order of their names."""
    if result.labels is None:
        return [("rows", kept)]
    names, counts = np.unique(result.labels, return_counts=True)
    frequent = names[np.sort(np.argsort(-counts, kind="stable")[:MAX_LABELS])]
    found = []
    for name in frequent:
        found.append((shortened(str(name), 24), kept[result.labels[kept] == name]))
    others = kept[~np.isin(result.labels[kept], frequent)]
    if len(others):
        found.append(("other", others))
    return found


def _row_readings(result: ComponentsResult, x: Array, y: Array, rows: Array) -> list[Reading]:
    readings = []
    for place in rows.tolist():
        text = f"row {result.row_numbers[place]}, novelty p = {result.p_values[place]:.2g}"
        if result.labels is not None:
            text = f"{text}, {shortened(str(result.labels[place]), 24)}"
        readings.append((float(x[place]), float(y[place]), text))
    return readings
