"""The evidence page says what the numbers say: every verdict is tried with two sets of numbers."""

import re
from pathlib import Path

import pytest

from paper import PAGES, Results, evidence_page, read_finished, read_results
from paper._checkpoints import through_json
from paper._claims import verdict_for, with_interval
from paper._estimators import PAPER
from paper.experiments import conditional_accuracy
from paper.experiments.figure_3b import WAYS
from paper.experiments.table_2 import PRINTED, STEPS, details, deviation, nearest_steps, printed

EXPERIMENTS = {**PAGES["evidence"].experiments, **PAGES["stacking-evidence"].experiments}
PROVENANCE = {"commit": "0123abc", "seconds": 60.0}


def results(rows, **settings):
    return Results(settings, rows, PROVENANCE)


def interval(name, value, reach=0.1):
    return {name: value, f"{name}_low": value - reach, f"{name}_high": value + reach}


def verdicts(name, found):
    return [claim.verdict for claim in claims_of(name, found)]


def claims_of(name, found):
    return EXPERIMENTS[name].claims(found)


def iterated(landweber, nu_method):
    """Figure 3a with these improvements at t = 1, 2, ..."""
    curves = {"landweber": landweber, "nu-method": nu_method}
    rows = [
        {
            "sampling": "once",
            "estimator": name,
            "t": t,
            "chosen": 1 / len(values),
            **interval("improvement", value),
        }
        for name, values in curves.items()
        for t, value in enumerate(values, start=1)
    ]
    return results(rows, samplings=["once"], longest={"landweber": 3, "nu-method": 3})


def test_early_stopping_is_judged_at_the_best_iteration_and_after_it():
    good = iterated([-50, 3.0, 1.0, 0.0], [-50, 2.0, 1.0, 0.0])
    assert verdicts("figure-3a", good) == ["holds"] * 3
    bad = iterated([-50, -3.0, -1.0, -1.0], [2.0, -2.0, -1.0, 0.0])
    assert verdicts("figure-3a", bad)[0] == "holds only for ν-method"
    assert verdicts("figure-3a", bad)[2] == "does not hold"
    (early,) = EXPERIMENTS["figure-3a"].findings(bad)
    assert (
        early.number
        == "Landweber (once) −50.0 % [−50.1, −49.9]<br>ν-method (once) 2.00 % [1.90, 2.10]"
    )
    overshooting = iterated([-50, 3.0, 1.0, 0.0], [-50, 2.0, -1.0, 0.0])
    assert verdicts("figure-3a", overshooting)[2] == "holds only for Landweber"
    elsewhere = iterated([-50, 3.0, 1.0, 1.0], [-50, 2.0, 1.0, 0.0])
    assert verdicts("figure-3a", elsewhere)[2] == "holds only for ν-method"
    late = iterated([-50] * 12 + [1.0, 0.0], [-50, 2.0, 1.0])
    assert verdicts("figure-3a", late)[1] == "holds only for ν-method"
    assert "best t = 13" in claims_of("figure-3a", late)[1].number


def timed(**seconds):
    """Figure 3b with these times, the same for the first two ways, and a tenth of them for ours."""
    rows = [
        {
            "n": n,
            "estimator": name,
            "way": way,
            "parameter": 50,
            "at_edge": True,
            **interval("seconds", value * factor, 0.01 * value * factor),
        }
        for n in (10, 20)
        for way, factor in zip(WAYS, (1, 1, 0.1), strict=True)
        for name, value in {"f-kmse": 1.0, **seconds}.items()
    ]
    return results(rows, sizes=[10, 20])


