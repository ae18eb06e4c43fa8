"""How a column differs between two samples, in words: shares, a shift, spread or shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import floor, hypot, inf, isclose, log, log10, pi

import numpy as np

from muhat._arrays import Array
from muhat._text import exact_number, number
from muhat._wording import LARGE_SHIFT, shift_text
from muhat.data import ColumnMoments
from muhat.data._selection import INDICATOR
from muhat.testing._marginals import (
    FAR_RANGES,
    NORMAL_RANGE,
    FeatureDifference,
    RepeatedValue,
    far_limits,
    in_units,
)

MIN_STANDARD_ERRORS = 2
"""Standard errors from which a verdict calls a column higher or lower."""

MIN_SPREAD_RATIO, MIN_SPREAD_ERRORS = 1.05, 3
"""Least ratio of standard deviations, and standard errors of its logarithm, that is named."""

N_FURTHEST, MIN_ROWS_WITHOUT = 2, 20
"""Rows that must not make a spread alone, and the fewest rows of a sample to leave them out of."""

MIN_REPEATS, MIN_SHARE_RATIO = 2, 2
"""Rows of a sample that have a far value, and ratio of its shares, from which on it is named."""

VARIANCE_TOLERANCE = 1e-12
"""By how much the variance of 0/1 values may differ from share · (1 − share)."""

SMALL_SHARE = 0.1
"""Shares below it have a decimal if they are not a whole percentage."""

MAX_DECIMALS = 4
"""Most decimals of percentages, if fewer would make them equal."""


def with_moments(
    features: Sequence[FeatureDifference],
    x: ColumnMoments,
    y: ColumnMoments,
    columns: Sequence[str],
) -> tuple[FeatureDifference, ...]:
    """Return features with means and standard deviations of both samples, and if they are 0/1."""
    both = x + y
    means = [each.mean * each.unit for each in (x, y)]
    spreads = [np.sqrt(each.squares / max(1, each.count - 1)) * each.unit for each in (x, y)]
    # Values between 0 and 1 vary less than values 0 and 1 do; the unit of these is 1.
    excess = both.squares / both.count - both.mean * (1 - both.mean)
    is_indicator = (both.low == 0) & (both.high == 1) & (np.abs(excess) < VARIANCE_TOLERANCE)
    places = dict(zip(columns, range(len(columns)), strict=True))
    found = []
    for each in features:
        place = places[each.name]
        feature = replace(
            each,
            means=(float(means[0][place]), float(means[1][place])),
            spreads=(float(spreads[0][place]), float(spreads[1][place])),
            is_indicator=bool(is_indicator[place]),
        )
        sizes = int(x.count), int(y.count)
        found.append(replace(feature, differs_in=what_differs(feature, sizes)))
    return tuple(found)


def with_medians(
    features: Sequence[FeatureDifference], x: Array, y: Array, columns: Sequence[str]
) -> tuple[FeatureDifference, ...]:
    """Return features with medians where few rows, far from all others, make the spread.

    Values far from all others that repeat in one sample, such as 9999, are noted too.
    """
    scaled = in_units(np.concatenate([x, y]))
    low, _ = far_limits(scaled)
    is_far = np.isfinite(low) | _two_rows_widen(scaled[: len(x)], scaled[len(x) :])
    repeated = _repeated_values(x, y, scaled)
    places = dict(zip(columns, range(len(columns)), strict=True))
    found = []
    for each in features:
        place = places[each.name]
        each = replace(each, repeated=repeated.get(place))
        if is_far[place] and not each.is_indicator:
            each = _with_median(each, x[:, place], y[:, place])
        found.append(each)
    return tuple(found)


def _with_median(each: FeatureDifference, x: Array, y: Array) -> FeatureDifference:
    """Return a feature with the medians of its column, unless its quartiles are equal."""
    quartiles = [np.quantile(column, [0.25, 0.5, 0.75]) for column in (x, y)]
    spreads = [(high - low) / NORMAL_RANGE for low, _, high in quartiles]
    within = hypot(spreads[0] * len(x) ** 0.5, spreads[1] * len(y) ** 0.5)
    medians = float(quartiles[0][1]), float(quartiles[1][1])
    if within > 0:
        shift = (medians[1] - medians[0]) / within * (len(x) + len(y)) ** 0.5
        each = replace(each, medians=medians, shift=shift)
        each = replace(each, differs_in=what_differs(each, (len(x), len(y))))
    return each


def _repeated_values(x: Array, y: Array, scaled: Array) -> dict[int, RepeatedValue]:
    """Return for columns, by their places, an end of their range that repeats far from the rest.

    ``scaled`` are the rows of both in convenient units.
    """
    pooled = np.concatenate([x, y])
    low, high = np.quantile(scaled, [0.25, 0.75], axis=0)
    width = FAR_RANGES * (high - low)
    is_far = (scaled.max(axis=0) - high > width) | (low - scaled.min(axis=0) > width)
    found = {}
    for place in np.flatnonzero(is_far & (width > 0)).tolist():
        column = scaled[:, place]
        for end in (column.argmax(), column.argmin()):
            others = column[column != column[end]]
            value = pooled[end, place]
            shares = float((x[:, place] == value).mean()), float((y[:, place] == value).mean())
            repeats = max(shares[0] * len(x), shares[1] * len(y))
            is_alone = np.abs(others - column[end]).min() > width[place]
            is_uneven = max(shares) >= MIN_SHARE_RATIO * min(shares)
            if is_alone and is_uneven and round(repeats) >= MIN_REPEATS:
                found[place] = RepeatedValue(float(value), shares)
    return found


def _two_rows_widen(x: Array, y: Array) -> Array:
    """Return for each column if its spreads differ clearly, but not without two rows of each."""
    sizes = len(x), len(y)
    found = np.zeros(x.shape[1], dtype=bool)
    if min(sizes) < MIN_ROWS_WITHOUT:
        return found
    spreads = [rows.std(axis=0, ddof=1).tolist() for rows in (x, y)]
    without = [_spread_without_furthest(rows).tolist() for rows in (x, y)]
    for place in range(len(found)):
        of_all = spreads[0][place], spreads[1][place]
        of_most = without[0][place], without[1][place]
        is_less = _log_ratio(of_most) <= _log_ratio(of_all) / 2
        differs = _spread_differs(of_all, sizes) and not _spread_differs(of_most, sizes)
        found[place] = differs and is_less
    return found


def _spread_without_furthest(rows: Array) -> Array:
    """Return the standard deviation of each column without the two values furthest away."""
    distances = np.abs(rows - np.median(rows, axis=0))
    kept = np.argpartition(distances, -N_FURTHEST, axis=0)[:-N_FURTHEST]
    return np.take_along_axis(rows, kept, axis=0).std(axis=0, ddof=1)


def what_differs(each: FeatureDifference, sizes: tuple[int, int]) -> str:
    """Return in what a column differs most between samples of these sizes, as ``differs_in``."""
    if each.is_indicator and each.means is not None:
        return "share"
    is_shifted = _is_shifted(each, sizes)
    if each.medians is not None and is_shifted:
        return "median"
    if each.medians is not None:
        return "shape"
    if each.spreads is not None and _spread_differs(each.spreads, sizes):
        if not is_shifted:
            return "spread"
        if _log_ratio(each.spreads) > abs(each.shift):
            return "mean and spread"
    if is_shifted:
        return "mean"
    return "shape"


def size_text(each: FeatureDifference, level: float) -> str:
    """Return what of a column differs, and how much: its mean, shares, median or spread.

    A column that is significant at the level and differs in none of them differs in its "shape".
    """
    if each.differs_in == "shape" and each.p_value <= level:
        return shape_text(each)
    if each.differs_in == "share" and each.means is not None:
        return " → ".join(share_texts(each.means))
    if each.medians is not None:
        return f"median {number(each.medians[0])} → {number(each.medians[1])}"
    shift = f"mean {shift_text(each.shift)} SD"
    if "spread" not in each.differs_in or each.spreads is None:
        return shift
    spreads = f"SD {' → '.join(_distinguishable(each.spreads))}"
    if each.differs_in == "spread":
        return spreads
    return f"{shift}; {spreads}"


def shape_text(each: FeatureDifference) -> str:
    """Return "shape", or "spread or shape" where spreads are not known or not looked at."""
    if each.medians is not None or each.spreads is None:
        return "spread or shape"
    return "shape"


def repeated_text(each: FeatureDifference, names: tuple[str, str]) -> str:
    """Return in how many rows of both samples a far value is; empty without one."""
    if each.repeated is None:
        return ""
    value = exact_number(each.repeated.value).replace(",", "")  # as one searches for it in the file
    return f"the value {value} is {_shares_words(each.repeated.shares, names)}"


def change_title(first: str, second: str) -> str:
    """Return the title of a column of such sizes."""
    return f"change from {first} to {second} (SD: standard deviations)"


def change_text(
    each: FeatureDifference, sizes: tuple[int, int], names: tuple[str, str], where: str
) -> str:
    """Return a column and how it differs; ``where`` follows "higher", such as "in after"."""
    parts = [_change_words(each, sizes, names, where), repeated_text(each, names)]
    return "; ".join(filter(None, parts))


def _change_words(
    each: FeatureDifference, sizes: tuple[int, int], names: tuple[str, str], where: str
) -> str:
    """Return a column and how it differs, without the values that repeat."""
    kind, column = what_differs(each, sizes), quoted_name(each.name)
    if kind == "share" and each.means is not None:
        rows = _shares_words(each.means, names)
        if INDICATOR in each.name:
            return f"{each.name} {rows}"
        return f"{column} is 1 {rows}"
    if each.medians is not None:
        few = "the median is used because a few values are extreme"
        if kind == "shape":
            return f"{column}, in the spread or shape of its distribution, not its median"
        size = number(abs(each.medians[1] - each.medians[0]), 2)
        return f"median of {column}, {size} {_side(each.shift)} {where} ({few})"
    if kind == "shape":
        shape = f"{column}, in the {shape_text(each)} of its distribution rather than its mean"
        if each.spreads is None:
            return shape
        return f"{shape} or spread"
    shifted = f"mean of {column}, {shift_words(each.shift, where)}"
    if kind == "mean" or each.spreads is None:
        return shifted
    spread = _spread_words(each.spreads, names)
    if kind == "spread":
        return f"{column} varies {spread}"
    return f"{shifted}; {column} also varies {spread}"


def quoted_name(name: str) -> str:
    """Return a column's name, in quotes if it has spaces or is one letter, such as p.

    "column 3" stays unchanged.

    Examples
    --------
    >>> quoted_name("age"), quoted_name("p"), quoted_name("column 3")
    ('age', "'p'", 'column 3')
    """
    if len(name) == 1 or (" " in name and not name.startswith("column ")):
        return repr(name)
    return name


def change_direction(each: FeatureDifference, sizes: tuple[int, int]) -> str:
    """Return whether a column's mean, or median, is "higher" or "lower" in the second sample.

    Empty if they hardly differ, and for indicators.
    """
    if each.is_indicator or not _is_shifted(each, sizes):
        return ""
    return _side(each.shift)


def _shares_words(shares: tuple[float, float], names: tuple[str, str]) -> str:
    """Return shares as "in 47 % of the rows of after and in 21 % of those of before"."""
    first, second = share_texts(shares)
    return f"in {second} of the rows of {names[1]} and in {first} of those of {names[0]}"


def _spread_words(spreads: tuple[float, float], names: tuple[str, str]) -> str:
    """Return spreads as "more in after (SD 22) than in before (SD 13)"."""
    texts = _distinguishable(spreads)
    wide = int(spreads[1] > spreads[0])
    narrow = 1 - wide
    return f"more in {names[wide]} (SD {texts[wide]}) than in {names[narrow]} (SD {texts[narrow]})"


def shift_words(shift: float, where: str) -> str:
    """Return a shift as "1.2 standard deviations higher in after"."""
    size = abs(shift)
    if 100 <= size < LARGE_SHIFT:
        text = f"{size:,.0f}"
    else:
        text = f"{size:.2g}"
    unit = "standard deviations"
    if text == "1":
        unit = "standard deviation"
    return f"{text} {unit} {_side(shift)} {where}"


def _side(shift: float) -> str:
    if shift > 0:
        return "higher"
    return "lower"


def _is_shifted(each: FeatureDifference, sizes: tuple[int, int]) -> bool:
    """Whether means, or medians, differ by two standard errors, variances being unequal."""
    n, m = sizes
    if each.medians is not None:
        # the variance of a median of normal values is π/2 times that of their mean
        return bool(abs(each.shift) >= MIN_STANDARD_ERRORS * np.sqrt(pi / 2 * (1 / n + 1 / m)))
    if each.means is None or each.spreads is None:
        return bool(abs(each.shift) >= MIN_STANDARD_ERRORS * np.sqrt(1 / n + 1 / m))
    error = hypot(each.spreads[0] / n**0.5, each.spreads[1] / m**0.5)
    return abs(each.means[1] - each.means[0]) >= MIN_STANDARD_ERRORS * error


def _log_ratio(spreads: tuple[float, float]) -> float:
    """Return the logarithm of the larger standard deviation over the smaller one."""
    small, large = sorted(spreads)
    if small > 0:
        return log(large / small)
    return inf


def _spread_differs(spreads: tuple[float, float] | None, sizes: tuple[int, int]) -> bool:
    """Whether standard deviations differ clearly."""
    if spreads is None or spreads[0] == spreads[1] or min(sizes) < 2:
        return False
    error = (0.5 / sizes[0] + 0.5 / sizes[1]) ** 0.5
    return _log_ratio(spreads) >= max(log(MIN_SPREAD_RATIO), MIN_SPREAD_ERRORS * error)


def _distinguishable(spreads: tuple[float, float]) -> list[str]:
    """Return two standard deviations with two digits, or with three where two are the same."""
    texts = [_in_digits(each, 2) for each in spreads]
    if texts[0] != texts[1]:
        return texts
    return [_in_digits(each, 3) for each in spreads]


def _in_digits(value: float, digits: int) -> str:
    """Return a number of at least zero with some digits, all of them before the point."""
    if not 1e-3 <= value < 1e6:
        return f"{value:.{digits}g}"
    return f"{value:,.{max(0, digits - 1 - floor(log10(value)))}f}"


def share_texts(means: tuple[float, float]) -> list[str]:
    """Return two shares in percent, with as few decimals as tell them apart.

    Small ones that are not whole have a decimal.

    Examples
    --------
    >>> share_texts((0.015, 0.0425)), share_texts((0.468, 0.213)), share_texts((0.03, 0.47))
    (['1.5 %', '4.2 %'], ['47 %', '21 %'], ['3 %', '47 %'])
    """
    for decimals in range(MAX_DECIMALS + 1):
        texts = [_share_text(mean, decimals) for mean in means]
        if texts[0] != texts[1] or isclose(*means):
            break
    return texts


def _share_text(share: float, decimals: int) -> str:
    """Return a share in percent; for no decimals, a small one has one if that is not zero."""
    if decimals == 0 and share < SMALL_SHARE and not f"{100 * share:.1f}".endswith(".0"):
        decimals = 1
    return f"{100 * share:.{decimals}f} %"


def source_columns(names: Sequence[str]) -> list[str]:
    """Return columns as a file has them: two or more indicators of one text column are one.

    Examples
    --------
    >>> source_columns(["x1", "colour = red", "colour = blue", "kind = oak"])
    ['x1', 'colour', 'kind = oak']
    """
    texts = [name.partition(INDICATOR)[0] for name in names]
    many = Counter(texts)
    return list(
        dict.fromkeys(
            text if many[text] > 1 else name for text, name in zip(texts, names, strict=True)
        )
    )
