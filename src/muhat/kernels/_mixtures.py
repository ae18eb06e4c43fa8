"""Kernel means of Gaussian mixtures in closed form: the truth that estimates are measured against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb, factorial
from typing import Any

import numpy as np

from muhat._arrays import Array, rounding, slices
from muhat._caches import UnsavedCaches
from muhat._validation import (
    as_two_samples,
    check_semidefinite,
    check_symmetric,
    frozen,
    whole_number,
)
from muhat.errors import MuhatError
from muhat.kernels._averages import AVERAGES, bandwidth_law
from muhat.kernels._base import Kernel, terms
from muhat.kernels._own import Linear, Polynomial


@dataclass(frozen=True, eq=False, repr=False)
class Mixture(UnsavedCaches):
    """The distribution P = Σ_j π_j N(θ_j, S_j), with its kernel mean in closed form.

    The kernels with a closed form are Gaussian, Linear and Polynomial, and, to 1e-10, Matern, RationalQuadratic and
    InverseMultiquadric, which are averages of Gaussian ones; and their sums and multiples.

    Parameters
    ----------
    weights : array of shape (r,)
        The π_j: not negative, with sum one.
    means : array of shape (r, d)
        The θ_j.
    covariances : array of shape (r, d, d)
        The S_j: symmetric and positive semi-definite; zero is a point.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import Gaussian
    >>> P = Mixture([0.5, 0.5], [[-1.0], [1.0]], [[[1.0]], [[1.0]]])
    >>> P.mean(Gaussian(1.0), np.array([[0.0]])).round(4)
    array([0.5507])
    >>> P.inner(Linear(), P), P.expected_diagonal(Linear())
    (0.0, 2.0)
    """

    weights: Array
    means: Array
    covariances: Array

    def __post_init__(self) -> None:
        weights = _numbers("weights", self.weights, ("r",))
        means = _numbers("means", self.means, (len(weights), "d"))
        d, advice = means.shape[1], "use Mixture.isotropic for one variance each"
        covariances = _numbers("covariances", self.covariances, (len(weights), d, d), advice)
        if weights.min() < 0 or abs(weights.sum() - 1) > rounding(weights) ** 0.5:
            got, advice = (
                f"{weights.tolist()} with sum {weights.sum():.6g}",
                "divide them by their sum",
            )
            raise MuhatError(
                "Mixture", "weights must not be negative and must sum to one", got, advice
            )
        symmetric = (covariances + covariances.swapaxes(-2, -1)) / 2
        variances, axes = np.linalg.eigh(symmetric)
        for number in np.flatnonzero((covariances != symmetric).any(axis=(1, 2))):
            needed = f"the covariance of component {number} must be symmetric"
            check_symmetric("Mixture", needed, covariances[number], "S")
        for number in np.flatnonzero(variances[:, 0] < 0):
            check_semidefinite(
                variances[number], "Mixture", f"the covariance of component {number}"
            )
        vars(self).update(weights=frozen(weights), means=frozen(means), covariances=symmetric)
        vars(self).update(_eigenpairs=(np.maximum(variances, 0), axes))

    @classmethod
    def from_moments(cls, weights: Array, means: Array, covariances: Array) -> Mixture:
        """Return the mixture of moments that rows have, which need no check: as if constructed, and faster."""
        self = object.__new__(cls)
        vars(self).update(weights=weights, means=means, covariances=covariances)
        return self

    @cached_property
    def _eigenpairs(self) -> tuple[Array, Array]:
        """The eigenvalues of each S_j, of shape (r, d), none negative, and its eigenvectors, in columns."""
        variances, axes = np.linalg.eigh(self.covariances)
        return np.maximum(variances, 0), axes

    @cached_property
    def _roots(self) -> Array:
        """Lower triangular factors L_j with S_j = L_j L_jᵀ, of shape (r, d, d).

        Draws are made with these rather than with eigenvectors: those of a repeated eigenvalue are arbitrary, and
        another LAPACK picks others, while L_j is unique. The loop also takes singular S_j, where LAPACK's Cholesky
        factorization fails: columns without variance left are zero.
        """
        rest = np.array(self.covariances, dtype=np.float64)
        roots = np.zeros_like(rest)
        least = (
            10
            * rest.shape[-1]
            * rounding(rest)
            * np.diagonal(rest, axis1=-2, axis2=-1).max(axis=-1)
        )
        for column in range(rest.shape[-1]):
            pivots = rest[:, column, column]
            kept = pivots > least
            scale = np.sqrt(pivots, out=np.ones_like(pivots), where=kept)
            roots[:, column:, column] = np.where(kept, rest[:, column:, column].T / scale, 0.0).T
            rest[:, column:, column:] -= (
                roots[:, column:, None, column] * roots[:, None, column:, column]
            )
        return roots

    @classmethod
    def isotropic(cls, weights: Any, means: Any, variances: Any) -> Mixture:
        """Return Σ_j π_j N(θ_j, σ_j² I) from the variances σ_j², of shape (r,)."""
        means = _numbers("means", means, ("r", "d"))
        variances = _numbers("variances", variances, (len(means),))
        return cls(weights, means, variances[:, None, None] * np.eye(means.shape[1]))

    def __repr__(self) -> str:
        components, dimension = self.means.shape
        return f"Mixture({components} component{'s' if components > 1 else ''} in {dimension} dimensions)"

    def sample(self, n: int, random_state: int | np.random.Generator) -> Array:
        """Return n points drawn from P, of shape (n, d)."""
        n, rng = whole_number(self, "n", n), np.random.default_rng(random_state)
        components = rng.choice(len(self.weights), size=n, p=self.weights / self.weights.sum())
        X = rng.standard_normal((n, self.means.shape[1]))
        for j, root in enumerate(self._roots):
            X[components == j] = self.means[j] + X[components == j] @ root.T
        return X

    def mean(self, kernel: Kernel, X: Array) -> Array:
        """Return the kernel mean μ_P(x) = E k(x, Y), Y ~ P, at the rows x of X."""
        return self.weights @ self.means_at(kernel, X)

    def means_at(self, kernel: Kernel, X: Array) -> Array:
        """Return the kernel mean of each component at the rows of X, of shape (r, n)."""
        X = as_two_samples(X, self.means)[0].astype(np.float64, copy=False)
        return np.sum(
            [factor * _closed_form(part).at(self, X) for factor, part in terms(kernel)], axis=0
        )

    def inner(self, kernel: Kernel, other: Mixture) -> float:
        """Return ⟨μ_P, μ_Q⟩ = E k(X, Y), X ~ P and Y ~ Q = other independent."""
        return float(self.weights @ self.inner_products(kernel, other) @ other.weights)

    def inner_products(self, kernel: Kernel, other: Mixture) -> Array:
        """Return the inner products of the kernel means of each component and each of other's, of shape (r, r')."""
        as_two_samples(self.means, other.means)  # refuses mixtures of other dimensions
        return np.sum(
            [factor * _closed_form(part).between(self, other) for factor, part in terms(kernel)],
            axis=0,
        )

    def expected_diagonal(self, kernel: Kernel) -> float:
        """Return ∫ k(x, x) dP(x)."""
        return float(
            self.weights
            @ sum(factor * _closed_form(part).own(self) for factor, part in terms(kernel))
        )

    def squared_distance(self, embedding: Any) -> float:
        """Return the paper's loss L = ‖f − μ_P‖² of an embedding f; of random features, under the kernel they have."""
        return embedding.loss(self)

    def characteristic_function(self, omega: Array) -> Array:
        """Return φ_P(ω) = E exp(i⟨ω, X⟩) = Σ_j π_j exp(i⟨ω, θ_j⟩ − ½ ωᵀS_jω) at the rows ω, as complex numbers."""
        omega = as_two_samples(omega, self.means)[0].astype(np.float64, copy=False)
        angles, spread = self.means @ omega.T, ((omega @ self.covariances) * omega).sum(axis=-1)
        heights = self.weights[:, None] * np.exp(-spread / 2)
        return (heights * np.cos(angles)).sum(axis=0) + 1j * (heights * np.sin(angles)).sum(axis=0)

    @cached_property
    def _own_pairs(self) -> tuple[Array, Array]:
        """The eigenpairs of S_j + S_l for all pairs: they take most of the time of ‖μ_P‖², whatever the kernel."""
        left, right = np.triu_indices(len(self.means))
        found = np.linalg.eigh(self.covariances[left] + self.covariances[right])
        places = np.empty((len(self.means),) * 2, dtype=int)
        places[left, right] = places[right, left] = np.arange(len(left))
        return np.maximum(found[0], 0)[places], found[1][places]


