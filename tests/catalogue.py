"""What the laws are tested on: samples, kernels and filters, with names."""

import numpy as np

from muhat.filters import FILTERS, IteratedTikhonov, NuMethod
from muhat.kernels import (
    Gaussian,
    InverseMultiquadric,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
)

EXACT = 1e-8
"""Relative: leave-one-out scores against really leaving out."""
CANCELLED = 5e-11
"""Relative to mean k(x, x), for a score that cancels: five terms, each to 1e-11 by contour."""
SAME_WEIGHTS = 1e-10
"""The spectral and the iterative route."""
SEED = 20141208


def _rng():
    return np.random.default_rng(SEED)


SAMPLES = {
    "random": _rng().normal(size=(12, 3)),
    "clustered": np.repeat(_rng().normal(size=(3, 2)) * 20, 4, axis=0)
    + 0.1 * _rng().normal(size=(12, 2)),
    "duplicated": np.repeat(_rng().normal(size=(4, 3)), 3, axis=0),
    "rank deficient": np.outer(_rng().normal(size=10), [1.0, 2.0, -1.0]),
    "more features than rows": _rng().normal(size=(6, 25)),
    "three points": _rng().normal(size=(3, 2)),
    "two points": _rng().normal(size=(2, 2)),
    "a constant column": np.column_stack([_rng().normal(size=9), np.full(9, 3.0)]),
    "one feature": _rng().normal(size=(11, 1)),
    "far from the origin": 1e6 + _rng().normal(size=(10, 2)),
    "tiny": 1e-9 * _rng().normal(size=(8, 2)),
    "huge": 1e9 * _rng().normal(size=(8, 2)),
}

KERNELS = {
    "gaussian": Gaussian(1.3),
    "laplacian": Laplacian(2.1),
    "matern 1/2": Matern(1.1, nu=0.5),
    "matern 3/2": Matern(1.1, nu=1.5),
    "matern 5/2": Matern(1.1, nu=2.5),
    "matern 0.8": Matern(1.1, nu=0.8),
    "matern 3.7": Matern(1.1, nu=3.7),
    "rational quadratic": RationalQuadratic(1.7, alpha=0.6),
    "inverse multiquadric": InverseMultiquadric(0.9),
    "linear": Linear(),
    "polynomial": Polynomial(3, gamma=0.5, coef0=2.0),
    "sum": Gaussian(1.3) + Linear(),
    "product": Gaussian(1.3) * Polynomial(2),
    "scaled": 2.5 * Laplacian(0.7),
}

NAMES = tuple(FILTERS)

VARIANTS = {
    "iterated-tikhonov of order 2": ("iterated-tikhonov", IteratedTikhonov(order=2), {"order": 2}),
    "nu-method with nu 2.5": ("nu-method", NuMethod(nu=2.5), {"nu": 2.5}),
}
