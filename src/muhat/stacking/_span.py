"""What some measures span in the RKHS: their inner products and values, and the element of a combination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array
from muhat.embedding import Element, Embedding
from muhat.kernels import Kernel, Mixture
from muhat.kernels._mixtures import has_closed_form
from muhat.stacking._candidates import Measure
from muhat.stacking._embedding import MixedEmbedding
from muhat.stacking._sample import Sample


@dataclass(frozen=True, eq=False)
class Span:
    """Measures as combinations of points and of Gaussians, which all of them share.

    For a kernel without the mean of a Gaussian in closed form, points are drawn from the Gaussians instead.
    """

    kernel: Kernel
    points: Array
    on_points: Array
    """The weights of each measure on the points, in columns."""
    gaussians: Mixture | None
    on_gaussians: Array
    """Its weights on the Gaussians, in columns."""

    @classmethod
    def from_measures(cls, sample: Sample, measures: Sequence[Measure], n_draws: int, rng: np.random.Generator) -> Span:
        """Return the span of measures made from a sample, with so many draws from each mixture if need be."""
        count = len(measures)
        mixtures = {m: measure for m, measure in enumerate(measures) if isinstance(measure, Mixture)}
        weights = np.zeros((sample.n, count))
        for m, measure in enumerate(measures):
            if not isinstance(measure, Mixture):
                weights[:, m] = measure
        if not mixtures:
            return cls(sample.kernel, sample.X, weights, None, np.zeros((0, count)))
        if has_closed_form(sample.kernel):
            sizes = [len(P.weights) for P in mixtures.values()]
            ends = np.cumsum(sizes)
            masses = np.zeros((ends[-1], count))
            for (m, P), end in zip(mixtures.items(), ends, strict=True):
                masses[end - len(P.weights) : end, m] = P.weights
            gaussians = Mixture.from_moments(
                np.full(ends[-1], 1 / ends[-1]),
                np.concatenate([P.means for P in mixtures.values()]),
                np.concatenate([P.covariances for P in mixtures.values()]),
            )
            return cls(sample.kernel, sample.X, weights, gaussians, masses)
        draws = [spread_draws(P, n_draws, rng) for P in mixtures.values()]
        on_draws = np.zeros((n_draws * len(draws), count))
        for place, m in enumerate(mixtures):
            on_draws[place * n_draws : (place + 1) * n_draws, m] = 1 / n_draws
        points, on_points = np.concatenate([sample.X, *draws]), np.concatenate([weights, on_draws])
        return cls(sample.kernel, points, on_points, None, np.zeros((0, count)))

    def gram(self) -> Array:
        """Return the inner products ⟨μ_m, μ_m'⟩."""
        inner = self.on_points.T @ self.kernel.product(self.points, self.on_points)
        if self.gaussians is not None:
            mixed = self.on_gaussians.T @ self.gaussians.means_at(self.kernel, self.points) @ self.on_points
            own = self.gaussians.inner_products(self.kernel, self.gaussians)
            inner = inner + mixed + mixed.T + self.on_gaussians.T @ own @ self.on_gaussians
        return (inner + inner.T) / 2

    def values(self, Y: Array) -> Array:
        """Return μ_m(y), of shape (rows, measures)."""
        values = self.kernel.product(Y, self.on_points, self.points)
        if self.gaussians is not None:
            values = values + self.gaussians.means_at(self.kernel, Y).T @ self.on_gaussians
        return values


def combination(
    sample: Sample, measures: Sequence[Measure], w: Array, n_draws: int, rng: np.random.Generator
) -> Element:
    """Return Σ_m w_m μ_m: points and Gaussians, or so many points drawn from these where they have no closed form."""
    weighted = list(zip(w.tolist(), measures, strict=True))
    weights = np.zeros(sample.n)
    for weight, measure in weighted:
        if not isinstance(measure, Mixture):
            weights += weight * measure
    mixtures = [(weight, P) for weight, P in weighted if isinstance(P, Mixture) and weight > 0]
    atoms = Embedding(sample.kernel, sample.X, weights)
    if not mixtures:
        return atoms
    masses = np.concatenate([weight * P.weights for weight, P in mixtures])
    gaussians = Mixture.from_moments(
        masses / masses.sum(),
        np.concatenate([P.means for _, P in mixtures]),
        np.concatenate([P.covariances for _, P in mixtures]),
    )
    if has_closed_form(sample.kernel):
        return MixedEmbedding(atoms, gaussians, masses)
    draws = spread_draws(gaussians, n_draws, rng)
    return atoms + Embedding(sample.kernel, draws, np.full(n_draws, masses.sum() / n_draws))


def spread_draws(P: Mixture, n: int, rng: np.random.Generator) -> Array:
    """Return n points from P, of every component as many as its weight says, in pairs opposite to its mean."""
    shares = P.weights * n
    counts = np.floor(shares).astype(int)
    late = np.argsort(counts - shares, kind="stable")[: n - counts.sum()]
    counts[late] += 1
    variances, axes = P._eigenpairs
    drawn = []
    for mean, directions, spread, count in zip(P.means, axes, variances, counts, strict=True):
        half = rng.standard_normal((-(-count // 2), len(mean)))
        drawn.append(mean + (np.concatenate([half, -half])[:count] * np.sqrt(spread)) @ directions.T)
    return np.concatenate(drawn)
