"""Importance weights: a sample reweighted so that its kernel mean is that of another."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from muhat._arrays import Array, rounding, slices
from muhat._messages import refusal
from muhat._parts import as_gram, as_kernel
from muhat._shown import ShownEstimator
from muhat._validation import checked_sample, positive, whole_number
from muhat.conditional._distribution import nearest_probabilities
from muhat.embedding import Embedding
from muhat.gram import Approximation, Nystrom
from muhat.gram._plan import DENSE_UP_TO
from muhat.kernels import Kernel, Precomputed

LOOSE = 1e-2
"""How far below the largest eigenvalue what is found of it may be."""

LANDMARKS = 500
ROWS = 8192
"""How many landmarks stand in for many rows, and rows whose features are computed at once."""

SMALL = 20
"""Rows up to which it comes from all eigenvalues."""


class KernelMeanMatching(ShownEstimator, BaseEstimator):
    """Weights on a source sample whose kernel mean is nearest to that of a target sample.

    They minimise ‖(1/n) Σ_i w_i k(x_i, ·) − μ‖² over 0 ≤ w_i ≤ bound with mean one, μ being the kernel mean of the
    target, by accelerated projected gradients that take products with the Gram matrix only. What is trained or averaged
    with them as ``sample_weight`` is so for the target's distribution, as far as the source covers it.

    Parameters
    ----------
    kernel : str, Kernel, scikit-learn kernel or callable, default='gaussian'
        The kernel; a bandwidth is learnt from the rows of source and target together.
    bound : float, default=10.0
        The largest weight, above 1; None is none. Without one, few rows get all the weight, and the solver takes long.
    gram : {'auto', 'dense', 'blocks', 'nystrom', 'random-features'}, Nystrom or RandomFeatures, default='auto'
        How the Gram matrix is held: ``'auto'`` as a matrix up to 5,000 rows and by 500 landmarks, drawn from source and
        target, beyond; ``'blocks'`` not at all, by exact products.
    tol : float, default=1e-6
        The solver stops when the objective is proven to be within this share of ‖μ‖² of its minimum.
    max_iter : int, default=10000
        The most products with the Gram matrix.

    Attributes
    ----------
    weights_ : array of shape (n,)
        The weights of the source's rows, with mean one.
    effective_size_ : float
        (Σ w_i)²/Σ w_i²: as many rows of equal weight would average as well.
    distance_ : float
        The distance ‖(1/n) Σ w_i k(x_i, ·) − μ‖ (the MMD) that is left; on features where the kernel is held by these.
    gap_ : float
        A bound on how far the squared distance is from the least that is possible: the duality gap.
    gram_ : str or Approximation
        How the Gram matrix was held.
    n_iter_, converged_, kernel_ : int, bool and Kernel
        The products that were taken, whether ``gap_`` is within ``tol``, and the kernel with every parameter a number.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.normal(size=(200, 1)), rng.normal(0.5, size=(300, 1))
    >>> weights = KernelMeanMatching().fit(source, target).weights_
    >>> bool(abs(weights @ source / 200 - target.mean()) < 0.05)
    True
    """

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        bound: float | None = 10.0,
        gram: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 10_000,
    ) -> None:
        self.kernel = kernel
        self.bound = bound
        self.gram = gram
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, target: Any) -> Self:
        """Find the weights.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            The source.
        target : array or data frame of shape (m, d), or Embedding
            A sample of the target, or its kernel mean, plain or shrunk, whose kernel is then taken.

        Returns
        -------
        self : KernelMeanMatching
            The fitted estimator.
        """
        tol, most = positive(self, "tol", self.tol), whole_number(self, "max_iter", self.max_iter)
        X = checked_sample(self, X, reset=True).astype(np.float64, copy=False)
        largest = np.inf if self.bound is None else positive(self, "bound", self.bound, ", or None", above=1.0)
        way = as_gram(self.gram)
        mu = target if isinstance(target, Embedding) else self._mean_of(X, target)
        if way == "auto":
            way = "dense" if len(X) <= DENSE_UP_TO else Nystrom(min(LANDMARKS, len(X) + len(mu.points)))
        problem = _Problem.from_mean(mu, X, way, largest / len(X))
        accepted = tol * problem.squared_norm
        solution = problem.solve(accepted, most)

        self.kernel_, self.gram_, self.gap_, self.n_iter_ = mu.kernel, way, solution.gap, solution.products
        self.weights_ = solution.v * len(X)
        self.effective_size_ = float(1 / (solution.v @ solution.v))
        self.distance_ = float(np.sqrt(max(problem.value(solution.v) + problem.squared_norm, 0.0)))
        self.converged_ = solution.gap <= accepted
        if not self.converged_:
            message = f"KernelMeanMatching: not converged after {self.n_iter_} products; raise max_iter or tol."
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self

    def _mean_of(self, X: Array, target: Any) -> Embedding:
        """Return the kernel mean of the target's rows, the kernel learnt from both samples."""
        kernel = as_kernel(self.kernel)
        if isinstance(kernel, Precomputed):
            raise ValueError(refusal("KernelMeanMatching", "a kernel of points is needed", "a precomputed one"))
        Y = checked_sample(self, target, reset=False).astype(np.float64, copy=False)
        return Embedding(kernel.resolve(np.concatenate([X, Y])), Y, np.full(len(Y), 1 / len(Y)))


