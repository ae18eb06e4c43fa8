"""The cross-covariance operator, shrunk: SCOSE and FCOSE, tests of independence for few rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from muhat._arrays import Array
from muhat._parts import as_filter
from muhat.errors import MuhatError
from muhat.filters import SimpleShrinkage, name_of
from muhat.mean import KernelMean
from muhat.selection import Fixed
from muhat.testing._statistics import Statistic, statistics_by_name

MAX_ROWS_DECOMPOSED = 200
"""Rows up to which a decomposition for each permutation takes a few milliseconds."""

MAX_ROWS_CLOSED_FORM = 2000
"""Rows up to which one matrix per permutation takes a few milliseconds."""


@dataclass
class ShrunkCovariance(Statistic):
    """‖Σ_λ‖² of the cross-covariance operator of x and y, shrunk as a kernel mean is.

    The operator is the mean of the products of the centred features of x and of y. The Gram matrix
    of these products is G = (HKH)∘(HLH). Any filter can shrink the operator: S-KMSE gives SCOSE,
    F-KMSE gives FCOSE (Ramdas and Wehbe 2015; Muandet et al. 2016). λ is chosen for every
    permutation separately, by exact leave-one-out.

    Parameters
    ----------
    filter : str or Filter, default='f-kmse'
        The filter.
    parameter : float, default=None
        λ or the number of iterations, in units of a G with the mean diagonal 1; by default chosen
        by leave-one-out.
    """

    presets: ClassVar[Mapping[str, str]] = {"scose": "s-kmse", "fcose": "f-kmse"}
    filter: Any = "f-kmse"
    parameter: float | None = None

    def weight(self, gamma: Array) -> Array:
        """Raise MuhatError: it is not a function of the eigenvalues of x and of y."""
        needed, advice = (
            "a statistic of the pooled eigenvalues is needed",
            "use it with IndependenceTest",
        )
        raise MuhatError("ShrunkCovariance", needed, str(self), advice)

    def check(self, n: int) -> None:
        """Raise MuhatError for an invalid filter, or too many rows to decompose per permutation."""
        filter = as_filter(self.filter)
        if self.parameter is not None:
            filter.check(np.atleast_1d(self.parameter))
        most = MAX_ROWS_DECOMPOSED
        if isinstance(filter, SimpleShrinkage):
            most = MAX_ROWS_CLOSED_FORM
        if n > most:
            advice = "use 'scose', or statistics such as 'mmd' and 'spectral'"
            raise MuhatError(str(self), f"at most {most} rows are supported", n, advice)

    def squared_norm(self, G: Array) -> float:
        """Return βᵀGβ of the weights β that the filter leaves of 1/n."""
        size = float(np.trace(G)) / len(G)
        if size <= 0:
            return 0.0
        if self.parameter is None and isinstance(as_filter(self.filter), SimpleShrinkage):
            return closed_form(G)
        selection: Any = "loo"
        if self.parameter is not None:
            selection = Fixed(self.parameter)
        mean = KernelMean(kernel="precomputed", filter=self.filter, selection=selection).fit(
            G / size
        )
        return float(mean.weights_ @ G @ mean.weights_)

    def __str__(self) -> str:
        setting = ""
        if self.parameter is not None:
            setting = f", {self.parameter:.3g}"
        return f"ShrunkCovariance({name_of(as_filter(self.filter))}{setting})"


def closed_form(G: Array) -> float:
    """Return ‖Σ_λ‖² with S-KMSE's λ that minimises the leave-one-out score.

    s = (n−1)(nρ−ϱ)/(n(n−2)ρ+ϱ), clipped to [0, 1].
    """
    n, rho, diagonal = len(G), float(G.mean()), float(np.trace(G)) / len(G)
    s = (n - 1) * (n * rho - diagonal) / (n * (n - 2) * rho + diagonal)
    return float(np.clip(s, 0, 1) ** 2 * rho)


COSE = statistics_by_name(ShrunkCovariance)
"""The two shrunk covariances of the literature by name."""
