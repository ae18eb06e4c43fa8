"""Kernels that come from elsewhere: scikit-learn's, a function, a matrix. None of them is proven to be one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from muhat._arrays import Array
from muhat._messages import refusal
from muhat.kernels._base import Kernel


def names_known_to_sklearn() -> list[str]:
    """Return the names of scikit-learn's pairwise kernels."""
    from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS  # here, as it takes long to import

    return sorted(PAIRWISE_KERNEL_FUNCTIONS)


class Foreign(Kernel):
    """A kernel we did not write: its values are checked, and its Gram matrix must prove itself."""

    positive_semidefinite: ClassVar[bool] = False

    def _checked(self, values: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        matrix = np.array(values, dtype)  # a copy: the Gram operator scales its matrix in place
        if matrix.shape != shape:
            needed = f"a matrix of shape {shape} must come back for that many rows"
            advice = "wrap a function of two rows as Function(f, rows=True)"
            raise ValueError(refusal(repr(self), needed, f"shape {matrix.shape}", advice))
        return matrix


@dataclass
class SklearnKernel(Foreign):
    """A kernel object of ``sklearn.gaussian_process.kernels``."""

    kernel: Any

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Return the matrix k(x_i, y_j)."""
        return self._checked(self.kernel(X, Y), (len(X), len(X if Y is None else Y)), X.dtype)

    def diagonal(self, X: Array) -> Array:
        """Return k(x_i, x_i)."""
        return self._checked(self.kernel.diag(X), (len(X),), X.dtype)


@dataclass
class Function(Foreign):
    """A function as a kernel.

    Parameters
    ----------
    function : callable or str
        ``function(X, Y)`` returns the matrix k(x_i, y_j), as for scikit-learn's SVC; a string is a name that
        ``sklearn.metrics.pairwise.pairwise_kernels`` knows.
    rows : bool, default=False
        If true, ``function(x, y)`` takes two rows and returns a number (and is called once for each pair).
    """

    function: Callable[[Array, Array], Any] | str
    rows: bool = False

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Return the matrix k(x_i, y_j)."""
        other = X if Y is None else Y
        if self.rows or isinstance(self.function, str):
            from sklearn.metrics.pairwise import pairwise_kernels  # here, as it takes long to import

            values = pairwise_kernels(X, other, metric=self.function)
        else:
            values = self.function(X, other)
        return self._checked(values, (len(X), len(other)), X.dtype)

    def diagonal(self, X: Array) -> Array:
        """Return k(x_i, x_i)."""
        return np.array([self(row[None])[0, 0] for row in X], X.dtype)


@dataclass(eq=False, repr=False)
class Precomputed(Foreign):
    """A kernel known only by its matrix on a sample; its points are the sample's row numbers.

    Parameters
    ----------
    matrix : array of shape (n, n), default=None
        The Gram matrix; ``KernelMean(kernel="precomputed").fit(K)`` fills it in.
    """

    matrix: Array | None = None

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Return the matrix at the row numbers X and Y (one column each)."""
        return self._known[np.ix_(X[:, 0], (X if Y is None else Y)[:, 0])]

    def diagonal(self, X: Array) -> Array:
        """Return the matrix's diagonal at the row numbers X."""
        return self._known[X[:, 0], X[:, 0]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Precomputed) and bool(np.all(np.array_equal(self._known, other._known)))

    def __repr__(self) -> str:
        return (
            "Precomputed()" if self.matrix is None else f"Precomputed({' × '.join(map(str, self.matrix.shape))} matrix)"
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def _known(self) -> Array:
        if self.matrix is None:
            raise ValueError(refusal("Precomputed", "a Gram matrix is needed before it is called", "none", "fit first"))
        return self.matrix
