"""How the Gram operator is to be held: as asked, or as the size of the sample and the memory at hand suggest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muhat._arrays import available_memory
from muhat._messages import refusal, unknown_name
from muhat.gram._features import Approximation
from muhat.gram._nystrom import Nystrom
from muhat.gram._random_features import RandomFeatures
from muhat.kernels import Kernel, Precomputed

GRAMS_BY_NAME: dict[str, type[Approximation]] = {"nystrom": Nystrom, "random-features": RandomFeatures}
"""The approximations by name, with their default parameters."""

GRAMS = ("auto", "dense", "blocks", *GRAMS_BY_NAME)
"""The names of all ways."""

DENSE_UP_TO = 5000
"""Rows up to which an eigendecomposition takes less than about a minute."""

MATRICES = 4
"""How many matrices of all pairs a dense fit holds at its peak, by measurement."""

SHARE = 0.5
"""The share of the available memory that a fit may plan on."""

EXACT_WORK = 2e10
"""Multiplications in one matrix-free product, n²(d + 20), up to which a whole fit takes less than some minutes."""


@dataclass(frozen=True)
class Plan:
    """A way to hold the Gram operator, and why it was taken."""

    gram: str | Approximation
    reason: str


def as_gram(gram: Any) -> str | Approximation:
    """Return the way that a name or an object stands for.

    Examples
    --------
    >>> as_gram("nystrom").m is None
    True
    """
    if isinstance(gram, Approximation):
        return gram
    if isinstance(gram, str) and gram in GRAMS:
        return GRAMS_BY_NAME[gram]() if gram in GRAMS_BY_NAME else gram
    if isinstance(gram, str):
        raise ValueError(unknown_name("gram", gram, GRAMS))
    needed = "a name, Nystrom(m) or RandomFeatures(m) is needed"
    raise TypeError(refusal("gram", needed, f"{type(gram).__name__} {gram!r}"))


def plan(gram: Any, kernel: Kernel, n: int, d: int, itemsize: int) -> Plan:
    """Return how the Gram operator of n rows of d features is to be held.

    Left to itself it is dense while an eigendecomposition is quick and fits in memory, exact by products while these
    are quick, and Nyström's beyond.
    """
    asked = as_gram(gram)
    if asked != "auto":
        return Plan(asked, "as asked")
    if isinstance(kernel, Precomputed):
        return Plan("dense", "the Gram matrix was given")
    why = _why_not_dense(n, itemsize)
    if not why:
        return _dense(n)
    if n**2 * (d + 20) <= EXACT_WORK:
        return Plan("blocks", f"{why}, and few enough for products with all of their pairs")
    return Plan(Nystrom(), f"{why}, and their pairs too many for exact products")


def plan_for_rows(gram: Any, n: int, itemsize: int) -> Plan:
    """Return how the Gram operator is to be held where rows are left out one by one: dense or by features."""
    asked = as_gram(gram)
    if asked == "blocks":
        needed = "leaving out every point takes gram='dense', 'nystrom' or 'random-features'"
        raise ValueError(refusal("compare", needed, "'blocks'", "or KernelMean(gram='blocks') for one filter"))
    if asked != "auto":
        return Plan(asked, "as asked")
    why = _why_not_dense(n, itemsize)
    return Plan(Nystrom(), why) if why else _dense(n)


@dataclass(frozen=True)
class FeaturePlan(Plan):
    """A plan to hold the Gram operator by features."""

    gram: Approximation


def plan_for_stream(gram: Any, who: str = "KernelMean") -> FeaturePlan:
    """Return how the Gram operator of rows that come in batches is to be held: by features."""
    asked = as_gram(gram)
    if isinstance(asked, Approximation):
        return FeaturePlan(asked, "as asked")
    if asked == "auto":
        return FeaturePlan(Nystrom(), "rows that come in batches are never held at once")
    needed = "rows that come in batches need gram='nystrom' or 'random-features'"
    raise ValueError(refusal(who, needed, repr(gram), "or give all rows as one array"))


def _dense(n: int) -> Plan:
    return Plan("dense", f"{n} rows are few enough for one eigendecomposition")


def _why_not_dense(n: int, itemsize: int) -> str:
    """Return why rows are too many for a matrix of all their pairs; nothing if they are not."""
    if n > DENSE_UP_TO:
        return f"{n} rows are too many for an eigendecomposition"
    needed = MATRICES * itemsize * n**2
    if needed > SHARE * available_memory():
        return f"the matrices of {n} rows take {_size(needed)}, more than half of the available memory"
    return ""


def _size(bytes_: float) -> str:
    return f"{bytes_ / 2**30:.3g} GiB"
