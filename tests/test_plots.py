"""The displays hold what they show, draw without a screen, and cover nothing."""

import itertools
import re

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from catalogue import SAMPLES, SEED
from figure_parts import texts_of
from muhat import ConditionalMean, IndependenceTest, KernelMean, KernelPCA, TwoSampleTest
from muhat.comparison import compare
from muhat.figures import PALETTE, Axis, Bar, Bars, Plot, Series
from muhat.filters import FILTERS, IteratedTikhonov
from muhat.kernels import Gaussian
from muhat.plots import (
    COLOURS,
    ComponentsDisplay,
    FilterDisplay,
    LeaveOneOutDisplay,
    LeftOutDisplay,
    MeanDisplay,
    PairDisplay,
    PValueMapDisplay,
    QuantileDisplay,
    comparison_figure,
    draw,
    figure_of_test,
    save,
)
from muhat.plots._draw import dashes_in_turn
from muhat.report._svg import bars_html, plot_html
from muhat.selection import MAX_ROWS_REFIT, Fixed

DISPLAYS = [LeaveOneOutDisplay, FilterDisplay]


@pytest.fixture(scope="module", autouse=True)
def no_screen():
    before = mpl.get_backend()
    mpl.use("Agg")
    yield
    mpl.pyplot.close("all")
    mpl.use(before)


@pytest.fixture(scope="module")
def sample():
    return np.random.default_rng(SEED).normal(size=(30, 4))


@pytest.fixture(scope="module")
def comparison(sample):
    return compare(sample, standardize=False)  # as KernelMean, which does not


def test_every_estimator_has_a_colour_and_a_marker_of_its_own():
    assert set(COLOURS) == set(FILTERS)
    assert len(set(COLOURS.values())) == len(COLOURS)


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_display_is_drawn_in_the_axes_given(comparison, display):
    ax = Figure().subplots()
    drawn = display.from_comparison(comparison).plot(ax)
    assert drawn.ax_ is ax
    assert drawn.figure_ is ax.figure
    assert ax.get_xlabel()
    assert ax.get_ylabel()


def every_kind():
    x = np.linspace(0.1, 1, 5)
    nothing = np.array([])
    return Plot(
        "Everything",
        "A caption.",
        "A summary.",
        Axis("x", 0.05, 1.1, is_log=True),
        Axis("y", 0, 1.5, ticks=((0.5, "half"), (1.0, "whole"))),
        [
            Series("line", "line", x, x, colour="#123456", chosen=(0.5, 0.5)),
            Series("points", "points", x, x / 2, colour=PALETTE[1], marker="v", labels=["first"]),
            Series("bars", "bars", x, x[:-1], colour=PALETTE[2]),
            Series("band", "band", x, x, x + 0.2, colour=PALETTE[3]),
            Series("ranges", "ranges", x, x, x + 0.1, colour=PALETTE[8]),
            Series("rug", "rug", x, nothing, colour=PALETTE[4]),
            Series("across", "rule", nothing, np.ones(1), colour=PALETTE[5]),
            Series("down", "rule", np.full(1, 0.3), nothing, colour=PALETTE[6]),
        ],
    )


def test_a_new_figure_is_one_function_that_is_drawn_on_paper_and_on_a_page():
    plot = every_kind()
    ax = Figure().subplots()
    draw(plot, ax)
    assert [text.get_text() for text in ax.get_legend().texts] == [
        each.name for each in plot.series
    ]
    assert (ax.get_xscale(), ax.get_xlabel(), ax.get_xlim()) == ("log", "x", (0.05, 1.1))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["half", "whole"]
    assert [text.get_text() for text in ax.texts] == ["first"]
    page = plot_html(plot, "name")
    for each in plot.series:
        assert f'data-key="{each.name}"' in page
    assert 'style="--own:#123456"' in page
    bars = Bars("B", "", ("a", "b"), [Bar("x", 4.0, "much"), Bar("y", 1.0, "some", False)])
    draw(bars, ax := Figure().subplots())
    assert [patch.get_width() for patch in ax.patches] == [4, 1]
    assert "width:25.0%" in bars_html(bars, "name")


