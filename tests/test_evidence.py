"""The evidence page says what the numbers say: every verdict is tried with numbers that earn it and that do not."""

import re
from pathlib import Path

import pytest

from muhat.paper import PAGES, Results, evidence_page, read_finished, read_results
from muhat.paper._claims import verdict_for, with_interval
from muhat.paper._estimators import PAPER
from muhat.paper.figure_3b import WAYS
from muhat.paper.table_2 import PRINTED, STEPS, details, deviation, nearest_steps, printed

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
        {"sampling": "once", "estimator": name, "t": t, "chosen": 1 / len(values), **interval("improvement", value)}
        for name, values in curves.items()
        for t, value in enumerate(values, start=1)
    ]
    return results(rows, samplings=["once"], longest={"landweber": 3, "nu-method": 3})


def test_early_stopping_is_judged_at_the_best_iteration_and_after_it():
    good = iterated([-50, 3.0, 1.0, 0.0], [-50, 2.0, 1.0, 0.0])
    assert verdicts("figure-3a", good) == ["holds"] * 4
    bad = iterated([-50, -3.0, -1.0, -1.0], [2.0, -2.0, -1.0, 0.0])
    assert verdicts("figure-3a", bad)[0] == "holds only for ν-method"
    assert verdicts("figure-3a", bad)[2] == "does not hold"
    assert verdicts("figure-3a", bad)[3] == "holds only for Landweber"
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
    assert verdicts("figure-3b", fast) == ["holds"] * 4
    assert "Landweber at t = 50, the last candidate, 2 times as fast" in claims_of("figure-3b", fast)[0].number
    assert "F-KMSE 10 times as fast" in claims_of("figure-3b", fast)[3].number
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


def stacked(gains):
    """Figure 3c with these improvements of the stacked mean by dimension, beside one of 1 of all others."""
    rows = against_dimension({}).rows
    base = {"sampling": "once", "estimator": "stacked", "rule": "loo", **interval("over_s_kmse", 1.0)}
    rows += [{**base, "d": d, **interval("improvement", value)} for d, value in gains.items()]
    return results(rows, samplings=["once"], dimensions=[1, 2, 20, 100])


def test_the_stacked_mean_is_judged_at_twenty_dimensions_and_against_the_best_at_each():
    assert verdicts("figure-3c", stacked({1: 2.0, 20: 30.0, 100: 200.0}))[4:] == ["holds", "holds"]
    found = stacked({1: 0.5, 20: 3.95, 100: 200.0})
    assert verdicts("figure-3c", found)[4:] == [
        "does not hold, by less than the error",
        "does not hold: it does not at d = 1, 20",
    ]


def on_populations(stacked_gains, best=1.0, laplacian=31.0, worst=0.0):
    """Finite populations with these gains of the stacked mean under the Gaussian kernel, and of the best filter."""
    rows = []
    for name in ("wine", "glass"):
        for kernel, gains in (("gaussian", stacked_gains), ("laplacian", {1.0: laplacian, 0.25: worst, 0.1: 1.0})):
            for share, gain in gains.items():
                values = {
                    "kme": 0.0,
                    "s-kmse": best - 1,
                    "f-kmse": best,
                    "auto": 90.0,
                    "distinct": 80.0,
                    "stacked": gain,
                }
                base = {"dataset": name, "kernel": kernel, "share": share, "n": 50, "removable": 50.0}
                rows += [
                    {
                        **base,
                        "estimator": each,
                        "rule": "loo",
                        "of_removable": 2 * value,
                        **interval("improvement", value),
                    }
                    for each, value in values.items()
                ]
    lists = {"kernels": ["gaussian", "laplacian"], "shares": [1.0, 0.25, 0.1], "sizes": [50]}
    return results(rows, datasets=["wine", "glass"], **lists)


def test_finite_populations_are_judged_by_gains_by_filters_and_by_the_worst_cell():
    enough = {1.0: 6.5, 0.25: 23.0, 0.1: 45.0}
    assert verdicts("finite-populations", on_populations(enough)) == ["holds"] * 8
    less = on_populations({1.0: 5.98, 0.25: 21.0, 0.1: 45.0}, best=15.0, laplacian=29.0, worst=-0.7)
    near, fails = "does not hold, by less than the error", "does not hold"
    assert verdicts("finite-populations", less) == [near, fails, fails, fails, "holds", "holds", fails, fails]
    assert "2 of 12 cells; 2 significantly below at all" in claims_of("finite-populations", less)[-1].number
    for allowed in (-0.45, -0.05):  # less than half a percent, and not significant
        assert verdicts("finite-populations", on_populations(enough, worst=allowed))[-1] == "holds"


