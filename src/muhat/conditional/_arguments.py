"""The arguments of a conditional mean, resolved and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from muhat._parts import Parts, as_kernel
from muhat.errors import MuhatError
from muhat.filters import CONDITIONAL_AUTO, Filter
from muhat.kernels import Kernel, Precomputed
from muhat.selection import GCV, LeaveOneOut, ParameterRule

BANDWIDTH_FACTORS = 2.0 ** np.arange(-3, 4)
"""Multiples of the kernel's own bandwidth that ``bandwidth="loo"`` chooses from."""


def checked_parts(model: Any) -> Parts:
    """Return the parts of a ConditionalMean but for the kernel on y, resolved and checked."""
    parts = Parts.from_arguments(
        "ConditionalMean",
        kernel=model.kernel,
        filter=model.filter,
        selection=model.selection,
        gram=model.gram,
        auto=CONDITIONAL_AUTO,
    )
    for filter in parts.filters:
        if not isinstance(filter, Filter) or filter.constant:
            needed = "a filter with γ g_λ(γ) → 1 for λ → 0 is needed"
            name = type(filter).__name__
            raise MuhatError(
                "ConditionalMean", needed, name, "use 'tikhonov', 'landweber' or 'auto'"
            )
    if parts.gram == "blocks":
        needed = "gram must be 'auto', 'dense', 'nystrom' or 'random-features'"
        advice = "use landmarks, as in gram=Nystrom(1000), for more rows than memory allows"
        raise MuhatError("ConditionalMean", needed, "'blocks'", advice)
    if not isinstance(parts.rule, LeaveOneOut | ParameterRule | GCV):
        needed = "selection must be 'loo', 'gcv', LeaveOneOut, GCV, Fixed or Rate"
        raise MuhatError("ConditionalMean", needed, repr(parts.rule))
    for name in ("fit_intercept", "standardize"):
        value = getattr(model, name)
        if not isinstance(value, bool | np.bool_):
            raise MuhatError(model, f"{name} must be True or False", repr(value))
    return _with_bandwidth(parts, model.bandwidth)


def _with_bandwidth(parts: Parts, bandwidth: Any) -> Parts:
    """Return the parts with the bandwidth that was given; raise MuhatError if it is invalid."""
    if bandwidth is None:
        return parts
    is_word = isinstance(bandwidth, str) and bandwidth in ("median", "loo")
    is_number = (
        isinstance(bandwidth, Real)
        and not isinstance(bandwidth, bool)
        and 0 < float(bandwidth) < np.inf
    )
    if not (is_word or is_number):
        needed = "bandwidth must be None, a positive number, 'median' or 'loo'"
        raise MuhatError("ConditionalMean", needed, repr(bandwidth))
    if not hasattr(parts.kernel, "bandwidth") or (
        bandwidth == "loo" and isinstance(parts.rule, ParameterRule)
    ):
        needed = f"bandwidth={bandwidth!r} needs a kernel with a bandwidth"
        if bandwidth == "loo":
            needed += " and a selection rule with scores"
        raise MuhatError("ConditionalMean", needed, f"{parts.kernel!r} and {parts.rule!r}")
    if bandwidth == "loo":
        return parts
    kernel: Any = parts.kernel
    return replace(parts, kernel=replace(kernel, bandwidth=bandwidth))


def checked_kernel_y(kernel_y: Any) -> Kernel:
    """Return the kernel on y; raise MuhatError if it is a precomputed one."""
    kernel = as_kernel(kernel_y, "kernel_y")
    if isinstance(kernel, Precomputed):
        needed = "kernel_y must be a kernel that is computed from values of y"
        advice = "pass y and a kernel such as 'gaussian'"
        raise MuhatError("ConditionalMean", needed, "'precomputed'", advice)
    return kernel


def kernels_to_try(kernel: Kernel, bandwidth: Any) -> Sequence[Kernel]:
    """Return the kernel, or for ``bandwidth="loo"`` several with multiples of its bandwidth."""
    if bandwidth != "loo":
        return [kernel]
    narrowed: Any = kernel  # checked to have a bandwidth
    ladder: list[Kernel] = []
    for factor in BANDWIDTH_FACTORS:
        ladder.append(replace(narrowed, bandwidth=factor * narrowed.bandwidth))
    return ladder
