"""The experiments: what is computed fast is computed again slowly, one sample at a time."""

import hashlib
import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import ttest_rel

from muhat import KernelMean, StackedMean
from muhat._arrays import BLAS_ON_ONE_THREAD
from muhat._parts import as_filter
from muhat.datasets import SyntheticFamily, load_dataset, standardized
from muhat.density import kmeans_start
from muhat.embedding import Embedding
from muhat.gram import DenseGram, DenseProblem
from muhat.kernels import Gaussian, Mixture
from muhat.selection import Fixed, KFold, LeaveOneOut
from paper import PAGES
from paper._checkpoints import through_json
from paper._estimators import (
    BY_LOO,
    LEFT_OUT,
    NAMES,
    PAPER,
    filter_named,
    losses_by_rule,
    losses_of_default,
)
from paper._figures import COLOURS
from paper._samples import (
    blocks,
    exact_losses,
    gaussian_kernels,
    joined,
    median_bandwidth,
    risk_table,
)
from paper._statistics import improvement, mean_of
from paper.experiments import finite_populations as populations
from paper.experiments.figure_1 import probability_closer
from paper.experiments.figure_3a import iterations
from paper.experiments.figure_3b import scores_by_inverting, scores_by_iterating
from paper.experiments.finite_populations import (
    Estimates,
    Population,
    fitted_mixture,
    kernel_for,
    measure_exactly,
)
from paper.experiments.table_2 import PRINTED, _mean_log_density, estimates, matched

EXPERIMENTS = {**PAGES["evidence"].experiments, **PAGES["stacking-evidence"].experiments}
SEED = 7

DIGESTS = {
    "family": "377961c1fd8fcae5",
    "singular": "354bba59fcab7deb",
    "rows": "86a44e11e6b69f59",
    "yes/no .85/.15": "9f93368f5b274cc1",
    "three levels": "a346c70f4b4395dc",
    "Poisson": "b472bd7f2a3d1a6f",
    "half zeros": "05f754044334f89b",
    "N(0, I)": "b97b381af7556689",
    "Cauchy": "1b70b112861a887a",
    "t3": "f5e63e147a3c3961",
    "exponential": "1eff1348d827ab18",
    "lognormal": "7719edcf857bfcc9",
    "ring": "b6f84e0861ab8895",
    "roll": "d17e1c66cef240ba",
    "rounded": "70d50132baa86359",
    "tight clusters": "0c3f436f61aea54a",
}
"""Of the draws that every experiment begins with."""


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """As in the workers; the matrices are small."""
    with BLAS_ON_ONE_THREAD:
        yield


@pytest.fixture(scope="module")
def draws():
    return list(SyntheticFamily(5).draw(range(6), n=20, random_state=SEED))


@pytest.fixture(scope="module")
def found(draws):
    """The losses of all estimators by all rules, by both."""
    return by_rule(draws)


def by_rule(draws):
    return {
        (each.estimator, each.rule): each.losses for each in losses_by_rule(exact_losses(draws))
    }


def run(name, **changed):
    """An experiment's quick table, some settings changed."""
    settings, results = run_tasks(name, **changed)
    return EXPERIMENTS[name].table(settings, results)


def run_tasks(name, part=lambda task: True, **changed):
    """The settings and the rows of an experiment's tasks, or of a part of them."""
    experiment = EXPERIMENTS[name]
    settings = through_json({**experiment.settings(True), **changed})
    return settings, [
        through_json(experiment.run(settings, task))
        for task in filter(part, experiment.tasks(settings))
    ]


RULES = [*((name, "paper") for name in PAPER), ("tsvd", "loo"), ("componentwise", "loo")]


@pytest.mark.parametrize(("name", "rule"), RULES)
def test_samples_together_choose_what_single_fits_choose(draws, found, name, rule):
    selection = "gcv" if (name, rule) == ("tsvd", "paper") else "loo"
    fits = [KernelMean(filter=name, selection=selection).fit(draw.X) for draw in draws]
    single = [
        draw.distribution.squared_distance(mu.embedding_)
        for draw, mu in zip(draws, fits, strict=True)
    ]
    assert found[name, rule] == pytest.approx(single, rel=1e-6)