def test_run_time_is_judged_by_quartiles_at_the_largest_n():
    fast = timed(landweber=0.5, **{"nu-method": 0.1})
    assert verdicts("figure-3b", fast) == ["holds"] * 3
    assert (
        "Landweber at t = 50, the last candidate, 2 times as fast"
        in claims_of("figure-3b", fast)[0].number
    )
    (ours,) = EXPERIMENTS["figure-3b"].findings(fast)
    assert "F-KMSE 10 times as fast" in ours.number
    mixed = timed(landweber=2.0, **{"nu-method": 0.1})
    assert verdicts("figure-3b", mixed)[:3] == ["holds only for ν-method"] * 3
    same = timed(landweber=1.0, **{"nu-method": 1.0})
    assert verdicts("figure-3b", same)[:3] == ["does not hold"] * 3


def against_dimension(gains, over=1.0):
    rows = [
        {
            "sampling": "once",
            "d": d,
            "estimator": name,
            "rule": "paper",
            **interval("improvement", gains.get(name, 1.0) * d),
            **interval("over_s_kmse", over),
        }
        for d in (1, 2, 20, 100)
        for name in PAPER
    ]
    return results(rows, samplings=["once"], dimensions=[1, 2, 20, 100])


def test_dimension_is_judged_by_the_difference_of_the_ends():
    growing = against_dimension({"tsvd": 0.5})
    assert verdicts("figure-3c", growing) == ["holds"] * 4
    shrinking = against_dimension(dict.fromkeys(PAPER, -1.0), over=-1.0)
    assert verdicts("figure-3c", shrinking) == ["does not hold"] * 4
    alone = against_dimension({**dict.fromkeys(PAPER, 0.0), "f-kmse": 1.0})
    assert verdicts("figure-3c", alone)[:2] == ["holds only for F-KMSE"] * 2
    losing = against_dimension({"tsvd": -2.0})
    assert verdicts("figure-3c", losing)[3] == "does not hold"
    nothing = against_dimension({"tsvd": 0.0})
    assert verdicts("figure-3c", nothing)[3] == "it gains least, but next to nothing"


def on_laws(stacked_gains, reach=0.1):
    """Two sets and one hard law with these gains of the stacked mean, half of them in values."""
    rows = []
    for family, law in (("sets", "wine"), ("sets", "glass"), ("hard", "ring")):
        for kernel, gain in stacked_gains.items():
            values = {
                "kme": 0.0,
                "s-kmse": 1.0,
                "f-kmse": 2.0,
                "nu-method": 3.0,
                "default": -1.0,
                "stacked": gain,
            }
            for name, value in values.items():
                told = 2 * gain if name == "stacked" else None
                reported = dict.fromkeys(("reported", "reported_deviation", "reported_error"), told)
                within = dict.fromkeys(
                    ("true_within", "realized_within"), None if told is None else 0.75
                )
                cell = {"family": family, "law": law, "kernel": kernel, "share": 1.0, "n": 50}
                gains = interval("improvement", value, reach) | interval(
                    "improvement_of_values", value / 2, reach
                )
                rows.append(
                    {**cell, "estimator": name, "rule": "loo", **gains, **reported, **within}
                )
    return results(rows)


def test_populations_are_reported_in_both_losses_without_verdicts():
    experiment, found = (
        EXPERIMENTS["finite-populations"],
        on_laws({"gaussian": 6.0, "laplacian": 20.0}),
    )
    assert experiment.claims(found) == []
    norm, values, *_ = experiment.findings(found)
    assert (
        norm.number
        == "Gaussian, σ² × 1: 6.00 % [5.93, 6.07]<br>Laplacian, σ² × 1: 20.0 % [19.9, 20.1]"
    )
    assert (
        values.number
        == "Gaussian, σ² × 1: 3.00 % [2.93, 3.07]<br>Laplacian, σ² × 1: 10.0 % [9.9, 10.1]"
    )
    worst = experiment.findings(found)[-1]
    assert worst.number.startswith(
        "−1.00 % [−1.10, −0.90] (rows of wine, Gaussian, σ² × 1, n = 50); 6 of 6 cells"
    )