@dataclass(frozen=True)
class _OfGaussians:
    """E k(X, Y) where X − Y ~ N(g, S), for a kernel Σ_q a_q exp(−‖x − y‖²/2σ_q²).

    Of one Gaussian it is |I + S/σ²|^(−1/2) exp(−½ gᵀ(σ²I + S)⁻¹ g).
    """

    factors: Array
    sigmas: Array

    def at(self, P: Mixture, X: Array) -> Array:
        """Return E k(x_i, Y_j), of shape (r, n)."""
        gaps = X - P.means[:, None]
        if not self._is_one_and_well_conditioned(P):
            return self._expected(gaps, *P._eigenpairs)
        gaps = gaps.swapaxes(-2, -1) / self.sigmas[0]
        matrices = np.eye(len(gaps[0])) + P.covariances / self.sigmas[0] ** 2
        squared = (gaps * np.linalg.solve(matrices, gaps)).sum(axis=-2)
        return self.factors[0] * np.exp(-(squared + np.linalg.slogdet(matrices)[1][:, None]) / 2)

    def between(self, P: Mixture, Q: Mixture) -> Array:
        """Return E k(X_j, Y_l), of shape (r, r'), X_j and Y_l independent."""
        if self._is_one_and_well_conditioned(P) and self._is_one_and_well_conditioned(Q):
            return self.factors[0] * self._between_by_cholesky(P, Q)
        gaps = P.means[:, None] - Q.means
        variances, axes = P._own_pairs if P is Q else _pairs(P, Q)
        return self._expected(gaps[..., None, :], variances, axes)[..., 0]

    def _is_one_and_well_conditioned(self, P: Mixture) -> bool:
        """Whether there is one Gaussian, and no variance so much larger than σ² that I + S/σ² has lost the I."""
        largest = (
            np.diagonal(P.covariances, axis1=-2, axis2=-1).max() ** 0.5
        )  # σ² or its sum may be no float
        return len(self.sigmas) == 1 and bool(largest / WELL_CONDITIONED < self.sigmas[0])

    def _between_by_cholesky(self, P: Mixture, Q: Mixture) -> Array:
        """Return the same under one Gaussian from Cholesky factors: a tenth of the cost of eigenpairs.

        The last row of the factor of [[A, g], [gᵀ, c]], A = I + S/σ², is A^(−1/2) g up to a rotation, for any large c.
        """
        sigma, d = self.sigmas[0], P.means.shape[1]
        left, right = (
            np.triu_indices(len(P.means))
            if P is Q
            else np.indices((len(P.means), len(Q.means))).reshape(2, -1)
        )
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

    def own(self, P: Mixture) -> Array:
        """Return E k(X_j, X_j), of shape (r,)."""
        return np.full(len(P.weights), self.factors.sum())

    def _expected(self, gaps: Array, variances: Array, axes: Array) -> Array:
        # In the eigenbasis of S, where a singular S of any size next to σ² needs no factorisation that could fail.
        unit, values = self.sigmas.max(), np.empty(gaps.shape[:-1])
        for j in range(len(gaps)):
            along = ((gaps[j] / unit) @ axes[j]) ** 2
            relative = variances[j][..., None] / self.sigmas**2
            squared = along @ (
                (unit / self.sigmas) ** 2 / (1 + relative)
            )  # (..., rows, bandwidths)
            exponents = squared + np.log1p(relative).sum(axis=-2)[..., None, :]
            values[j] = np.exp(-exponents / 2) @ self.factors
        return values