def test_the_worst_cells_of_finite_populations_are_on_top():
    found = on_populations({1.0: 6.0, 0.25: 22.0, 0.1: 44.0}, worst=-2.0)
    lines = EXPERIMENTS["finite-populations"].details(found).splitlines()
    entries = ["wine, Laplacian, σ² × 0.25, n = 50", "−2.00 % [−2.10, −1.90]", "80.0 % [79.9, 80.1]"]
    assert lines[2].startswith("| " + " | ".join([*entries, "1.00 % [0.90, 1.10], F-KMSE"]))
    means = next(line for line in lines if line.startswith("| Gaussian, σ² × 1, n = 50"))
    assert "| 6.00 % [5.93, 6.07] | 12.0 % | 80.0 % [79.9, 80.1] | 1.00 % [0.93, 1.07] | 90.0 % [89.9, 90.1] |" in means


def rated(small_c, large_beta):
    """The appendix with these improvements at n = 10 for the extremes, and next to none at n = 50."""
    rows = []
    for panel, c, beta, value in (("beta fixed", 0.01, 1.5, small_c), ("c fixed", 1.0, 3.0, large_beta)):
        base = {"estimator": "s-kmse", "sampling": "redrawn", "panel": panel, "c": c, "beta": beta}
        rows += [{**base, "n": n, **interval("improvement", gain)} for n, gain in ((10, value), (50, 0.01))]
    return results(rows, c=[0.01, 1.0], beta=[1.1, 3.0])


def test_a_rate_approaches_kme_where_little_is_gained_at_every_n():
    assert verdicts("appendix", rated(0.01, -0.01)) == ["holds", "holds"]
    assert verdicts("appendix", rated(-2.0, 0.01)) == ["does not hold", "holds"]
    assert "furthest at n = 10" in claims_of("appendix", rated(-2.0, 0.01))[0].number


def classified(inside, wins, both, gains=(9.0, 1.0)):
    row = {"panel": "theorem-1", "rule": "rate(1, 2)", "m": 100, "boundary": 0.7, "estimator": "s-kmse"}
    rows = [{**row, "inside": inside, "wins": wins, "inside_and_wins": both}]
    for panel in ("bandwidth", "size"):
        base = {"panel": panel, "estimator": "f-kmse", "rule": "paper"}
        rows += [{**base, "factor": x, "n": x, **interval("improvement", y)} for x, y in enumerate(gains, start=1)]
    return results(rows, rates=[[1.0, 2.0]])


def test_theorem_1_holds_if_nobody_inside_loses():
    assert verdicts("when-it-pays", classified(0.5, 0.5, 0.5))[2] == "holds"
    assert verdicts("when-it-pays", classified(0.5, 0.8, 0.5))[2] == "holds; it is not necessary at one n"
    assert verdicts("when-it-pays", classified(0.5, 0.8, 0.49))[2] == "does not hold"
    assert verdicts("when-it-pays", classified(0.0, 0.8, 0.0))[2] == "does not hold"


def test_it_pays_where_the_bandwidth_or_the_sample_is_small():
    assert verdicts("when-it-pays", classified(0.5, 0.5, 0.5))[:2] == ["holds"] * 2
    assert verdicts("when-it-pays", classified(0.5, 0.5, 0.5, gains=(1.0, 2.0)))[:2] == ["does not hold"] * 2


