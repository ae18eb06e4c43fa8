"""Expectations of kernels under Gaussian mixtures, in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, factorial
from typing import Protocol

import numpy as np

from muhat._arrays import Array, slices

MAX_DIRECT_SD = 1e4
"""Largest standard deviation, in units of σ, for which σ²I + S is inverted without eigenpairs."""

PAIR_ENTRIES = 2**21
"""Entries of the matrices S_j + T_l that are held at once."""


class GaussianComponents(Protocol):
    """The moments of the r Gaussians of a mixture, as ``Mixture`` has them."""

    @property
    def means(self) -> Array:
        """The θ_j: shape (r, d)."""

    @property
    def covariances(self) -> Array:
        """The S_j: shape (r, d, d)."""

    @property
    def eigenpairs(self) -> tuple[Array, Array]:
        """Eigenvalues of each S_j, shape (r, d), and eigenvectors in columns."""

    @property
    def pair_eigenpairs(self) -> tuple[Array, Array]:
        """The same of S_j + S_l for all pairs."""


@dataclass(frozen=True)
class SumOfGaussians:
    """E k(X, Y) where X − Y ~ N(g, S), for a kernel Σ_q a_q exp(−‖x − y‖²/2σ_q²).

    Of one Gaussian it is |I + S/σ²|^(−1/2) exp(−½ gᵀ(σ²I + S)⁻¹ g).
    """

    factors: Array
    sigmas: Array

    def at(self, P: GaussianComponents, X: Array) -> Array:
        """Return E k(x_i, Y_j), of shape (r, n)."""
        gaps = X - P.means[:, None]
        if not self._is_one_and_well_conditioned(P):
            return self._expected(gaps, *P.eigenpairs)
        gaps = gaps.swapaxes(-2, -1) / self.sigmas[0]
        matrices = np.eye(len(gaps[0])) + P.covariances / self.sigmas[0] ** 2
        squared = (gaps * np.linalg.solve(matrices, gaps)).sum(axis=-2)
        return self.factors[0] * np.exp(-(squared + np.linalg.slogdet(matrices)[1][:, None]) / 2)

    def between(self, P: GaussianComponents, Q: GaussianComponents) -> Array:
        """Return E k(X_j, Y_l), of shape (r, r'), X_j and Y_l independent."""
        if self._is_one_and_well_conditioned(P) and self._is_one_and_well_conditioned(Q):
            return self.factors[0] * self._between_by_cholesky(P, Q)
        gaps = P.means[:, None] - Q.means
        if P is Q:
            variances, axes = P.pair_eigenpairs
        else:
            variances, axes = _pairs(P, Q)
        return self._expected(gaps[..., None, :], variances, axes)[..., 0]

    def _is_one_and_well_conditioned(self, P: GaussianComponents) -> bool:
        """Whether there is one Gaussian, and no variance that would drown the I in I + S/σ²."""
        # by standard deviations: σ² may overflow
        largest = np.diagonal(P.covariances, axis1=-2, axis2=-1).max() ** 0.5
        return len(self.sigmas) == 1 and bool(largest / MAX_DIRECT_SD < self.sigmas[0])

    def _between_by_cholesky(self, P: GaussianComponents, Q: GaussianComponents) -> Array:
        """Return the same for one Gaussian by Cholesky factors, ten times faster than eigenpairs.

        The last row of the factor of [[A, g], [gᵀ, c]], A = I + S/σ², is A^(−1/2) g up to a
        rotation, for any large c.
        """
        sigma = self.sigmas[0]
        d = P.means.shape[1]
        if P is Q:
            left, right = np.triu_indices(len(P.means))
        else:
            left, right = np.indices((len(P.means), len(Q.means))).reshape(2, -1)
        values = np.empty((len(P.means), len(Q.means)))
        for some in slices(0, len(left), max(1, PAIR_ENTRIES // d**2)):
            j, k = left[some], right[some]
            gaps = (P.means[j] - Q.means[k]) / sigma
            matrices = np.empty((len(j), d + 1, d + 1))
            matrices[:, :d, :d] = np.eye(d) + (P.covariances[j] + Q.covariances[k]) / sigma**2
            matrices[:, d, :d] = matrices[:, :d, d] = gaps
            matrices[:, d, d] = (gaps**2).sum(axis=-1) + 1
            factors = np.linalg.cholesky(matrices)
            logs = np.log(np.diagonal(factors, axis1=-2, axis2=-1)[:, :d]).sum(axis=-1)
            values[j, k] = np.exp(-(factors[:, d, :d] ** 2).sum(axis=-1) / 2 - logs)
            if P is Q:
                values[k, j] = values[j, k]
        return values

    def own(self, P: GaussianComponents) -> Array:
        """Return E k(X_j, X_j), of shape (r,)."""
        return np.full(len(P.means), self.factors.sum())

    def _expected(self, gaps: Array, variances: Array, axes: Array) -> Array:
        # In the eigenbasis of S a singular S of any size is no problem; a factorisation could fail.
        unit = self.sigmas.max()
        values = np.empty(gaps.shape[:-1])
        for j in range(len(gaps)):
            along = ((gaps[j] / unit) @ axes[j]) ** 2
            relative = variances[j][..., None] / self.sigmas**2
            # of shape (..., rows, bandwidths)
            squared = along @ ((unit / self.sigmas) ** 2 / (1 + relative))
            exponents = squared + np.log1p(relative).sum(axis=-2)[..., None, :]
            values[j] = np.exp(-exponents / 2) @ self.factors
        return values


@dataclass(frozen=True)
class PolynomialMoments:
    """E Z^p of Z = γ⟨X, Y⟩ + c, from the cumulants of Z.

    The cumulant of order j is j! times the coefficient of s^j in log E exp(sZ).
    """

    degree: int
    gamma: float
    coef0: float

    def at(self, P: GaussianComponents, X: Array) -> Array:
        """⟨x, Y⟩ ~ N(⟨x, θ⟩, xᵀSx)."""
        variance = np.einsum("ni,jik,nk->jn", X, P.covariances, X, optimize=True)
        return self._moment([P.means @ X.T, variance / 2])

    def between(self, P: GaussianComponents, Q: GaussianComponents) -> Array:
        """Of ⟨X, Y⟩, X ~ N(a, S) and Y ~ N(b, T).

        With R = (I − s²ST)⁻¹, log E exp(s⟨X, Y⟩) is
        ½ log|R| + ½s² aᵀTRa + s bᵀRa + ½s² bᵀRSb.
        """
        S, T = P.covariances[:, None], Q.covariances
        a, b = P.means[:, None, :, None], Q.means[..., None]
        powers = [np.eye(len(S[0, 0]))]  # (ST)^k
        while len(powers) <= self.degree // 2:
            powers.append(S @ (T @ powers[-1]))

        def coefficient(order: int) -> Array:
            k = order // 2
            if order % 2:
                return _dot(b, powers[k] @ a)
            trace = np.trace(powers[k], axis1=-2, axis2=-1) / k
            return (trace + _dot(T @ a, powers[k - 1] @ a) + _dot(b, powers[k - 1] @ (S @ b))) / 2

        return self._moment([coefficient(order) for order in range(1, self.degree + 1)])

    def own(self, P: GaussianComponents) -> Array:
        """Of ‖X‖², X ~ N(a, S): log E exp(s‖X‖²) = −½ log|I − 2sS| + s aᵀ(I − 2sS)⁻¹a."""
        variances, axes = P.eigenpairs
        squared = np.einsum("jik,ji->jk", axes, P.means) ** 2
        double = 2 * variances
        orders = range(1, self.degree + 1)
        return self._moment(
            [(double**k / (2 * k) + squared * double ** (k - 1)).sum(axis=-1) for k in orders]
        )

    def _moment(self, coefficients: Sequence[Array]) -> Array:
        """Return E Z^p = M_p: M_m = Σ_k C(m−1, k−1) κ_k M_(m−k), κ_k the cumulants, M_0 = 1."""
        cumulants = [self.coef0 + self.gamma * coefficients[0]]
        for k, coefficient in enumerate(coefficients[1:], start=2):
            cumulants.append(factorial(k) * self.gamma**k * coefficient)
        moments = [np.ones_like(cumulants[0])]
        for m in range(1, self.degree + 1):
            moment = np.zeros_like(moments[0])
            for k in range(1, min(m, len(cumulants)) + 1):  # higher cumulants are zero
                moment = moment + comb(m - 1, k - 1) * cumulants[k - 1] * moments[m - k]
            moments.append(moment)
        return moments[-1]


def _pairs(P: GaussianComponents, Q: GaussianComponents) -> tuple[Array, Array]:
    """Return the eigenpairs of S_j + T_l for all pairs of components, no eigenvalue negative."""
    variances, axes = np.linalg.eigh(P.covariances[:, None] + Q.covariances)
    return np.maximum(variances, 0), axes


def _dot(left: Array, right: Array) -> Array:
    """Return ⟨left, right⟩ of columns."""
    return (left * right).sum(axis=(-2, -1))