def test_details_of_populations_have_means_hard_laws_and_reported_gains():
    lines = (
        EXPERIMENTS["finite-populations"]
        .details(on_laws({"gaussian": 6.0}, reach=0.4))
        .splitlines()
    )
    means = (
        "| real sets, drawn without replacement (2) | Gaussian, σ² × 1 | 50 "
        "| 6.0 ± 0.1 | 3.0 ± 0.1 | −1.0 ± 0.1 |"
    )
    assert any(
        line.startswith(means) and line.endswith("| 3.0 ± 0.1 | 1.5 ± 0.1 |") for line in lines
    )
    assert "| ring | 6.0 ± 0.2 / −1.0 ± 0.2 |" in lines
    reported = "| hard laws | Gaussian, σ² × 1 | 50 | 12.0 | 6.0 | 12.0 | 12.0 | 75 % | 75 % |"
    assert reported in lines


def rated(small_c, large_beta):
    """The appendix with these improvements at n = 10, and next to none at n = 50."""
    rows = []
    for panel, c, beta, value in (
        ("beta fixed", 0.01, 1.5, small_c),
        ("c fixed", 1.0, 3.0, large_beta),
    ):
        base = {"estimator": "s-kmse", "sampling": "redrawn", "panel": panel, "c": c, "beta": beta}
        rows += [
            {**base, "n": n, **interval("improvement", gain)}
            for n, gain in ((10, value), (50, 0.01))
        ]
    return results(rows, c=[0.01, 1.0], beta=[1.1, 3.0])


def test_a_rate_approaches_kme_where_little_is_gained_at_every_n():
    assert verdicts("appendix", rated(0.01, -0.01)) == ["holds", "holds"]
    assert verdicts("appendix", rated(-2.0, 0.01)) == ["does not hold", "holds"]
    assert "furthest at n = 10" in claims_of("appendix", rated(-2.0, 0.01))[0].number


def classified(inside, wins, both, gains=(9.0, 1.0)):
    row = {
        "panel": "theorem-1",
        "rule": "rate(1, 2)",
        "m": 100,
        "boundary": 0.7,
        "estimator": "s-kmse",
    }
    rows = [{**row, "inside": inside, "wins": wins, "inside_and_wins": both}]
    for panel in ("bandwidth", "size"):
        base = {"panel": panel, "estimator": "f-kmse", "rule": "paper"}
        rows += [
            {**base, "factor": x, "n": x, **interval("improvement", y)}
            for x, y in enumerate(gains, start=1)
        ]
    return results(rows, rates=[[1.0, 2.0]])


def test_theorem_1_holds_if_nobody_inside_loses():
    assert verdicts("when-it-pays", classified(0.5, 0.5, 0.5)) == ["holds"]
    assert verdicts("when-it-pays", classified(0.5, 0.8, 0.5)) == [
        "holds; it is not necessary at one n"
    ]
    assert verdicts("when-it-pays", classified(0.5, 0.8, 0.49)) == ["does not hold"]
    assert verdicts("when-it-pays", classified(0.0, 0.8, 0.0)) == ["does not hold"]


def test_gains_by_bandwidth_and_size_are_results():
    by_bandwidth, by_size = EXPERIMENTS["when-it-pays"].findings(classified(0.5, 0.5, 0.5))
    assert by_bandwidth.number == "9.0 % at 1<br>1.0 % at 2"
    assert by_size.number == "9.00 % [8.90, 9.10] at n = 1<br>1.00 % [0.90, 1.10] at n = 2"


def measured(loss, risk):
    rows = [
        {
            "quantity": "loss of one estimate",
            "draws": 10,
            "exact": 1.0,
            **interval("average", loss),
        },
        {
            "quantity": "risk under one kernel",
            "draws": 10,
            "exact": 1.0,
            **interval("average", risk),
        },
    ]
    return results(rows)


def test_the_measure_is_judged_by_its_intervals():
    assert verdicts("loss", measured(1.05, 0.95)) == ["holds", "holds"]
    assert verdicts("loss", measured(1.5, 1.5)) == ["does not hold", "does not hold"]


