"""Figures of groups: bars, a map, a dendrogram, the matrix of distances, and single columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import dendrogram, leaves_list, linkage
from scipy.spatial.distance import squareform

from muhat._arrays import Array
from muhat._text import count, number, shortened
from muhat._wording import p_value_text
from muhat.figures._plot import BLACK, BLUE, ORANGE, Axis, Bar, Bars, Matrix, Plot, Series
from muhat.testing import GroupResult
from muhat.testing._group_pictures import ColumnQuantiles

MAX_BARS = 20
"""Groups that are drawn, the smallest p-values first."""

MAX_LABELS = 40
"""Groups up to which each is labelled in a map, a dendrogram and a matrix."""

N_ERRORS = 2.0
"""Standard errors that the ellipses of a map reach to."""

LABEL_LENGTH, LABEL_WIDTH, LABEL_HEIGHT, LABEL_DISTANCE = 12, 0.025, 0.05, 0.055
"""Characters of a label on a map; the width of one, the height of all, and how far a label's middle
is above or below its dot, as shares of the map."""

LABEL_SIDES = {"below": (0, -1), "above": (0, 1), "right": (1, 0), "left": (-1, 0)}
"""Where a label may be beside its dot, the preferred side first."""

DOT_RADIUS = 0.02
"""The radius of a dot with some room around it, as a share of the map."""

LEVEL = 0.05
"""The level at which groups are drawn as different."""

BOX_HALF_WIDTH = 0.32
"""Half the width of a box, where groups are one apart."""


def groups_bars(result: GroupResult, level: float = LEVEL) -> Bars:
    """Return how far the groups are from the rest, with their corrected p-values."""
    bars = []
    for each in result.groups[:MAX_BARS]:
        p = p_value_text(each.p_value, result.n_permutations, result.is_complete)
        is_found = result.p_value <= level and each.p_value <= level
        bars.append(Bar(str(each.group), each.mmd, p, is_strong=is_found))
    shown = ""
    if len(result.groups) > MAX_BARS:
        shown = f" Of {len(result.groups):,} groups, only the {MAX_BARS} with the smallest p-values"
        shown += " are shown."
    return Bars(
        "Groups against the rest",
        "Bars: the distance (MMD) between the kernel mean of a group and that of the rest: all "
        "other groups except those that differ even more. Grey: no difference detected. A small "
        f"group can have a large distance by chance; its p-value accounts for that.{shown}",
        ("group", f"p, corrected for {len(result.groups):,} groups"),
        bars,
        axis="MMD from the rest",
        note="grey: no difference detected",
    )


def different_groups(result: GroupResult, level: float = LEVEL) -> list[str]:
    """Return the groups that differ from the rest at a level, if all together do."""
    found = []
    for each in result.groups:
        if result.p_value <= level and each.p_value <= level:
            found.append(str(each.group))
    return found


def group_map_plot(
    labels: Sequence[str],
    coordinates: Array,
    errors: Array,
    shares: Array,
    different: Collection[str] = (),
) -> Plot:
    """Return a map of groups, with ellipses of two standard errors."""
    labels = [str(each) for each in labels]
    is_different = np.isin(labels, list(different))
    series: list[Series] = []
    for label, place, error, found in zip(labels, coordinates, errors, is_different, strict=True):
        if np.isfinite(error).all() and len(labels) <= MAX_LABELS:
            series.append(_ellipse(label, place, N_ERRORS * error, ORANGE if found else BLUE))
    x, y = _axes_of_one_scale(coordinates, errors, shares)
    shown = _labels_with_room(labels, coordinates, is_different, x.high - x.low)
    groups = [("groups", ~is_different, BLUE)]
    if is_different.any():
        groups = [
            ("no difference detected", ~is_different, BLUE),
            ("differ from the rest", is_different, ORANGE),
        ]
    for name, some, colour in groups:
        if some.any():
            series.append(_places(name, labels, shown, coordinates, some, colour))
    note, uncertainty = _ellipse_texts(labels, errors)
    if is_different.any():
        note += "; orange: differ"
    return Plot(
        "Map of the groups",
        "Each dot is a group. Groups that are close to each other have similar distributions. "
        f"{uncertainty} The two axes of the map account for "
        f"{100 * shares.sum():.0f} % of the squared distances between groups.",
        f"A map of {len(labels):,} groups. Groups that are close to each other are similar.",
        x,
        y,
        series,
        by_point=True,
        is_square=True,
        has_legend=False,
        note=note,
        names_points=True,
    )


def _ellipse_texts(labels: Sequence[str], errors: Array) -> tuple[str, str]:
    """Return a note and a sentence on the ellipses: a group without one is not certain."""
    is_known = np.isfinite(errors).all(axis=1)
    if not is_known.any():
        return "no ellipses: errors not known", "How uncertain the places are is not known."
    if len(labels) > MAX_LABELS:
        return "no ellipses: too many groups", "There are too many groups to draw ellipses."
    note = "ellipses: two standard errors"
    sentence = "The half-axes of the ellipses are two standard errors."
    if is_known.all():
        return note, sentence
    unknown = "The uncertainty of groups without one, such as groups of one row, is not known."
    return "ellipses: 2 SE, none: unknown", f"{sentence} {unknown}"


def _ellipse(label: str, place: Array, reach: Array, colour: str) -> Series:
    angle = np.linspace(-np.pi / 2, np.pi / 2, 41)
    x = place[0] + reach[0] * np.sin(angle)
    height = reach[1] * np.cos(angle)
    return Series(
        label, "band", x, place[1] - height, place[1] + height, colour, readings=(), shade=0.2
    )


def _places(
    name: str,
    labels: Sequence[str],
    shown: Sequence[tuple[str, str]],
    coordinates: Array,
    some: Array,
    colour: str,
) -> Series:
    names, sides, readings = [], [], []
    for place in np.flatnonzero(some).tolist():
        x, y = coordinates[place].tolist()
        text, side = shown[place]
        names.append(text)
        sides.append(side)
        readings.append((x, y, labels[place]))
    x, y = coordinates[some].T
    return Series(
        name,
        "points",
        x,
        y,
        colour=colour,
        readings=readings,
        labels=names,
        label_sides=sides,
    )


def _labels_with_room(
    labels: Sequence[str], coordinates: Array, is_different: Array, width: float
) -> list[tuple[str, str]]:
    """Return labels that do not cover each other, and the side of its dot that each is on.

    Labels of different groups come first. A label takes the first side on which it covers no other
    dot, if there is one; a label without room is "". ``width`` is that of the map.
    """
    shown = [("", "below")] * len(labels)
    dots = [(x, y, 0.0, 0.0) for x, y in coordinates.tolist()]
    taken: list[tuple[float, float, float, float]] = []
    distant = np.argsort(-np.linalg.norm(coordinates, axis=1), kind="stable")
    for place in sorted(distant.tolist(), key=lambda each: not is_different[each]):
        text = shortened(labels[place], LABEL_LENGTH)
        x, y, _, _ = dots[place]
        half = LABEL_WIDTH * len(text) * width / 2
        for others, (side, (right, up)) in product((taken + dots, taken), LABEL_SIDES.items()):
            beside = right * (half + DOT_RADIUS * width)
            box = (x + beside, y + up * LABEL_DISTANCE * width, half, LABEL_HEIGHT * width / 2)
            if not any(_overlap(box, other) for other in others):
                taken.append(box)
                shown[place] = (text, side)
                break
    return shown


def _overlap(
    one: tuple[float, float, float, float], other: tuple[float, float, float, float]
) -> bool:
    """Whether two boxes, each a centre and half its width and height, overlap."""
    is_near_in_x = abs(one[0] - other[0]) < one[2] + other[2]
    return is_near_in_x and abs(one[1] - other[1]) < one[3] + other[3]


def _axes_of_one_scale(coordinates: Array, errors: Array, shares: Array) -> tuple[Axis, Axis]:
    """Return two axes with one unit of length, which hold all ellipses."""
    reach = np.where(np.isfinite(errors), N_ERRORS * errors, 0.0)
    low, high = (coordinates - reach).min(axis=0), (coordinates + reach).max(axis=0)
    middle, half = (low + high) / 2, 0.56 * float((high - low).max()) or 0.5
    first = f"first axis ({100 * shares[0]:.0f} % of squared distances)"
    second = f"second axis ({100 * shares[1]:.0f} %)"
    return (
        Axis(first, float(middle[0]) - half, float(middle[0]) + half),
        Axis(second, float(middle[1]) - half, float(middle[1]) + half),
    )


def tree_of_groups(distances: Array) -> Array:
    """Return the groups joined one by one, by the average distance of their members."""
    known = np.where(np.isfinite(distances), distances, np.nanmax(distances, initial=0))
    np.fill_diagonal(known, 0)
    return np.asarray(linkage(squareform(known, checks=False), method="average"))


def order_of_groups(distances: Array) -> Array:
    """Return the order of the groups in the dendrogram, of shape (T,)."""
    return np.asarray(leaves_list(tree_of_groups(distances)))


def dendrogram_plot(
    labels: Sequence[str], distances: Array, different: Collection[str] = ()
) -> Plot:
    """Return which groups are joined at which distance."""
    names = [str(each) for each in labels]
    tree = tree_of_groups(distances)
    drawn = dendrogram(tree, no_plot=True)
    series = []
    for heights, places in zip(drawn["dcoord"], drawn["icoord"], strict=True):
        x, y = np.array(heights), (np.array(places) - 5) / 10  # leaves are at 5, 15, 25, …
        joined = [(float(x[1]), float(y[1:3].mean()), f"joined at {number(float(x[1]))}")]
        series.append(Series("groups", "line", x, y, colour=BLACK, readings=joined))
    order = drawn["leaves"]
    ticks = []
    for place, leaf in enumerate(order):
        mark = ""
        if names[leaf] in different:
            mark = "• "
        ticks.append((float(place), f"{mark}{names[leaf]}"))
    last = float(tree[:, 2].max()) or 1.0
    remark = ""
    if different:
        remark = " A dot marks groups that differ from the rest."
    return Plot(
        "Which groups are similar",
        "Groups are joined from left to right, by the mean distance (MMD) of their members. The "
        f"further left two groups are joined, the more similar they are.{remark}",
        f"A dendrogram of {len(names):,} groups.",
        Axis("distance (MMD) at which groups are joined", 0, 1.05 * last),
        Axis("", len(names) - 0.5, -0.5, ticks=tuple(ticks)),
        series,
        by_point=True,
        has_legend=False,
    )


def distances_matrix(labels: Sequence[str], distances: Array) -> Matrix:
    """Return the distances of all pairs, in the order of the dendrogram."""
    order = order_of_groups(distances)
    names = [str(labels[place]) for place in order]
    return Matrix(
        "Distances of all pairs",
        "The distance (MMD) between every two groups, in the order of the dendrogram. A stronger "
        "colour is a larger distance. Between groups of few rows, distances are large by chance.",
        names,
        distances[np.ix_(order, order)],
        axis="distance (MMD)",
    )


def group_column_plot(
    column: ColumnQuantiles,
    labels: Sequence[Any],
    n_rows: Array,
    different: Collection[str] = (),
    caption: str = "",
) -> Plot:
    """Return the quantiles of one column in every group, in the order given."""
    series, ticks = [], []
    for place, (label, n, quantiles) in enumerate(
        zip(labels, n_rows, column.quantiles, strict=True)
    ):
        colour = BLUE
        if str(label) in different:
            colour = ORANGE
        series += _box(place, f"{label}, {count(int(n), 'row')}", quantiles, colour)
        ticks.append((float(place), str(label)))
    how = "Thick line: median. Box: 25 to 75 %. Thin line: 5 to 95 % of the rows."
    if different:
        how += " Orange: groups that differ from the rest."
    name = shortened(column.name, 40)
    return Plot(
        name,
        f"{caption} {how}".strip(),
        f"Quantiles of {name} in {len(ticks):,} groups.",
        Axis.around(name, column.quantiles),
        Axis("", len(ticks) - 0.4, -0.6, ticks=tuple(ticks)),
        series,
        by_point=True,
        has_legend=False,
        note="median; box 25 to 75 %; line 5 to 95 %",
        is_small=True,
    )


def _box(place: int, name: str, quantiles: Array, colour: str) -> list[Series]:
    """Return the box, the line from 5 to 95 %, and the median of one group."""
    low, lower, middle, upper, high = map(float, quantiles)
    half = np.full(2, BOX_HALF_WIDTH)
    key, height = f"group {place}", np.full(2, float(place))
    text = f"median {number(middle)}, 25 to 75 %: {number(lower)} to {number(upper)}"
    reading = [(middle, float(place), text)]
    box, line, median = np.array([lower, upper]), np.array([low, high]), np.full(2, middle)
    ends = height + half * [-1, 1]
    return [
        Series(name, "band", box, height - half, height + half, colour, key, readings=reading),
        Series(name, "line", line, height, colour=colour, key=key, readings=()),
        Series(name, "line", median, ends, colour=colour, key=key, is_strong=True, readings=()),
    ]


def group_column_plots(result: GroupResult, level: float = LEVEL) -> list[Plot]:
    """Return the columns that differ between groups, each with its quantiles in every group.

    Of many groups, those with the smallest p-values are drawn.
    """
    pictures = result.pictures
    if pictures is None or result.p_value > level:
        return []
    p_values = {each.name: each for each in result.features}
    shown = _shown_groups(result)
    labels = [pictures.labels[place] for place in shown]
    plots = []
    for column in pictures.columns:
        feature = p_values[column.name]
        if feature.p_value > level:
            continue
        p = p_value_text(feature.p_value, result.n_permutations, result.is_complete)
        share = f"{100 * feature.share:.0f} % of the column's spread is between groups ({p})."
        kept = ColumnQuantiles(column.name, column.quantiles[shown])
        different = different_groups(result, level)
        plots.append(
            group_column_plot(kept, labels, pictures.n_rows[shown], different, caption=share)
        )
    return plots


def _shown_groups(result: GroupResult) -> list[int]:
    """Return the places of the groups that are drawn: in their order, of many the first ones."""
    assert result.pictures is not None
    labels = list(result.pictures.labels)
    shown = [labels.index(each.group) for each in result.groups[:MAX_BARS]]
    return sorted(shown)
