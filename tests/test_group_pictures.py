"""Pictures of groups: a map with errors, a dendrogram, the matrix in its order, single columns."""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

from muhat import (
    GroupBarsDisplay,
    GroupColumnDisplay,
    GroupDistanceDisplay,
    GroupMapDisplay,
    GroupTest,
    GroupTreeDisplay,
    KernelMeans,
)
from muhat.errors import MuhatError
from muhat.figures import dendrogram_plot, distances_matrix, group_column_plots, group_map_plot
from muhat.plots import figure_of_groups

FEW = {"kernel": "gaussian", "bandwidths": "median", "n_permutations": 99}


@pytest.fixture(scope="module")
def frame():
    """Six shops, of which B has higher prices and E a wider spread of amounts."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(180, 3)), columns=["price", "amount", "visits"])
    frame["shop"] = np.repeat(list("ABCDEF"), 30)
    frame.loc[frame["shop"] == "B", "price"] += 2.5
    frame.loc[frame["shop"] == "E", "amount"] *= 5
    return frame


@pytest.fixture(scope="module")
def result(frame):
    return GroupTest(**FEW).test(frame, "shop")


def test_the_map_has_errors_of_the_size_that_samples_scatter_by():
    """Two groups of one law: the standard error of a coordinate is the SD over samples."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["x", "y", "far"], [20, 20, 60])
    places, errors = [], []
    for _ in range(60):
        X = rng.normal(size=(100, 1)) + 3.0 * (groups == "far")[:, None]
        found = GroupTest(**FEW).test(X, groups).pictures
        x, y, far = (found.labels.index(each) for each in ("x", "y", "far"))
        places.append(found.coordinates[x, 0] - found.coordinates[y, 0])
        errors.append(np.hypot(found.errors[x, 0], found.errors[y, 0]))
        assert np.linalg.norm(found.coordinates[far]) > 0.1
    assert np.std(places) == pytest.approx(np.mean(errors), rel=0.35)


def test_a_group_of_one_row_has_no_ellipse():
    rng = np.random.default_rng(0)
    result = GroupTest(**FEW).test(rng.normal(size=(13, 2)), list("aaaabbbbccccd"))
    found = result.pictures
    assert np.isnan(found.errors[found.labels.index("d")]).all()
    plot = group_map_plot(found.labels, found.coordinates, found.errors, found.shares)
    assert [each.name for each in plot.series if each.kind == "band"] == ["a", "b", "c"]


def test_different_groups_are_in_another_colour_and_named(result):
    plot = GroupMapDisplay.from_result(result).content()
    named = {each.name: each for each in plot.series if each.kind == "points"}
    readings = [text for _, _, text in named["differ from the rest"].readings]
    expected = sorted(each.group for each in result.groups if each.p_value <= 0.05)
    assert readings == expected
    assert {"B", "E"} <= set(expected)
    assert {"B", "E"} <= set(named["differ from the rest"].labels)
    assert 0 < sum(GroupMapDisplay.from_result(result).shares) <= 1 + 1e-12


def test_labels_on_a_map_do_not_cover_each_other():
    labels = [f"group {number}" for number in range(30)]
    places = np.random.default_rng(0).normal(size=(30, 2)) * [1, 0.2]
    errors, shares = np.full((30, 2), 0.05), np.array([0.5, 0.2])
    drawn = GroupMapDisplay(labels, places, errors, shares).plot()
    drawn.figure_.draw_without_rendering()
    boxes = [text.get_window_extent() for text in drawn.ax_.texts]
    pyplot.close(drawn.figure_)
    assert 5 <= len(boxes) < 30
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]


def test_groups_near_each_other_are_named_on_different_sides():
    places = np.array([[0, 0], [0.01, 0.05], [0.02, 0], [1, 1], [-1, -1]])
    plot = group_map_plot("abcde", places, np.zeros((5, 2)), np.array([0.5, 0.2]))
    (points,) = (each for each in plot.series if each.kind == "points")
    assert [text for _, _, text, _ in points.placed_labels] == list("abcde")
    assert len({side for _, _, text, side in points.placed_labels if text in "abc"}) == 3


def test_the_matrix_is_in_the_order_of_the_dendrogram(result):
    found = result.pictures
    tree = dendrogram_plot(found.labels, found.distances)
    matrix = distances_matrix(found.labels, found.distances)
    assert [text for _, text in tree.y.ticks] == list(matrix.labels)
    for place, label in enumerate(matrix.labels):
        row = found.distances[found.labels.index(label)]
        np.testing.assert_array_equal(np.sort(matrix.values[place]), np.sort(row))
    # What is joined last is furthest: a group that differs.
    assert matrix.labels[0] in "BE"
    pair = next(each for each in result.pairs if {each.first, each.second} == {"A", "B"})
    a, b = found.labels.index("A"), found.labels.index("B")
    assert found.distances[a, b] == pytest.approx(pair.mmd)


