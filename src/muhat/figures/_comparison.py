"""Figures of a comparison: leave-one-out curves, spectrum, filters, weights of the stacked mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import PchipInterpolator

from muhat._arrays import Array
from muhat._text import number
from muhat._wording import setting_text
from muhat.comparison import Comparison, Row
from muhat.figures._plot import BLACK, BLUE, Axis, Bar, Bars, Plot, Reading, Series
from muhat.filters import FILTERS, Filter, Shrinker
from muhat.stacking import StackedMean

CURVE_POINTS = 600

FILTER_DECADES = 6
"""How far below the largest eigenvalue the filters are drawn."""

SPECTRUM_DECADES = 12
"""How far below the largest one eigenvalues are drawn."""

OFF_SCALE = 1.5
"""A chosen parameter whose loss is beyond this multiple of the largest gain is named, not drawn."""

MIN_PERCENT = 1.0
"""The axes reach at least this far, in percent."""

RUG_BOTTOM = -0.05
"""Where the axis of filters begins: below 0, where the eigenvalues are."""

MAX_DOTS = 200
"""Eigenvalues that are drawn as dots; more are a line."""

MIN_WEIGHT = 0.0005
"""Candidates of the stacked mean with a smaller weight are not drawn: rounding."""


def filter_kind(name: str) -> type[Shrinker]:
    """Return the class of a filter, for its colour and marker; of a user's own, the grey base."""
    return FILTERS.get(name, Shrinker)


@dataclass(frozen=True)
class Limits:
    """How far the axes of leave-one-out curves reach, in percent."""

    right: float
    bottom: float
    top: float

    def contain(self, point: tuple[float, float]) -> bool:
        """Whether a point is inside."""
        return point[0] <= self.right and self.bottom <= point[1] <= self.top


def leave_one_out_plot(comparison: Comparison) -> Plot:
    """Return the gain of every estimator over KME against how strongly it shrinks.

    Estimators without a leave-one-out score are not in it.
    """
    series = []
    for row in comparison.rows:
        if row.improvements is not None:
            series.append(_score_series(row, row is comparison.best))
    limits = _limits(series)
    best = comparison.best
    summary = (
        "Curves of the gain over KME against how strongly each estimator shrinks. "
        f"{best} has the highest point, {best.gain_text} % of KME's error, at a strength of "
        f"{number(100 * best.strength)} %."
    )
    return Plot(
        "Leave-one-out curves",
        "Gain of each estimator over the plain average (KME), against how strongly the estimator "
        "shrinks. The "
        "dot marks the chosen parameter. Point at a curve, or move the slider, to read values; "
        "press a name to hide or show it.",
        summary,
        Axis("shrinkage strength (distance from KME, % of its norm)", 0, limits.right, unit=" %"),
        Axis("gain over KME, % of its error", limits.bottom, limits.top, unit=" %"),
        [_named_with_scale(each, limits) for each in series],
        note="marked: the chosen parameter",
    )


def _score_series(row: Row, is_best: bool) -> Series:
    """Return a curve; points are not joined if the strength goes back and forth along the grid."""
    if row.name == "kme" and len(row.strengths) == 1:
        name = "kme (the plain average)"
        return Series(name, "rule", np.array([]), np.zeros(1), colour=BLACK, key="kme")
    gains = np.asarray(row.improvements)
    x, y = 100 * row.strengths, gains
    steps = np.diff(x)
    is_curve = len(steps) > 0 and bool((steps >= 0).all() or (steps <= 0).all())
    if is_curve and row.symbol == "λ" and row.filter.analytic:
        x, y = smooth(x, y)
    kind, shape = filter_kind(row.name), "points"
    if is_curve:
        shape = "line"
    return Series(
        str(row),
        shape,
        x,
        y,
        colour=kind.colour,
        marker=kind.marker,
        key=row.name,
        chosen=(100 * row.strength, float(gains[row.index])),
        is_strong=is_best and is_curve,
        readings=_score_readings(row, gains),
    )


def _score_readings(row: Row, gains: Array) -> list[Reading] | None:
    if len(row.grid) != len(row.strengths):
        return None
    readings = []
    for strength, gain, parameter in zip(row.strengths, gains, row.grid, strict=True):
        setting = setting_text(row.symbol, parameter) or "no parameter"
        readings.append((100 * float(strength), float(gain), f"{number(gain)} % at {setting}"))
    return readings


def _limits(series: list[Series]) -> Limits:
    """Return limits that show every peak, and every choice that is not far worse than KME."""
    curves = [each for each in series if each.chosen is not None]
    scale = MIN_PERCENT
    right, bottom = 0.0, 0.0
    for curve in curves:
        scale = max(scale, float(curve.y.max()))
        if curve.y.max() > 0:
            right = max(right, float(curve.x[curve.y.argmax()]))
    for curve in curves:
        x, y = curve.chosen or (0.0, 0.0)
        if y >= -OFF_SCALE * scale:
            right, bottom = max(right, x), min(bottom, 1.1 * y)
    right = min(1.5 * right, 102) or MIN_PERCENT
    return Limits(right, min(-scale / 2, bottom), 1.15 * scale)


def _named_with_scale(series: Series, limits: Limits) -> Series:
    """Return a series whose name says where its choice is, if that is off the scale."""
    if series.chosen is None or limits.contain(series.chosen):
        return series
    gain = series.chosen[1]
    text = f"{gain:.3g}"
    if abs(gain) >= 100:
        text = f"{gain:.0f}"
    name = f"{series.name}, off scale: {text.replace('-', '−')} %"
    return replace(series, name=name)


