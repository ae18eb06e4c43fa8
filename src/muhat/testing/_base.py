"""What the tests have in common: their parameters, checked before the work, and what they share between cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar

import joblib
import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from muhat._arrays import BLAS_ON_ONE_THREAD, Array, available_cores, limit_cores, share_between_cores
from muhat._messages import refusal
from muhat._parts import as_gram
from muhat._validation import as_frame, checked_sample, whole_number
from muhat.gram import Approximation
from muhat.kernels import Kernel
from muhat.testing._ladder import check_bandwidths
from muhat.testing._statistics import STATISTICS, Statistic, as_statistics

DEFAULT_STATISTICS = ("mmd", "spectral", "kernel-fisher")
"""What is asked without a word: differences as a whole, and those in fine structure."""

WORTH_A_THREAD = 100
"""Rows from which on threads save more than they cost."""


class PermutationTest(BaseEstimator):
    """Many statistics on one set of permutations."""

    bandwidths: Any
    statistics: Any
    n_permutations: int
    random_state: Any
    n_jobs: int | None

    names: ClassVar[Mapping[str, Callable[[], Statistic]]] = STATISTICS
    """The statistics that can be asked for by name."""

    def _check(self) -> list[Statistic]:
        """Refuse parameters that are none; return the statistics."""
        whole_number(self, "n_permutations", self.n_permutations)
        check_bandwidths(type(self).__name__, self.bandwidths)
        if self.n_jobs is not None and (not isinstance(self.n_jobs, Integral) or self.n_jobs == 0):
            needed = "n_jobs must be a whole number, not zero, or None"
            raise ValueError(refusal(type(self).__name__, needed, repr(self.n_jobs)))
        return as_statistics(self.statistics, self.names)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31))

    def _map(self, work: Callable[[Any], Any], parts: Sequence[Any], rows: int) -> list[Any]:
        """Return what work gives for each part, a thread per core unless the rows are few."""
        if rows < WORTH_A_THREAD:
            with BLAS_ON_ONE_THREAD:
                return [work(part) for part in parts]
        with limit_cores(available_cores() if self.n_jobs is None else joblib.effective_n_jobs(self.n_jobs)):
            return share_between_cores(work, parts)

    def _sample(self, name: str, X: Any) -> tuple[Array, tuple[str, ...] | None]:
        """Return a sample of at least two rows, in double, and the names of its columns if it has any."""
        X = as_frame(X)
        columns = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
        values = checked_sample(clone(self), X, reset=True, name=name).astype(np.float64, copy=False)
        if len(values) < 2:
            raise ValueError(refusal(type(self).__name__, f"{name} must have at least 2 rows", "1 row"))
        return values, columns


def spectral_gram(test: PermutationTest, gram: Any, kernels: Sequence[Kernel]) -> str | Approximation:
    """Return how Gram matrices are to be held, or refuse a way that gives no spectrum."""
    gram = as_gram(gram)
    if gram == "blocks":
        needed, advice = "a gram with a spectrum is needed", "use 'dense' or 'nystrom'"
        raise ValueError(refusal(type(test).__name__, needed, "'blocks'", advice))
    if isinstance(gram, Approximation):
        for kernel in kernels:
            gram.check(kernel)
    return gram
