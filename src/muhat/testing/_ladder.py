"""Kernels at a ladder of bandwidths, learnt from the distances of rows without their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._messages import option
from muhat._parts import as_kernel
from muhat._validation import positive
from muhat.errors import MuhatError
from muhat.kernels import Gaussian, Kernel, Laplacian
from muhat.kernels._radial import Metric, Radial, distances_of_pairs

N_GAUSSIAN_BANDWIDTHS, N_OTHER_BANDWIDTHS = 14, 6
"""Bandwidths of a ladder: for the Gaussian kernel, and for any other."""

DISTANCE_QUANTILES = (0.05, 0.95)
"""Where a ladder begins and ends: half the first quantile of the distances, and the second."""

MAX_ROWS_FOR_DISTANCES = 1000
"""Rows whose distances are looked at: the first, as rows come in random order."""


def as_kernels(kernel: Any) -> list[Kernel]:
    """Return the kernels of a name, an object, a function or a list; by default two."""
    if kernel is None:
        return [Gaussian(), Laplacian()]
    given = [kernel]
    if isinstance(kernel, list | tuple):
        given = list(kernel)
    if not given:
        raise MuhatError("kernel", "at least one kernel is needed", "an empty list")
    return [as_kernel(each) for each in given]


def check_bandwidths(who: str, bandwidths: Any) -> None:
    """Raise MuhatError unless bandwidths are a number of steps, 'median' or positive numbers."""
    if bandwidths is None:
        return
    if isinstance(bandwidths, str) and bandwidths == "median":
        return
    if (
        isinstance(bandwidths, Integral)
        and not isinstance(bandwidths, bool)
        and int(bandwidths) >= 1
    ):
        return
    if (
        isinstance(bandwidths, Sequence | np.ndarray)
        and not isinstance(bandwidths, str)
        and len(bandwidths)
    ):
        for bandwidth in bandwidths:
            positive(who, "each of bandwidths", bandwidth)
        return
    needed = "bandwidths must be a number of steps, 'median', or a list of positive numbers"
    raise MuhatError(who, needed, repr(bandwidths))


def check_distances(who: str, rows: Array) -> None:
    """Raise MuhatError for rows so far apart that a distance would overflow."""
    with np.errstate(over="ignore"):
        reach = 2 * float((rows.max(axis=0) - rows.min(axis=0)).sum())
    if not np.isfinite(reach):
        needed, got = (
            "distances between rows must be finite",
            "rows further apart than the largest float",
        )
        raise MuhatError(who, needed, got, f"use {option('standardize')}, or rescale the columns")


def kernels_at_bandwidths(kernels: Sequence[Kernel], bandwidths: Any, Z: Array) -> list[Kernel]:
    """Return kernels without a bandwidth at every bandwidth of a ladder, others unchanged."""
    found: list[Kernel] = []
    for kernel in kernels:
        if (
            not isinstance(kernel, Radial)
            or isinstance(kernel.bandwidth, Real)
            or isinstance(bandwidths, str)
        ):
            found.append(kernel.resolve(Z))
        elif bandwidths is None or isinstance(bandwidths, Integral):
            steps = int(
                bandwidths
                or (N_GAUSSIAN_BANDWIDTHS if isinstance(kernel, Gaussian) else N_OTHER_BANDWIDTHS)
            )
            found += [
                replace(kernel, bandwidth=sigma)
                for sigma in ladder(Z, kernel._metric, steps).tolist()
            ]
        else:
            found += [replace(kernel, bandwidth=float(sigma)) for sigma in bandwidths]
    return found


def ladder(Z: Array, metric: Metric, steps: int, least_ratio: float = 1.0) -> Array:
    """Return bandwidths in equal ratios, from half the distances' 5 % quantile to the 95 %.

    There are fewer where their ratio would be below the least one.
    """
    low, high = _ends(Z, metric)
    if least_ratio > 1:
        steps = min(steps, max(2, int(np.ceil(np.log(2 * high / low) / np.log(least_ratio)))))
    if steps > 1:
        return np.geomspace(low / 2, high, steps)
    return np.array([np.sqrt(low / 2) * np.sqrt(high)])


def wide_kernel(Z: Array) -> Gaussian:
    """Return the Gaussian kernel at twice the distances' 95 % quantile: nearly linear."""
    return Gaussian(2 * float(_ends(Z, "euclidean")[1]))


def _ends(Z: Array, metric: Metric) -> tuple[float, float]:
    """Return the 5 % and 95 % quantiles of distances between different rows; 1 if all are equal.

    Repeated rows are left out, so that they do not make a bandwidth zero.
    """
    few = Z[:MAX_ROWS_FOR_DISTANCES]
    distances, unit = distances_of_pairs(few if np.ptp(few, axis=0).any() else Z, metric)
    apart = distances[distances > 0]
    low, high = np.quantile(apart, DISTANCE_QUANTILES) if apart.size else (1.0, 1.0)
    if metric == "euclidean":  # whose distances are squared
        low, high = np.sqrt(low), np.sqrt(high)
    return unit * low, unit * high