def test_shades_over_a_plane_are_drawn_on_paper_and_on_a_page():
    values = np.array([[0.0, 1.0, np.nan], [2.0, 4.0, 8.0]])
    cells = Series("cells", "cells", np.arange(3), np.arange(2), values, ends=(0.0, 4.0))
    x, y = Axis("x", -0.5, 2.5), Axis("y", 1.5, -0.5)
    plot = Plot("A map", "", "", x, y, [cells], shades="a unit", by_point=True)
    np.testing.assert_array_equal(cells.shades, [[0, 0.25, np.nan], [0.5, 1, 1]])
    figure = Figure()
    draw(plot, ax := figure.subplots())
    [image] = ax.images
    np.testing.assert_array_equal(image.get_array().filled(np.nan), values)
    assert tuple(image.get_extent()) == (-0.5, 2.5, -0.5, 1.5)
    assert ax.get_ylim() == (1.5, -0.5)
    assert figure.axes[1].get_ylabel() == "a unit"
    page = plot_html(plot, "name")
    drawn = re.findall(r'<path fill-opacity="([\d.]+)" d="([^"]+)"', page)
    assert [(float(shade), path.count("M")) for shade, path in drawn] == [
        (0.25, 1),
        (0.5, 1),
        (1, 2),
    ]
    assert "8 at 2, 1" in page  # what is read off


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_display_makes_a_figure_of_its_own(comparison, display):
    first, second = (display.from_comparison(comparison).plot() for _ in range(2))
    assert first.figure_ is not second.figure_


@pytest.mark.parametrize("display", DISPLAYS)
def test_an_estimator_shows_what_its_comparison_shows(sample, comparison, display):
    mu = KernelMean(filter=[row.name for row in comparison.rows]).fit(sample)
    found = display.from_estimator(mu).curves.series
    expected = display.from_comparison(comparison).curves.series
    for one, other in zip(found, expected, strict=True):
        assert one.name == other.name
        assert (one.chosen is None) == (other.chosen is None)
        if one.chosen is not None:
            np.testing.assert_allclose(one.chosen, other.chosen, atol=1e-6)


def score_curves(comparison):
    """The leave-one-out curves of all estimators but KME, which is a line at zero."""
    series = LeaveOneOutDisplay.from_comparison(comparison).curves.series
    return [each for each in series if each.key != "kme"]


def test_the_chosen_points_are_the_peaks_of_their_curves(comparison):
    for curve in score_curves(comparison):
        row = comparison[curve.key]
        assert curve.chosen == pytest.approx((100 * row.strength, row.improvement))
        assert curve.y.max() == pytest.approx(row.improvement, abs=1e-6)


def test_the_curves_go_through_every_score(comparison):
    for curve in score_curves(comparison):
        row = comparison[curve.key]
        drawn = set(zip(curve.x.round(9), curve.y.round(9), strict=True))
        assert drawn >= set(
            zip((100 * row.strengths).round(9), row.improvements.round(9), strict=True)
        )


def test_filters_are_drawn_as_they_act_on_the_sample(comparison):
    *curves, rug = FilterDisplay.from_comparison(comparison).curves.series
    for curve in curves:
        kept = comparison[curve.key].shrinkage[-len(rug.x) :]
        if curve.kind == "line" and curve.key != "tsvd":
            np.testing.assert_allclose(np.interp(rug.x, curve.x, curve.y), kept, atol=0.01)
        elif curve.kind == "points":
            np.testing.assert_array_equal(curve.y, kept)


def test_kme_is_a_labelled_line_at_zero(comparison):
    ax = LeaveOneOutDisplay.from_comparison(comparison).plot(Figure().subplots()).ax_
    assert any(list(line.get_ydata()) == [0, 0] for line in ax.lines)
    assert "kme (the plain average)" in [text.get_text() for text in ax.get_legend().texts]


