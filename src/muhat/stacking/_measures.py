"""Estimates of a distribution: weights on rows, Gaussian mixtures, recombined rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from muhat._arrays import Array
from muhat.kernels import Mixture


@dataclass(frozen=True, eq=False)
class Recombination:
    """The distribution of Σ_b a_b ⊙ x_b, with x_b independent rows of one random cluster.

    Its characteristic function is Σ_c π_c Π_b φ_c(a_b ⊙ ω), with φ_c that of the rows of cluster c.

    Attributes
    ----------
    X : array of shape (n, d)
        The rows.
    masses : array of shape (n,)
        Their masses.
    labels : array of shape (n,)
        The cluster of each, counted from zero.
    parts : array of shape (B, d)
        The a_b, with sum one in every column.
    """

    X: Array
    masses: Array
    labels: Array
    parts: Array

    def characteristic_function(self, frequencies: Array) -> Array:
        """Return E exp(iω·x) at each frequency ω."""
        member = self.masses * (self.labels == np.arange(self.labels.max() + 1)[:, None])
        phases = (self.X @ (part * frequencies).T for part in self.parts)
        waves = [member @ np.cos(phase) + 1j * (member @ np.sin(phase)) for phase in phases]
        return product_of_parts(member.sum(axis=1), waves).sum(axis=0)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Return n points: every row gives each part to as many of them as its mass says."""
        places = (np.arange(n) + rng.random()) / n
        order = np.argsort(self.labels, kind="stable")
        ends = np.cumsum(self.masses[order])
        rows = order[
            np.minimum(np.searchsorted(ends, places * ends[-1], side="right"), len(order) - 1)
        ]
        first, *others = self.parts
        shuffled = np.argsort(
            self.labels[rows] + rng.random((len(others), n)), axis=1
        )  # within each cluster
        origin = self.X[
            0
        ]  # parts sum to one, so it can be taken out, and large rows keep their digits
        drawn = first * (self.X[rows] - origin)
        for part, places in zip(others, shuffled, strict=True):
            drawn += part * (self.X[rows[places]] - origin)
        return origin + drawn


def product_of_parts(masses: Array, waves: list[Array]) -> Array:
    """Return π_c Π_b φ_c from masses π_c and waves π_c φ_c; zero for an empty cluster."""
    found = masses[..., None].astype(waves[0].dtype)
    inverse = np.divide(1, masses, out=np.zeros_like(masses), where=masses > 0)[..., None]
    for wave in waves:
        found = found * (inverse * wave)
    return found


Measure: TypeAlias = Array | Mixture | Recombination
"""An estimate of the distribution; an array is weights on the rows of the sample."""


def measure_from(P: Mixture | Recombination, origin: Array) -> Mixture | Recombination:
    """Return P seen from another origin."""
    if isinstance(P, Recombination):
        return replace(P, X=P.X - origin)
    return Mixture.from_moments(P.weights, P.means - origin, P.covariances)


def draw_from(P: Mixture | Recombination, n: int, rng: np.random.Generator) -> Array:
    """Return n points from P, spread more evenly than independent ones."""
    if isinstance(P, Recombination):
        return P.draw(n, rng)
    return spread_draws(P, n, rng)


def spread_draws(P: Mixture, n: int, rng: np.random.Generator) -> Array:
    """Return n points from P, stratified by component, in pairs mirrored at its mean."""
    shares = np.round(P.weights * n, 3)  # weights that differ by rounding draw the same points
    counts = np.floor(shares).astype(int)
    late = np.argsort(counts - shares, kind="stable")[: n - counts.sum()]
    counts[late] += 1
    variances, axes = P.eigenpairs
    # The symmetric root is continuous in the covariance; eigenvectors are not.
    roots = (axes * np.sqrt(variances)[:, None, :]) @ axes.swapaxes(-2, -1)
    drawn = []
    for mean, root, count in zip(P.means, roots, counts, strict=True):
        half = rng.standard_normal((-(-count // 2), len(mean)))
        drawn.append(mean + np.concatenate([half, -half])[:count] @ root)
    return np.concatenate(drawn)
