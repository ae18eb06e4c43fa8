"""The span of measures in the RKHS: inner products, values, and combinations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array
from muhat.embedding import Element, Embedding
from muhat.kernels import Kernel, Mixture
from muhat.stacking._embedding import MixedEmbedding
from muhat.stacking._measures import Drawn, Measure, draw_from
from muhat.stacking._sample import StackSample

MONTE_CARLO_BUDGET = 0.005
"""Risk that drawn points may add, as a share of KME's risk."""

MAX_DRAWS = 20_000
"""Maximum number of drawn points."""


@dataclass(frozen=True, eq=False)
class Span:
    """Measures as combinations of points and of Gaussians, which all of them share.

    For a kernel without the mean of a Gaussian in closed form, points are drawn from the Gaussians
    instead.
    """

    kernel: Kernel
    points: Array
    on_points: Array
    """The weights of each measure on the points, in columns."""
    gaussians: Mixture | None
    on_gaussians: Array
    """Its weights on the Gaussians, in columns."""

    @classmethod
    def from_measures(
        cls,
        sample: StackSample,
        measures: Sequence[Measure],
        n_draws: int,
        rng: np.random.Generator,
    ) -> Span:
        """Return the span of measures, with ``n_draws`` points per mixture without closed form."""
        count, closed = len(measures), sample.kernel.has_gaussian_means
        points, on_points, mixtures = [sample.X], [np.zeros((sample.n, count))], {}
        for m, measure in enumerate(measures):
            if isinstance(measure, Mixture) and closed:
                mixtures[m] = measure
            elif isinstance(measure, Mixture | Drawn):
                points.append(draw_from(measure, n_draws, rng))
                on_points.append(np.zeros((n_draws, count)))
                on_points[-1][:, m] = 1 / n_draws
            else:
                on_points[0][:, m] = measure
        gaussians, masses = None, np.zeros((sum(len(P.weights) for P in mixtures.values()), count))
        if mixtures:
            ends = np.cumsum([len(P.weights) for P in mixtures.values()])
            for (m, P), end in zip(mixtures.items(), ends, strict=True):
                masses[end - len(P.weights) : end, m] = P.weights
            gaussians = joined(list(mixtures.values()), np.full(ends[-1], 1 / ends[-1]))
        return cls(
            sample.kernel, np.concatenate(points), np.concatenate(on_points), gaussians, masses
        )

    def gram(self) -> Array:
        """Return the inner products ⟨μ_m, μ_m'⟩."""
        inner = self.on_points.T @ self.kernel.product(self.points, self.on_points)
        if self.gaussians is not None:
            mixed = (
                self.on_gaussians.T
                @ self.gaussians.means_at(self.kernel, self.points)
                @ self.on_points
            )
            own = self.gaussians.inner_products(self.kernel, self.gaussians)
            inner = inner + mixed + mixed.T + self.on_gaussians.T @ own @ self.on_gaussians
        return (inner + inner.T) / 2

    def values(self, Y: Array) -> Array:
        """Return μ_m(y), of shape (rows, measures)."""
        values = self.kernel.product(Y, self.on_points, self.points)
        if self.gaussians is not None:
            values = values + self.gaussians.means_at(self.kernel, Y).T @ self.on_gaussians
        return values


def joined(mixtures: Sequence[Mixture], weights: Array) -> Mixture:
    """Return all Gaussians of some mixtures with new weights."""
    means = np.concatenate([P.means for P in mixtures])
    return Mixture.from_moments(weights, means, np.concatenate([P.covariances for P in mixtures]))


def combination(
    sample: StackSample, measures: Sequence[Measure], w: Array, rng: np.random.Generator
) -> Element:
    """Return Σ_m w_m μ_m as points and Gaussians.

    For a kernel without their means in closed form, points are drawn from the Gaussians.
    """
    weights = np.zeros(sample.n)
    mixtures: list[tuple[float, Mixture]] = []
    drawn: list[tuple[float, Mixture | Drawn]] = []
    for weight, measure in zip(w.tolist(), measures, strict=True):
        if isinstance(measure, np.ndarray):
            weights += weight * measure
        elif weight > 0 and isinstance(measure, Mixture):
            mixtures.append((weight, measure))
        elif weight > 0:
            drawn.append((weight, measure))
    closed = sample.kernel.has_gaussian_means
    if mixtures:
        masses = np.concatenate([weight * P.weights for weight, P in mixtures])
        gaussians = joined([P for _, P in mixtures], masses / masses.sum())
        if not closed:
            drawn.append((float(masses.sum()), gaussians))
    counts = draws_for(sample.n, np.array([mass for mass, _ in drawn]))
    points, on_points = [sample.X], [weights]
    for (mass, P), count in zip(drawn, counts, strict=True):
        points.append(draw_from(P, count, rng))
        on_points.append(np.full(count, mass / count))
    element = Embedding(sample.kernel, np.concatenate(points), np.concatenate(on_points))
    if mixtures and closed:
        return MixedEmbedding(element, gaussians, masses)
    return element


def draws_for(n: int, masses: Array) -> list[int]:
    """Return the number of points drawn for each mass of an estimate from n rows.

    N_m independent points for each mass m would add Σ m²/N_m to a risk of about 1/n: least where
    N_m goes with m. Whole points for each row keep the number where masses differ by rounding.
    """
    total = masses.sum()
    wanted = n * np.ceil(total * masses / MONTE_CARLO_BUDGET)
    return np.ceil(np.minimum(wanted, MAX_DRAWS * masses / total)).astype(int).tolist()