def test_no_rule_beats_the_oracle(found):
    assert {estimator for estimator, rule in found if rule == "oracle"} == set(PAPER) - {"kme"}
    for (estimator, rule), values in found.items():
        if rule != "oracle" and (estimator, "oracle") in found:
            assert (found[estimator, "oracle"] <= values + 1e-15).all()


def test_the_oracle_of_truncation_is_the_best_there_is(draws, found):
    for i, draw in enumerate(draws):
        gamma = KernelMean(filter="f-kmse").fit(draw.X).eigenvalues_
        means = [
            KernelMean(filter="tsvd", selection=Fixed(0.999 * each)).fit(draw.X)
            for each in gamma[gamma > 0]
        ]
        every = [draw.distribution.squared_distance(mu.embedding_) for mu in means]
        assert found["tsvd", "oracle"][i] == pytest.approx(min(every), rel=1e-6)


def test_auto_takes_the_estimator_with_the_least_leave_one_out_score(draws):
    for draw in draws[:3]:
        fits = [
            KernelMean(filter=name, selection="loo").fit(draw.X) for name in (*BY_LOO, *LEFT_OUT)
        ]
        best = min(fits, key=lambda mu: mu.choice_.score)
        exact = draw.distribution.squared_distance(best.embedding_)
        assert by_rule([draw])["auto", "loo"][0] == pytest.approx(exact, rel=1e-6)


def test_the_default_is_that_of_a_fit(draws, found):
    fits = [KernelMean(kernel=Gaussian(median_bandwidth(draw.X))).fit(draw.X) for draw in draws]
    single = [
        draw.distribution.squared_distance(mu.embedding_)
        for draw, mu in zip(draws, fits, strict=True)
    ]
    assert found["default", "loo"] == pytest.approx(single, rel=1e-6)
    assert (
        losses_of_default(exact_losses(draws)).losses.tolist() == found["default", "loo"].tolist()
    )


def test_given_bandwidths_and_factors_are_those_of_the_kernel(draws):
    factor = exact_losses(draws, gaussian_kernels(draws, 2.0))
    kernel = Gaussian(2 * median_bandwidth(draws[0].X))
    assert np.allclose(factor.cross[0], draws[0].distribution.mean(kernel, draws[0].X))


def test_every_estimator_has_a_name_a_colour_and_a_marker_of_its_own():
    assert set(COLOURS) == set(NAMES)
    assert {*PAPER, *LEFT_OUT, "auto", "default", "best", "stacked"} < set(NAMES)
    assert len(set(COLOURS.values())) == len(COLOURS)


def test_scores_by_inverting_and_by_iterating_are_leave_one_out_scores(draws):
    X = draws[0].X
    gram = DenseGram.from_sample(Gaussian().resolve(X), X)
    K = len(X) * gram.matrix
    grid = np.geomspace(1e-3, 1, 7)
    exact = LeaveOneOut(grid).choose(DenseProblem(gram), filter_named("f-kmse")).scores
    assert np.allclose(scores_by_inverting(K, grid), exact, rtol=1e-9)
    for name in ("landweber", "nu-method"):
        exact = LeaveOneOut(np.arange(1, 13)).choose(DenseProblem(gram), filter_named(name)).scores
        assert np.allclose(scores_by_iterating(K, filter_named(name), 12), exact, rtol=1e-9)


@pytest.mark.parametrize("variances", [(1.0, 1.0), (1.8, 0.2)])
@pytest.mark.parametrize("degrees", [0, 30, 90])
def test_the_probability_that_shrinking_helps_is_that_of_drawing(variances, degrees):
    theta = 1.5 * np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
    x = theta + np.random.default_rng(SEED).normal(size=(400_000, 2)) * np.sqrt(variances)
    closer = (((0.7 * x - theta) ** 2).sum(axis=1) < ((x - theta) ** 2).sum(axis=1)).mean()
    assert probability_closer(theta, np.array(variances), 0.3) == pytest.approx(closer, abs=4e-3)


