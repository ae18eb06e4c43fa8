"""Importance weights: a sample reweighted so that its kernel mean is that of another."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from muhat._arrays import Array, slices
from muhat._bases import BaseEstimator
from muhat._parts import HasKernel, as_gram, as_kernel
from muhat._summary import EstimatorHtmlReprMixin, Summary, four_digits
from muhat._validation import (
    KERNEL_OF_ROWS_NEEDED,
    checked_sample,
    positive,
    whole_number,
)
from muhat.conditional._interior_point import QuadraticProgram
from muhat.embedding import Embedding
from muhat.errors import MuhatError
from muhat.gram import Approximation, Nystrom
from muhat.gram._plan import MAX_ROWS_DENSE
from muhat.kernels import Kernel, Precomputed

N_LANDMARKS = 500
ROWS_PER_BLOCK = 8192
"""How many landmarks stand in for many rows, and rows whose features are computed at once."""


class KernelMeanMatching(HasKernel, EstimatorHtmlReprMixin, BaseEstimator):
    """Find weights that make a source sample look like a target sample.

    The weights w minimise ‖(1/n) Σ_i w_i k(x_i, ·) − μ‖², where μ is the kernel mean of the target,
    0 ≤ w_i ≤ bound, and the mean of w is one. The solver is an interior point method that needs
    only products with the Gram matrix. Use the weights as ``sample_weight`` to train a model, or
    average a column, for the distribution of the target, as far as the source covers it.

    Parameters
    ----------
    kernel : str, Kernel, scikit-learn kernel or callable, default='gaussian'
        The kernel; a bandwidth is learnt from the rows of source and target together.
    bound : float, default=10.0
        The largest weight, above 1; None sets no limit, and few rows may then get all the weight.
    gram : str, Nystrom or RandomFeatures, default='auto'
        How the Gram matrix is stored: 'dense', 'blocks' (exact products, never stored), 'nystrom'
        or 'random-features'. 'auto' is 'dense' up to 5,000 rows, and uses 500 landmarks from source
        and target beyond.
    tol : float, default=1e-8
        The solver stops when the objective is proven to be within this share of ‖μ‖² of its
        minimum.
    max_iter : int, default=10000
        The most products with the Gram matrix; some dozens to a few hundred are usual.

    Attributes
    ----------
    weights_ : array of shape (n,)
        The weights of the source's rows, with mean one.
    effective_size_ : float
        (Σ w_i)²/Σ w_i²: the number of rows of equal weight that would be as accurate.
    distance_ : float
        The distance ‖(1/n) Σ w_i k(x_i, ·) − μ‖ (MMD) that remains.
    gap_ : float
        The duality gap: a bound on how far the squared distance is above its minimum.
    gram_ : str or Approximation
        How the Gram matrix was stored.
    n_iter_, converged_, kernel_ : int, bool and Kernel
        The number of products, whether ``gap_`` is within ``tol``, and the kernel with its
        bandwidth as a number.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.normal(size=(200, 1)), rng.normal(0.5, size=(300, 1))
    >>> weights = KernelMeanMatching().fit(source, target).weights_
    >>> bool(abs(weights @ source / 200 - target.mean()) < 0.05)
    True
    """

    kernel_: Kernel
    gram_: str | Approximation
    gap_: float
    n_iter_: int
    weights_: Array
    effective_size_: float
    distance_: float
    converged_: bool

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        bound: float | None = 10.0,
        gram: Any = "auto",
        tol: float = 1e-8,
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
        largest = np.inf
        if self.bound is not None:
            largest = positive(self, "bound", self.bound, ", or None", above=1.0)
        way = as_gram(self.gram)
        mu = target
        if not isinstance(target, Embedding):
            mu = self._mean_of(X, target)
        if way == "auto" and len(X) <= MAX_ROWS_DENSE:
            way = "dense"
        elif way == "auto":
            way = Nystrom(min(N_LANDMARKS, len(X) + len(mu.points)))
        program, squared_norm = _program(mu, X, way, largest / len(X))
        accepted = tol * squared_norm
        found = program.solve(accepted, most)

        self.kernel_ = mu.kernel
        self.gram_ = way
        self.gap_ = found.gap
        self.n_iter_ = found.products
        self.weights_ = found.v * len(X)
        self.effective_size_ = float(1 / (found.v @ found.v))
        self.distance_ = float(np.sqrt(max(found.value + squared_norm, 0.0)))
        self.converged_ = found.gap <= accepted
        if not self.converged_:
            message = (
                f"KernelMeanMatching: not converged after {self.n_iter_} products; raise "
                "max_iter or tol."
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self

    def _mean_of(self, X: Array, target: Any) -> Embedding:
        """Return the kernel mean of the target's rows, the kernel learnt from both samples."""
        kernel = as_kernel(self.kernel)
        if isinstance(kernel, Precomputed):
            raise MuhatError("KernelMeanMatching", KERNEL_OF_ROWS_NEEDED, "a precomputed one")
        self._check_columns(target)
        Y = checked_sample(self, target, reset=False, name="target").astype(np.float64, copy=False)
        return Embedding(kernel.resolve(np.concatenate([X, Y])), Y, np.full(len(Y), 1 / len(Y)))

    def _summary(self) -> Summary:
        size = f"effective sample size {self.effective_size_:.4g}"
        rows = [
            ("distance left", four_digits(self.distance_)),
            ("largest weight", four_digits(float(self.weights_.max()))),
            ("gap", four_digits(self.gap_)),
        ]
        return Summary(f"{len(self.weights_):,} weighted rows; {size}.", ("", ""), rows)

    def _check_columns(self, target: Any) -> None:
        """Raise MuhatError unless the target has the columns of X, in the same order."""
        who = "KernelMeanMatching"
        shape: tuple[int, ...] = getattr(target, "shape", ())
        if len(shape) == 2 and shape[1] != self.n_features_in_:
            needed = f"target must have the {self.n_features_in_} columns of X"
            raise MuhatError(who, needed, shape[1])
        mine, its = (
            list(getattr(each, name, []))
            for each, name in ((self, "feature_names_in_"), (target, "columns"))
        )
        if not mine or not its or mine == its:
            return
        if sorted(map(str, mine)) == sorted(map(str, its)):
            needed = "target must have the columns of X in the same order"
            advice = "take target[list(X.columns)]"
            raise MuhatError(who, needed, "another order", advice)
        others = ", ".join(repr(name) for name in its if name not in mine)
        if others:
            needed = "target must have the columns of X"
            raise MuhatError(who, needed, f"{others}, which X does not have")


