"""Kernels from elsewhere: scikit-learn's, a function, a matrix.

None of them is proven to be positive semi-definite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from muhat._arrays import Array
from muhat._validation import as_points, as_two_samples
from muhat.errors import MuhatError
from muhat.kernels._base import Kernel

__all__ = ["Function", "Precomputed", "SklearnKernel", "names_known_to_sklearn"]


def names_known_to_sklearn() -> list[str]:
    """Return the names of scikit-learn's pairwise kernels."""
    # imported here because it takes long
    from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

    return sorted(PAIRWISE_KERNEL_FUNCTIONS)


class ExternalKernel(Kernel):
    """A kernel that we did not write: its values and the eigenvalues of its matrix are checked."""

    advice: ClassVar[str] = ""
    """What to do about invalid values."""

    def _called(
        self, function: Callable[..., Any], X: Array, *Y: Array | None, shape: tuple[int, ...]
    ) -> Array:
        """Return the values of an external function, in the type of X if that is a float.

        Raise MuhatError if they do not have the given shape.
        """
        needed = f"real numbers of shape {shape} must be returned for that many rows"
        try:
            values = np.asarray(function(X, *Y))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            got = f"{type(error).__name__}: {error}".rstrip(".")
            raise MuhatError(type(self).__name__, needed, got, self.advice) from error
        if values.shape != shape or values.dtype.kind not in "fiub":
            got = f"shape {values.shape} and type {values.dtype}"
            raise MuhatError(type(self).__name__, needed, got, self.advice)
        dtype = np.dtype(np.float64)
        if X.dtype.kind == "f":
            dtype = X.dtype
        return np.array(values, dtype)  # a copy: the Gram operator scales it


@dataclass
class SklearnKernel(ExternalKernel):
    """A kernel object of ``sklearn.gaussian_process.kernels``."""

    kernel: Any

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        X, other = as_two_samples(X, Y)
        if Y is not None:
            Y = other
        return self._called(self.kernel, X, Y, shape=(len(X), len(other)))

    def diagonal(self, X: Array) -> Array:
        X = as_points(X)
        return self._called(self.kernel.diag, X, shape=(len(X),))


@dataclass
class Function(ExternalKernel):
    """A function as a kernel.

    Parameters
    ----------
    function : callable or str
        ``function(X, Y)`` returns the matrix k(x_i, y_j), as for scikit-learn's SVC; a string is a
        name that ``sklearn.metrics.pairwise.pairwise_kernels`` knows.
    rows : bool, default=False
        If true, ``function(x, y)`` takes two rows, returns a number, and is called for each pair.
    """

    function: Callable[[Array, Array], Any] | str
    rows: bool = False

    @property
    def advice(self) -> str:  # type: ignore[override]
        """What may be wrong with the function, or with the rows."""
        if isinstance(self.function, str):
            return "change X, or use another kernel"
        takes = "with rows=True the function takes two rows and returns a number"
        return f"if it is a function of two rows, wrap it as Function(f, rows=True): {takes}"

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        X, Y = as_two_samples(X, Y)
        return self._called(self._matrix, X, Y, shape=(len(X), len(Y)))

    def _matrix(self, X: Array, Y: Array) -> Any:
        if callable(self.function) and not self.rows:
            return self.function(X, Y)
        from sklearn.metrics.pairwise import pairwise_kernels  # here, as it takes long to import

        return pairwise_kernels(X, Y, metric=self.function)


@dataclass(eq=False, repr=False)
class Precomputed(ExternalKernel):
    """A kernel given by its matrix on a sample; a point is a row number.

    Parameters
    ----------
    matrix : array of shape (n, n), default=None
        The Gram matrix; ``KernelMean(kernel="precomputed").fit(K)`` fills it in.
    """

    name = "precomputed"
    matrix: Array | None = None

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Return the matrix at the row numbers X and Y (one column each)."""
        rows = columns = self._rows(X)
        if Y is not None:
            columns = self._rows(Y)
        return self._known[np.ix_(rows, columns)]

    def diagonal(self, X: Array) -> Array:
        rows = self._rows(X)
        return self._known[rows, rows]

    def _rows(self, X: Array) -> Array:
        rows, n = as_points(X), len(self._known)
        if (
            rows.shape[1] != 1
            or rows.dtype.kind not in "iu"
            or (rows.size and not -1 < rows.min() <= rows.max() < n)
        ):
            needed = f"points must be row numbers, integers below {n} in one column"
            raise MuhatError("Precomputed", needed, f"shape {rows.shape} and type {rows.dtype}")
        return rows[:, 0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Precomputed) and np.array_equal(self._known, other._known)

    def __repr__(self) -> str:
        size = ""
        if self.matrix is not None:
            size = " × ".join(map(str, self.matrix.shape)) + " matrix"
        return f"Precomputed({size})"

    @property
    def _known(self) -> Array:
        if self.matrix is None:
            needed = "a Gram matrix is needed before the kernel can be called"
            raise MuhatError(
                "Precomputed", needed, "none", "fit an estimator with kernel='precomputed' first"
            )
        return self.matrix
