"""What the features of a sample sum up to: all that the eigenvalues, the mean and a k-fold score are made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array
from muhat._validation import check_finite
from muhat.data import SampleBatch, folds_of
from muhat.gram._features import FeatureMap


@dataclass(frozen=True)
class Folds:
    """How rows are dealt out to folds: by their numbers, so that it does not matter in which batch they come."""

    n_splits: int = 1
    seed: int = 0


@dataclass(frozen=True)
class Summary:
    """Sums over the rows of each fold, w_i being the weights and z_i the features; summaries of two samples add up.

    Parameters
    ----------
    folds : Folds
        How rows are dealt out.
    count : array of shape (folds,)
        The number of rows.
    mass, squared_masses : arrays of shape (folds,)
        Σ w_i and Σ w_i².
    mean : array of shape (folds, r)
        Σ w_i z_i.
    covariance : array of shape (folds, r, r)
        Σ w_i z_i z_iᵀ.
    own : float
        Σ w_i k(x_i, x_i), of the kernel itself.
    weight_range : tuple of float
        The least and the largest w_i.
    largest_value : float
        max k(x_i, x_i).
    """

    folds: Folds
    count: Array
    mass: Array
    squared_masses: Array
    mean: Array
    covariance: Array
    own: float
    weight_range: tuple[float, float]
    largest_value: float

    @classmethod
    def from_batch(cls, batch: SampleBatch, features: FeatureMap, folds: Folds) -> Summary:
        """Sum up a batch; its products are in the type of the rows, the sums in float64."""
        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused in words
            Z, own = features(batch.X), features.kernel.diagonal(batch.X)
            check_finite((Z**2).sum() + own.sum(), features.kernel)
        weights = np.ones(len(Z)) if batch.weights is None else batch.weights.astype(np.float64)
        root = np.sqrt(weights).astype(Z.dtype)
        if batch.weights is not None:
            Z = Z * root[:, None]
        number = folds_of(batch.X, folds.n_splits, folds.seed) if folds.n_splits > 1 else None
        members = [slice(None) if number is None else number == fold for fold in range(folds.n_splits)]
        parts = [(root[each], Z[each]) for each in members]
        return cls(
            folds,
            count=np.array([len(rows) for _, rows in parts]),
            mass=np.array([weights[each].sum() for each in members]),
            squared_masses=np.array([(weights[each] ** 2).sum() for each in members]),
            mean=np.stack([(q @ rows).astype(np.float64) for q, rows in parts]),
            covariance=np.stack([(rows.T @ rows).astype(np.float64) for _, rows in parts]),
            own=float(weights @ own),
            weight_range=(float(weights.min()), float(weights.max())),
            largest_value=float(own.max()),
        )

    def __add__(self, other: Summary) -> Summary:
        return Summary(
            self.folds,
            self.count + other.count,
            self.mass + other.mass,
            self.squared_masses + other.squared_masses,
            self.mean + other.mean,
            self.covariance + other.covariance,
            self.own + other.own,
            (min(self.weight_range[0], other.weight_range[0]), max(self.weight_range[1], other.weight_range[1])),
            max(self.largest_value, other.largest_value),
        )

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.count.sum())

    @property
    def total_mass(self) -> float:
        """Σ w_i over all rows."""
        return float(self.mass.sum())
