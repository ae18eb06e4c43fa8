"""Estimates of a distribution: weights on rows, Gaussian mixtures, and what can be drawn from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self, TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from muhat._arrays import Array
from muhat._validation import frozen
from muhat.kernels import Mixture
from muhat.stacking._sample import waves_of

N_POINTS = 256
"""Points that stand for a copula where its characteristic function is needed."""


@dataclass(frozen=True, eq=False)
class Drawn(ABC):
    """A distribution made from rows, of which an estimate takes points.

    Attributes
    ----------
    X : array of shape (n, d)
        The rows.
    masses : array of shape (n,)
        Their masses.
    """

    X: Array
    masses: Array

    @abstractmethod
    def characteristic_function(self, frequencies: Array) -> Array:
        """Return E exp(iω·x) at each frequency ω."""

    @abstractmethod
    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Return n points, spread more evenly than independent ones."""

    def seen_from(self, origin: Array) -> Self:
        """Return the distribution seen from another origin."""
        return replace(self, X=self.X - origin)


@dataclass(frozen=True, eq=False)
class Recombination(Drawn):
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


@dataclass(frozen=True, eq=False)
class Copula(Drawn):
    """The distribution of the x with x_j = Q_j(Φ(z_j)) for a normal vector z.

    Q_j(u) is the mean of the quantile function of column j within half the mass of a row of u, so
    that it is continuous in the rows where values tie.

    Attributes
    ----------
    X : array of shape (n, d)
        The rows.
    masses : array of shape (n,)
        Their masses.
    correlation : array of shape (d, d)
        The correlation matrix of z, positive definite.
    """

    correlation: Array

    def characteristic_function(self, frequencies: Array) -> Array:
        """Return E exp(iω·x) at each frequency ω, approximately: by 256 fixed points."""
        normals = _fixed_normals(self.X.shape[1])
        return np.asarray(waves_of(self.at(normals) @ frequencies.T).mean(axis=0))

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Return n points, spread evenly in each coordinate of z."""
        return self.at(spread_normals(n, self.X.shape[1], rng))

    def at(self, normals: Array) -> Array:
        """Return the points that independent standard normal vectors, in rows, are mapped to."""
        # The triangular root is continuous in a positive definite matrix; eigenvectors are not.
        shares = ndtr(normals @ np.linalg.cholesky(self.correlation).T)
        origin, reach = self.X[0], (self.masses**2).sum() / 2
        order = np.argsort(self.X, axis=0)
        values = np.take_along_axis(self.X, order, axis=0) - origin
        ends = np.cumsum(self.masses[order], axis=0)
        ends[-1] = 1 + reach
        widths = np.diff(ends, axis=0, prepend=-reach)
        columns = []
        for u, knots, integral in zip(
            shares.T, ends.T, np.cumsum(widths * values, axis=0).T, strict=True
        ):
            knots, integral = np.append(-reach, knots), np.append(0, integral)
            ahead, behind = (np.interp(u + step, knots, integral) for step in (reach, -reach))
            columns.append((ahead - behind) / (2 * reach))
        return origin + np.column_stack(columns)


@lru_cache(maxsize=8)
def _fixed_normals(d: int) -> Array:
    """Return 256 vectors for N(0, I), whose means are nearer to integrals than of random ones."""
    cells = qmc.Sobol(d, seed=0).random(N_POINTS)
    return frozen(ndtri(cells + 2.0**-31))  # in the middle of cells of 2⁻³⁰


def spread_normals(n: int, d: int, rng: np.random.Generator) -> Array:
    """Return n vectors that are nearly N(0, I), whose coordinates are the normal's n-quantiles."""
    places = rng.permuted(np.tile(np.arange(n) + 0.5, (d, 1)), axis=1)
    return np.asarray(ndtri(places.T / n))


Measure: TypeAlias = Array | Mixture | Drawn
"""An estimate of the distribution; an array is weights on the rows of the sample."""


def measure_from(P: Mixture | Drawn, origin: Array) -> Mixture | Drawn:
    """Return P seen from another origin."""
    if isinstance(P, Drawn):
        return P.seen_from(origin)
    return Mixture.from_moments(P.weights, P.means - origin, P.covariances)


def draw_from(P: Mixture | Drawn, n: int, rng: np.random.Generator) -> Array:
    """Return n points from P, spread more evenly than independent ones."""
    if isinstance(P, Drawn):
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
