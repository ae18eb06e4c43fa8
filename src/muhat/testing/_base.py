"""What the tests share: parameters and samples, validated, and work shared between cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import joblib
import numpy as np
from sklearn.base import clone

from muhat._arrays import (
    BLAS_ON_ONE_THREAD,
    Array,
    as_array,
    available_cores,
    limit_cores,
    share_between_cores,
)
from muhat._bases import BaseEstimator
from muhat._parts import as_gram
from muhat._random_states import checked_seed
from muhat._validation import as_frame, checked_gram, checked_sample, whole_number
from muhat.data import DataSet
from muhat.errors import MuhatError, MuhatTypeError
from muhat.gram import Approximation
from muhat.kernels import Function, Kernel, Precomputed
from muhat.testing._ladder import check_bandwidths
from muhat.testing._statistics import STATISTICS, Statistic, as_statistics

DEFAULT_STATISTICS = ("mmd", "spectral", "kernel-fisher")
"""The default statistics: MMD for overall differences, spectral ones for fine structure."""

MIN_ROWS_FOR_THREADS = 100
"""Rows from which threads save more than they cost."""


class PermutationTest(BaseEstimator):
    """Many statistics on one set of permutations."""

    bandwidths: Any
    statistics: Any
    standardize: bool
    n_permutations: int
    random_state: Any
    n_jobs: int | None

    names: ClassVar[Mapping[str, Callable[[], Statistic]]] = STATISTICS
    """The statistics that can be asked for by name."""

    def _check(self) -> list[Statistic]:
        """Raise MuhatError for invalid parameters; return the statistics."""
        whole_number(self, "n_permutations", self.n_permutations)
        check_flag(self, "standardize", self.standardize)
        check_bandwidths(type(self).__name__, self.bandwidths)
        if self.n_jobs is not None and (not isinstance(self.n_jobs, Integral) or self.n_jobs == 0):
            needed = "n_jobs must be a whole number, not zero, or None"
            raise MuhatError(type(self).__name__, needed, repr(self.n_jobs))
        return as_statistics(self.statistics, self.names)

    @property
    def _is_default(self) -> bool:
        """Whether kernels and statistics are left to the test."""
        return False

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(checked_seed(self, self.random_state))

    def _blas_threads(self) -> AbstractContextManager[None]:
        """Return the context in which BLAS has one thread if our own threads share many kernels.

        Its threads go on to wait for work, on the cores that ours need.
        """
        if self._is_default:
            return BLAS_ON_ONE_THREAD
        return nullcontext()

    def _map(self, work: Callable[[Any], Any], parts: Sequence[Any], rows: int) -> list[Any]:
        """Return what work gives for each part, a thread per core unless the rows are few."""
        if rows < MIN_ROWS_FOR_THREADS:
            with BLAS_ON_ONE_THREAD:
                return [work(part) for part in parts]
        with limit_cores(self._n_cores):
            return share_between_cores(work, parts)

    @property
    def _n_cores(self) -> int:
        """How many cores to use."""
        if self.n_jobs is None:
            return available_cores()
        return int(joblib.effective_n_jobs(self.n_jobs))

    def _sample(self, name: str, X: Any, least: int = 2) -> tuple[Array, tuple[str, ...] | None]:
        """Return a sample of at least ``least`` rows as float64, and the names of its columns."""
        X, columns = as_rows(type(self).__name__, name, X)
        values = checked_sample(clone(self), X, reset=True, name=name)
        if len(values) < least:
            needed = f"{name} must have at least {least} rows"
            raise MuhatError(type(self).__name__, needed, "1 row")
        return values.astype(np.float64, copy=False), columns


def as_rows(who: str, name: str, X: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Return a sample in memory with two dimensions, and the names of its columns if any.

    A Series, or an array or list of numbers in one dimension, is one column; of what ``read_table``
    returns, the rows are taken.
    """
    if isinstance(X, DataSet):
        return X.data, checked_names(who, name, X.feature_names)
    X = as_frame(X)
    if hasattr(X, "columns"):
        return X, checked_names(who, name, X.columns)
    if isinstance(X, list | tuple | range):
        X = _as_table(who, name, X)
    elif isinstance(X, Mapping | set | frozenset) and not hasattr(X, "shape"):
        needed = f"{name} must be an array, a data frame or a list, points in rows"
        raise MuhatTypeError(who, needed, f"a {type(X).__name__}", "convert it to an array first")
    if len(getattr(X, "shape", ())) != 1:
        return X, None
    title = getattr(X, "name", None)
    if not isinstance(X, np.ndarray):  # a masked array raises later
        X = np.asarray(X)
    names = None
    if title is not None:
        names = (str(title),)
    return X[:, None], names


def _as_table(who: str, name: str, X: Sequence[Any]) -> Array:
    """Return lists as an array; raise MuhatError for unequal lengths."""
    try:
        return np.asarray(X)
    except ValueError:
        needed = f"the rows of {name} must have equal lengths"
        advice = (
            "make all rows equally long, or use kernel=Function(f, rows=True), where f is a "
            "function of two objects"
        )
        raise MuhatError(who, needed, "unequal ones", advice) from None