@dataclass(frozen=True)
class _OfPolynomial:
    """E Z^p of Z = γ⟨X, Y⟩ + c, from the cumulants of Z: j! times the coefficient of s^j in log E exp(sZ)."""

    degree: int
    gamma: float
    coef0: float

    def at(self, P: Mixture, X: Array) -> Array:
        """⟨x, Y⟩ ~ N(⟨x, θ⟩, xᵀSx)."""
        variance = np.einsum("ni,jik,nk->jn", X, P.covariances, X, optimize=True)
        return self._moment([P.means @ X.T, variance / 2])

    def between(self, P: Mixture, Q: Mixture) -> Array:
        """Of ⟨X, Y⟩, X ~ N(a, S) and Y ~ N(b, T).

        log E exp(s⟨X, Y⟩) = −½ log|I − s²ST| + ½s² aᵀT(I − s²ST)⁻¹a + s bᵀ(I − s²ST)⁻¹a + ½s² bᵀ(I − s²ST)⁻¹Sb.
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

    def own(self, P: Mixture) -> Array:
        """Of ‖X‖², X ~ N(a, S): log E exp(s‖X‖²) = −½ log|I − 2sS| + s aᵀ(I − 2sS)⁻¹a."""
        variances, axes = P._eigenpairs
        squared = np.einsum("jik,ji->jk", axes, P.means) ** 2
        double = 2 * variances
        orders = range(1, self.degree + 1)
        return self._moment(
            [(double**k / (2 * k) + squared * double ** (k - 1)).sum(axis=-1) for k in orders]
        )

    def _moment(self, coefficients: Sequence[Array]) -> Array:
        """E Z^p = M_p, where M_m = Σ_k C(m−1, k−1) κ_k M_(m−k) with κ_k the cumulants and M_0 = 1."""
        cumulants = {
            k: factorial(k) * self.gamma**k * value for k, value in enumerate(coefficients, start=1)
        }
        cumulants[1] = cumulants[1] + self.coef0
        moments = [np.ones_like(cumulants[1])]
        for m in range(1, self.degree + 1):
            terms = (
                comb(m - 1, k - 1) * kappa * moments[m - k]
                for k, kappa in cumulants.items()
                if k <= m
            )
            moments.append(sum(terms, np.zeros_like(moments[0])))
        return moments[-1]


def has_closed_form(kernel: Kernel) -> bool:
    """Whether the kernel mean of a Gaussian is known in closed form."""
    return all(isinstance(part, (*AVERAGES, Linear, Polynomial)) for _, part in terms(kernel))


def _closed_form(kernel: Kernel) -> _OfGaussians | _OfPolynomial:
    """Return the expectations of a kernel, or refuse it."""
    if isinstance(kernel, AVERAGES):
        return _OfGaussians(*bandwidth_law(kernel).nodes())
    if isinstance(kernel, Linear):
        return _OfPolynomial(1, 1.0, 0.0)
    if isinstance(kernel, Polynomial):
        kernel.diagonal(np.zeros((1, 1)))  # refuses bad parameters in the kernel's own words
        return _OfPolynomial(int(kernel.degree), float(kernel.gamma), float(kernel.coef0))
    needed = f"a kernel with a closed form is needed: {', '.join(CLOSED_FORMS)}, or a sum or multiple of these"
    advice = "average the kernel over sample(n, random_state) instead"
    raise MuhatError("Mixture", needed, repr(kernel), advice)


CLOSED_FORMS = (
    "Gaussian",
    "Matern",
    "RationalQuadratic",
    "InverseMultiquadric",
    "Linear",
    "Polynomial",
)
"""The kernels for which the kernel mean of a Gaussian is known, to rounding or to 1e-10."""

WELL_CONDITIONED = 1e4
"""The largest standard deviation, in units of σ, up to which systems with σ²I + S are solved without eigenpairs."""

PAIR_ENTRIES = 2**21
"""Of the matrices S_j + T_l that are held at once."""


def _pairs(P: Mixture, Q: Mixture) -> tuple[Array, Array]:
    """Return the eigenpairs of S_j + T_l for all pairs of components, no eigenvalue negative."""
    variances, axes = np.linalg.eigh(P.covariances[:, None] + Q.covariances)
    return np.maximum(variances, 0), axes


def _dot(left: Array, right: Array) -> Array:
    """Return ⟨left, right⟩ of columns."""
    return (left * right).sum(axis=(-2, -1))


def _numbers(name: str, values: Any, shape: tuple[int | str, ...], advice: str = "") -> Array:
    """Return a parameter as finite numbers of a shape, in which a letter is any size but zero, or refuse it."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise MuhatError("Mixture", f"{name} must be an array of numbers", repr(values)) from error
    fits = array.ndim == len(shape) and all(
        size > 0 if isinstance(wanted, str) else size == wanted
        for size, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits:
        needed = f"{name} must have the shape {shape}".replace("'", "")
        raise MuhatError("Mixture", needed, f"shape {array.shape}", advice)
    if not np.isfinite(array).all():
        raise MuhatError("Mixture", f"{name} must be finite", "NaN or infinite values")
    return array
