"""Nyström features and one more that makes the mean exact; only its shrinkage is approximated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from muhat._arrays import Array
from muhat._tolerances import MISSED_MEAN_TOL
from muhat.embedding import Element, Embedding
from muhat.gram._features import FeatureMap
from muhat.gram._nystrom import NystromFeatures
from muhat.kernels import Kernel


@dataclass(frozen=True, eq=False)
class ExactMeanFeatures(FeatureMap):
    """z(x) = (z_L(x), r(x)/‖r‖): features of landmarks L, and the rest of the mean r = μ̂ − P_L μ̂.

    These functions span μ̂ = Σ_i w_i k(x_i, ·), so that its projection is μ̂ itself, for every
    kernel. The last feature needs the kernel at x and all rows: n² values in a pass over them.
    """

    kernel: Kernel
    points: Array
    """The rows x_i, of shape (n, d)."""
    masses: Array
    """The w_i, which sum to one."""
    places: Array
    """Which rows are the landmarks."""
    landmarks: NystromFeatures = field(init=False, repr=False)
    mean: Embedding = field(init=False, repr=False)
    """μ̂, in float64."""
    inside: Array = field(init=False, repr=False)
    """The coordinates of P_L μ̂."""
    missed: float = field(init=False, repr=False)
    """‖r‖; infinite, so that the last feature is zero, where it is rounding."""
    made_from: ClassVar[str] = "arguments"

    def __post_init__(self) -> None:
        landmarks = NystromFeatures(self.kernel, self.points[self.places], self.points.dtype)
        mean = Embedding(
            self.kernel, self.points.astype(np.float64), self.masses.astype(np.float64)
        )
        values = self.kernel.product(mean.points, mean.weights)
        inside, whole = landmarks.whitening.T @ values[self.places], float(mean.weights @ values)
        squared = whole - float(inside @ inside)
        if squared > MISSED_MEAN_TOL * whole:
            missed = float(np.sqrt(squared))
        else:
            missed = np.inf
        vars(self).update(landmarks=landmarks, mean=mean, inside=inside, missed=missed)
        vars(self).update(dtype=landmarks.dtype, precision=landmarks.precision)
        vars(self).update(
            n_components=landmarks.n_components,
            size=landmarks.size + 1,
            dimension=landmarks.dimension,
        )

    @property
    def arguments(self) -> Array:
        """Rows, masses and which are landmarks, side by side."""
        return np.column_stack(
            [self.points, self.masses, np.isin(np.arange(len(self.points)), self.places)]
        )

    def _features(self, X: Array) -> Array:
        X = X.astype(np.float64, copy=False)  # r(x) is a small difference
        Z = self.landmarks._features(X)
        return np.column_stack([Z, (self.mean(X) - Z @ self.inside) / self.missed])

    def embedding(self, coordinates: Array) -> Embedding:
        """Return the function with these coordinates, as weights on all rows."""
        coordinates = self._check_coordinates(coordinates)
        share = coordinates[-1] / self.missed
        weights = share * self.mean.weights
        np.add.at(
            weights,
            self.places,
            self.landmarks.whitening @ (coordinates[:-1] - share * self.inside),
        )
        return Embedding(
            self.kernel, self.points.astype(self.precision), weights.astype(self.precision)
        )

    def coordinates(self, embedding: Element) -> Array:
        """Return the coordinates of a function's projection onto landmarks and mean."""
        inside = self.landmarks.coordinates(embedding)
        with_mean = float(self.mean.weights @ embedding(self.mean.points))
        return np.append(inside, (with_mean - inside @ self.inside) / self.missed)