@dataclass(frozen=True, eq=False)
class _Solution:
    """Weights of sum one, how far from the minimum they may be, and the products they took."""

    v: Array
    gap: float
    products: int


@dataclass(frozen=True, eq=False)
class _Problem:
    """Minimise vᵀKv − 2bᵀv over 0 ≤ v_i ≤ most, Σ v_i = 1."""

    kernel: Kernel
    X: Array
    b: Array
    most: float
    squared_norm: float
    """‖μ‖²."""
    matrix: Array | None = None
    features: Array | None = None
    """K, or F with K ≈ FFᵀ; neither where products compute the kernel's values anew."""

    @classmethod
    def from_mean(cls, mu: Embedding, X: Array, way: str | Approximation, most: float) -> _Problem:
        """Return the problem of a target μ; on features, of its projection onto them."""
        if not isinstance(way, Approximation):
            matrix = mu.kernel(X) if way == "dense" else None
            return cls(mu.kernel, X, mu(X), most, mu.squared_norm(), matrix)
        learnt = way.resolve(mu.kernel, np.concatenate([X, np.asarray(mu.points, dtype=np.float64)]))
        F = np.concatenate([learnt(X[some]) for some in slices(0, len(X), ROWS)])
        chunks = slices(0, len(mu.points), ROWS)
        c = np.sum([mu.weights[some] @ learnt(mu.points[some]) for some in chunks], axis=0)
        return cls(mu.kernel, X, F @ c, most, float(c @ c), features=F)

    def product(self, v: Array) -> Array:
        """Return Kv."""
        if self.features is not None:
            return self.features @ (self.features.T @ v)
        return self.kernel.product(self.X, v) if self.matrix is None else self.matrix @ v

    def value(self, v: Array) -> float:
        """Return vᵀKv − 2bᵀv."""
        return float(v @ (self.product(v) - 2 * self.b))

    def solve(self, accepted: float, products: int) -> _Solution:
        """Accelerated projected gradients (Beck and Teboulle 2009), restarted where they turn uphill."""
        v = ahead = np.full(len(self.X), 1 / len(self.X))
        steepest = max(self.steepest(), rounding(v) * float(self.kernel.diagonal(self.X).sum()))
        step, momentum, gap = (1 - LOOSE) / (2 * steepest), 1.0, np.inf
        Kv = Kahead = self.product(v)
        for count in range(1, products + 1):
            gap = self.gap(v, Kv)
            if gap <= accepted:
                return _Solution(v, gap, count)
            following = self.nearest(ahead - 2 * step * (Kahead - self.b))
            K_following = self.product(following)
            if (ahead - following) @ (following - v) > 0:  # the momentum points uphill
                momentum = 1.0
            larger = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            share = (momentum - 1) / larger
            ahead, Kahead = following + share * (following - v), K_following + share * (K_following - Kv)
            v, Kv, momentum = following, K_following, larger
        return _Solution(v, gap, products)

    def steepest(self) -> float:
        """Return the largest eigenvalue of K between weights of one sum, by Lanczos' iteration."""

        def centred(v: Array) -> Array:
            v = self.product(v.ravel() - v.mean())
            return v - v.mean()

        n = len(self.X)
        if n <= SMALL:
            return float(np.linalg.eigvalsh(np.column_stack([centred(each) for each in np.eye(n)]))[-1])
        operator = LinearOperator((n, n), matvec=centred, dtype=np.float64)
        start = np.random.default_rng(0).normal(size=n)
        return float(eigsh(operator, 1, v0=start, tol=LOOSE, return_eigenvectors=False)[0])

    def gap(self, v: Array, Kv: Array) -> float:
        """Return ∇ᵀ(v − s), s the point of least ∇ᵀs: the objective at v is no further above its minimum."""
        gradient = 2 * (Kv - self.b)
        order = np.argsort(gradient)
        full = min(int(1 / self.most), len(v) - 1) if self.most < 1 else 0
        least = min(self.most, 1.0)
        s = least * gradient[order[:full]].sum() + (1 - full * least) * gradient[order[full]]
        return float(gradient @ v - s)

    def nearest(self, v: Array) -> Array:
        """Return the nearest weights that are allowed: v − θ, cut off at zero and at the most, of sum one."""
        if self.most >= 1:
            return nearest_probabilities(v[None])[0]
        # Σ clip(v − θ, 0, most) falls with θ and bends where a weight leaves zero, and where it reaches the most.
        bends = np.concatenate([v, v - self.most])
        order = np.argsort(-bends)
        bends, slopes = bends[order], np.cumsum(np.where(order < len(v), 1.0, -1.0))
        sums = np.concatenate([[0.0], np.cumsum(slopes[:-1] * -np.diff(bends))])
        place = min(int(np.searchsorted(sums, 1.0)), len(sums) - 1)
        theta = bends[place - 1] - (1 - sums[place - 1]) / max(slopes[place - 1], 1.0)
        return np.clip(v - theta, 0, self.most)
