"""What a kernel is: k(x, y), its diagonal, its bound κ², and its algebra."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from muhat._arrays import Array, as_array, slices
from muhat._bases import BaseEstimator
from muhat._validation import as_points, as_two_samples, positive
from muhat.errors import MuhatError

BLOCK = 2048
"""Rows and columns of a block of a kernel that only returns matrices (32 MB in float64)."""


class GaussianMeans(Protocol):
    """Expectations of a kernel under mixtures P and Q of r and r' Gaussians."""

    def at(self, P: Any, X: Array) -> Array:
        """Return E k(x_i, Y_j), Y_j ~ component j of P: shape (r, n)."""

    def between(self, P: Any, Q: Any) -> Array:
        """Return E k(X_j, Y_l) of independent components of P and Q: shape (r, r')."""

    def own(self, P: Any) -> Array:
        """Return E k(X_j, X_j): shape (r,)."""


class Kernel(BaseEstimator):
    """A positive semi-definite function k(x, y).

    A kernel of your own is a dataclass with ``__call__``. What it learns from a sample, such as a
    bandwidth, it learns in ``resolve``, which returns a new kernel. Its Gram matrices are checked
    by their eigenvalues unless it says ``positive_semidefinite = True``.

    What else is known about a kernel are attributes of its class.
    """

    name: ClassVar[str] = ""
    """What users type, such as 'gaussian'; empty for a kernel that cannot be given by name."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names that users may type."""

    translation_invariant: ClassVar[bool] = False
    """Whether k(x, y) is a function of x − y, so that centring a sample changes nothing."""
    isotropic: ClassVar[bool] = False
    """Whether k(x, y) is a function of ‖x − y‖, so that no direction is special."""
    positive_semidefinite: ClassVar[bool] = False
    """Whether this is proven, so that no Gram matrix needs to be checked."""
    nonnegative: ClassVar[bool] = False
    """Whether no value k(x, y) is below zero."""
    has_frequencies: ClassVar[bool] = False
    """Whether ``draw_frequencies`` is available, and with it random Fourier features."""
    has_gaussian_means: ClassVar[bool] = False
    """Whether ``gaussian_means`` is available: kernel means of Gaussian mixtures."""

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Return the matrix k(x_i, y_j); with ``Y=None`` the exactly symmetric Gram matrix of X."""
        raise NotImplementedError

    def diagonal(self, X: Array) -> Array:
        """Return k(x_i, x_i), row by row unless a kernel has a faster way: shape (n,)."""
        return np.array([self(row[None])[0, 0] for row in as_points(X)])

    def product(self, X: Array, V: Array, Y: Array | None = None) -> Array:
        """Return k(X, Y) V without storing the matrix; memory grows with the rows only.

        V has a row, or a number, for each y_j. With ``Y=None`` these are the rows of X, and each
        value is used for both halves of the Gram matrix.
        """
        V, (X, other) = as_array(V), as_two_samples(X, Y)
        if V.ndim not in (1, 2) or len(V) != len(other) or V.dtype.kind not in "fiub":
            needed = f"a vector or a matrix of {len(other)} rows of real numbers is needed"
            got = f"shape {V.shape} and type {V.dtype}"
            raise MuhatError(f"{type(self).__name__}.product", needed, got)
        if Y is not None:
            Y = other
        columns = V
        if V.ndim == 1:
            columns = V[:, None]
        return self._product(X, columns, Y).reshape(len(X), *V.shape[1:])

    def _product(self, X: Array, V: Array, Y: Array | None) -> Array:
        """Return k(X, Y) V from blocks; with ``Y=None`` each is used for both halves."""
        if Y is None:
            return self._symmetric_product(X, V)
        total = np.zeros((len(X), V.shape[1]), np.result_type(self(X[:1], Y[:1]), V))
        for i in slices(0, len(X), BLOCK):
            for j in slices(0, len(V), BLOCK):
                total[i] += self(X[i], Y[j]) @ V[j]
        return total

    def _symmetric_product(self, X: Array, V: Array) -> Array:
        """Return k(X, X) V; each block above the diagonal is used for the one below."""
        total = np.zeros((len(X), V.shape[1]), np.result_type(self(X[:1], X[:1]), V))
        for i in slices(0, len(X), BLOCK):
            total[i] += self(X[i]) @ V[i]
            for j in slices(i.stop, len(V), BLOCK):
                values = self(X[i], X[j])
                total[i] += values @ V[j]
                total[j] += values.T @ V[i]
        return total

    def resolve(self, X: Array) -> Kernel:
        """Return this kernel with every parameter set, from X where it is not given."""
        return self

    @property
    def bound(self) -> float:
        """κ² = sup k(x, x), infinite for an unbounded kernel."""
        return float("inf")

    def draw_frequencies(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        """Return draws of the frequency ω, whose characteristic function is k up to a factor.

        The result has the given shape, (number of frequencies, number of features).
        """
        raise NotImplementedError

    def gaussian_means(self) -> GaussianMeans:
        """Return the expectations of k under Gaussian mixtures."""
        raise NotImplementedError

    def l1_norm(self, d: int) -> float | None:
        """Return ∫|ψ| of k(x, y) = ψ(x − y) on R^d; None where it is not known."""
        return None

    def __add__(self, other: Kernel) -> Sum:
        if isinstance(other, Kernel):
            return Sum(self, other)
        return NotImplemented

    def __mul__(self, other: Kernel | float) -> Product | Scaled:
        if isinstance(other, Kernel):
            return Product(self, other)
        if isinstance(other, Real):
            return Scaled(self, other)
        return NotImplemented

    __rmul__ = __mul__


class Composite(Kernel):
    """A kernel made of kernels, its parts: what holds for all of them holds for it."""

    @property
    def parts(self) -> dict[str, Kernel]:
        """The kernels it is made of, by parameter name."""
        parameters = self.get_params(deep=False).items()
        return {name: part for name, part in parameters if isinstance(part, Kernel)}

    @property
    def translation_invariant(self) -> bool:  # type: ignore[override]
        """Whether every part is."""
        return all(part.translation_invariant for part in self.parts.values())

    @property
    def isotropic(self) -> bool:  # type: ignore[override]
        """Whether every part is."""
        return all(part.isotropic for part in self.parts.values())

    @property
    def positive_semidefinite(self) -> bool:  # type: ignore[override]
        """Whether every part is."""
        return all(part.positive_semidefinite for part in self.parts.values())

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        """Whether every part is."""
        return all(part.nonnegative for part in self.parts.values())

    def resolve(self, X: Array) -> Self:
        parts = {name: part.resolve(X) for name, part in self.parts.items()}
        return type(self)(**{**self.get_params(deep=False), **parts})


@dataclass
class KernelPair(Composite):
    """Two kernels, their values combined one by one."""

    left: Kernel
    right: Kernel
    combine: ClassVar[np.ufunc]

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        return self.combine(self.left(X, Y), self.right(X, Y))

    def diagonal(self, X: Array) -> Array:
        return self.combine(self.left.diagonal(X), self.right.diagonal(X))

    @property
    def bound(self) -> float:
        """κ², at most the same combination of the bounds."""
        return float(self.combine(self.left.bound, self.right.bound))


@dataclass
class Sum(KernelPair):
    """k(x, y) = left(x, y) + right(x, y)."""

    combine: ClassVar[np.ufunc] = np.add

    @property
    def has_gaussian_means(self) -> bool:  # type: ignore[override]
        """Whether both parts have them."""
        return self.left.has_gaussian_means and self.right.has_gaussian_means

    def _product(self, X: Array, V: Array, Y: Array | None) -> Array:
        return self.left.product(X, V, Y) + self.right.product(X, V, Y)


@dataclass
class Product(KernelPair):
    """k(x, y) = left(x, y) · right(x, y)."""

    combine: ClassVar[np.ufunc] = np.multiply


@dataclass
class Scaled(Composite):
    """k(x, y) = factor · kernel(x, y), factor > 0."""

    kernel: Kernel
    factor: float = 1.0

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        return positive(self, "factor", self.factor) * self.kernel(X, Y)

    def _product(self, X: Array, V: Array, Y: Array | None) -> Array:
        return positive(self, "factor", self.factor) * self.kernel.product(X, V, Y)

    def diagonal(self, X: Array) -> Array:
        return positive(self, "factor", self.factor) * self.kernel.diagonal(X)

    @property
    def bound(self) -> float:
        return positive(self, "factor", self.factor) * self.kernel.bound

    @property
    def has_gaussian_means(self) -> bool:  # type: ignore[override]
        """Whether the kernel has them."""
        return self.kernel.has_gaussian_means

    @property
    def has_frequencies(self) -> bool:  # type: ignore[override]
        """Whether the kernel has them."""
        return self.kernel.has_frequencies

    def draw_frequencies(self, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
        return self.kernel.draw_frequencies(rng, shape)


def terms(kernel: Kernel) -> list[tuple[float, Kernel]]:
    """Return a kernel as a sum of factor · part, where no part is itself a sum or a multiple."""
    if isinstance(kernel, Sum):
        return terms(kernel.left) + terms(kernel.right)
    if isinstance(kernel, Scaled):
        outer = positive(kernel, "factor", kernel.factor)
        return [(outer * factor, part) for factor, part in terms(kernel.kernel)]
    return [(1.0, kernel)]


def classes_with(fact: str) -> list[str]:
    """Return the names of all kernel classes that state a fact, such as ``"has_frequencies"``."""
    found = []
    remaining: list[type[Kernel]] = [Kernel]
    while remaining:
        kind = remaining.pop(0)
        if getattr(kind, fact) is True and kind.name:
            found.append(kind.__name__)
        remaining = kind.__subclasses__() + remaining
    return found
