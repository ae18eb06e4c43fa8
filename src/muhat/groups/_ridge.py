"""Kernel ridge regression over groups, with exact leave-one-out: a group is one point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array

BANDWIDTH_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The h that are tried, in units of the median distance between groups."""

RELATIVE_RIDGES = np.logspace(-7, 2, 28)
"""The λ that are tried, in units of the mean eigenvalue of the matrix."""

MIN_SPREAD_SHARE = 1e-6
"""Variance of the means around their centre, as a share of their mean squared norm, from which they
are learnt from. Filtered means of groups that do not differ are all but one point: what is left is
rounding, and a new group is infinitely far away on its scale."""


@dataclass(frozen=True, eq=False)
class GroupKernel:
    """A kernel of means: exp(−‖μ − ν‖²/2h²), or the centred inner product if h is None.

    Attributes
    ----------
    means : array of shape (T, r)
        The means of the fitted groups.
    bandwidth : float or None
        h.
    """

    means: Array
    bandwidth: float | None

    def __call__(self, others: Array) -> Array:
        """Return the kernel of other means with the fitted ones, of shape (m, T).

        A column that the others have more is their length outside of the fitted means.
        """
        r = self.means.shape[1]
        centre = self.means.mean(axis=0)
        fitted = self.means - centre
        inside = others[:, :r] - centre
        products = inside @ fitted.T
        if self.bandwidth is None:
            return products
        squares = (inside**2).sum(axis=1) + (others[:, r:] ** 2).sum(axis=1)
        squared = squares[:, None] + (fitted**2).sum(axis=1) - 2 * products
        return np.exp(-np.maximum(squared, 0) / (2 * self.bandwidth**2))


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """Kernel ridge regression with an intercept: f(μ) = b + Σ_t α_t k(μ_t, μ).

    Attributes
    ----------
    kernel : GroupKernel
        k.
    ridge : float
        λ.
    dual : array of shape (T, outputs)
        α = C(y − b), C = (K + λI)⁻¹.
    intercept : array of shape (outputs,)
        b = 1ᵀCy/1ᵀC1.
    left_out : array of shape (T, outputs)
        The prediction for each group by the fit without its y.
    """

    kernel: GroupKernel
    ridge: float
    dual: Array
    intercept: Array
    left_out: Array

    def predict(self, means: Array) -> Array:
        """Return the predictions for new means, of shape (m, outputs)."""
        return self.intercept + self.kernel(means) @ self.dual

    def error(self, y: Array) -> float:
        """Return the mean squared left-out error."""
        return float(((y - self.left_out) ** 2).mean())


def best_fit(means: Array, y: Array) -> RidgeFit:
    """Return the fit with the least left-out error, over kernels and λ.

    Parameters
    ----------
    means : array of shape (T, r)
        The means of the groups.
    y : array of shape (T, outputs)
        What is learnt.
    """
    best: RidgeFit | None = None
    centred = means - means.mean(axis=0)
    if (centred**2).sum() <= MIN_SPREAD_SHARE * (means**2).sum():
        means = np.zeros_like(means)  # every prediction is the mean of y
    for bandwidth in _bandwidths(means):
        for fit in ridge_path(GroupKernel(means, bandwidth), y):
            if best is None or fit.error(y) < best.error(y):
                best = fit
    assert best is not None
    return best


def ridge_path(kernel: GroupKernel, y: Array) -> list[RidgeFit]:
    """Return the fit of every λ, from one eigendecomposition.

    The left-out residual is α_t/(C_tt − (C1)_t²/1ᵀC1), with the means as they are: they were
    estimated without any y.
    """
    K = kernel(kernel.means)
    gamma, U = np.linalg.eigh((K + K.T) / 2)
    gamma = np.maximum(gamma, 0)
    unit = float(gamma.mean()) or 1.0
    rotated_y, rotated_one = U.T @ y, U.sum(axis=0)
    fits = []
    for ridge in unit * RELATIVE_RIDGES:
        inverse = 1 / (gamma + ridge)
        C_one = U @ (inverse * rotated_one)
        C_y = U @ (inverse[:, None] * rotated_y)
        total = C_one.sum()
        intercept = C_y.sum(axis=0) / total
        dual = C_y - np.outer(C_one, intercept)
        diagonal = (U**2) @ inverse - C_one**2 / total
        left_out = y - dual / diagonal[:, None]
        fits.append(RidgeFit(kernel, float(ridge), dual, intercept, left_out))
    return fits


def _bandwidths(means: Array) -> list[float | None]:
    """Return None for the linear kernel, and bandwidths around the median distance."""
    centred = means - means.mean(axis=0)
    squares = (centred**2).sum(axis=1)
    squared = squares[:, None] + squares - 2 * centred @ centred.T
    above = squared[np.triu_indices(len(means), 1)]
    median = float(np.sqrt(max(float(np.median(above)), 0.0)))
    if not median > 0:
        return [None]
    return [None, *(factor * median for factor in BANDWIDTH_FACTORS)]