def test_the_gain_of_shrinking_along_a_direction_is_that_of_drawing():
    row = next(
        row for row in run("figure-1") if row["shape"] == "anisotropic" and row["angle"] == 30
    )
    u = np.array([np.cos(np.radians(30)), np.sin(np.radians(30))])
    theta = 1.5 * u
    x = theta + np.random.default_rng(SEED).normal(size=(400_000, 2)) * np.sqrt([1.8, 0.2])
    shrunk = x - row["best_alpha"] * np.outer(x @ u, u)
    gain = 100 * (
        1 - ((shrunk - theta) ** 2).sum(axis=1).mean() / ((x - theta) ** 2).sum(axis=1).mean()
    )
    assert row["gain_along"] == pytest.approx(gain, abs=0.5)


def test_direction_changes_nothing_for_an_isotropic_distribution():
    rows = run("figure-1")
    spread = {
        shape: np.ptp([row["probability"] for row in rows if row["shape"] == shape])
        for shape in ("isotropic", "anisotropic")
    }
    assert spread["isotropic"] < 1e-12 < 0.01 < spread["anisotropic"]


def test_filters_drawn_for_one_lambda_are_the_filters():
    for row in run("figure-2", points=5):
        filter = as_filter(row["estimator"])
        grid = np.array([0.0 if row["parameter"] is None else row["parameter"]])
        if hasattr(filter, "longest"):
            grid = grid.astype(int)
        assert row["s"] == pytest.approx(float(filter.path(np.array([row["gamma"]]), grid)[0, 0]))


def test_iterations_begin_at_one_and_end_at_the_last():
    grid = iterations(1000)
    assert grid[0] == 1
    assert grid[-1] == 1000
    assert (np.diff(grid) > 0).all()


def test_the_interval_of_an_improvement_covers_as_often_as_it_says():
    rng = np.random.default_rng(SEED)
    true, covered, repeats = 100 * (1 - 0.9 / 1.0), 0, 600
    for _ in range(repeats):
        baseline = rng.exponential(size=100)
        found = improvement(0.9 * baseline + rng.normal(scale=0.1, size=100), baseline)
        covered += found.low <= true <= found.high
    assert covered / repeats == pytest.approx(0.95, abs=0.03)


def test_the_interval_of_a_mean_is_students():
    values = np.array([1.0, 2.0, 4.0])
    found = mean_of(values)
    assert found.value == pytest.approx(values.mean())
    assert found.high - found.value == pytest.approx(
        4.302653 * values.std(ddof=1) / np.sqrt(3), rel=1e-6
    )


def test_blocks_hold_every_sample_once_and_tables_do_not_depend_on_them():
    settings = {"m": 250, "n": 50, "block": 200}
    for case, count in (({"d": 1}, 2), ({"n": 1000}, 13), ({"n": 10**6}, 250)):
        tasks = blocks(settings, [case])
        assert [index for task in tasks for index in range(task["first"], task["last"])] == list(
            range(250)
        )
        assert len(tasks) == count
    whole = [
        {"d": 1, "estimator": name, "rule": "r", "losses": [1.0, 2.0, 4.0]}
        for name in ("kme", "f-kmse")
    ]
    first = [{**row, "losses": row["losses"][:1]} for row in whole]
    rest = [{**row, "losses": row["losses"][1:]} for row in whole]
    assert joined([first, rest]) == whole
    assert risk_table(settings, [first, rest]) == risk_table(settings, [whole])


def test_the_closed_form_loss_and_risk_are_in_the_interval_of_draws():
    rows = run("loss", m=100, draws=50_000)
    assert {row["estimator"] for row in rows} == set(PAPER)
    for row in rows:
        reach = row["average_high"] - row["average"]
        assert abs(row["average"] - row["exact"]) < 2.5 * reach, row


