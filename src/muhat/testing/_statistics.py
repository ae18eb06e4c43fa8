"""Test statistics as weights h(γ) of the pooled spectrum: MMD, spectral, shrunk means."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, cast

from muhat._arrays import Array
from muhat._bases import BaseEstimator
from muhat._messages import unknown_name
from muhat._parts import as_filter
from muhat._validation import positive
from muhat.errors import MuhatError, MuhatTypeError
from muhat.filters import Filter, name_of

SHARES = (10**-1.0, 10**-1.5, 10**-2.0, 10**-2.5, 10**-3.0)
"""The λ that a filter without a parameter takes, as shares of the largest eigenvalue."""


class Statistic(BaseEstimator):
    """T = N Σ_k h(γ_k) (u_kᵀ w)² of the eigenpairs of the pooled A = HKH/N.

    w is 1/n on X and −1/m on Y.

    A statistic of your own is a dataclass with one method, ``weight``, and an attribute
    ``unbiased``: whether the diagonal of N·U h(Γ) Uᵀ is taken out of the sums within each sample (a
    U-statistic instead of a V-statistic).
    """

    name: ClassVar[str] = ""
    """What users type, such as 'mmd'; empty for a statistic that cannot be given by name."""
    presets: ClassVar[Mapping[str, str]] = {}
    """Names that stand for this statistic with a filter of another name."""
    needs_spectrum: ClassVar[bool] = True
    """Whether h takes eigenvalues; h(γ) = γ is the matrix itself."""
    unbiased: bool = False

    @abstractmethod
    def weight(self, gamma: Array) -> Array:
        """Return h(γ), zero at γ = 0."""

    def resolve(self, gamma: Array, kappa2: float) -> list[Statistic]:
        """Return the statistics that this one stands for, of which every parameter is a number."""
        return [self]


def resolved_statistics(
    statistics: Sequence[Statistic], gamma: Array, kappa2: float
) -> list[Statistic]:
    """Return statistics with numbers as parameters; none without eigenvalues: rows look alike."""
    found: list[Statistic] = []
    if gamma.size:
        for each in statistics:
            found += each.resolve(gamma, kappa2)
    return found


@dataclass
class MMD(Statistic):
    """h(γ) = γ: the squared maximum mean discrepancy ‖μ̂_X − μ̂_Y‖².

    Parameters
    ----------
    unbiased : bool, default=False
        Whether the U-statistic is used. For samples of equal size, both give the same test.
    """

    name = "mmd"
    needs_spectrum: ClassVar[bool] = False
    unbiased: bool = False

    def weight(self, gamma: Array) -> Array:
        """h(γ) = γ."""
        return gamma

    def __str__(self) -> str:
        return "MMD" + ", unbiased" * self.unbiased


@dataclass
class Filtered(Statistic):
    """A statistic made with a filter s_λ.

    Parameters
    ----------
    filter : str or Filter, default='tsvd'
        The filter, a function of γ.
    parameter : float or sequence of them, default=None
        λ or the number of iterations t, several for a statistic each; by default what acts as the
        shares.
    unbiased : bool, default=False
        Whether the U-statistic is used. For samples of equal size, both give the same test.
    shares : sequence of float, default=None
        λ as shares of the largest eigenvalue, where no parameter is given: by default 0.1, 0.032,
        0.01, 0.0032 and 0.001; for independence 0.1, 0.01 and 0.001.
    """

    filter: Any = "tsvd"
    parameter: Any = None
    unbiased: bool = False
    shares: Any = None

    def resolve(self, gamma: Array, kappa2: float) -> list[Statistic]:
        """Return a statistic for each parameter, the filter's steps bound to κ²."""
        filter = cast(Filter, checked_filter(self).bounded_by(kappa2))
        if filter.parameterless:
            return [replace(self, filter=filter, parameter=1.0)]
        if self.parameter is not None:
            return [
                replace(self, filter=filter, parameter=each)
                for each in filter.check(self.parameter).tolist()
            ]
        shares = {filter.from_lambda(share * gamma.max()): share for share in self.shares or SHARES}
        return [
            replace(self, filter=filter, parameter=each, shares=(share,))
            for each, share in shares.items()
        ]

    def shrinkage(self, gamma: Array) -> Array:
        """Return s_λ(γ)."""
        return self.filter.shrinkage(gamma, self.parameter)

    @property
    def relative(self) -> str:
        """The statistic with λ as a share of the largest eigenvalue γ₁, if it was given so."""
        if not self.shares or len(self.shares) > 1:
            return str(self)
        return (
            f"{type(self).__name__}({name_of(as_filter(self.filter))}, {self.shares[0]:.2g} γ₁)"
            + ", unbiased" * self.unbiased
        )

    def __str__(self) -> str:
        filter = as_filter(self.filter)
        setting = ""
        if isinstance(self.parameter, float | int):
            setting = f", {filter.symbol} = {self.parameter:.3g}"
        return f"{type(self).__name__}({name_of(filter)}{setting})" + ", unbiased" * self.unbiased


