"""Intervals with a promise of coverage: which left-out residual they reach to, and the rows that calibrate them."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

import numpy as np
from sklearn.base import clone

from muhat._arrays import Array
from muhat._messages import refusal

INTERVALS = ("jackknife+", "conformal")
"""How intervals are made."""

CALIBRATED = 1 / 3
"""The share of rows that conformal intervals are calibrated on."""


def checked_place(who: str, level: float, n: int, got: Any = None) -> int:
    """Return ⌈level (n + 1)⌉, which of n values in rising order is exceeded with probability 1 − level at most."""
    place = ceil(round(level * (n + 1), 9))
    if place > n:
        needed = f"confidence {level:g} takes at least {ceil(round(level / (1 - level), 9))} rows"
        needed += " to calibrate with" if got else ""
        raise ValueError(refusal(who, needed, n if got is None else got, "lower it"))
    return place


def check_calibration(who: str, level: float, n: int) -> None:
    """Refuse so few rows that the share of them that calibrates cannot give intervals of that level."""
    held_out = floor(CALIBRATED * n)
    checked_place(who, level, held_out, f"{n} rows, of which {held_out} calibrate")


def calibrated(model: Any, X: Array, y: Array, is_pairwise: bool = False) -> tuple[Any, Array | None, Array]:
    """Return a model of two thirds of the rows, what it takes of X's columns, and the others' absolute residuals.

    The model is a clone of an estimator or pipeline, of which no part sees the rows that calibrate.
    """
    order, held_out = np.random.default_rng(0).permutation(len(X)), floor(CALIBRATED * len(X))
    some, rest = np.sort(order[:held_out]), np.sort(order[held_out:])
    columns = rest if is_pairwise else None
    taken = slice(None) if columns is None else columns
    fitted = clone(model).fit(X[rest][:, taken], y[rest])
    return fitted, columns, np.abs(y[some] - fitted.predict(X[some][:, taken])).reshape(held_out, -1)


def reach_of(who: str, level: float, gaps: Array) -> Array:
    """Return how far conformal intervals go to both sides, for each output, by the residuals of rows that calibrate."""
    place = checked_place(who, level, len(gaps)) - 1
    return np.partition(gaps, place, axis=0)[place]