def _program(
    mu: Embedding, X: Array, way: str | Approximation, most: float
) -> tuple[QuadraticProgram, float]:
    """Return the program of a target μ, and ‖μ‖².

    On features, those of its projection onto them.
    """
    if isinstance(way, Approximation):
        learnt = way.resolve(
            mu.kernel, np.concatenate([X, np.asarray(mu.points, dtype=np.float64)])
        )
        F = np.concatenate([learnt(X[some]) for some in slices(0, len(X), ROWS_PER_BLOCK)])
        chunks = slices(0, len(mu.points), ROWS_PER_BLOCK)
        c = np.sum([mu.weights[some] @ learnt(mu.points[some]) for some in chunks], axis=0)
        diagonal = np.einsum("ij,ij->i", F, F)
        program = QuadraticProgram(
            lambda V: F @ (F.T @ V), lambda i: F @ F[i], diagonal, F @ c, most
        )
        return program, float(c @ c)
    kernel, b = mu.kernel, mu(X)
    diagonal = kernel.diagonal(X)
    if way == "dense":
        K = kernel(X)
        return QuadraticProgram(
            lambda V: K @ V, lambda i: K[:, i], diagonal, b, most
        ), mu.squared_norm()

    def column(i: int) -> Array:
        return kernel(X, X[i : i + 1])[:, 0]

    return QuadraticProgram(
        lambda V: kernel.product(X, V), column, diagonal, b, most
    ), mu.squared_norm()