def test_exact_risks_under_theorem_1_agree_with_samples():
    part = {"m": 50, "factors": [0.5], "part": lambda task: task["panel"] == "theorem-1"}
    for row in EXPERIMENTS["when-it-pays"].table(*run_tasks("when-it-pays", **part)):
        if row["exact_risk"] is not None:
            reach = row["risk_high"] - row["risk"]
            assert abs(row["risk"] - row["exact_risk"]) < 2 * reach, row
        if row["inside"] is not None:
            assert row["inside_and_wins"] == row["inside"]


def test_samples_under_a_kernel_without_a_bound_choose_what_single_fits_choose():
    settings, results = run_tasks("when-it-pays", lambda task: task["kernel"] == "linear", m=2)
    draws = list(SyntheticFamily(settings["d"]).draw(range(2), settings["n"], settings["seed"]))
    for row in results[0]:
        if row["rule"] == "paper":
            selection = "gcv" if row["estimator"] == "tsvd" else "loo"
            fits = [
                KernelMean(kernel="linear", filter=row["estimator"], selection=selection).fit(
                    draw.X
                )
                for draw in draws
            ]
            single = [
                draw.distribution.squared_distance(mu.embedding_)
                for draw, mu in zip(draws, fits, strict=True)
            ]
            assert row["losses"] == pytest.approx(single, rel=1e-5), row["estimator"]


def slow_measures(kernel, rest, mu):
    """Loss and error of values by rows not drawn: sums over pairs and triples."""
    M, K, values = len(rest), kernel(rest), mu(rest)
    pairs = [K[j, m] for j in range(M) for m in range(M) if j != m]
    loss = mu.squared_norm() - 2 * values.mean() + np.mean(pairs)
    terms = []
    for j in range(M):
        others = [m for m in range(M) if m != j]
        products = [K[j, m] * K[j, r] for m in others for r in others if m != r]
        terms.append(values[j] ** 2 - 2 * values[j] * np.mean(K[j, others]) + np.mean(products))
    return loss, np.mean(terms)


def test_measures_by_undrawn_rows_are_sums_over_pairs_and_triples():
    rng = np.random.default_rng(SEED)
    kernel = Gaussian(1.5)
    population = Population(kernel, rng.normal(size=(22, 2)))
    drawn = population.draw(10, [SEED])
    assert len(set(drawn.tolist())) == 10
    estimates = Estimates.from_sample(kernel, population.X[drawn], 0)
    found = population.measure(drawn, estimates, 8, rng)
    rest = np.delete(population.X, drawn, axis=0)
    for place, (name, weights) in enumerate(estimates.weights.items()):
        loss, values = slow_measures(kernel, rest, Embedding(kernel, population.X[drawn], weights))
        assert found.losses[place] == pytest.approx(loss, abs=1e-12), name
        assert found.values[place] == pytest.approx(values, abs=1e-12), name
    loss, values = slow_measures(kernel, rest, estimates.stacked.embedding_)
    assert (found.losses[-1], found.values[-1]) == pytest.approx((loss, values), abs=1e-10)


def test_measures_by_undrawn_rows_have_no_bias():
    """Over populations from a known law they have the mean of the exact loss and error."""
    rng, Q, k = np.random.default_rng(SEED), Mixture.isotropic([1.0], [[0.0]], [1.0]), Gaussian(1.0)
    grid = np.linspace(-6, 6, 121)[:, None]
    density = np.exp(-(grid[:, 0] ** 2) / 2)
    density, truth = density / density.sum(), Q.mean(k, grid)
    gaps, loss_gaps = [], []
    weights, smooth = np.full(5, 1 / 5), 0.9
    for _ in range(600):
        population = Population(k, Q.sample(12, rng))
        drawn = np.arange(5)
        mu = Embedding(k, population.X[:5], smooth * weights)
        estimates = Estimates(
            population.X[:5], {"kme": smooth * weights}, SimpleNamespace(embedding_=mu)
        )
        found = population.measure(drawn, estimates, 8, rng)
        assert found.losses[0] == pytest.approx(found.losses[1])
        loss_gaps.append(found.losses[0] - Q.squared_distance(mu))
        gaps.append(found.values[0] - density @ (mu(grid) - truth) ** 2)
    for each in (np.array(loss_gaps), np.array(gaps)):
        assert abs(each.mean()) < 3.5 * each.std() / len(each) ** 0.5


