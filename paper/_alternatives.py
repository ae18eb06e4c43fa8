"""Kinds of dependence, and of differences between samples, that power is measured on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from paper._arrays import Array

Draw = Callable[[np.random.Generator, int], tuple[Array, Array]]
"""From a generator and n to the rows of x and of y, or to two samples of n rows."""


@dataclass(frozen=True)
class Alternative:
    """A law of pairs, or of two samples, with the number of rows it is drawn with."""

    draw: Draw
    n: int
    smooth: bool = False
    """Whether a linear or monotone trend, or a shift, is what there is to see."""


def _pair(x: Array, y: Array) -> tuple[Array, Array]:
    return x.reshape(len(x), -1), y.reshape(len(y), -1)


def linear(correlation: float) -> Draw:
    """Return normal pairs with a correlation."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        x = rng.normal(size=n)
        return _pair(x, correlation * x + np.sqrt(1 - correlation**2) * rng.normal(size=n))

    return draw


def monotone(noise: float) -> Draw:
    """Return y = exp(x) plus normal noise."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        x = rng.normal(size=n)
        return _pair(x, np.exp(x) + noise * rng.normal(size=n))

    return draw


def logistic(slope: float, columns: int = 1) -> Draw:
    """Return yes or no, with log odds that are linear in one of the columns of x."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        x = rng.normal(size=(n, columns))
        return _pair(x, (rng.random(n) < 1 / (1 + np.exp(-slope * x[:, 0]))).astype(np.float64))

    return draw


def poisson(slope: float) -> Draw:
    """Return counts whose log mean is linear in x."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        x = rng.normal(size=n)
        return _pair(x, rng.poisson(np.exp(slope * x)).astype(np.float64))

    return draw


def heavy(freedom: float, slope: float) -> Draw:
    """Return y = slope x + noise, both of Student's law; Cauchy for one degree of freedom."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        x = rng.standard_t(freedom, size=n)
        return _pair(x, slope * x + rng.standard_t(freedom, size=n))

    return draw


def several_columns(slope: float) -> Draw:
    """Return three columns of x and two of y, of which the first ones are correlated."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        x, y = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
        y[:, 0] += slope * x[:, 0]
        return x, y

    return draw


def sine(frequency: float, noise: float) -> Draw:
    """Return y = sin(frequency x) plus noise, x uniform on a period of the slowest wave."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        x = rng.uniform(-np.pi, np.pi, size=n)
        return _pair(x, np.sin(frequency * x) + noise * rng.normal(size=n))

    return draw


def circle(noise: float) -> Draw:
    """Return points around a circle."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        angle = rng.uniform(0, 2 * np.pi, size=n)
        return _pair(
            np.cos(angle) + noise * rng.normal(size=n), np.sin(angle) + noise * rng.normal(size=n)
        )

    return draw


def classes(shift: float) -> Draw:
    """Return classes 0, 1, 2 in an order that x does not follow: the middle class is shifted."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        y = rng.integers(3, size=n).astype(np.float64)
        return _pair(rng.normal(size=n) + shift * (y == 1), y)

    return draw


def checkerboard(fields: int, noise: float) -> Draw:
    """Return points on the fields of one colour of a board, plus noise."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        i, half = rng.integers(fields, size=n), rng.integers((fields + 1) // 2, size=n)
        j = (2 * half + i % 2) % (fields + fields % 2)
        cell = np.stack([i, j]) + rng.random((2, n)) + noise * rng.normal(size=(2, n))
        return _pair(*cell)

    return draw


def variance(slope: float) -> Draw:
    """Return y = noise whose spread grows with |x|."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        x = rng.normal(size=n)
        return _pair(x, (1 + slope * np.abs(x)) * rng.normal(size=n))

    return draw


