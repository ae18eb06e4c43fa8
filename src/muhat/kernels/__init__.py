"""Kernels k(x, y): Gaussian and its relatives, inner products, sums and products, and those from elsewhere."""

from muhat.kernels._base import Kernel, Product, Scaled, Sum
from muhat.kernels._foreign import Function, Precomputed, SklearnKernel, names_known_to_sklearn
from muhat.kernels._mixtures import Mixture
from muhat.kernels._own import (
    Gaussian,
    InverseMultiquadric,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
)

KERNELS: dict[str, type[Kernel]] = {
    "gaussian": Gaussian,
    "rbf": Gaussian,
    "laplacian": Laplacian,
    "matern": Matern,
    "rational-quadratic": RationalQuadratic,
    "inverse-multiquadric": InverseMultiquadric,
    "linear": Linear,
    "polynomial": Polynomial,
    "poly": Polynomial,
    "precomputed": Precomputed,
}
"""Our kernels by name, with their default parameters."""


__all__ = [
    "KERNELS",
    "Gaussian",
    "InverseMultiquadric",
    "Kernel",
    "Laplacian",
    "Matern",
    "RationalQuadratic",
]
__all__ += ["Linear", "Mixture", "Polynomial", "Product", "Scaled", "Sum"]
__all__ += ["Function", "Precomputed", "SklearnKernel", "names_known_to_sklearn"]
