"""The displays hold what they show, draw without a screen, and cover nothing; every experiment has a figure."""

import itertools
import json
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from catalogue import SAMPLES, SEED
from muhat import KernelMean
from muhat.comparison import EXACT_UP_TO, compare
from muhat.datasets import standardized
from muhat.filters import FILTERS, IteratedTikhonov
from muhat.kernels import Gaussian
from muhat.paper.experiments import EXPERIMENTS
from muhat.paper.plots.bands import entries, lines
from muhat.paper.plots.dots import table_2_figure
from muhat.paper.plots.figure_3 import SHARES, far_below
from muhat.paper.reproduction import Results
from muhat.paper.reproduction.tables import from_csv, to_csv
from muhat.plots import (
    COLOURS,
    MARKERS,
    NAMES,
    FilterDisplay,
    LeaveOneOutDisplay,
    comparison_figure,
    experiment_figure,
    save,
)
from muhat.plots._style import PRINT

DISPLAYS = [LeaveOneOutDisplay, FilterDisplay]
SMALL = {"m": 3, "draws": 10_000, "angles": 3, "starts": 1, "candidates": 3}


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
    return compare(sample)


def texts_of(figure):
    """Every text that is seen, laid out."""
    figure.draw_without_rendering()
    texts = [text for legend in legends_of(figure) for text in legend.get_texts()]
    for ax in panels_of(figure):
        texts += [*ax.texts, ax.xaxis.label, ax.yaxis.label, ax.title, ax._left_title]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            texts += [tick.label1 for tick in ticks if tick.label1.get_visible()]
    return [text for text in texts if text.get_text() and text.get_visible()]


def panels_of(figure):
    return [ax for ax in figure.axes if ax.get_visible()]


def legends_of(figure):
    return [*figure.legends, *(ax.get_legend() for ax in panels_of(figure) if ax.get_legend())]


def test_every_estimator_has_a_colour_and_a_marker_of_its_own():
    assert set(COLOURS) == set(MARKERS) == set(NAMES) == {*FILTERS, "auto", "maximum likelihood", "k-means"}
    assert len(set(COLOURS.values())) == len(COLOURS)


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_display_is_drawn_where_it_is_told(comparison, display):
    ax = Figure().subplots()
    drawn = display.from_comparison(comparison).plot(ax)
    assert drawn.ax_ is ax
    assert drawn.figure_ is ax.figure
    assert ax.get_xlabel()
    assert ax.get_ylabel()


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_display_makes_a_figure_of_its_own(comparison, display):
    first, second = (display.from_comparison(comparison).plot() for _ in range(2))
    assert first.figure_ is not second.figure_


@pytest.mark.parametrize("display", DISPLAYS)
def test_an_estimator_shows_what_its_comparison_shows(sample, comparison, display):
    curves = display.from_estimator(KernelMean().fit(standardized(sample))).curves
    for curve, expected in zip(curves, display.from_comparison(comparison).curves, strict=True):
        assert curve.label == expected.label
        np.testing.assert_allclose(curve.chosen, expected.chosen, atol=1e-6)


def test_the_chosen_points_are_the_peaks_of_their_curves(comparison):
    for curve in LeaveOneOutDisplay.from_comparison(comparison).curves:
        row = comparison[curve.estimator]
        assert curve.chosen == pytest.approx((100 * row.strength, row.improvement))
        assert curve.y.max() == pytest.approx(row.improvement, abs=1e-6)


def test_the_curves_go_through_every_score(comparison):
    for curve in LeaveOneOutDisplay.from_comparison(comparison).curves:
        row = comparison[curve.estimator]
        drawn = set(zip(curve.x.round(9), curve.y.round(9), strict=True))
        assert drawn >= set(zip((100 * row.strengths).round(9), row.improvements.round(9), strict=True))


def test_filters_are_drawn_as_they_act_on_the_sample(comparison):
    display = FilterDisplay.from_comparison(comparison)
    for curve in display.curves:
        row = comparison[curve.estimator]
        kept = row.shrinkage[-len(display.eigenvalues) :]
        if curve.joined and curve.estimator != "tsvd":
            np.testing.assert_allclose(np.interp(display.eigenvalues, curve.x, curve.y), kept, atol=0.01)
        elif not curve.joined:
            np.testing.assert_array_equal(curve.y, kept)


def test_kme_is_a_labelled_line_at_zero(comparison):
    ax = LeaveOneOutDisplay.from_comparison(comparison).plot(Figure().subplots()).ax_
    assert any(list(line.get_ydata()) == [0, 0] for line in ax.lines)
    assert [text.get_text() for text in ax.texts] == ["KME"]


