"""What is noise: generalised cross-validation over columns, of rows in folds that are left out.

A denoised row x̂ = f(x) keeps some of the noise of x. If that noise is independent between columns
and has one variance σ², then E‖x − f(x)‖² = σ²(d − 2 D) + E‖f(x) − signal‖² with D = E div f, the
degrees of freedom that x itself uses (Stein 1981). Without σ², ‖x − f(x)‖²/d over (1 − D/d)² is
smallest near the least error (Craven and Wahba 1979; for linear PCA, Josse and Husson 2012). Rows
are left out in folds, components and centre included, so D counts no more than a row's own noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array
from muhat.kernels import Gaussian
from muhat.pca._decomposition import PrincipalComponents

N_FOLDS = 5
"""Folds of rows that are left out together."""

MAX_COMPONENTS_USED = 500
"""Leading components in whose span folds are decomposed."""

MAX_ROWS_USED = 1000
"""Most rows of the regression of x on scores whose λ is chosen: an eigendecomposition a fold."""

PROBE_STEP = 1e-3
"""The step of differences, as a share of a column's typical standard deviation."""

MAX_FREEDOM = 0.99
"""Largest D/d: beyond it nothing is left to measure noise by."""

LAMBDAS = np.geomspace(1e-6, 10.0, 22)
"""λ of the regression of x on scores; the largest eigenvalue of its K/n is below one."""


@dataclass(frozen=True, eq=False)
class NoiseScores:
    """Generalised cross-validation of several ways to denoise rows."""

    means: Array
    """‖x − x̂‖²/d over (1 − D/d)²: shape (candidates,)."""
    rows: Array
    """The same of each row: shape (rows, candidates)."""
    freedom: Array
    """D, the degrees of freedom of a row: shape (candidates,)."""
    squares: Array
    """‖x − x̂‖²/d, the mean over rows: shape (candidates,)."""
    variances: Array
    """‖x − x̂‖²/(d − D), the variance of the noise in one column: shape (candidates,)."""

    @classmethod
    def from_residuals(
        cls, squares: Array, divergences: Array, weights: Array, columns: int
    ) -> NoiseScores:
        """Return the scores of ‖x − x̂‖² and div x̂ of rows, for each candidate."""
        freedom = np.clip(weights @ divergences, 0, columns)
        share = freedom / max(columns, 1)
        left = np.where(share <= MAX_FREEDOM, 1 - share, np.nan)
        rows = squares / max(columns, 1)
        means = weights @ rows / left**2
        means = np.where(np.isnan(means), np.inf, means)
        squares = weights @ rows
        return cls(means, rows / left**2, freedom, squares, squares / left)


@dataclass(frozen=True, eq=False)
class _Fold:
    """Rows that are left out, and all others, by their scores without the former."""

    train: Array
    """The numbers of the rows that are kept."""
    test: Array
    gamma: Array
    """The variances of the components: shape (count,)."""
    train_scores: Array
    test_scores: Array
    test_slopes: Array
    """How fast the scores of left-out rows change along their directions."""