def checked_names(who: str, name: str, columns: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of columns; raise MuhatError if two columns have the same."""
    names = tuple(map(str, columns))
    seen = set()
    for each in names:
        if each in seen:
            needed = f"columns of {name} must have different names"
            raise MuhatError(who, needed, f"{each!r} twice", "rename or drop one of them")
        seen.add(each)
    return names


def check_flag(part: object, name: str, value: object) -> None:
    """Raise MuhatError unless a parameter is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise MuhatError(part, f"{name} must be True or False", repr(value))


@dataclass(frozen=True, eq=False)
class MatrixSamples:
    """Samples known by a matrix only: kernels of row numbers, and the row numbers of each."""

    kernels: list[Kernel]
    samples: tuple[Array, ...]


def samples_of_matrix(
    who: str, kernels: Sequence[Kernel], samples: Sequence[Any]
) -> MatrixSamples | None:
    """Return samples as row numbers of a kernel matrix; None for samples of numbers.

    ``Precomputed(K)`` takes whole numbers, and ``"precomputed"`` rows of K which make it up
    together. Functions are called on all objects, which are in lists.
    """
    if any(isinstance(each, Precomputed) for each in kernels):
        return _samples_of_precomputed(who, kernels, samples)
    functions = [each for each in kernels if isinstance(each, Function) and callable(each.function)]
    if len(functions) < len(kernels) or not any(map(has_objects, samples)):
        return None
    objects: list[Any] = []
    numbers = []
    for sample in samples:
        numbers.append(np.arange(len(objects), len(objects) + len(sample))[:, None])
        objects += list(sample)
    found: list[Kernel] = []
    for each in functions:
        found.append(Precomputed(checked_gram(who, _matrix_of_objects(each, objects))))
    return MatrixSamples(found, tuple(numbers))


def _samples_of_precomputed(
    who: str, kernels: Sequence[Kernel], samples: Sequence[Any]
) -> MatrixSamples:
    """Return samples of row numbers, or of rows of the matrix itself, with checked matrices."""
    matrices = []
    for each in kernels:
        if not isinstance(each, Precomputed):
            needed = "a precomputed kernel cannot be combined with others"
            raise MuhatError(who, needed, type(each).__name__)
        matrices.append(each.matrix)
    if any(matrix is None for matrix in matrices):
        return _rows_of_matrix(who, samples)
    checked = [checked_gram(who, np.asarray(matrix)) for matrix in matrices]
    size = min(map(len, checked))
    numbers = tuple(_row_numbers(who, each, size) for each in samples)
    return MatrixSamples([Precomputed(matrix) for matrix in checked], numbers)


def _rows_of_matrix(who: str, samples: Sequence[Any]) -> MatrixSamples:
    """Return the kernel whose matrix the samples make up, one below the other."""
    rows = [as_array(as_frame(each)) for each in samples]
    size = sum(map(len, rows))
    for each in rows:
        if each.ndim != 2 or each.shape[1] != size or each.dtype.kind not in "fiub":
            shapes = " and ".join(f"shape {each.shape}" for each in rows)
            needed = "kernel='precomputed' needs rows of one square matrix K"
            advice = "pass K[:n] and K[n:], or row numbers with kernel=Precomputed(K)"
            raise MuhatError(who, needed, shapes, advice)
    K = checked_gram(who, np.concatenate(rows).astype(np.float64))
    numbers = np.split(np.arange(len(K))[:, None], np.cumsum([len(each) for each in rows])[:-1])
    return MatrixSamples([Precomputed(K)], tuple(numbers))


def _row_numbers(who: str, X: Any, size: int) -> Array:
    """Return row numbers below a size, in one column; raise MuhatError for anything else."""
    rows = as_array(X)
    if rows.ndim == 1:
        rows = rows[:, None]
    is_column = rows.ndim == 2 and rows.shape[1] == 1 and rows.dtype.kind in "iu" and rows.size
    if not is_column or rows.min() < 0 or rows.max() >= size:
        needed = f"a precomputed kernel needs row numbers: whole numbers below {size}"
        advice = "give numbers such as range(n), or the rows of K with kernel='precomputed'"
        raise MuhatError(who, needed, f"shape {rows.shape} and type {rows.dtype}", advice)
    return rows


def has_objects(X: Any) -> bool:
    """Whether a list holds text or other objects, instead of numbers or batches of rows."""
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and X.dtype.kind in "OUS"
    if not isinstance(X, list | tuple) or not X or len(getattr(X[0], "shape", ())) == 2:
        return False
    return as_array(X).dtype.kind in "OUS"


def _matrix_of_objects(kernel: Function, objects: list[Any]) -> Array:
    """Return k(a, b) for all pairs of objects."""
    function: Any = kernel.function

    def matrix(_: Array) -> Any:
        if kernel.rows:
            return [[function(one, other) for other in objects] for one in objects]
        return function(objects, objects)

    return kernel._called(matrix, np.empty(0), shape=(len(objects), len(objects)))


def spectral_gram(
    test: PermutationTest, gram: Any, kernels: Sequence[Kernel]
) -> str | Approximation:
    """Return how Gram matrices are held; raise MuhatError for one without a spectrum."""
    gram = as_gram(gram)
    if gram == "blocks":
        needed = "a gram with eigenvalues is needed"
        raise MuhatError(type(test).__name__, needed, "'blocks'", "use 'dense' or 'nystrom'")
    if isinstance(gram, Approximation):
        for kernel in kernels:
            gram.check(kernel)
    return gram