def tabled(gaps, kme=None):
    """Table 2 with KME as printed but at one step, and these differences by steps."""
    rows = []
    for steps, gap in gaps.items():
        for name in PRINTED:
            plain = printed(name, "kme") * (kme or {}).get(steps, 1.0)
            pairs = [
                *((each, "paper") for each in PAPER),
                ("tsvd", "kfold"),
                ("k-means", "baseline"),
                ("maximum likelihood", "baseline"),
            ]
            for estimator, rule in pairs:
                away = 0.0 if estimator in ("kme", "tsvd") else gap
                rows.append(
                    {
                        "dataset": name,
                        "estimator": estimator,
                        "rule": rule,
                        "steps": steps,
                        "nll": plain + away,
                        **interval("difference", away),
                        "p_value": 0.01 if away else 1.0,
                        "kept": 1.0,
                    }
                )
    return results(rows, datasets=list(PRINTED), steps=list(gaps))


def test_table_2_is_judged_where_the_column_of_kme_is_nearest():
    found = tabled({5: -0.1, 40: 0.1}, kme={40: 1.1})
    assert nearest_steps(found) == 5
    assert deviation(found, 5) == pytest.approx(0)
    assert deviation(found, 40) == pytest.approx(10)
    column, tendency, varies = claims_of("table-2", found)
    assert column.verdict == "holds within 15 %"
    assert tendency.verdict == "holds only for solvers stopped early"
    assert (
        "45 of 54 cells below KME (the paper: 50 of 54)<br>45 of 45 without truncated SVD"
        in tendency.number
    )
    assert "45 significantly below, 0 above" in tendency.number
    assert varies.verdict == "does not hold"
    (likelihood,) = EXPERIMENTS["table-2"].findings(found)
    assert likelihood.number.startswith("the score of maximum likelihood is lower on 9 of 9")
    assert claims_of("table-2", tabled({5: -0.1, 40: -0.1}))[1].verdict == "holds"
    assert claims_of("table-2", tabled({5: 0.1}))[1].verdict == "does not hold"
    assert claims_of("table-2", tabled({5: 0.1}, kme={5: 1.2}))[0].verdict == "does not hold"


def test_cells_below_that_are_not_significantly_so_make_no_tendency():
    found = tabled({5: -0.001})
    for row in found.rows:
        row["p_value"] = 0.9
        if row["estimator"] == "tsvd":
            row.update(difference=1.0, p_value=1e-9)
    assert claims_of("table-2", found)[1].verdict == "does not hold"


def test_cells_of_table_2_stand_beside_the_printed_and_are_marked():
    text = details(tabled({5: -0.1}))
    row = next(line for line in text.splitlines() if line.startswith("| wine"))
    assert "| 16.7668 (16.7668) | **16.6668** (16.7548) |" in row
    assert "16.8668† (16.7548)" in details(tabled({5: 0.1}))
    assert "45 of 54 | 45 | 0 | 9 of 9 sets | 100.0 % |" in text


def test_the_page_says_if_the_stop_favours_shrinkage():
    assert "is also the one of those tried that favours shrinkage most" in details(
        tabled({5: -0.1, 40: 0.1})
    )
    other = tabled({5: 0.1, 40: -0.1}, kme={40: 1.1})
    assert (
        "is not the one of those tried that favours shrinkage most: 45 cells are below KME at 40"
        in details(other)
    )


def test_a_number_has_its_interval():
    assert with_interval(interval("improvement", -0.004)) == "0.00 % [−0.10, 0.10]"
    assert with_interval(interval("improvement", 12.34)) == "12.3 % [12.2, 12.4]"


def test_a_verdict_names_those_it_holds_for():
    assert verdict_for([], ["tsvd"]) == "does not hold"
    assert verdict_for(["tsvd"], ["tsvd"]) == "holds"
    assert verdict_for(["tsvd"], ["tsvd", "kme"]) == "holds only for truncated SVD"