def smooth(x: Array, y: Array) -> tuple[Array, Array]:
    """Return a smooth curve through points that lie on one; it overshoots none of them."""
    x, places = np.unique(x, return_index=True)
    if len(x) < 3:
        return x, y[places]
    between = np.interp(np.linspace(0, len(x) - 1, CURVE_POINTS), np.arange(len(x)), x)
    fine = np.union1d(x, between)
    return fine, PchipInterpolator(x, y[places])(fine)


def spectrum_plot(comparison: Comparison) -> Plot | None:
    """Return the eigenvalues by rank; None for a sample without variance."""
    gamma = np.sort(comparison.eigenvalues)[::-1]
    gamma = gamma[gamma > 10.0**-SPECTRUM_DECADES * gamma[0]]
    if not len(gamma) or gamma[0] <= 0:
        return None
    half = 1 + int(np.searchsorted(np.cumsum(gamma) / gamma.sum(), 0.5))
    first = "the first"
    if half > 1:
        first += f" {half:,}"
    share = f"Half of the sum of all {len(comparison.eigenvalues):,} is in {first}."
    ranks = np.arange(1.0, len(gamma) + 1)
    readings = []
    for i, g in zip(ranks, gamma, strict=True):
        readings.append((float(i), float(g), f"number {i:,.0f}: γ = {number(g)}"))
    kind = "line"
    if len(gamma) < MAX_DOTS:
        kind = "points"
    return Plot(
        "Eigenvalues",
        f"The eigenvalues of the Gram matrix divided by n, the largest first. {share}",
        f"A falling line from {number(gamma[0])} to {number(gamma[-1])}. {share}",
        Axis("number", 0.93, 1.07 * max(2, len(gamma)), is_log=True),
        Axis("eigenvalue γ", 0.6 * min(gamma[-1], gamma[0] / 10), 1.6 * gamma[0], is_log=True),
        [Series("eigenvalues", kind, ranks, gamma, colour=BLUE, readings=readings)],
    )


def filters_plot(comparison: Comparison) -> Plot:
    """Return the chosen filter s_λ(γ) of every estimator over the sample's eigenvalues."""
    largest = comparison.eigenvalues.max()
    is_shown = comparison.eigenvalues > 10.0**-FILTER_DECADES * largest
    gamma = comparison.eigenvalues[is_shown]
    series, top = [], 1.05
    for row in comparison.rows:
        is_best = row is comparison.best
        curve = _filter_series(row, gamma, row.shrinkage[is_shown], is_best)
        top = max(top, 1.03 * float(curve.y.max(initial=0)))
        series.append(curve)
    low, high = 0.1, 1.0  # of a sample without variance, which has no eigenvalue to show
    if len(gamma):
        low, high = float(min(each.x.min() for each in series)), float(gamma.max())
    rug = Series("this sample's eigenvalues", "rug", gamma, np.array([]), key="eigenvalues")
    return Plot(
        "The chosen filters",
        "The share of a component that each estimator keeps, against the component's eigenvalue. "
        "At 1 it is kept, at 0 it is removed: small components are mostly noise.",
        "Curves that rise from near 0 for the smallest eigenvalues to near 1 for the largest; KME "
        "keeps everything.",
        Axis("eigenvalue γ of K/n", low, high, is_log=True),
        Axis("share kept, s(γ)", RUG_BOTTOM, top),
        [*series, rug],
        note="dashed in turn where they coincide",
    )


def _filter_series(row: Row, gamma: Array, s: Array, is_best: bool) -> Series:
    """Return s against γ: a line for a function of γ, points at the eigenvalues otherwise."""
    x, y, kind = gamma, s, "points"
    if isinstance(row.filter, Filter) and gamma.size:
        x = np.geomspace(min(gamma.min(), gamma.max() / 100), gamma.max(), CURVE_POINTS)
        y = row.filter.path(x, row.grid[[row.index]])[0]
        kind = "line"
    part, name = filter_kind(row.name), str(row)
    if row.scores is None:
        name += ", not scored"
    return Series(
        name,
        kind,
        x,
        y,
        colour=part.colour,
        marker=part.marker,
        key=row.name,
        is_strong=is_best and kind == "line",
    )


def weights_bars(names: Sequence[str], weights: Array, gains: Array, note: str = "") -> Bars:
    """Return the weight of each candidate of a stacked mean, and how it does alone."""
    bars = []
    for place in np.argsort(-weights, kind="stable"):
        if weights[place] > MIN_WEIGHT:
            alone = f"alone {100 * gains[place]:+.0f} %"
            if place == 0:
                alone = "the plain mean"
            text = f"{100 * weights[place]:.1f} %, {alone.replace('-', '−')}"
            bars.append(Bar(names[place], float(weights[place]), text))
    return Bars(
        "Weights of the stacked mean",
        "The weight of each candidate estimate, and its own gain over the plain average; "
        "candidates with weight zero are not listed.",
        ("candidate", "weight, and gain alone"),
        bars,
        axis="weight",
        note=note,
    )


def stacked_bars(stacked: StackedMean) -> Bars:
    """Return the weights of a fitted stacked mean."""
    return weights_bars(stacked.names_, stacked.candidate_weights_, stacked.gains_)