def test_a_loss_on_random_frequencies_is_the_exact_one_without_bias():
    rows = populations.rows_of("sets", "wine", 0, 0)
    kernel = kernel_for(rows, "laplacian", 1.0)
    population = Population(kernel, rows)
    drawn = population.draw(8, [SEED])
    rest = np.delete(np.arange(len(rows)), drawn)
    plain = Embedding(kernel, rows[drawn], np.full(8, 1 / 8))
    mu = Embedding(kernel, rows[drawn] + 0.5, np.full(8, 0.1))
    away = Embedding(kernel, rows[rest], np.full(len(rest), 1 / len(rest)))
    exact = mu.distance(away) ** 2 - plain.distance(away) ** 2
    rng = np.random.default_rng(SEED)
    found = np.array([population._excess(mu, drawn, rest, 64, rng) for _ in range(100)])
    assert abs(found.mean() - exact) < 3.5 * found.std() / 10
    assert found.std() / 10 < 0.1 * plain.distance(away) ** 2


def test_measures_on_a_mixture_are_exact():
    P, rng = fitted_mixture("wine"), np.random.default_rng(SEED)
    kernel, Z = Gaussian(4.0), P.sample(50, rng)
    estimates = Estimates.from_sample(kernel, P.sample(15, rng), 0)
    found = measure_exactly(P, kernel, estimates, Z)
    means = [Embedding(kernel, estimates.X, weights) for weights in estimates.weights.values()]
    for place, mu in enumerate([*means, estimates.stacked.embedding_]):
        assert found.losses[place] == pytest.approx(P.squared_distance(mu), rel=1e-9)
        assert found.values[place] == pytest.approx(
            np.mean((mu(Z) - P.mean(kernel, Z)) ** 2), rel=1e-9
        )


def test_estimates_are_those_of_single_fits():
    X, kernel = np.random.default_rng(SEED).normal(size=(20, 3)), Gaussian(2.0)
    found = Estimates.from_sample(kernel, X, 4)
    for name in ("kme", "s-kmse", "f-kmse", "nu-method"):
        assert np.allclose(
            found.weights[name], KernelMean(kernel=kernel, filter=name).fit(X).weights_
        )
    assert np.allclose(found.weights["default"], KernelMean(kernel=kernel).fit(X).weights_)
    same = StackedMean(kernel=kernel, random_state=4).fit(X).embedding_
    assert found.stacked.embedding_.distance(same) < 1e-9


def test_sets_have_twice_as_many_rows_as_are_drawn_and_mixtures_a_closed_form():
    settings = through_json(EXPERIMENTS["finite-populations"].settings(False))
    for task in EXPERIMENTS["finite-populations"].tasks(settings):
        assert (
            task["family"] != "sets"
            or len(populations.rows_of("sets", task["law"], 0, 0)) >= 2 * task["n"]
        )
        assert task["family"] != "mixtures" or task["kernel"] == "gaussian"


def digest_of(draws):
    """A digest of draws to six digits, which no rounding of a BLAS reaches."""
    text = " ".join(f"{value + 0.0:.6g}" for value in np.ravel(draws).tolist())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_draws_are_the_same_on_every_machine():
    """No draw depends on which eigenvectors a LAPACK picks: a repeated eigenvalue has many."""
    family = SyntheticFamily(20).draw(range(2), n=10, random_state=2014)
    singular = Mixture([1.0], [[0.0] * 4], [np.diag([2.0, 2.0, 0.0, 2.0])])
    found = {
        "family": digest_of([draw.X for draw in family]),
        "singular": digest_of(singular.sample(10, 1)),
        "rows": digest_of(
            Population(Gaussian(1.0), np.zeros((100, 1))).draw(10, [2022, 0, 1, 10, 3])
        ),
        **{
            name: digest_of(draw(np.random.default_rng(1), 10))
            for name, draw in populations.HARD_LAWS.items()
        },
    }
    assert found == DIGESTS


