"""Nyström's features: the projection of k(x, ·) onto the span of a few landmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from muhat._arrays import Array, quotient, rounding, rounding_floor
from muhat._messages import unknown_name
from muhat._random_states import as_random_state, as_rng, check_is_random_state
from muhat._tolerances import MAX_ROUNDING_SHARE
from muhat._validation import check_semidefinite, check_values, whole_number
from muhat.embedding import Element, Embedding
from muhat.errors import MuhatError
from muhat.gram._features import Approximation, FeatureMap
from muhat.kernels import Kernel, Precomputed

DEFAULT_SIZE = 500
"""The number of landmarks, if there are as many rows."""

MAX_ROUNDING_UNWHITENED = 1e-9
"""Largest rounding error of sums that are whitened after they are made, relative to k(x, x)."""

MAX_VALUE_UNWHITENED = 1e100
"""Largest k(x, x), and one over the smallest, at which they are: squares must be in range."""

RULES = ("uniform", "k-means++", "leverage")
"""How landmarks may be drawn."""


@dataclass(frozen=True, eq=False)
class NystromFeatures(FeatureMap):
    """z(x) = Wᵀ k(L, x) with W = Q Λ^(−1/2), from the eigenpairs K_mm = Q Λ Qᵀ of the landmarks L.

    The functions Σ_j W_ji k(l_j, ·) are an orthonormal basis of the landmarks' span, so that z(x)
    are the coordinates of k(x, ·) projected onto it and Z Zᵀ = K_nm K_mm⁺ K_mn. Eigenvalues up to
    m·ε times the largest are rounding errors of zero and have no feature: landmarks may repeat.
    Eigenpairs are in float64, and k(L, x) wherever the points' type is too coarse for W, so that
    this type does not decide how K is approximated.
    """

    kernel: Kernel
    landmarks: Array
    """L, of shape (m, d), copied."""
    dtype: np.dtype[Any]
    whitening: Array = field(init=False, repr=False)
    """W, of shape (m, r), in float64."""
    precision: np.dtype[Any] = field(init=False, repr=False)
    """The type, at least, that k(L, x) and functions on the landmarks are computed in."""
    made_from: ClassVar[str] = "landmarks"

    def __post_init__(self) -> None:
        landmarks = np.array(self.landmarks, self.dtype)
        double = landmarks.astype(np.float64)
        whitening, kappa = self._whitening(double), np.sqrt(self.kernel.diagonal(double).max())
        # Values k(l, x) that are rounded by ε κ², κ² = max k(l, l), add about (ε κ²)² ‖W‖² to
        # ‖z(x)‖².
        noise = ((rounding(landmarks) * kappa * whitening) ** 2).sum()
        if noise <= MAX_ROUNDING_SHARE:
            precision = landmarks.dtype
        else:
            precision = np.dtype(np.float64)
        vars(self).update(
            dtype=landmarks.dtype, landmarks=landmarks, whitening=whitening, precision=precision
        )
        vars(self).update(
            n_components=len(landmarks), size=whitening.shape[1], dimension=landmarks.shape[1]
        )

    def _whitening(self, landmarks: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):  # the result is checked below
            K = self.kernel(landmarks)
        check_values(K, self.kernel)
        gamma, Q = np.linalg.eigh(K)
        check_semidefinite(gamma)
        kept = gamma > rounding_floor(gamma, len(K))
        kept[-1] = True  # where k vanishes on all landmarks: one feature that is zero everywhere
        return quotient(Q[:, kept], np.sqrt(np.maximum(gamma[kept], 0)))

    def _features(self, X: Array, basis: Array | None = None) -> Array:
        X = X.astype(np.result_type(X, self.precision), copy=False)
        W = (self.whitening if basis is None else basis).astype(X.dtype, copy=False)
        return self.kernel(X, self.landmarks.astype(X.dtype, copy=False)) @ W

    @property
    def can_whiten_sums(self) -> bool:
        """Whether Wᵀ(Σ k kᵀ)W, k = k(L, x), which is cheaper, is as precise as Σ z zᵀ.

        Sums of k kᵀ are rounded by about ε m κ² of what they are, which W enlarges by ‖W‖².
        """
        kappa2 = float(self.kernel.diagonal(self.landmarks).max())
        if (
            self.dtype != np.float64
            or not 1 / MAX_VALUE_UNWHITENED <= kappa2 <= MAX_VALUE_UNWHITENED
        ):
            return False
        largest = float((self.whitening**2).sum(axis=0).max())  # 1/(the least eigenvalue kept)
        return (
            rounding(self.landmarks) * len(self.landmarks) * kappa2 * largest
            <= MAX_ROUNDING_UNWHITENED
        )

    def rotated(self, V: Array) -> Callable[[Array], Array]:
        """Return the map x ↦ VᵀWᵀ k(L, x) for the price of z(x)."""
        basis = self.whitening @ V
        return lambda X: self._features(X, basis)

    def embedding(self, coordinates: Array) -> Embedding:
        """Return Σ_j w_j k(l_j, ·) with w = W · coordinates: a function on the m landmarks."""
        weights = self.whitening @ self._check_coordinates(coordinates)
        return Embedding(
            self.kernel, self.landmarks.astype(self.precision), weights.astype(self.precision)
        )

    def coordinates(self, embedding: Element) -> Array:
        """Return the coordinates Wᵀ f(L) of the projection of f onto the landmarks' span.

        f(L) is computed in double, for W.
        """
        if not isinstance(embedding, Embedding):
            needed, got = "an embedding in the kernel's RKHS is needed", type(embedding).__name__
            raise MuhatError("NystromFeatures", needed, got, "fit it without random features")
        self._check_kernel(embedding)
        return self.whitening.T @ replace(embedding, points=embedding.points.astype(np.float64))(
            self.landmarks
        )


@dataclass(eq=False, repr=False)
class Nystrom(Approximation):
    """Nyström's approximation of the Gram matrix by m landmarks.

    K ≈ K_nm K_mm⁺ K_mn, and the mean is projected onto the landmarks' span.

    Parameters
    ----------
    n_components : int, default=None
        The number of landmarks m: 500 if not given, or all rows if there are fewer.
    landmarks : {'uniform', 'k-means++', 'leverage'} or array of shape (m, d), default='uniform'
        The landmarks, or how they are drawn from the rows. 'uniform' gives every row the same
        probability, 'k-means++' spreads landmarks out, 'leverage' prefers rows that other rows do
        not represent well (approximate ridge leverage scores). With as many landmarks as rows, all
        rows are used in their order.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the drawn landmarks. With None, every call draws new ones.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> z = Nystrom(20).resolve(Gaussian(1.0), X)
    >>> z(X).shape
    (1000, 20)
    >>> z.error(X) < 0.1
    True
    """

    n_components: int | None = None
    landmarks: Any = "uniform"
    random_state: Any = 0

    @property
    def rows_to_learn_from(self) -> int:
        """How many rows, drawn uniformly, are enough: several for each landmark."""
        drawn = 0
        if isinstance(self.n_components, Integral) and isinstance(self.landmarks, str):
            drawn = self.n_components
        return max(super().rows_to_learn_from, 4 * int(drawn))

    def transformed(self, transform: Callable[[Array], Array], X: Array) -> Nystrom:
        if isinstance(self.landmarks, str):
            return self
        return replace(self, landmarks=transform(self._given(X)))

    def check(self, kernel: Kernel) -> None:
        check_is_function(self, kernel)
        check_is_random_state(self, self.random_state)
        if self.n_components is not None:
            whole_number(self, "n_components", self.n_components, 1)
        if isinstance(self.landmarks, str) and self.landmarks not in RULES:
            raise MuhatError(unknown_name("Nystrom landmarks", self.landmarks, RULES))

    def resolve(self, kernel: Kernel, X: Array) -> NystromFeatures:
        """Return the features of the landmarks drawn from X, or given."""
        self.check(kernel)
        if isinstance(self.landmarks, str):
            chosen = self._drawn(kernel, X)
        else:
            chosen = self._given(X)
        return NystromFeatures(kernel, chosen, X.dtype)

    def _drawn(self, kernel: Kernel, X: Array) -> Array:
        n, rng = len(X), as_rng(self, self.random_state)
        if self.n_components is None:
            m = min(DEFAULT_SIZE, n)
        else:
            m = int(self.n_components)
        if m > n:
            needed = f"n_components must be at most the number of rows, {n}"
            advice = (
                "use fewer landmarks (on the command line, --features), or pass them, as in "
                "landmarks=X[:10]"
            )
            raise MuhatError("Nystrom", needed, m, advice)
        if m == n:
            return X
        if self.landmarks == "uniform":
            rows = rng.choice(n, m, replace=False, shuffle=False)
        elif self.landmarks == "k-means++":
            from sklearn.cluster import kmeans_plusplus  # here, as it takes long to import

            # From the centre and in units of the spread, because scikit-learn's distances lose
            # digits, and overflow.
            moved = X - X.mean(axis=0)
            unit, seed = float(np.abs(moved).max()) or 1.0, as_random_state(self, self.random_state)
            rows = kmeans_plusplus(moved / unit, m, random_state=seed)[1]
        else:
            pilot = NystromFeatures(kernel, X[rng.choice(n, m, replace=False)], X.dtype)
            scores = leverage(pilot(X), kernel.diagonal(X), m)
            rows = rng.choice(n, m, replace=False, p=scores / scores.sum(), shuffle=False)
        return X[np.sort(rows)]

    def _given(self, X: Array) -> Array:
        try:
            given = np.array(self.landmarks, X.dtype)
        except (TypeError, ValueError) as error:
            needed = (
                f"landmarks must be an array of numbers or one of {', '.join(map(repr, RULES))}"
            )
            raise MuhatError("Nystrom", needed, f"{type(self.landmarks).__name__}") from error
        if given.ndim != 2 or given.shape[1] != X.shape[1] or not len(given):
            needed = f"landmarks must be an array of at least one row of {X.shape[1]} features"
            raise MuhatError("Nystrom", needed, f"shape {given.shape}")
        if not np.isfinite(given).all():
            raise MuhatError("Nystrom", "landmarks must be finite", "NaN or infinite values")
        if self.n_components is not None and self.n_components != len(given):
            needed = f"n_components must be the number of landmarks given, {len(given)}, or None"
            raise MuhatError("Nystrom", needed, self.n_components)
        return given

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Nystrom):
            return NotImplemented
        mine, its = ((each.n_components, each.random_state) for each in (self, other))
        return mine == its and np.array_equal(self.landmarks, other.landmarks)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]


def check_is_function(part: Approximation, kernel: Kernel) -> None:
    """Raise MuhatError for a kernel that is known by its matrix, and cannot be called on points."""
    if needs_matrix(kernel):
        needed = "a kernel that can be called on points is needed"
        advice = "use gram='dense', or the kernel itself"
        raise MuhatError(type(part).__name__, needed, repr(kernel), advice)


def needs_matrix(kernel: Kernel) -> bool:
    """Whether a kernel is known, in some part, only by its matrix."""
    parts = getattr(kernel, "parts", {}).values()
    return isinstance(kernel, Precomputed) or any(needs_matrix(part) for part in parts)


def leverage(Z: Array, diagonal: Array, m: int) -> Array:
    """Return approximate ridge leverage scores to draw m landmarks by, all positive.

    They are ℓ_i = [K (K + nλ)⁻¹]_ii.

    With a pilot's features Z, ℓ_i is z_iᵀ (ZᵀZ + nλ)⁻¹ z_i and, for what the pilot does not see of
    the point, (k(x_i, x_i) − ‖z_i‖²)/nλ; one at most. The ridge nλ is the trace of K that its
    leading m/2 components leave over, spread over m/2: components below it are too many for m
    landmarks to catch one by one. Their number above it, the sum of the scores, is then at most m.
    """
    sigma, V = np.linalg.eigh(Z.T @ Z)
    leading = max(m // 2, 1)
    left_over = (diagonal.sum() - sigma[-leading:].sum()) / leading
    ridge = max(left_over, len(Z) * rounding(Z) * diagonal.sum(), np.finfo(Z.dtype).tiny)
    seen = ((Z @ V) ** 2 / (np.maximum(sigma, 0) + ridge)).sum(axis=1)
    unseen = np.maximum(diagonal - (Z**2).sum(axis=1), 0) / ridge
    scores = np.minimum(seen + unseen, 1)
    return scores + max(rounding(Z) * scores.max(), np.finfo(Z.dtype).tiny)