def test_an_estimator_has_its_colour_in_every_picture(comparison):
    figure = comparison_figure(comparison)
    for ax in figure.axes:
        drawn = {line.get_color() for line in ax.lines}
        drawn |= {to_hex(each.get_facecolor()[0]).upper() for each in ax.collections}
        assert {COLOURS[row.name] for row in comparison.rows} <= drawn
    [legend] = figure.legends
    colours = [handle.get_color() for handle in legend.legend_handles]
    assert colours[:-1] == [COLOURS[row.name] for row in comparison.rows]
    assert legend.texts[-1].get_text() == "this sample's eigenvalues"


def test_a_choice_far_below_kme_is_noted_in_the_legend_instead_of_squeezing_the_rest(sample):
    comparison = compare(sample, filters=["f-kmse", "s-kmse"], selection=Fixed(1.0))
    assert comparison["s-kmse"].improvement < -100
    display = LeaveOneOutDisplay.from_comparison(comparison).plot(Figure().subplots())
    noted = [each.name for each in display.curves.series if "off scale" in each.name]
    assert any(label.startswith("s-kmse") and "−" in label for label in noted)
    bottom, top = display.ax_.get_ylim()
    assert -2 * top < bottom < 0 < top


def test_estimators_without_a_score_are_in_the_filter_picture_only():
    X = np.random.default_rng(SEED).normal(size=(MAX_ROWS_REFIT + 1, 2))
    comparison = compare(X, filters=["f-kmse", "componentwise"])
    assert "componentwise" not in [curve.key for curve in score_curves(comparison)]
    filters = FilterDisplay.from_comparison(comparison).curves.series
    assert "componentwise, not scored" in [each.name for each in filters]


def test_a_filter_of_ones_own_is_drawn_in_grey(sample):
    comparison = compare(sample, filters=[IteratedTikhonov(2), IteratedTikhonov(4)])
    assert score_curves(comparison)[0].colour not in COLOURS.values()


def figures():
    names = [
        (name, {})
        for name in ("random", "duplicated", "three points", "two points", "rank deficient")
    ]
    return [
        *names,
        ("random", {"kernel": "linear"}),
        (
            "random",
            {
                "selection": Fixed(2),
                "filters": ["s-kmse", "f-kmse", "landweber", "nu-method", "tsvd"],
            },
        ),
        ("random", {"filters": "kme"}),
    ]


@pytest.mark.parametrize(("name", "options"), figures())
def test_every_sample_has_a_figure_in_which_no_text_covers_another(name, options):
    figure = comparison_figure(compare(SAMPLES[name], **{"kernel": Gaussian(2.0), **options}))
    boxes = [text.get_window_extent().shrunk(0.95, 0.95) for text in texts_of(figure)]
    assert len(boxes) > 10
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    page = figure.bbox.padded(1)
    assert all(page.contains(box.x0, box.y0) and page.contains(box.x1, box.y1) for box in boxes)


def test_a_sample_without_variance_has_a_figure(tmp_path):
    comparison_figure(compare(np.ones((5, 2)), kernel=Gaussian(1.0))).savefig(tmp_path / "one.png")
    comparison_figure(compare(np.ones((5, 2)), kernel="linear")).savefig(tmp_path / "none.png")
    assert (tmp_path / "one.png").stat().st_size > 1000
    assert (tmp_path / "none.png").stat().st_size > 1000


def test_figures_are_written_in_every_format(comparison, tmp_path):
    for form, first in {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}.items():
        save(comparison_figure(comparison), tmp_path / f"figure.{form}")
        assert (tmp_path / f"figure.{form}").read_bytes().startswith(first)