def measured(loss, risk):
    rows = [
        {"quantity": "loss of one estimate", "draws": 10, "exact": 1.0, **interval("average", loss)},
        {"quantity": "risk under one kernel", "draws": 10, "exact": 1.0, **interval("average", risk)},
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
    column, tendency, varies, likelihood = claims_of("table-2", found)
    assert column.verdict == "holds within 15 %"
    assert tendency.verdict == "holds only for solvers stopped early"
    assert "45 of 54 cells below KME (the paper: 50 of 54)<br>45 of 45 without truncated SVD" in tendency.number
    assert "45 significantly below, 0 above" in tendency.number
    assert varies.verdict == "does not hold"
    assert likelihood.number.startswith("maximum likelihood is lower on 9 of 9")
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
    assert "is also the one of those tried that favours shrinkage most" in details(tabled({5: -0.1, 40: 0.1}))
    other = tabled({5: 0.1, 40: -0.1}, kme={40: 1.1})
    assert "is not the one of those tried that favours shrinkage most: 45 cells are below KME at 40" in details(other)


def test_a_number_has_its_interval():
    assert with_interval(interval("improvement", -0.004)) == "0.00 % [−0.10, 0.10]"
    assert with_interval(interval("improvement", 12.34)) == "12.3 % [12.2, 12.4]"


def test_a_verdict_names_those_it_holds_for():
    assert verdict_for([], ["tsvd"]) == "does not hold"
    assert verdict_for(["tsvd"], ["tsvd"]) == "holds"
    assert verdict_for(["tsvd"], ["tsvd", "kme"]) == "holds only for truncated SVD"


def test_every_experiment_has_a_text_and_a_title():
    for name, experiment in EXPERIMENTS.items():
        assert experiment.name == name
        assert experiment.title
        assert experiment.text.endswith(".")


def test_a_page_of_a_quick_run_says_so_and_carries_no_verdicts(tmp_path):
    experiment = EXPERIMENTS["figure-1"]
    rows = experiment.table(experiment.settings(True), [experiment.run(experiment.settings(True), {})])
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


def test_the_page_links_to_files_from_where_it_is_and_names_its_commits(tmp_path):
    found = {"figure-3a": iterated([-50, 3.0], [-50, 2.0])}
    text = evidence_page(PAGES["evidence"], found, tmp_path / "docs" / "evidence", tmp_path / "docs" / "evidence.md")
    assert "](evidence/figure-3a.png)" in text
    assert "0123abc" in text
    assert "figure-3c" not in text


ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(not (ROOT / "docs" / "evidence.md").exists(), reason="no full run is committed")
class TestCommitted:
    """The results that are committed."""

    text = (ROOT / "docs" / "evidence.md").read_text() if (ROOT / "docs" / "evidence.md").exists() else ""

    def test_the_page_has_every_experiment_and_its_files_are_there(self):
        for name in PAGES["evidence"].experiments:
            assert f"## {name}:" in self.text
        for target in re.findall(r"\]\(([^)]+)\)", self.text):
            assert (ROOT / "docs" / target).is_file(), target

    def test_it_was_made_at_full_size_and_at_one_commit(self):
        assert "Quick run" not in self.text
        assert len(re.findall(r"[0-9a-f]{40}", self.text)) == 1
        assert "-dirty" not in self.text

    def test_it_is_what_the_results_say(self):
        folder = ROOT / "docs" / "evidence"
        found = read_finished(folder, PAGES["evidence"].experiments.values())
        assert evidence_page(PAGES["evidence"], found, folder, ROOT / "docs" / "evidence.md") == self.text

    def test_the_picture_of_table_2_has_the_steps_of_the_table(self):
        assert nearest_steps(read_results(ROOT / "docs" / "evidence", "table-2")) == STEPS

    def test_the_sizes_are_the_papers(self):
        for name, found in read_finished(ROOT / "docs" / "evidence", PAGES["evidence"].experiments.values()).items():
            expected = PAGES["evidence"].experiments[name].settings(False)
            if name == "table-2":
                assert found.settings["datasets"] == list(PRINTED)
                expected["datasets"] = found.settings["datasets"]
            assert found.settings == expected
            assert found.rows


STACKING = ROOT / "docs" / "stacking-evidence.md"


def test_the_committed_page_of_the_stacked_mean_is_what_its_results_say_at_full_size():
    page, folder, text = PAGES["stacking-evidence"], ROOT / "docs" / "evidence", STACKING.read_text(encoding="utf-8")
    found = read_finished(folder, page.experiments.values())
    assert list(found) == list(page.experiments)
    assert evidence_page(page, found, folder, STACKING) == text
    assert all(found[name].settings == page.experiments[name].settings(False) for name in found)
    assert "-dirty" not in text