def test_an_estimator_has_its_colour_in_every_picture(comparison):
    figure = comparison_figure(comparison)
    for ax in figure.axes:
        drawn = {line.get_color() for line in ax.lines}
        assert {COLOURS[row.name] for row in comparison.rows} <= drawn
    [legend] = figure.legends
    colours = [handle.get_color() for handle in legend.legend_handles]
    assert colours == [COLOURS[row.name] for row in comparison.rows]


def test_a_choice_far_below_kme_is_told_in_the_legend_instead_of_squeezing_the_rest(sample):
    comparison = compare(sample, filters=["f-kmse", "s-kmse"], selection="lepski")
    assert comparison["s-kmse"].improvement < -100
    display = LeaveOneOutDisplay.from_comparison(comparison).plot(Figure().subplots())
    told = [label for label in display.legend() if "off scale" in label]
    assert any(label.startswith("s-kmse") and "−" in label for label in told)
    bottom, top = display.ax_.get_ylim()
    assert -2 * top < bottom < 0 < top


def test_estimators_without_a_score_are_in_the_filter_picture_only():
    X = np.random.default_rng(SEED).normal(size=(EXACT_UP_TO + 1, 2))
    comparison = compare(X, filters=["f-kmse", "componentwise"])
    assert "componentwise" not in [curve.estimator for curve in LeaveOneOutDisplay.from_comparison(comparison).curves]
    assert "componentwise, not scored" in FilterDisplay.from_comparison(comparison).legend()


def test_a_filter_of_ones_own_is_drawn_in_grey(sample):
    comparison = compare(sample, filters=[IteratedTikhonov(2), IteratedTikhonov(4)])
    curve = LeaveOneOutDisplay.from_comparison(comparison).curves[1]
    assert curve.style["color"] not in COLOURS.values()


def figures():
    names = [(name, {}) for name in ("random", "duplicated", "three points", "two points", "rank deficient")]
    return [
        *names,
        ("random", {"kernel": "linear"}),
        ("random", {"selection": "lepski"}),
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


def quick_results(name):
    """The results of an experiment run small, as they are read from its files."""
    experiment = EXPERIMENTS[name]
    settings = json.loads(json.dumps(experiment.settings(True)))
    settings.update({key: value for key, value in SMALL.items() if key in settings})
    raw = [json.loads(json.dumps(experiment.run(settings, piece))) for piece in experiment.pieces(settings)]
    return Results(settings, from_csv(to_csv(experiment.table(settings, raw))), {})


@pytest.fixture(scope="module")
def results():
    with threadpool_limits(1):  # the matrices are small
        return {name: quick_results(name) for name in EXPERIMENTS}


@pytest.fixture(scope="module")
def drawn(results):
    return {name: experiment_figure(name, results[name]) for name in EXPERIMENTS}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_a_figure_with_labelled_axes(drawn, name):
    panels = panels_of(drawn[name])
    for ax in panels:
        assert ax.lines or ax.collections
        told = [each for each in [ax, *ax.get_shared_y_axes().get_siblings(ax)] if each.get_ylabel()]
        assert told or all(label.get_text()[0].isalpha() for label in ax.get_yticklabels())
        below = [each for each in [ax, *ax.get_shared_x_axes().get_siblings(ax)] if each.get_xlabel()]
        assert below or any(each.get_supxlabel() for each in drawn[name].subfigs)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_no_text_of_an_experiments_figure_covers_another_or_is_too_small(drawn, name):
    figure = drawn[name]
    texts = texts_of(figure)
    boxes = [text.get_window_extent().shrunk(0.95, 0.9) for text in texts]
    overlapping = [
        (one.get_text(), other.get_text())
        for (one, first), (other, second) in itertools.combinations(zip(texts, boxes, strict=True), 2)
        if first.overlaps(second)
    ]
    assert not overlapping
    page = figure.bbox.padded(1)
    assert all(page.contains(box.x0, box.y0) and page.contains(box.x1, box.y1) for box in boxes)
    assert min(text.get_fontsize() for text in texts) >= 8


def named_colours(figure):
    """The colours of everything that is drawn under an estimator's name, in panels and legends."""
    for ax in panels_of(figure):
        yield from ((line.get_label(), line.get_color()) for line in ax.lines)
    for legend in legends_of(figure):
        labels = [text.get_text().split(" (")[0] for text in legend.get_texts()]
        colours = [getattr(handle, "_color", None) for handle in legend.legend_handles]
        yield from zip(labels, colours, strict=True)


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name not in ("figure-1", "appendix")])
def test_an_estimator_has_its_colour_in_the_figure_of_every_experiment(drawn, name):
    estimators = {told: estimator for estimator, told in NAMES.items()}
    found = [(told, colour) for told, colour in named_colours(drawn[name]) if told in estimators]
    assert found
    assert all(colour == COLOURS[estimators[told]] for told, colour in found)


