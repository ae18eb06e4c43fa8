"""Every experiment has a figure that says what it shows and is the same each time."""

import itertools
import json
from dataclasses import replace

import matplotlib as mpl
import pytest

from figure_parts import legends_of, panels_of, texts_of
from muhat._arrays import BLAS_ON_ONE_THREAD
from muhat.plots import save
from paper import PAGES, Results, draw
from paper._estimators import NAMES
from paper._figures import COLOURS, PRINT, legend_entries, lines
from paper._tables import from_csv, to_csv
from paper.experiments.figure_3a import SHARES
from paper.experiments.figure_3c import far_below
from paper.experiments.table_2 import STEPS

EXPERIMENTS = {**PAGES["evidence"].experiments, **PAGES["stacking-evidence"].experiments}
SMALL = {"m": 3, "draws": 10_000, "angles": 3, "starts": 1, "candidates": 3}


def quick_results(name):
    """The results of an experiment run small, as they are read from its files."""
    experiment = EXPERIMENTS[name]
    settings = json.loads(json.dumps(experiment.settings(True)))
    settings.update({key: value for key, value in SMALL.items() if key in settings})
    raw = [
        json.loads(json.dumps(experiment.run(settings, task)))
        for task in experiment.tasks(settings)
    ]
    return Results(settings, from_csv(to_csv(experiment.table(settings, raw))), {})


@pytest.fixture(scope="module")
def results():
    with BLAS_ON_ONE_THREAD:  # as in the workers; the matrices are small
        return {name: quick_results(name) for name in EXPERIMENTS}


@pytest.fixture(scope="module")
def drawn(results):
    return {name: draw(EXPERIMENTS[name], results[name]) for name in EXPERIMENTS}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_a_figure_with_labelled_axes(drawn, name):
    panels = panels_of(drawn[name])
    for ax in panels:
        assert ax.lines or ax.collections
        beside = [
            each for each in [ax, *ax.get_shared_y_axes().get_siblings(ax)] if each.get_ylabel()
        ]
        assert beside or all(label.get_text()[0].isalpha() for label in ax.get_yticklabels())
        below = [
            each for each in [ax, *ax.get_shared_x_axes().get_siblings(ax)] if each.get_xlabel()
        ]
        assert below or any(each.get_supxlabel() for each in drawn[name].subfigs)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_no_text_of_an_experiments_figure_covers_another_or_is_too_small(drawn, name):
    figure = drawn[name]
    texts = texts_of(figure)
    boxes = [text.get_window_extent().shrunk(0.95, 0.9) for text in texts]
    overlapping = [
        (one.get_text(), other.get_text())
        for (one, first), (other, second) in itertools.combinations(
            zip(texts, boxes, strict=True), 2
        )
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


@pytest.mark.parametrize(
    "name", [name for name in EXPERIMENTS if name not in ("figure-1", "appendix")]
)
def test_an_estimator_has_its_colour_in_the_figure_of_every_experiment(drawn, name):
    estimators = {name: estimator for estimator, name in NAMES.items()}
    found = [(label, colour) for label, colour in named_colours(drawn[name]) if label in estimators]
    assert found
    assert all(colour == COLOURS[estimators[label]] for label, colour in found)


@pytest.mark.parametrize(
    "name", ["figure-3a", "figure-3b", "figure-3c", "appendix", "when-it-pays"]
)
def test_curves_have_bands(drawn, name):
    for ax in panels_of(drawn[name]):
        assert (
            ax.collections or ax.get_ylim() == SHARES
        )  # shares of the samples at hand have no error


@pytest.mark.parametrize("name", ["loss", "table-2"])
def test_dots_have_intervals(drawn, name):
    panels = panels_of(drawn[name])
    for ax in panels if name == "loss" else panels[:-1]:
        dots = [line for line in ax.lines if line.get_label() in NAMES.values()]
        intervals = [
            line
            for line in ax.lines
            if line.get_label() not in NAMES.values() and len(line.get_xdata()) == 2
        ]
        assert 0 < len(dots) < len(intervals) + 1


@pytest.mark.parametrize("name", ["loss", "figure-3c"])
def test_the_same_results_give_the_same_file(results, name, tmp_path):
    for place in ("one.svg", "other.svg"):
        save(draw(EXPERIMENTS[name], results[name]), tmp_path / place)
    content = (tmp_path / "one.svg").read_bytes()
    assert content == (tmp_path / "other.svg").read_bytes()
    assert b"dc:date" not in content


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_estimators_and_cases_that_are_missing_do_not_keep_a_figure_from_being_drawn(results, name):
    whole = results[name]
    without = [
        row for row in whole.rows if row.get("estimator") not in ("nu-method", "tsvd", "auto")
    ]
    draw(EXPERIMENTS[name], replace(whole, rows=without)).draw_without_rendering()
    once = [row for row in whole.rows if row.get("sampling", "once") == "once"]
    draw(EXPERIMENTS[name], replace(whole, rows=once)).draw_without_rendering()


def test_settings_of_matplotlib_are_as_before(results):
    before = {key: mpl.rcParams[key] for key in PRINT}
    draw(EXPERIMENTS["figure-2"], results["figure-2"])
    assert before == {key: mpl.rcParams[key] for key in PRINT}


def gain(estimator, rule, d, value):
    intervals = {"improvement": value, "improvement_low": value - 1, "improvement_high": value + 1}
    return {"estimator": estimator, "rule": rule, "d": d, **intervals}


def test_a_line_far_below_kme_is_noted_in_the_legend():
    rows = [gain("f-kmse", "paper", d, 2.0) for d in (1, 2)]
    rows += [gain("componentwise", "loo", d, -10.0 * d) for d in (1, 2)]
    far = far_below(rows)
    assert far == {("componentwise", "loo"): "off scale, −20 to −10 %"}
    assert list(legend_entries(lines(rows, "d", "improvement"), far)) == [
        "F-KMSE",
        "component-wise (off scale, −20 to −10 %)",
    ]


def test_two_rules_of_one_estimator_are_distinguished_in_the_legend():
    rows = [gain("tsvd", rule, 1, 0.0) for rule in ("loo", "paper")]
    keys = legend_entries(lines(rows, "d", "improvement"))
    assert list(keys) == ["truncated SVD (GCV)", "truncated SVD (exact LOO)"]
    assert (
        keys["truncated SVD (GCV)"].get_linestyle()
        != keys["truncated SVD (exact LOO)"].get_linestyle()
    )


def test_lines_go_from_left_to_right():
    [line] = lines([gain("f-kmse", "paper", d, float(d)) for d in (5, 1, 3)], "d", "improvement")
    assert line.x.tolist() == line.y.tolist() == [1, 3, 5]


def test_table_2_is_shown_after_its_steps_or_the_most_there_are(results):
    whole = results["table-2"]
    [upper, _] = draw(EXPERIMENTS["table-2"], whole).subfigs
    assert f"after {STEPS} steps" in upper.get_supxlabel()
    fewer = replace(whole, rows=[row for row in whole.rows if row["steps"] == 5])
    [upper, _] = draw(EXPERIMENTS["table-2"], fewer).subfigs
    assert "after 5 steps" in upper.get_supxlabel()