@pytest.mark.parametrize(
    "draw",
    [
        comparison_figure,
        lambda comparison: LeaveOneOutDisplay.from_comparison(comparison).plot(),
        lambda comparison: save(Figure(), "figure.png"),
    ],
)
def test_without_matplotlib_one_sentence_names_the_extra(comparison, draw, monkeypatch):
    monkeypatch.setattr("muhat.plots._style.find_spec", lambda name: None)
    sentence = (
        r"^muhat\.plots: drawing needs matplotlib, got no matplotlib; "
        r"run pip install 'muhat\[plot\]'\.$"
    )
    with pytest.raises(ImportError, match=sentence):
        draw(comparison)


def test_the_display_of_a_mean_has_its_values_on_a_plane_or_a_line():
    X = np.random.default_rng(0).normal(size=(20, 2))
    plane = MeanDisplay.from_estimator(mu := KernelMean().fit(X), X).plot()
    assert plane.values[3, 5] == pytest.approx(
        mu.score_samples([[plane.axes[0][3], plane.axes[1][5]]])[0]
    )
    line = MeanDisplay.from_estimator(KernelMean().fit(X[:, :1]), X[:, :1]).plot()
    assert line.ax_.get_xlabel() == "feature 0"
    with pytest.raises(ValueError, match="one or two features"):
        MeanDisplay.from_estimator(KernelMean().fit(np.ones((3, 3)) + np.eye(3)), np.ones((3, 3)))
    pyplot.close("all")


def test_the_displays_of_a_conditional_mean_have_left_out_predictions_and_quantiles():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 3, size=(40, 2)), columns=["a", "b"])
    y = np.sin(X["a"]) + 0.1 * rng.normal(size=40)
    model = ConditionalMean().fit(X, y)
    left_out = LeftOutDisplay.from_estimator(model).plot()
    np.testing.assert_allclose(left_out.observed, y)
    assert left_out.predicted.tolist() == model.loo_predictions_.tolist()
    fan = QuantileDisplay.from_estimator(model, X, y, "b", levels=(0.1, 0.5, 0.9)).plot()
    point = pd.DataFrame([[X["a"].median(), fan.values[7]]], columns=["a", "b"])
    np.testing.assert_allclose(
        fan.quantiles[7], model.predict_quantiles(point, [0.1, 0.5, 0.9])[0], rtol=1e-12
    )
    assert fan.ax_.get_xlabel() == "b  (other columns at their medians)"
    with pytest.raises(ValueError, match=r"feature must be one of \['a', 'b'\], got 'c'"):
        QuantileDisplay.from_estimator(model, X, y, "c")
    pyplot.close("all")


def test_rows_of_a_fan_have_the_other_features_at_their_medians_as_the_bands_have():
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(200, 3))
    y = 5 * X[:, 0] + 9 * X[:, 1] + 0.3 * rng.normal(size=200)
    model = ConditionalMean(filter="f-kmse").fit(X, y)
    display = QuantileDisplay.from_estimator(model, X, y)
    points = np.column_stack([X[:, 0], np.full((200, 2), np.median(X, axis=0)[1:])])
    np.testing.assert_allclose(display.outputs, model.predict(points) + model.loo_residuals_)
    lower, upper = np.transpose(
        [np.interp(X[:, 0], display.values, display.quantiles[:, level]) for level in (0, -1)]
    ).T
    inside = np.mean((lower <= display.outputs) & (display.outputs <= upper))
    assert 0.85 < inside < 0.95  # of y itself, a third
    assert "other columns at medians" in str(display.content().series)
    new = X + 0.01
    moved = QuantileDisplay.from_estimator(model, new, y).outputs
    points = np.column_stack([new[:, 0], np.full((200, 2), np.median(new, axis=0)[1:])])
    np.testing.assert_allclose(moved, model.predict(points) + y - model.predict(new))


