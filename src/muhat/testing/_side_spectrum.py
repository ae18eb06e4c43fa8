"""The spectrum of one side of an independence test: eigenvectors held, or computed when needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from muhat._arrays import Array
from muhat.gram import FeatureMap
from muhat.testing._gram import FeatureAxes, PooledSpectrum
from muhat.testing._statistics import Statistic, resolved_statistics


@dataclass(frozen=True, eq=False)
class SideSpectrum:
    """The eigenvalues of A = HKH/n, and a function that returns eigenvectors."""

    gamma: Array
    kappa2: float
    """A bound of k(x, x)."""
    components: Callable[[Array], Array]
    """From truth values, which eigenvectors are used, to these, shape (n, their number)."""

    @classmethod
    def from_eigenvectors(cls, spectrum: PooledSpectrum) -> SideSpectrum:
        """Return a spectrum whose eigenvectors are all held."""
        return cls(spectrum.gamma, spectrum.kappa2, lambda used: spectrum.U[:, used])

    @classmethod
    def from_features(cls, features: FeatureMap, rows: Array) -> SideSpectrum:
        """Return the spectrum of features, whose eigenvectors are computed when asked for.

        A test has some twenty spectra, whose eigenvectors would take too much memory together.
        """
        axes = FeatureAxes.from_values(features, features(rows))

        def components(used: Array) -> Array:
            phi = features(rows)
            phi -= axes.means
            return axes.take(used).components(phi)

        return cls(axes.gamma, axes.kappa2, components)

    def resolve(self, statistics: Sequence[Statistic]) -> list[Statistic]:
        """Return the statistics with numbers as parameters; none if all rows look alike."""
        return resolved_statistics(statistics, self.gamma, self.kappa2)
