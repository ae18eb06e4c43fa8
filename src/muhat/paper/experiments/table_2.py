"""Table 2: the negative log-likelihood of mixtures fitted by kernel mean matching, on nine data sets.

The paper does not say when its solver stops, and much depends on it: each fit is done with several numbers of steps,
the same for all estimators.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, ttest_1samp
from sklearn.exceptions import ConvergenceWarning

from muhat._arrays import Array
from muhat.datasets import NAMES, at_hand, load, standardized
from muhat.density import MatchedMixture, kmeans_start
from muhat.embedding import Embedding
from muhat.gram import DenseGram, DenseProblem
from muhat.kernels import Gaussian
from muhat.kernels._mixtures import Mixture
from muhat.paper.experiments.base import Experiment, Piece, Row, Settings
from muhat.paper.experiments.contenders import BY_GCV, PAPER, filter_named
from muhat.paper.experiments.samples import joined
from muhat.paper.experiments.statistics import mean_of
from muhat.selection import GCV, Choice, KFold, LeaveOneOut

CONVERGED = 10**4
"""A number of steps that no fit reaches."""

TOL = 1e-10

START, LIKELIHOOD = "k-means", "maximum likelihood"
"""The baselines: the start itself, and scikit-learn's maximum-likelihood mixture of the same form."""

LEAST_VARIANCE = MatchedMixture().min_variance
"""Of a component, here with features of variance one."""


def settings(quick: bool) -> Settings:
    """Return the paper's sizes, or small ones; a data set that is not on this machine is left out."""
    return {
        "seed": 2014,
        "datasets": ["glass", "wine"] if quick else list(at_hand()),
        "repetitions": 2 if quick else 30,
        "components": 5,
        "test_share": 0.25,
        "starts": 5 if quick else 50,
        "steps": [5, 40] if quick else [5, 10, 20, 40, 80, 160, CONVERGED],
    }


def pieces(settings: Settings) -> list[Piece]:
    """Return a piece for each repetition on each data set."""
    return [
        {"dataset": name, "repetition": repetition}
        for name in settings["datasets"]
        for repetition in range(settings["repetitions"])
    ]


def run(settings: Settings, piece: Piece) -> list[Row]:
    """Split the data, estimate, match from one start, and return the scores on the test part."""
    X = standardized(load(piece["dataset"]).data)
    place = [settings["seed"], NAMES.index(piece["dataset"]), piece["repetition"]]
    order = np.random.default_rng(place).permutation(len(X))
    test, train = np.split(X[order], [round(settings["test_share"] * len(X))])
    start = kmeans_start(train, settings["components"], settings["starts"], random_state=piece["repetition"])
    kernel = Gaussian().resolve(train)
    rows = []
    for estimator, rule, weights, kept in estimates(DenseProblem(DenseGram.from_sample(kernel, train))):
        embedding = Embedding(kernel, train, weights)
        scores = [matched(embedding, start, steps).score(test) for steps in settings["steps"]]
        rows += [
            _row(piece, estimator, rule, steps, score, kept)
            for steps, score in zip(settings["steps"], scores, strict=True)
        ]
    baselines = {START: _mean_log_density(start, test), LIKELIHOOD: _by_likelihood(train, start).score(test)}
    return rows + [
        _row(piece, name, "baseline", steps, score, None)
        for name, score in baselines.items()
        for steps in settings["steps"]
    ]


def estimates(problem: DenseProblem) -> list[tuple[str, str, Array, float]]:
    """Return name, rule, weights and share of the components kept, of the paper's estimators and of ours."""
    by_loo = [name for name in PAPER if name not in BY_GCV]
    rule = LeaveOneOut()
    choices = rule.choices(problem, [filter_named(name) for name in by_loo])
    told = [(name, "paper", choice) for name, choice in zip(by_loo, choices, strict=True)]
    told += [(name, "paper", GCV().choose(problem, filter_named(name))) for name in BY_GCV]
    told += [(name, "kfold", KFold().choose(problem, filter_named(name))) for name in BY_GCV]
    told.append(("auto", "loo", rule.best(problem, choices)))
    return [(name, how, choice.weights(problem), _kept(problem, choice)) for name, how, choice in told]