def square(noise: float) -> Draw:
    """Return y = x² plus noise."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        x = rng.normal(size=n)
        return _pair(x, x**2 + noise * rng.normal(size=n))

    return draw


def moved(by: float, columns: int = 1, freedom: float = np.inf, sparse: bool = False) -> Draw:
    """Return two samples of which the second is moved, in all columns or in the first alone."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        size = (n, columns)
        X, Y = (
            rng.normal(size=size) if np.isinf(freedom) else rng.standard_t(freedom, size)
            for _ in range(2)
        )
        Y[:, : 1 if sparse else columns] += by
        return X, Y

    return draw


def scaled(by: float, columns: int) -> Draw:
    """Return two samples of which the second has a wider first column."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        X, Y = rng.normal(size=(n, columns)), rng.normal(size=(n, columns))
        Y[:, 0] *= by
        return X, Y

    return draw


def correlated(correlation: float) -> Draw:
    """Return two samples of two columns, which are correlated in the second."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        return rng.normal(size=(n, 2)), np.concatenate(linear(correlation)(rng, n), axis=1)

    return draw


def rippled(frequency: float, height: float) -> Draw:
    """Return uniform rows, and rows whose density is 1 + height · cos(2π frequency x)."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        found = np.empty(0)
        while len(found) < n:
            x = rng.random(4 * n)
            kept = rng.random(4 * n) * (1 + height) < 1 + height * np.cos(2 * np.pi * frequency * x)
            found = np.append(found, x[kept])
        return rng.random((n, 1)), found[:n, None]

    return draw


def clusters(deviation: float) -> Draw:
    """Return rows around four centres, one of which is wider in the second sample."""

    def one(rng: np.random.Generator, n: int, width: float) -> Array:
        which = rng.integers(4, size=n)
        centres = 20.0 * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
        return centres[which] + np.where(which == 0, width, 1.0)[:, None] * rng.normal(size=(n, 2))

    return lambda rng, n: (one(rng, n, 1.0), one(rng, n, deviation))


DEPENDENCE: Mapping[str, Alternative] = {
    "linear, ρ = .5": Alternative(linear(0.5), 30, True),
    "linear, ρ = .35": Alternative(linear(0.35), 60, True),
    "linear, ρ = .25": Alternative(linear(0.25), 120, True),
    "linear, ρ = .16": Alternative(linear(0.16), 300, True),
    "linear, 3 and 2 columns": Alternative(several_columns(0.4), 100, True),
    "monotone": Alternative(monotone(6.0), 120, True),
    "logistic": Alternative(logistic(0.7), 100, True),
    "logistic, 3 columns": Alternative(logistic(1.0, 3), 80, True),
    "Poisson": Alternative(poisson(0.3), 80, True),
    "Student, 2 degrees": Alternative(heavy(2, 0.35), 80, True),
    "Cauchy": Alternative(heavy(1, 0.08), 80, True),
    "sine": Alternative(sine(2, 0.9), 80),
    "fast sine": Alternative(sine(4, 0.5), 80),
    "circle": Alternative(circle(0.35), 80),
    "classes by number": Alternative(classes(1.0), 60),
    "checkerboard, 3 × 3": Alternative(checkerboard(3, 0.1), 80),
    "checkerboard, 4 × 4": Alternative(checkerboard(4, 0.05), 100),
    "variance": Alternative(variance(1.5), 80),
    "square": Alternative(square(3.0), 60),
}
"""Laws of pairs that depend on each other, by name."""

DIFFERENCES: Mapping[str, Alternative] = {
    "shift, 1 column": Alternative(moved(0.4), 100, True),
    "shift, 10 columns": Alternative(moved(0.2, 10), 100, True),
    "shift of one of 10 columns": Alternative(moved(0.5, 10, sparse=True), 100, True),
    "shift, Student 3 degrees, 2 columns": Alternative(moved(0.4, 2, 3.0), 100, True),
    "shift, Cauchy, 2 columns": Alternative(moved(0.7, 2, 1.0), 100, True),
    "correlation .5": Alternative(correlated(0.5), 100),
    "one scale of five": Alternative(scaled(1.5, 5), 100),
    "ripple": Alternative(rippled(3, 0.6), 100),
    "one of four clusters": Alternative(clusters(1.8), 150),
}
"""Laws of two samples that differ, by name."""
