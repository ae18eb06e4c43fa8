"""Groups whose true kernel means are known: Gaussians in closed form, and rows of data sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from muhat.datasets import load_dataset
from paper._arrays import Array

SPEAKER_ROWS = 66
"""Rows of each of the fifteen speakers of vowel, which come one after the other."""

TOWN_COLUMNS = ("ZN", "INDUS", "RAD", "TAX", "PTRATIO")
"""Columns of housing that are the same all over a town, and so tell which town a row is of."""

MIN_TOWN_ROWS = 5
"""Rows of a town that counts as a group."""


@dataclass(frozen=True, eq=False)
class Law(ABC):
    """The distributions of T groups.

    Attributes
    ----------
    parts : array of str of shape (T,)
        What kind of group each is, where gains are reported by kind; empty where there is one.
    """

    parts: Array = field(kw_only=True)

    @abstractmethod
    def draw(self, group: int, size: int, rng: np.random.Generator) -> Array:
        """Return independent rows of a group."""

    @abstractmethod
    def values(self, kernel: Any, rows: Array) -> Array:
        """Return the true kernel means of all groups at some rows, of shape (rows, T)."""

    @abstractmethod
    def gram(self, kernel: Any) -> Array:
        """Return the inner products of the true kernel means, of shape (T, T)."""


@dataclass(frozen=True, eq=False)
class GaussianGroups(Law):
    """Groups with normal rows, for the Gaussian kernel.

    Attributes
    ----------
    centres : array of shape (T, d)
        The means.
    covariances : array of shape (T, d, d)
        The covariances.
    """

    centres: Array
    covariances: Array

    def draw(self, group: int, size: int, rng: np.random.Generator) -> Array:
        root = np.linalg.cholesky(self.covariances[group])
        return self.centres[group] + rng.standard_normal((size, len(root))) @ root.T

    def values(self, kernel: Any, rows: Array) -> Array:
        found = np.empty((len(rows), len(self.centres)))
        for t, (centre, covariance) in enumerate(zip(self.centres, self.covariances, strict=True)):
            found[:, t] = _expected_kernel(kernel, rows - centre, covariance)
        return found

    def gram(self, kernel: Any) -> Array:
        T = len(self.centres)
        found = np.empty((T, T))
        for t in range(T):
            for u in range(T):
                gap = self.centres[t] - self.centres[u]
                both = self.covariances[t] + self.covariances[u]
                found[t, u] = _expected_kernel(kernel, gap[None], both)[0]
        return found


def _expected_kernel(kernel: Any, gaps: Array, covariance: Array) -> Array:
    """Return E k(gap + z, 0), z normal with mean zero and a covariance, for each gap."""
    squared = float(kernel.bandwidth) ** 2
    widened = np.eye(len(covariance)) + covariance / squared
    exponents = np.einsum("ij,ij->i", gaps @ np.linalg.inv(widened), gaps) / (2 * squared)
    return np.asarray(np.exp(-exponents) / np.sqrt(np.linalg.det(widened)))


@dataclass(frozen=True, eq=False)
class PopulationGroups(Law):
    """Groups that draw rows of a data set with replacement, each with probabilities of its own.

    Attributes
    ----------
    points : array of shape (N, d)
        The rows of the data set, standardized.
    probabilities : array of shape (T, N)
        How often each is drawn, in rows that sum to one.
    """

    points: Array
    probabilities: Array

    def draw(self, group: int, size: int, rng: np.random.Generator) -> Array:
        places = rng.choice(len(self.points), size, p=self.probabilities[group])
        return np.asarray(self.points[places])

    def values(self, kernel: Any, rows: Array) -> Array:
        return np.asarray(kernel(rows, self.points) @ self.probabilities.T)

    def gram(self, kernel: Any) -> Array:
        return np.asarray(self.probabilities @ kernel(self.points) @ self.probabilities.T)


def _one_kind(T: int) -> Array:
    return np.full(T, "")


def _with_centres(centres: Array, parts: Array | None = None) -> GaussianGroups:
    """Return groups with normal rows of unit variance around centres."""
    T, d = centres.shape
    covariances = np.tile(np.eye(d), (T, 1, 1))
    return GaussianGroups(centres, covariances, parts=_one_kind(T) if parts is None else parts)


def rotated(T: int, rng: np.random.Generator) -> GaussianGroups:
    """Return centred Gaussians with covariance diag(1, 10), turned by random angles."""
    angles = rng.uniform(0, np.pi, T)
    axes = np.empty((T, 2, 2))
    axes[:, 0] = np.column_stack([np.cos(angles), -np.sin(angles)])
    axes[:, 1] = np.column_stack([np.sin(angles), np.cos(angles)])
    covariances = axes @ np.diag([1.0, 10.0]) @ axes.transpose(0, 2, 1)
    return GaussianGroups(np.zeros((T, 2)), covariances, parts=_one_kind(T))


def clusters(radius: float) -> Callable[[int, np.random.Generator], GaussianGroups]:
    """Return a law of groups around five places on a circle."""

    def law(T: int, rng: np.random.Generator) -> GaussianGroups:
        angles = 2 * np.pi * rng.integers(5, size=T) / 5
        return _with_centres(radius * np.column_stack([np.cos(angles), np.sin(angles)]))

    return law


def curve(T: int, rng: np.random.Generator) -> GaussianGroups:
    """Return groups whose means are on the curve (u, sin 2u, 0, …) in ten dimensions."""
    u = rng.uniform(-2, 2, T)
    centres = np.zeros((T, 10))
    centres[:, 0], centres[:, 1] = u, np.sin(2 * u)
    return _with_centres(centres)


def scattered(spread: float, d: int) -> Callable[[int, np.random.Generator], GaussianGroups]:
    """Return a law of groups around normal centres."""

    def law(T: int, rng: np.random.Generator) -> GaussianGroups:
        return _with_centres(spread * rng.standard_normal((T, d)))

    return law


def far(are_even: bool) -> Callable[[int, np.random.Generator], GaussianGroups]:
    """Return a law of groups of which every tenth is far away: in any direction, or evenly."""

    def law(T: int, rng: np.random.Generator) -> GaussianGroups:
        centres = 0.5 * rng.standard_normal((T, 2))
        count = max(1, T // 10)
        angles = rng.uniform(0, 2 * np.pi, count)
        if are_even:
            angles = angles[0] + 2 * np.pi * np.arange(count) / count
        centres[:count] = 8 * np.column_stack([np.cos(angles), np.sin(angles)])
        parts = np.where(np.arange(T) < count, "far", "others")
        return _with_centres(centres, parts)

    return law


def class_shares(
    name: str, concentration: float
) -> Callable[[int, np.random.Generator], PopulationGroups]:
    """Return a law of groups that mix the classes of a data set in Dirichlet shares."""

    def law(T: int, rng: np.random.Generator) -> PopulationGroups:
        sample = load_dataset(name)
        classes, codes = np.unique(sample.target, return_inverse=True)
        shares = rng.dirichlet(np.full(len(classes), concentration), size=T)
        counts = np.bincount(codes)
        return PopulationGroups(
            standardized(sample.data), shares[:, codes] / counts[codes], parts=_one_kind(T)
        )

    return law


def speakers(T: int, rng: np.random.Generator) -> PopulationGroups:
    """Return the speakers of vowel, of whom there are fifteen."""
    sample = load_dataset("vowel")
    codes = np.arange(len(sample.data)) // SPEAKER_ROWS
    return _by_code(sample.data, codes, T)


def towns(T: int, rng: np.random.Generator) -> PopulationGroups:
    """Return towns of housing with five rows or more, by columns that are not theirs alone."""
    sample = load_dataset("housing")
    names = list(sample.feature_names)
    same = []
    for name in TOWN_COLUMNS:
        same.append(names.index(name))
    others = []
    for place in range(len(names)):
        if place not in same:
            others.append(place)
    _, codes = np.unique(sample.data[:, same], axis=0, return_inverse=True)
    return _by_code(sample.data[:, others], codes.ravel(), T)


def _by_code(X: Array, codes: Array, T: int) -> PopulationGroups:
    """Return a group for each of the first T codes with enough rows, with all its rows alike."""
    counts = np.bincount(codes)
    chosen = np.flatnonzero(counts >= MIN_TOWN_ROWS)[:T]
    probabilities = (codes == chosen[:, None]) / counts[chosen][:, None]
    return PopulationGroups(standardized(X), probabilities, parts=_one_kind(len(chosen)))


def standardized(X: Array) -> Array:
    """Return rows with columns of mean 0 and variance 1; constant columns are left out."""
    varies = X.std(axis=0) > 0
    kept = X[:, varies]
    return np.asarray((kept - kept.mean(axis=0)) / kept.std(axis=0))


def draw_groups(
    law: Law, sizes: Sequence[int], rng: np.random.Generator
) -> tuple[list[Array], Array]:
    """Return a sample of each group, of sizes in turn, and the sizes."""
    counts = np.resize(sizes, len(law.parts))
    samples = []
    for group, size in enumerate(counts):
        samples.append(law.draw(group, int(size), rng))
    return samples, counts
