"""Rows that belong to scores: the conditional mean of x given the scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array
from muhat.conditional import ConditionalMean
from muhat.conditional._inputs import MAX_OUTPUT
from muhat.errors import MuhatError
from muhat.kernels import Gaussian
from muhat.pca._noise import LAMBDAS, MAX_ROWS_USED, ProbedRows
from muhat.selection import Fixed

MIN_ROWS_TO_DENOISE = 10
"""Rows from which on λ is chosen for denoising; with fewer, for x itself."""


@dataclass(frozen=True, eq=False)
class PreImage:
    """The mean of x given scores; a constant where x does not vary."""

    mean: Array
    model: ConditionalMean | None

    @classmethod
    def learn(cls, scores: Array, X: Array, masses: Array, lam: float | None = None) -> PreImage:
        """Learn it from rows; λ by leave-one-out, which predicts x with its noise, or as given."""
        mean = masses @ X.astype(np.float64) / masses.sum()
        if len(X) == 1 or not np.ptp(X, axis=0).any() or not np.ptp(scores, axis=0).any():
            return cls(mean, None)
        selection: Fixed | str = "loo"
        if lam is not None:
            selection = Fixed(lam)
        model = ConditionalMean(filter="tikhonov", standardize=False, selection=selection)
        return cls(mean, model.fit(scores, X, sample_weight=masses))

    def __call__(self, scores: Array) -> Array:
        """Return the rows of scores: shape (m, d)."""
        if self.model is None:
            return np.tile(self.mean, (len(scores), 1))
        return self.model.predict(scores).reshape(len(scores), -1)


def check_squares(who: str, X: Array) -> None:
    """Raise MuhatError for rows whose squares overflow or underflow: their errors are squared."""
    low, high = X.min(axis=0), X.max(axis=0)
    if (low == high).all():
        return
    with np.errstate(over="ignore"):
        spread = float((high - low).max())
    largest = float(max(-low.min(), high.max()))
    if largest > MAX_OUTPUT or spread < 1 / MAX_OUTPUT:
        needed = (
            f"X must be at most {MAX_OUTPUT:g} in absolute value and vary by at least "
            f"{1 / MAX_OUTPUT:g}, so that squares are finite and not zero"
        )
        got = f"values up to {largest:.3g} in absolute value that vary by {spread:.3g}"
        raise MuhatError(who, needed, got, "rescale X")


def denoising_lambda(rows: ProbedRows, shrinkage: Array, scores: Array) -> float | None:
    """Return λ of the regression of x on scores that leaves the least of the noise; else None."""
    if len(rows.X) < MIN_ROWS_TO_DENOISE or not np.ptp(scores, axis=0).any():
        return None
    kernel = Gaussian().resolve(scores[:MAX_ROWS_USED])
    assert isinstance(kernel, Gaussian)
    means = rows.lambda_scores(shrinkage, kernel).means
    if not np.isfinite(means).any():
        return None
    return float(LAMBDAS[int(np.argmin(means))])
