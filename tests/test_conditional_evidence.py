"""The evidence on conditional means and the radius: numbers computed again slowly, and its page."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from muhat import ConditionalMean, Fixed, KernelMean, SyntheticFamily
from muhat._arrays import BLAS_ON_ONE_THREAD
from muhat.filters import Landweber, Tikhonov
from muhat.kernels import Gaussian
from paper import PAGES, Results, draw, evidence_page
from paper._samples import PILOT_OFFSET, median_bandwidth
from paper._tables import from_csv, one, to_csv
from paper.experiments import conditional_accuracy as accuracy
from paper.experiments import conditional_saturation as saturation
from paper.experiments import radius_coverage as radius

ROOT = Path(__file__).parents[1]
PAGE = PAGES["conditional-evidence"]


def quick(name, **changed):
    """The results of an experiment run small, as they are read from its files."""
    experiment = PAGE.experiments[name]
    settings = json.loads(json.dumps({**experiment.settings(True), **changed}))
    with BLAS_ON_ONE_THREAD:
        raw = [
            json.loads(json.dumps(experiment.run(settings, task)))
            for task in experiment.tasks(settings)
        ]
    return Results(
        settings,
        from_csv(to_csv(experiment.table(settings, raw))),
        {"seconds": 1.0, "commit": "0123abc"},
    )


@pytest.fixture(scope="module")
def results():
    return {
        "accuracy": quick("accuracy", datasets=["waves"]),
        "saturation": quick("saturation", n=[20, 40], repetitions=2),
        "radius": quick("radius", draws=6),
    }


def test_every_experiment_has_a_figure_findings_and_a_section_on_the_page(results, tmp_path):
    for name, experiment in PAGE.experiments.items():
        draw(experiment, results[name]).draw_without_rendering()
        assert experiment.findings(results[name])
        assert not experiment.claims(results[name])
        assert experiment.text.endswith(".")
    text = evidence_page(PAGE, results, tmp_path, tmp_path / "page.md")
    assert all(f"## {name}: " in text for name in PAGE.experiments)
    assert text.startswith("# Conditional means and the radius: the evidence\n")
    assert "| experiment | measured | result |" in text
    assert "verdict |" not in text


def test_saturation_has_the_error_of_the_estimator_itself():
    """The error in Fourier coordinates against that on a fine grid; k is a sum of cosines."""
    settings = {**saturation.settings(True), "noise": 0.3}
    task = {"n": 25, "sample": 0}
    rng = np.random.default_rng([settings["seed"], 25, 0])
    x, noise = rng.random(25), 0.3 * rng.standard_normal(25)
    new = (np.arange(2000) + 0.5) / 2000

    def kernel(a, b):
        t = np.abs(a[:, None] - b)
        return 1 + 2 * np.pi**2 * (t**2 - t + 1 / 6)

    _, E = saturation._waves(x)
    _, on_new = saturation._waves(new)
    y = saturation.target(2) @ E + noise
    rows = saturation.run(settings, task)
    for name, filter, parameter in (("f-kmse", Tikhonov(), 20), ("landweber", Landweber(), 30)):
        row = one(rows, smoothness=2, estimator=name)
        value = saturation.FILTERS[name][1][parameter].item()
        model = ConditionalMean(
            kernel="precomputed", filter=filter, selection=Fixed(value), fit_intercept=False
        )
        gaps = model.fit(kernel(x, x), y).predict(kernel(new, x)) - saturation.target(2) @ on_new
        assert row["errors"][parameter] == pytest.approx(np.mean(gaps**2), rel=1e-3)


def test_slopes_are_those_of_powers_of_n():
    rows = [{"n": n, "value": 3 * n**-0.7, "error": 0.01 * n**-0.7} for n in (10, 20, 40, 80)]
    assert saturation.slope(rows)["value"] == pytest.approx(0.7)
    assert saturation.slope(rows)["error"] == pytest.approx(
        0.0033 / np.sqrt(4 * np.var(np.log([10, 20, 40, 80]))), rel=0.02
    )
    assert saturation.rate(4, 1.0) == saturation.rate(2, np.inf) == 0.8


def test_radii_are_those_of_kernel_mean():
    settings = {**radius.settings(True), "draws": 3}
    rows = radius.run(settings, {"n": 30, "first": 0, "last": 3})
    sums = dict.fromkeys(radius.METHODS, 0.0)
    for index, sample in enumerate(SyntheticFamily(20).draw(range(3), 30, settings["seed"])):
        pilot = sample.distribution.sample(
            50, np.random.default_rng([settings["seed"], PILOT_OFFSET, index])
        )
        mu = KernelMean(kernel=Gaussian(median_bandwidth(pilot)), filter="kme").fit(sample.X)
        for method in radius.METHODS:
            sums[method] += mu.radius(method=method)
    for method, total in sums.items():
        assert one(rows, method=method)["radius"] == pytest.approx(total, rel=1e-9)


def test_splits_leave_test_rows_out_and_pinball_is_its_definition():
    settings = accuracy.settings(False)
    X, y, new, true = accuracy.split(settings, {"dataset": "bodyfat", "split": 3})
    assert (X.shape, y.shape, new.shape, true.shape) == ((176, 13), (176,), (76, 13), (76,))
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-9)
    for name in settings["datasets"]:
        rows, target = accuracy.regression_data(name, np.random.default_rng(0))
        assert len(rows) == len(target)
    y = np.array([0.0, 2.0])
    quantiles = np.tile([1.0], (2, len(accuracy.LEVELS)))
    losses = [max(q * (v - 1), (q - 1) * (v - 1)) for v in y for q in accuracy.LEVELS]
    assert accuracy.pinball(y, quantiles) == pytest.approx(np.mean(losses))


def test_wine_quality_takes_part_where_its_file_is(tmp_path, monkeypatch):
    monkeypatch.setenv("MUHAT_DATA", str(tmp_path))
    assert "wine-quality" not in accuracy.settings(False)["datasets"]
    (tmp_path / "winequality-red.csv").write_text(
        '"acidity";"alcohol";"quality"\n7.4;9.4;5\n7.8;9.8;6\n'
    )
    assert accuracy.settings(False)["datasets"] == list(accuracy.SETS)
    X, y = accuracy.regression_data("wine-quality", np.random.default_rng(0))
    assert (X.tolist(), y.tolist()) == ([[7.4, 9.4], [7.8, 9.8]], [5, 6])
    (tmp_path / "winequality-red.csv").write_text("acidity,alcohol,quality\n7.4,9.4,5\n")
    with pytest.raises(
        ValueError, match=r"accuracy: winequality-red.csv .* separated by semicolons, is needed"
    ):
        accuracy.wine_quality()


def test_the_grid_search_on_centred_outputs_is_that_of_scikit_learn():
    settings = {**accuracy.settings(False), "most_rows": 71}
    X, y, new, _ = accuracy.split(settings, {"dataset": "waves", "split": 0})
    model = ConditionalMean().fit(X, y)
    assert len(X) % accuracy.FOLDS == 0
    ridge = KernelRidge(kernel="rbf", gamma=1 / (2 * model.kernel_.bandwidth**2))
    alphas = model.choices_[0].grid[::5] * 0.8 * len(X)
    search = GridSearchCV(ridge, {"alpha": alphas}, cv=5, scoring="neg_mean_squared_error").fit(
        X, y - y.mean()
    )
    ridge.set_params(alpha=search.best_params_["alpha"] / 0.8).fit(X, y - y.mean())
    np.testing.assert_allclose(
        accuracy.centred(X, y, new, model, 5), ridge.predict(new) + y.mean(), rtol=1e-6
    )


def test_findings_are_the_numbers(results):
    covered = [
        {"n": n, "method": method, "draws": 9, "coverage": share}
        for method in radius.METHODS
        for n, share in ((20, 0.5), (100, 0.95))
    ]
    found = radius.findings(Results(radius.settings(False), covered, {}))
    assert [each.number for each in found] == ["50.00 % (n = 20), 95.00 % (n = 100)"] * len(
        radius.METHODS
    )
    rows = [dict(row) for row in results["accuracy"].rows]
    first = results["accuracy"].settings["datasets"][0]
    one(rows, dataset=first, model="muhat").update(
        difference=0.2, difference_low=0.1, difference_high=0.3
    )
    for row in rows:
        if row["method"] == "conformal":
            row.update(coverage=0.8, coverage_error=0.01)
    found = accuracy.findings(Results(results["accuracy"].settings, rows, {}))
    assert found[0].number == f"{first}: 20.00 [10.00, 30.00]<br>better on 0 of 1 sets, worse on 1"
    assert (
        one([vars(each) for each in found if "conformal" in each.what])["number"]
        == f"{first}: 80.0 ± 1.0 %"
    )


def test_peers_reach_no_objective_that_is_lower_by_more_than_rounding_of_their_constraints():
    lines = (ROOT / "docs" / "evidence" / "matching-peers.csv").read_text().splitlines()
    rows = [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:]]
    assert {row["solver"].split()[0] for row in rows} == {"muhat", "skada", "adapt"}
    assert all(float(row["above_ours"]) > -1e-8 for row in rows)