def test_the_bands_of_quantiles_have_different_colours_also_in_the_legend():
    x = np.linspace(0, 3, 30)[:, None]
    model = ConditionalMean(filter="f-kmse").fit(x, np.sin(x[:, 0]))
    ax = QuantileDisplay.from_estimator(model, x, np.sin(x[:, 0])).plot(Figure().subplots()).ax_
    handles = dict(
        zip(
            [text.get_text() for text in ax.get_legend().texts],
            ax.get_legend().legend_handles,
            strict=True,
        )
    )
    wide, narrow = (handles[name].get_facecolor() for name in ("5 to 95 %", "25 to 75 %"))
    assert sum(narrow[:3]) < sum(wide[:3]) - 0.2
    assert wide[3] == narrow[3] == 1


def test_curves_that_lie_on_each_other_are_dashed_in_turn():
    x = np.linspace(0, 1, 5)
    series = [Series(str(offset), "line", x, x + offset) for offset in (0, 0.001, 0.5)]
    dashes = dashes_in_turn(series)
    (first, pattern), (second, same) = dashes[:2]
    on, off = pattern
    assert pattern == same
    assert (first - second) % (on + off) == on == off
    assert dashes[2] == "-"


@pytest.fixture(scope="module")
def two_samples():
    rng = np.random.default_rng(SEED)
    columns = [f"column {place}" for place in range(20)]
    X, Y = (pd.DataFrame(rng.normal(size=(n, 20)), columns=columns) for n in (30, 40))
    Y["column 3"] += 3
    return TwoSampleTest("gaussian", bandwidths=2, n_permutations=99, random_state=0).test(X, Y)


def test_the_figure_of_two_samples_names_the_groups_and_says_what_is_standardized(two_samples):
    figure = figure_of_test(two_samples, ("before", "after"), standardized=True)
    columns, permutations, along, witness = figure.axes
    assert all(ax.get_title(loc="left") for ax in figure.axes)
    assert columns.get_yticklabels()[0].get_text() == "column 3"
    assert len(columns.patches) == 12
    assert "change from before to after" in columns.get_xlabel()
    shift = f"mean {two_samples.features[0].shift:+.2f} SD, p ≤ 0.01".replace("-", "−")
    assert columns.texts[0].get_text().strip() == shift
    assert along.get_xlabel() == "column 3 (standardized)"
    assert [text.get_text() for text in along.get_legend().texts][:2] == ["before", "after"]
    assert [text.get_text() for text in witness.get_legend().texts] == [
        "before, 30 rows",
        "after, 40 rows",
    ]
    observed = permutations.get_legend().texts[1].get_text()
    assert observed.startswith("observed: ")
    assert observed.endswith(", p ≤ 0.01")
    words = " ".join(text.get_text() for text in texts_of(figure))
    assert not re.search(r"\bX\b|\bY\b", words)


def test_the_figure_of_independence_has_a_picture_of_the_pair():
    rng = np.random.default_rng(SEED)
    x = rng.normal(size=(40, 2))
    y = x[:, 1:] ** 2
    result = IndependenceTest("gaussian", bandwidths=2, n_permutations=49, random_state=0).test(
        x, y
    )
    pair, permutations = figure_of_test(
        result, pair=PairDisplay.from_samples(x, y, (["a", "b"], "c"))
    ).axes
    assert (pair.get_xlabel(), pair.get_ylabel(), pair.get_title(loc="left")) == (
        "b",
        "c",
        "c and b",
    )
    assert permutations.get_title(loc="left")
    assert len(figure_of_test(result).axes) == 1
    ax = PValueMapDisplay.from_result(result).plot(Figure().subplots()).ax_
    assert max(len(ax.get_xticks()), len(ax.get_yticks())) <= 8


