"""The target f* that μ̂ is shrunk towards, as the user gives it."""

from __future__ import annotations

from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._messages import refusal
from muhat.embedding import Element, Embedding
from muhat.kernels import Kernel

WHO = "KernelMean(target=…)"


def as_target(target: Any, kernel: Kernel, columns: int, points: Array | None) -> Element | None:
    """Return the target f* as an element of the RKHS, or refuse it.

    Parameters
    ----------
    target : Element, array of shape (n,) or None
        An element of the RKHS, or weights on the sample.
    kernel : Kernel
        The kernel that it must have.
    columns : int
        The number of features that its points must have.
    points : array of shape (n, columns) or None
        The sample; none where it is not held, so that there is nothing for weights to be on.
    """
    if target is None:
        return None
    if isinstance(target, Element):
        if target.kernel != kernel:
            needed, advice = f"the target must have the kernel {kernel!r}", "pass kernel=target.kernel"
            raise ValueError(refusal(WHO, needed, repr(target.kernel), advice))
        if isinstance(target, Embedding) and target.points.shape[1] != columns:
            needed = f"the target's points must have {columns} features, as X has"
            raise ValueError(refusal(WHO, needed, target.points.shape[1]))
        return target
    if points is None:
        needed = "an Embedding is needed where the sample is not held"
        raise ValueError(refusal(WHO, needed, type(target).__name__))
    weights = np.asarray(target)
    if weights.shape != (len(points),) or weights.dtype.kind not in "fiu" or not np.isfinite(weights).all():
        needed = f"an Embedding or {len(points)} finite weights on the sample are needed"
        raise ValueError(refusal(WHO, needed, f"{type(target).__name__} of shape {weights.shape}"))
    return Embedding(kernel, points, weights.astype(np.result_type(points.dtype, np.float32)))