def test_roots_of_covariances_are_triangular_and_their_own_squares():
    family = SyntheticFamily(6).distribution(0)
    for P in (family, Mixture([1.0], [[0.0] * 3], [np.full((3, 3), 2.0)])):
        roots = P._roots
        np.testing.assert_allclose(roots @ roots.swapaxes(1, 2), P.covariances, atol=1e-12)
        assert not np.triu(roots, 1).any()
        assert (np.diagonal(roots, axis1=1, axis2=2) >= 0).all()


def test_table_2_uses_the_weights_of_the_estimator_and_the_scores_of_the_mixture():
    X = standardized(load_dataset("wine").data)[:60]
    kernel = Gaussian().resolve(X)
    found = {
        (name, rule): weights
        for name, rule, weights, _ in estimates(DenseProblem(DenseGram.from_sample(kernel, X)))
    }
    assert set(found) == {*((name, "paper") for name in PAPER), ("tsvd", "kfold"), ("auto", "loo")}
    for name in ("kme", "f-kmse", "nu-method"):
        assert np.allclose(found[name, "paper"], KernelMean(filter=name).fit(X).weights_)
    assert np.allclose(
        found["tsvd", "kfold"], KernelMean(filter="tsvd", selection=KFold()).fit(X).weights_
    )
    start = kmeans_start(X, 3, n_init=2, random_state=0)
    mixture = matched(Embedding(kernel, X, found["kme", "paper"]), start, 10)
    assert mixture.n_iter_ == 10
    assert _mean_log_density(mixture.mixture_, X) == pytest.approx(mixture.score(X))


def test_cells_of_table_2_are_compared_in_pairs():
    settings, results = run_tasks("table-2", datasets=["glass"], repetitions=3, steps=[5])
    rows = EXPERIMENTS["table-2"].table(settings, results)
    raw = {}
    for row in (row for task in results for row in task):
        raw.setdefault((row["estimator"], row["rule"]), []).extend(row["nll"])
    for row in rows:
        if row["rule"] == "oracle":
            assert row["nll"] <= min(each["nll"] for each in rows if each["rule"] == "paper")
            continue
        mine, plain = np.array(raw[row["estimator"], row["rule"]]), np.array(raw["kme", "paper"])
        assert row["nll"] == pytest.approx(mine.mean())
        assert row["difference"] == pytest.approx((mine - plain).mean(), abs=1e-12)
        if np.ptp(mine - plain) > 0:
            assert row["p_value"] == pytest.approx(ttest_rel(mine, plain).pvalue)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_settings_hold_everything_and_the_same_settings_give_the_same_tasks(name):
    experiment = EXPERIMENTS[name]
    for quick in (True, False):
        settings = through_json(experiment.settings(quick))
        assert settings == through_json(experiment.settings(quick))
        tasks = experiment.tasks(settings)
        assert tasks == through_json(tasks)
        assert len({json.dumps(task, sort_keys=True) for task in tasks}) == len(tasks)
        assert "seed" in settings or name in ("figure-1", "figure-2")


@pytest.mark.parametrize("name", sorted(set(EXPERIMENTS) - {"figure-3b"}))
def test_a_task_gives_the_same_numbers_each_time(name):
    experiment = EXPERIMENTS[name]
    settings = through_json({**experiment.settings(True), "m": 2, "draws": 10_000})
    task = experiment.tasks(settings)[-1]
    assert experiment.run(settings, task) == experiment.run(settings, task)


def test_the_papers_sizes_are_the_papers():
    for name in ("figure-3a", "figure-3c", "appendix", "when-it-pays"):
        assert EXPERIMENTS[name].settings(False)["m"] == 1000
    checked = EXPERIMENTS["loss"].settings(False)  # an identity, none of the paper's experiments
    assert checked["m"] == 10_000
    settings = EXPERIMENTS["table-2"].settings(False)
    assert (settings["repetitions"], settings["components"], settings["starts"]) == (30, 5, 50)
    assert settings["test_share"] == 0.25


def test_the_printed_table_is_complete():
    assert {len(row) for row in PRINTED.values()} == {7}
    assert len(PRINTED) == 9