def test_a_pair_is_drawn_by_what_its_columns_hold():
    rng = np.random.default_rng(SEED)
    number, group = rng.normal(size=60), rng.integers(0, 3, 60)
    city = np.array(["Bern", "Genf", "Zug"])[group]
    drawn = {
        "scatter": PairDisplay.from_samples(number, number**2),
        "boxes": PairDisplay.from_samples(city, number + group, names=("city", "rent")),
        "counts": PairDisplay.from_samples(pd.DataFrame({"city": city}), group),
    }
    for kind, display in drawn.items():
        assert display.kind == kind
        display.plot(Figure().subplots())
    box = drawn["boxes"].boxes()[1]
    assert (box.level, box.n) == ("Genf", np.sum(group == 1))
    assert (
        box.quantiles.tolist()
        == np.quantile((number + group)[group == 1], [0.05, 0.25, 0.5, 0.75, 0.95]).tolist()
    )
    assert drawn["boxes"].ax_.get_xlabel() == "city (rows)"
    x_levels, y_levels, counts = drawn["counts"].counts()
    assert (x_levels, y_levels) == (["Bern", "Genf", "Zug"], ["0", "1", "2"])
    assert counts.tolist() == np.diag(np.bincount(group)).tolist()


def test_of_many_columns_the_pair_with_the_largest_distance_correlation_is_shown():
    rng = np.random.default_rng(SEED)
    x, y = rng.normal(size=(80, 4)), rng.normal(size=(80, 3))
    y[:, 2] = np.abs(x[:, 1]) + 0.1 * y[:, 2]  # no linear correlation

    def correlation(a, b):
        A, B = (np.abs(each[:, None] - each) for each in (a, b))
        A, B = (each - each.mean(0) - each.mean(1)[:, None] + each.mean() for each in (A, B))
        return np.sum(A * B) / np.sqrt(np.sum(A * A) * np.sum(B * B))

    largest = max(
        itertools.product(range(4), range(3)),
        key=lambda pair: correlation(x[:, pair[0]], y[:, pair[1]]),
    )
    assert (
        PairDisplay.from_samples(x, y).names
        == (f"x {largest[0] + 1}", f"y {largest[1] + 1}")
        == ("x 2", "y 3")
    )
    with pytest.raises(
        ValueError, match="x and y must have the same rows, at least one, got 80 and 79"
    ):
        PairDisplay.from_samples(x, y[1:])
    with pytest.raises(ValueError, match="a name for each of the 4 columns of x is needed, got 2"):
        PairDisplay.from_samples(x, y, (["a", "b"], "y"))


def test_a_negative_share_of_a_variance_is_called_a_negative_r2():
    y = np.arange(5.0)
    assert LeftOutDisplay(y, y, -0.0038).content().note == "R² = −0.0038"
    assert LeftOutDisplay(y, y, 0.5, "dose").content().note == "50 % of the variance of dose"
    assert LeftOutDisplay(y, y, np.nan).content().note == ""


@pytest.mark.parametrize(
    ("filter", "label"),
    [
        ("tsvd", "number of components"),
        ("tikhonov", "λ"),
        ("landweber", "t"),
    ],
)
def test_the_error_of_components_has_its_standard_error_and_marks_the_choice(sample, filter, label):
    pca = KernelPCA("loo", filter=filter).fit(sample[:, :1] + 0.1 * sample)
    path = pca.leave_one_out()
    display = ComponentsDisplay.from_estimator(pca).plot(Figure().subplots())
    band, curve = display.curve.series
    assert display.ax_.get_xlabel() == label
    assert np.array_equal(curve.x, path.grid)
    assert np.array_equal(curve.y, path.errors)
    assert np.allclose(band.upper - curve.y, path.standard_errors)
    assert curve.chosen == (pca.parameter_, path.errors[path.index])
    assert display.curve.note.endswith(", chosen")


def test_a_number_of_components_that_was_given_is_not_called_chosen(sample):
    pca = KernelPCA(1).fit(sample)
    plot = ComponentsDisplay.from_estimator(pca).curve
    assert plot.note == "marked: 1 component"
    assert plot.x.high == pca.leave_one_out().grid[-1]  # others are drawn beside it