def test_distances_that_are_not_known_do_not_break_the_tree():
    distances = np.array([[0.0, 0.2, np.nan], [0.2, 0.0, 0.5], [np.nan, 0.5, 0.0]])
    assert len(dendrogram_plot("abc", distances).series) == 2
    assert np.isnan(distances_matrix("abc", distances).values).sum() == 2


def test_columns_that_differ_have_quantiles_of_every_group(frame, result):
    plots = group_column_plots(result)
    assert {plot.title for plot in plots} == {"price", "amount"}
    display = GroupColumnDisplay.from_result(result, "price")
    place = display.labels.index("B")
    values = frame.loc[frame["shop"] == "B", "price"]
    np.testing.assert_allclose(
        display.quantiles[place], values.quantile([0.05, 0.25, 0.5, 0.75, 0.95])
    )
    with pytest.raises(MuhatError, match="column"):
        GroupColumnDisplay.from_result(result, "weight")
    nothing = GroupTest(**FEW).test(
        np.random.default_rng(0).normal(size=(40, 1)), list("abcd") * 10
    )
    assert group_column_plots(nothing) == []


def test_every_display_and_the_figure_can_be_drawn(result, frame):
    pytest.importorskip("matplotlib")
    displays = (GroupBarsDisplay, GroupMapDisplay, GroupDistanceDisplay, GroupTreeDisplay)
    for kind in (*displays, GroupColumnDisplay):
        assert kind.from_result(result).plot().ax_.get_xlabel() or kind is GroupDistanceDisplay
    means = KernelMeans().fit(frame[["price", "amount", "visits"]], frame["shop"])
    tree = GroupTreeDisplay.from_estimator(means).plot()
    names = {each.get_text() for each in tree.ax_.get_yticklabels()}
    assert names == set("ABCDEF")
    assert len(figure_of_groups(result).axes) >= 5


@pytest.mark.parametrize("shift", [0, 3])
@pytest.mark.parametrize("last", ["Filiale Köln", "Filiale " + 10 * "weit "])
def test_long_names_and_the_dendrogram_are_inside_the_figure(shift, last):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    names = ["Filiale Aachen", "Filiale Berlin", "Filiale Hamburg", last]
    X = rng.normal(size=(80, 2))
    X[:20] += shift
    figure = figure_of_groups(GroupTest(**FEW).test(X, np.repeat(names, 20)))
    figure.draw_without_rendering()
    width, height = figure.get_size_inches() * figure.dpi
    for ax in figure.axes:
        box = ax.get_tightbbox()
        assert min(box.x0, box.y0) >= -1
        assert box.x1 <= width + 1
        assert box.y1 <= height + 1


def test_the_page_shows_every_picture(result):
    page = result.to_html()
    for title in ("Map of the groups", "Which groups are similar", "Distances of all pairs"):
        assert title in page
    assert len(re.findall(r'<td style="--share:', page)) == 36
    assert 'class="point below"' in page
    assert page.count('class="plot named small"') == 2
    assert "amount SD × " in page


def test_the_page_of_a_tolerance_says_what_was_allowed(frame):
    page = GroupTest(**FEW, tolerance=0.1).test(frame, "shop").to_html()
    assert "by more than the tolerance" in page
    assert "Some differ by more than the tolerance" in page
    assert "p for more than the tolerance" in page
    within = GroupTest(**FEW, tolerance=1.2).test(frame, "shop").to_html()
    assert "They differ, but not detectably by more than the tolerance" in within


def test_many_groups_are_on_the_map_without_matrix_and_pairs():
    rng = np.random.default_rng(0)
    result = GroupTest(**FEW).test(rng.normal(size=(120, 1)), np.repeat(np.arange(60), 2))
    page = result.to_html()
    assert "Map of the groups" in page
    assert "Distances of all pairs" not in page


def test_shifts_and_words_are_within_strata():
    """A group that is mostly at an expensive site is not called expensive."""
    rng = np.random.default_rng(0)
    site = np.repeat([0, 1], 60)
    groups = np.r_[np.repeat(list("abc"), [40, 10, 10]), np.repeat(list("abc"), [10, 25, 25])]
    price = 6.0 * site + rng.normal(size=120)
    amount = rng.normal(size=120) + 2.0 * (groups == "a")
    frame = pd.DataFrame({"price": price, "amount": amount})
    result = GroupTest(n_permutations=199).test(frame, groups, strata=site)
    shifts = {each.group: (each.column, each.shift) for each in result.groups}
    assert shifts["a"][0] == "amount"
    assert 1.4 < shifts["a"][1] < 2.6
    assert "Largest difference: amount" in result.verdict()
    (most,) = (each for each in result.features if each.name == "price")
    assert abs(most.shift) < 0.6
