"""The centre of kernel principal components: the mean of the rows, another mean, or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muhat.embedding import Element, Embedding
from muhat.errors import MuhatError
from muhat.kernels import Kernel

CENTER_NEEDED = "center must be 'mean', False, an Embedding or a fitted KernelMean"


@dataclass(frozen=True, eq=False)
class Center:
    """What is subtracted from every φ(x) = k(x, ·) before directions are searched."""

    element: Element | None = None
    """A fixed element of the RKHS; None for the origin, or where the mean of the rows is meant."""
    is_estimated: bool = False
    """Whether it is the mean of the rows that are fitted, which moves when one is left out."""

    @classmethod
    def from_argument(cls, center: Any) -> Center:
        """Return the centre that an argument stands for; raise MuhatError for anything else."""
        if isinstance(center, str):
            if center == "mean":
                return cls(is_estimated=True)
            raise MuhatError("KernelPCA", CENTER_NEEDED, repr(center))
        if center is False:
            return cls()
        element = center
        if not isinstance(center, Element) and hasattr(center, "get_params"):
            if not hasattr(center, "embedding_"):
                advice = "fit it first, or pass mean.embedding_, which sklearn.base.clone keeps"
                raise MuhatError(
                    "KernelPCA", CENTER_NEEDED, f"{type(center).__name__} not fitted", advice
                )
            element = center.embedding_
        if not isinstance(element, Element):
            raise MuhatError("KernelPCA", CENTER_NEEDED, f"{type(center).__name__} {center!r}")
        return cls(element)

    def check(self, kernel: Kernel, columns: int) -> None:
        """Raise MuhatError unless a fixed centre has this kernel and this number of columns."""
        element = self.element
        if element is None:
            return
        if element.kernel != kernel:
            needed = f"the centre must have the kernel {kernel!r}"
            raise MuhatError("KernelPCA", needed, repr(element.kernel), "pass kernel=center.kernel")
        if isinstance(element, Embedding) and element.points.shape[1] != columns:
            needed = f"the centre's points must have {columns} features, as X has"
            raise MuhatError("KernelPCA", needed, element.points.shape[1])