@dataclass(frozen=True, eq=False)
class ProbedRows:
    """Rows in the basis of their components, and how their scores change along one direction."""

    X: Array
    """The rows: shape (n, d)."""
    directions: Array
    """A direction ε for each row: ±1 in columns that vary, else 0."""
    scores: Array
    """⟨φ(x_i) − μ, v_k⟩: shape (n, r)."""
    slopes: Array
    """Their derivatives along ε."""
    masses: Array
    gamma: Array
    is_centred: bool
    """Whether the centre is the mean of the rows, which moves when some are left out."""

    @classmethod
    def from_rows(
        cls, decomposition: PrincipalComponents, X: Array, masses: Array, is_centred: bool
    ) -> ProbedRows:
        """Return rows with the components of a sample that they belong to."""
        X = X.astype(np.float64)
        count = min(len(decomposition.gamma), MAX_COMPONENTS_USED)
        leading = decomposition.directions.leading(count)
        varies = np.ptp(X, axis=0) > 0
        rng = np.random.default_rng(0)
        directions = rng.choice([-1.0, 1.0], size=X.shape) * varies
        deviation = 1.0
        if varies.any():
            deviation = float(np.sqrt(X[:, varies].var(axis=0).mean()))
        step = PROBE_STEP * deviation
        ahead = leading.project(X + step * directions).scores
        behind = leading.project(X - step * directions).scores
        return cls(
            X=X,
            directions=directions,
            scores=leading.project(X).scores,
            slopes=(ahead - behind) / (2 * step),
            masses=masses,
            gamma=decomposition.gamma[:count],
            is_centred=is_centred,
        )

    @property
    def columns(self) -> int:
        """The number of columns that vary."""
        return int((np.abs(self.directions).max(axis=0) > 0).sum())

    @property
    def weights(self) -> Array:
        """The masses, with sum one."""
        return self.masses / self.masses.sum()

    def component_scores(self, most: int) -> NoiseScores:
        """Return the scores of 0, 1, …, most components.

        Denoised rows are linear in the scores, x̂ = mean + Σ_k score_k Cov(score_k, x)/γ_k, so that
        all numbers take one pass.
        """
        squares = np.zeros((len(self.X), most + 1))
        divergences = np.zeros((len(self.X), most + 1))
        for fold in self._folds(most):
            test = fold.test
            mean, slopes = self._regression(fold)
            left = self.X[test] - mean
            along = np.zeros(len(test))
            squares[test, 0] = (left**2).sum(axis=1)
            for k in range(most):
                if k < len(slopes):
                    left = left - fold.test_scores[:, [k]] * slopes[k]
                    along = along + fold.test_slopes[:, k] * (self.directions[test] @ slopes[k])
                squares[test, k + 1] = (left**2).sum(axis=1)
                divergences[test, k + 1] = along
        return NoiseScores.from_residuals(squares, divergences, self.weights, self.columns)

    def lambda_scores(self, shrinkage: Array, kernel: Gaussian) -> NoiseScores:
        """Return the scores of ``LAMBDAS`` for the regression of x on scores times shrinkage."""
        squares = np.zeros((len(self.X), len(LAMBDAS)))
        divergences = np.zeros((len(self.X), len(LAMBDAS)))
        for fold in self._folds(len(shrinkage)):
            shrunk = shrinkage[: len(fold.gamma)]
            train, test = fold.train_scores * shrunk, fold.test_scores * shrunk
            p = self.masses[fold.train] / self.masses[fold.train].sum()
            mean = p @ self.X[fold.train]
            q = np.sqrt(p)
            gamma, U = np.linalg.eigh(q[:, None] * kernel(train) * q)
            gamma = np.maximum(gamma, 0)
            Z = U.T @ (q[:, None] * (self.X[fold.train] - mean))
            basis = q[:, None] * U
            values = kernel(test, train) @ basis
            step = PROBE_STEP * _typical_size(train) / max(_typical_size(fold.test_slopes), 1e-300)
            shift = step * fold.test_slopes * shrunk
            slopes = (kernel(test + shift, train) - kernel(test - shift, train)) @ basis
            slopes /= 2 * step
            for place, lam in enumerate(LAMBDAS):
                coefficients = Z / (gamma + lam)[:, None]
                left = self.X[fold.test] - mean - values @ coefficients
                squares[fold.test, place] = (left**2).sum(axis=1)
                along = self.directions[fold.test] * (slopes @ coefficients)
                divergences[fold.test, place] = along.sum(axis=1)
        return NoiseScores.from_residuals(squares, divergences, self.weights, self.columns)

    def _folds(self, most: int) -> Iterator[_Fold]:
        """Yield each fold with its leading components, computed without it."""
        labels = _fold_labels(self.X)
        for label in range(labels.max() + 1):
            test, train = np.flatnonzero(labels == label), np.flatnonzero(labels != label)
            p, Z = self.masses[test], self.scores[test]
            rest = max(1 - p.sum(), np.finfo(float).eps)
            covariance = (np.diag(self.gamma) - (Z.T * p) @ Z) / rest
            mean = np.zeros(len(self.gamma))
            if self.is_centred:
                mean = -(p @ Z) / rest
                covariance -= np.outer(mean, mean)
            gamma, V = np.linalg.eigh(covariance)
            order = np.arange(len(gamma))[::-1][:most]
            order = order[gamma[order] > np.finfo(float).eps * len(gamma) * gamma[-1]]
            V = V[:, order]
            yield _Fold(
                train=train,
                test=test,
                gamma=gamma[order],
                train_scores=(self.scores[train] - mean) @ V,
                test_scores=(Z - mean) @ V,
                test_slopes=self.slopes[test] @ V,
            )

    def _regression(self, fold: _Fold) -> tuple[Array, Array]:
        """Return the mean of x and Cov(score_k, x)/γ_k, of the rows that are kept."""
        p = self.masses[fold.train] / self.masses[fold.train].sum()
        X = self.X[fold.train]
        mean = p @ X
        slopes = (fold.train_scores * p[:, None]).T @ (X - mean) / fold.gamma[:, None]
        return mean, slopes


def _fold_labels(X: Array) -> Array:
    """Return the fold of each row, equal rows in the same one."""
    _, number = np.unique(X, axis=0, return_inverse=True)
    number = number.ravel()
    count = int(number.max()) + 1
    order = np.random.default_rng(0).permutation(count)
    return order[number] % min(N_FOLDS, count)


def _typical_size(values: Array) -> float:
    if values.size:
        return float(np.sqrt((values**2).mean()))
    return 0.0
