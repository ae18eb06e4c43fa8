"""The problem of a sample whose Gram operator is known by products alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muhat._arrays import Array
from muhat.gram._blocks import BlockGram
from muhat.gram._sample_problem import SampleProblem


@dataclass(frozen=True)
class ProductProblem(SampleProblem):
    """The problem of a sample too large for all eigenpairs of A.

    Parameters
    ----------
    gram : BlockGram
        A by its products.
    target : Target, default=None
        f*; none is f* = 0.
    """

    gram: BlockGram

    @cached_property
    def largest_eigenvalue(self) -> float:
        """γ_max, to rounding."""
        return self.gram.leading(1, tolerance=float(np.finfo(self.dtype).eps) ** 0.75).largest

    @property
    def trace(self) -> Array:
        """tr A."""
        return self.gram.diagonal().sum(axis=-1)
