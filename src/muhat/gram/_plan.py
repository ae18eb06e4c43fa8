"""Choose how to hold the Gram operator: as asked, or by the number of rows and the free memory."""

from __future__ import annotations

from dataclasses import dataclass

from muhat._arrays import available_memory
from muhat.errors import MuhatError
from muhat.gram._features import Approximation
from muhat.gram._in_memory import BlockProblem, DenseProblem
from muhat.gram._nystrom import Nystrom, needs_matrix
from muhat.gram._problem import Access
from muhat.gram._random_features import RandomFeatures
from muhat.kernels import Kernel, Precomputed

APPROXIMATIONS: dict[str, type[Approximation]] = {
    "nystrom": Nystrom,
    "random-features": RandomFeatures,
}
"""The approximations by name, with their default parameters."""

GRAMS = ("auto", "dense", "blocks", *APPROXIMATIONS)
"""The names of all ways to hold the Gram operator."""

MAX_ROWS_DENSE = 5000
"""Rows up to which an eigendecomposition takes less than about a minute."""

MIN_ROWS_FACTOR = 500
"""Rows from which on ``gram="auto"`` looks for a factor: fewer are decomposed quickly."""

N_DENSE_MATRICES = 4
"""How many n × n matrices a dense fit holds at its peak."""

MEMORY_SHARE = 0.5
"""The share of the free memory that a dense fit may take."""


@dataclass(frozen=True)
class Plan:
    """A way to hold the Gram operator, the reason for it, and what it gives access to."""

    gram: str | Approximation
    reason: str
    access: Access


def access_of(gram: str | Approximation, rows_again: bool = True) -> Access:
    """Return what a way to hold the Gram operator gives; ``rows_again``: rows can be read twice."""
    if gram == "blocks":
        return BlockProblem.access
    if gram == "dense":
        return DenseProblem.access
    if rows_again:
        return Access.SPECTRUM | Access.ROWS
    return Access.SPECTRUM


def plan_in_memory(gram: str | Approximation, kernel: Kernel, n: int, itemsize: int) -> Plan:
    """Return how to hold the Gram operator of n rows in memory.

    ``"auto"`` is dense while an eigendecomposition is quick and fits in memory. Beyond, it is
    Nyström's, refined by its error (``muhat.gram._auto``). Both give what every rule and filter
    needs, so that the plan depends on neither. ``"blocks"`` is exact and slow, and only on request.
    """
    if gram != "auto":
        return Plan(gram, "as requested", access_of(gram))
    if isinstance(kernel, Precomputed):
        return Plan("dense", "the Gram matrix was given", access_of("dense"))
    if n > MAX_ROWS_DENSE:
        return Plan(
            Nystrom(), f"{n} rows are too many for an eigendecomposition", access_of("nystrom")
        )
    if not fits_in_memory(n, itemsize):
        size = N_DENSE_MATRICES * itemsize * n**2 / 2**30
        why = (
            f"the matrices of {n} rows take {size:.3g} GiB, more than half of the available memory"
        )
        return Plan(Nystrom(), why, access_of("nystrom"))
    return Plan("dense", f"{n} rows are few enough for one eigendecomposition", access_of("dense"))


def fits_in_memory(n: int, itemsize: int) -> bool:
    """Whether the matrices of a dense fit to n rows take at most half of the free memory."""
    return N_DENSE_MATRICES * itemsize * n**2 <= MEMORY_SHARE * available_memory()


def can_factor(kernel: Kernel, n: int) -> bool:
    """Whether ``gram="auto"`` looks for a factor of n rows.

    Kernels that are not known to be positive semi-definite are refused by their eigenvalues, which
    a factor does not have; matrices that are given may be indefinite too.
    """
    return n >= MIN_ROWS_FACTOR and kernel.positive_semidefinite and not needs_matrix(kernel)


def check_batches(gram: str | Approximation, kernel: Kernel, who: str) -> None:
    """Raise MuhatError for Gram operators and kernels that rows in batches cannot have."""
    if isinstance(kernel, Precomputed):
        needed = "rows in batches need a kernel that is computed from rows"
        raise MuhatError(who, needed, "a precomputed one")
    if gram in ("dense", "blocks"):
        needed = "rows in batches need gram='nystrom' or 'random-features'"
        raise MuhatError(who, needed, repr(gram), "use one of these, or pass all rows as one array")


def plan_one_pass(gram: str | Approximation) -> Plan:
    """Return how to hold the Gram operator of rows that can be read once: by features."""
    access = access_of("nystrom", rows_again=False)
    if gram == "auto":
        return Plan(
            Nystrom(),
            "rows that are read once use 500 landmarks, without a bound on the error",
            access,
        )
    return Plan(gram, "as requested", access)