def test_every_page_is_in_background_and_its_command_in_reproduce():
    docs = Path(__file__).parents[1] / "docs"
    background = (docs / "background.md").read_text(encoding="utf-8")
    reproduce = (docs / "reproduce.md").read_text(encoding="utf-8")
    for name in PAGES:
        assert f"({name}.md)" in background
        command = name.removesuffix("-evidence").removesuffix("evidence")
        assert f"python -m paper {command}" in reproduce


def test_every_experiment_has_a_text_and_a_title():
    for name, experiment in EXPERIMENTS.items():
        assert experiment.name == name
        assert experiment.title
        assert experiment.text.endswith(".")


def test_a_page_of_a_quick_run_says_so_and_carries_no_verdicts(tmp_path):
    experiment = EXPERIMENTS["figure-1"]
    rows = experiment.table(
        experiment.settings(True), [experiment.run(experiment.settings(True), {})]
    )
    pages = {
        quick: evidence_page(
            PAGES["evidence"],
            {"figure-1": Results(experiment.settings(quick), rows, PROVENANCE)},
            tmp_path,
            tmp_path / "page.md",
        )
        for quick in (True, False)
    }
    assert "Quick run, far below the paper's sizes, without verdicts: figure-1." in pages[True]
    assert "holds" not in pages[True]
    assert "| quick run |\n" in pages[True]
    assert "Quick run" not in pages[False]
    assert "| **holds** |\n" in pages[False]


def test_results_beyond_the_paper_have_no_verdicts(tmp_path):
    found = {"finite-populations": on_laws({"gaussian": 6.0})}
    text = evidence_page(PAGES["stacking-evidence"], found, tmp_path, tmp_path / "page.md")
    assert "## Claims" not in text
    assert "verdict" not in text
    assert (
        "| experiment | measured | result |\n|---|---|---|\n| finite-populations | stacked mean: "
        in text
    )


def test_the_page_links_to_files_from_where_it_is_and_names_its_commits(tmp_path):
    found = {"figure-3a": iterated([-50, 3.0], [-50, 2.0])}
    text = evidence_page(
        PAGES["evidence"], found, tmp_path / "docs" / "evidence", tmp_path / "docs" / "evidence.md"
    )
    assert "](evidence/figure-3a.png)" in text
    assert "0123abc" in text
    assert "## figure-3c" not in text


ROOT = Path(__file__).parents[1]


FOLDER = ROOT / "docs" / "evidence"


@pytest.mark.parametrize("name", PAGES)
def test_a_committed_page_is_what_its_results_say(name, monkeypatch):
    monkeypatch.setattr(conditional_accuracy, "find_file", Path)  # wine quality was there
    page, path = PAGES[name], ROOT / "docs" / f"{name}.md"
    text = path.read_text(encoding="utf-8")
    found = read_finished(FOLDER, page.experiments.values())
    assert evidence_page(page, found, FOLDER, path) == text
    assert found
    assert name not in ("evidence", "stacking-evidence") or "Without results" not in text
    for each, results in found.items():
        assert results.rows
        full = through_json(page.experiments[each].settings(False))
        if each == "table-2":  # svmguide2 was there
            full["datasets"] = list(PRINTED)
        section = text[text.index(f"## {each}:") :].partition("\n## ")[0]
        # Experiments on tests may have results of part of their cells; their tables name them.
        if name not in ("tests-evidence", "group-tests-evidence"):
            assert (results.settings == full) != ("Not a full run" in section), each
    # What was run with changes that are not in its commit has to be run again.
    dirty = [each for each, one in found.items() if one.provenance["commit"].endswith("-dirty")]
    assert set(dirty) <= {"group-learning"}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (ROOT / "docs" / target).is_file(), target


def test_the_page_on_the_paper_was_made_at_one_commit():
    text = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    assert len(re.findall(r"[0-9a-f]{40}", text)) == 1


def test_the_picture_of_table_2_has_the_steps_of_the_table():
    assert nearest_steps(read_results(FOLDER, "table-2")) == STEPS