@pytest.mark.parametrize("name", ["figure-3a", "figure-3b", "figure-3c", "appendix", "when-it-pays"])
def test_curves_have_bands(drawn, name):
    for ax in panels_of(drawn[name]):
        assert ax.collections or ax.get_ylim() == SHARES  # shares of the samples at hand have no error


@pytest.mark.parametrize("name", ["loss", "table-2"])
def test_dots_have_intervals(drawn, name):
    panels = panels_of(drawn[name])
    for ax in panels if name == "loss" else panels[:-1]:
        dots = [line for line in ax.lines if line.get_label() in NAMES.values()]
        intervals = [line for line in ax.lines if line.get_label() not in NAMES.values() and len(line.get_xdata()) == 2]
        assert 0 < len(dots) < len(intervals) + 1


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_same_results_give_the_same_file(results, name, tmp_path):
    for place in ("one.svg", "other.svg"):
        save(experiment_figure(name, results[name]), tmp_path / place)
    content = (tmp_path / "one.svg").read_bytes()
    assert content == (tmp_path / "other.svg").read_bytes()
    assert b"dc:date" not in content


def test_figures_are_written_in_every_format(drawn, tmp_path):
    for form, first in {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}.items():
        save(drawn["loss"], tmp_path / f"loss.{form}")
        assert (tmp_path / f"loss.{form}").read_bytes().startswith(first)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_estimators_and_cases_that_are_missing_do_not_keep_a_figure_from_being_drawn(results, name):
    whole = results[name]
    without = [row for row in whole.rows if row.get("estimator") not in ("nu-method", "tsvd", "auto")]
    experiment_figure(name, replace(whole, rows=without)).draw_without_rendering()
    once = [row for row in whole.rows if row.get("sampling", "once") == "once"]
    experiment_figure(name, replace(whole, rows=once)).draw_without_rendering()


def test_settings_of_matplotlib_are_as_before(results):
    before = {key: mpl.rcParams[key] for key in PRINT}
    experiment_figure("figure-2", results["figure-2"])
    assert before == {key: mpl.rcParams[key] for key in PRINT}


def test_an_experiment_without_a_figure_is_refused():
    with pytest.raises(ValueError, match="did you mean 'figure-3c'"):
        experiment_figure("figure-3C", None)


def gain(estimator, rule, d, value):
    intervals = {"improvement": value, "improvement_low": value - 1, "improvement_high": value + 1}
    return {"estimator": estimator, "rule": rule, "d": d, **intervals}


def test_a_line_far_below_kme_is_told_in_the_legend():
    rows = [gain("f-kmse", "paper", d, 2.0) for d in (1, 2)]
    rows += [gain("componentwise", "loo", d, -10.0 * d) for d in (1, 2)]
    far = far_below(rows)
    assert far == {("componentwise", "loo"): "off scale, −20 to −10 %"}
    assert list(entries(lines(rows, "d", "improvement"), far)) == [
        "F-KMSE",
        "component-wise (off scale, −20 to −10 %)",
    ]


def test_two_rules_of_one_estimator_are_told_apart_in_the_legend():
    rows = [gain("tsvd", rule, 1, 0.0) for rule in ("loo", "paper")]
    keys = entries(lines(rows, "d", "improvement"))
    assert list(keys) == ["truncated SVD (GCV)", "truncated SVD (exact LOO)"]
    assert keys["truncated SVD (GCV)"].get_linestyle() != keys["truncated SVD (exact LOO)"].get_linestyle()


def test_lines_go_from_left_to_right():
    [line] = lines([gain("f-kmse", "paper", d, float(d)) for d in (5, 1, 3)], "d", "improvement")
    assert line.x.tolist() == line.y.tolist() == [1, 3, 5]


def test_table_2_is_shown_after_the_steps_asked_for(results):
    whole = results["table-2"]
    for steps in whole.settings["steps"]:
        [upper, _] = table_2_figure(whole, steps=steps).subfigs
        assert f"after {steps} steps" in upper.get_supxlabel()
