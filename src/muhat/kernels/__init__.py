"""Kernels k(x, y): Gaussian and its relatives, inner products, sums and products, external ones."""

from muhat._registry import parts_by_name
from muhat.kernels import _external, _inner_products, _radial
from muhat.kernels._base import Kernel, Product, Scaled, Sum
from muhat.kernels._external import *  # noqa: F403
from muhat.kernels._inner_products import *  # noqa: F403
from muhat.kernels._mixtures import Mixture
from muhat.kernels._radial import *  # noqa: F403


def _by_every_name(kernels: dict[str, type[Kernel]]) -> dict[str, type[Kernel]]:
    found = {}
    for name, kind in kernels.items():
        found[name] = kind
        found.update(dict.fromkeys(kind.aliases, kind))
    return found


KERNELS: dict[str, type[Kernel]] = _by_every_name(
    parts_by_name(_radial, _inner_products, _external)
)
"""Our kernels by name, with their default parameters."""


__all__ = ["KERNELS", "Kernel", "Mixture", "Product", "Scaled", "Sum"]
__all__ += _radial.__all__
__all__ += _inner_products.__all__
__all__ += _external.__all__