def _kept(problem: DenseProblem, choice: Choice) -> float:
    """Return tr s(A)/n."""
    return float(choice.shrinkage(problem).mean())


def matched(embedding: Embedding, start: Mixture, steps: int) -> MatchedMixture:
    """Return the mixture after so many steps of the solver."""
    mixture = MatchedMixture(len(start.weights), tol=TOL, max_iter=steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is stopped on purpose
        return mixture.fit_embedding(embedding, start)


def _mean_log_density(mixture: Mixture, X: Array) -> float:
    """Return the mean of log Σ_j π_j N(x; θ_j, σ_j² I)."""
    parts = [
        np.log(weight) + multivariate_normal(mean, max(covariance[0, 0], LEAST_VARIANCE)).logpdf(X)
        for weight, mean, covariance in zip(mixture.weights, mixture.means, mixture.covariances, strict=True)
    ]
    return float(logsumexp(parts, axis=0).mean())


def _by_likelihood(X: Array, start: Mixture) -> Any:
    """Return scikit-learn's maximum-likelihood mixture of the same form, from the same start."""
    from sklearn.mixture import GaussianMixture  # here, because it takes longer to import than all of muhat

    return GaussianMixture(
        len(start.weights),
        covariance_type="spherical",
        weights_init=start.weights,
        means_init=start.means,
        precisions_init=1 / np.maximum(start.covariances[:, 0, 0], LEAST_VARIANCE),
        reg_covar=LEAST_VARIANCE,
        max_iter=1000,
    ).fit(X)


def _row(piece: Piece, estimator: str, rule: str, steps: int, score: float, kept: float | None) -> Row:
    told = {"dataset": piece["dataset"], "estimator": estimator, "rule": rule, "steps": steps}
    return {**told, "nll": [-float(score)], "kept": [] if kept is None else [kept]}


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the mean score of every cell, its difference from KME's with a paired test, and the oracle's."""
    rows = joined(results)
    plain = {(row["dataset"], row["steps"]): np.array(row["nll"]) for row in rows if row["estimator"] == "kme"}
    return [_cell(row, plain[row["dataset"], row["steps"]]) for row in [*rows, *_oracles(rows)]]


def _oracles(rows: Sequence[Row]) -> list[Row]:
    """Return the best of the paper's estimators on the test part of each repetition: no rule can choose better."""
    cells: dict[tuple[str, int], list[Array]] = {}
    for row in rows:
        if row["rule"] == "paper":
            cells.setdefault((row["dataset"], row["steps"]), []).append(np.array(row["nll"]))
    return [
        {"dataset": name, "estimator": "best", "rule": "oracle", "steps": steps, "nll": np.min(nll, axis=0), "kept": []}
        for (name, steps), nll in cells.items()
    ]


def _cell(row: Row, plain: Array) -> Row:
    nll = np.array(row["nll"])
    gap = nll - plain
    different = len(gap) > 1 and bool(np.any(gap != gap[0]))
    return {
        **{key: row[key] for key in ("dataset", "estimator", "rule", "steps")},
        "repetitions": len(nll),
        **mean_of(nll).columns("nll"),
        **mean_of(gap).columns("difference"),
        "p_value": float(ttest_1samp(gap, 0).pvalue) if different else 1.0,
        "below": int((gap < 0).sum()),
        "kept": float(np.mean(row["kept"])) if len(row["kept"]) else None,
    }


EXPERIMENT = Experiment(
    name="table-2",
    title="negative log-likelihood of mixtures fitted by kernel mean matching, nine data sets",
    settings=settings,
    pieces=pieces,
    run=run,
    table=table,
)