@dataclass
class Spectral(Filtered):
    """h(γ) = s_λ(γ): ‖g_λ^(1/2)(Ĉ)(μ̂_X − μ̂_Y)‖², the distance in units of the spread.

    This is the spectral-regularised test of Hagrass, Sriperumbudur and Li (2024), with any filter
    that depends on γ; with a constant filter all permutations would have the same value.
    """

    name = "spectral"
    presets: ClassVar[Mapping[str, str]] = {"kernel-fisher": "f-kmse"}

    def weight(self, gamma: Array) -> Array:
        """h(γ) = s_λ(γ)."""
        return self.shrinkage(gamma)


@dataclass
class ShrunkMeans(Filtered):
    """h(γ) = γ s_λ(γ)²: squared distance of the means, both shrunk towards the pooled mean."""

    name = "shrunk-means"

    def weight(self, gamma: Array) -> Array:
        """h(γ) = γ s_λ(γ)²."""
        return gamma * self.shrinkage(gamma) ** 2


def statistics_by_name(*kinds: type[Statistic]) -> dict[str, Callable[[], Statistic]]:
    """Return the statistics by their names, followed by those of their presets."""
    found: dict[str, Callable[[], Statistic]] = {}
    for kind in kinds:
        if kind.name:
            found[kind.name] = kind
        for preset, filter in kind.presets.items():
            found[preset] = partial(kind, filter)  # type: ignore[call-arg]
    return found


STATISTICS = statistics_by_name(MMD, Spectral, ShrunkMeans)
"""The statistics by name; with Tikhonov's filter "spectral" is the kernel Fisher test."""


def as_statistics(
    statistics: Any, names: Mapping[str, Callable[[], Statistic]] = STATISTICS
) -> list[Statistic]:
    """Return the statistics that a name, an object or a list of these stands for."""
    given = [statistics]
    if isinstance(statistics, Sequence) and not isinstance(statistics, str):
        given = list(statistics)
    if not given:
        raise MuhatError("statistics", "at least one statistic is needed", "an empty list")
    found = [_as_statistic(each, names) for each in given]
    for each in found:
        if isinstance(each, Filtered):
            filter = checked_filter(each)
            if each.parameter is not None:
                filter.check(each.parameter)
            for share in each.shares or ():
                positive(type(each).__name__, "each of shares", share)
    return found


def _as_statistic(statistic: Any, names: Mapping[str, Callable[[], Statistic]]) -> Statistic:
    if isinstance(statistic, Statistic):
        return statistic
    if isinstance(statistic, str):
        if statistic in names:
            return names[statistic]()
        raise MuhatError(unknown_name("statistics", statistic, names))
    needed = "a name, a statistic such as Spectral('landweber') or a list of these is needed"
    raise MuhatTypeError("statistics", needed, f"{type(statistic).__name__} {statistic!r}")


def checked_filter(statistic: Filtered) -> Filter:
    """Return the statistic's filter; raise MuhatError for one that makes no test."""
    filter, who = as_filter(statistic.filter), type(statistic).__name__
    if not isinstance(filter, Filter):
        needed = "a filter that is a function of γ is needed"
        raise MuhatError(who, needed, name_of(filter), "use for example 'f-kmse' or 'landweber'")
    if filter.constant and isinstance(statistic, Spectral):
        needed = "the filter must weight eigenvalues differently"
        raise MuhatError(who, needed, name_of(filter), "use for example 'f-kmse' or 'landweber'")
    return filter
