"""Kernels k(x, y): Gaussian and its relatives, inner products, sums and products, and those from elsewhere."""

from typing import Any

from muhat._messages import refusal, unknown_name
from muhat.kernels._base import Kernel, Product, Scaled, Sum
from muhat.kernels._dot import Linear, Polynomial
from muhat.kernels._foreign import Function, Precomputed, SklearnKernel, names_known_to_sklearn
from muhat.kernels._mixtures import Mixture
from muhat.kernels._radial import Gaussian, InverseMultiquadric, Laplacian, Matern, RationalQuadratic

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


def as_kernel(kernel: Any) -> Kernel:
    """Return the kernel that a name, a kernel object (ours or scikit-learn's) or a function stands for.

    Examples
    --------
    >>> as_kernel("laplacian")
    Laplacian(bandwidth='median')
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        if kernel in KERNELS:
            return KERNELS[kernel]()
        if kernel in names_known_to_sklearn():
            return Function(kernel)
        raise ValueError(unknown_name("kernel", kernel, dict.fromkeys([*KERNELS, *names_known_to_sklearn()])))
    if isinstance(kernel, type):
        raise TypeError(refusal("kernel", "an object is needed", f"the class {kernel.__name__}", "call it first"))
    if hasattr(kernel, "diag") and callable(kernel):
        return SklearnKernel(kernel)
    if callable(kernel):
        return Function(kernel)
    needed = "a name, a kernel object or a function is needed"
    raise TypeError(refusal("kernel", needed, f"{type(kernel).__name__} {kernel!r}"))


__all__ = [
    "KERNELS",
    "Function",
    "Gaussian",
    "InverseMultiquadric",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Mixture",
    "Polynomial",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "SklearnKernel",
    "Sum",
    "as_kernel",
]
