"""Validation of ``random_state``, and the generators that it stands for."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from muhat.errors import MuhatError

__all__ = [
    "as_random_state",
    "as_rng",
    "check_is_random_state",
    "checked_seed",
]

RANDOM_STATE_NEEDED = (
    "random_state must be None, a whole number from 0 to 2**32 - 1, "
    "a numpy Generator or a RandomState"
)


def check_is_random_state(who: object, random_state: Any) -> None:
    """Raise MuhatError for an invalid random state, without drawing from a valid one."""
    if random_state is None:
        return
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return
    is_number = isinstance(random_state, Integral) and not isinstance(random_state, bool)
    if not is_number or not 0 <= int(random_state) < 2**32:
        raise MuhatError(who, RANDOM_STATE_NEEDED, repr(random_state))


def as_random_state(who: object, random_state: Any) -> np.random.RandomState:
    """Return numpy's older kind of generator, which scikit-learn takes; validate what was given.

    None is a new one each time; equal numbers give the same draws; a RandomState or a Generator is
    drawn from.
    """
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(int(random_state.integers(2**31)))
    check_is_random_state(who, random_state)
    return check_random_state(random_state)


def checked_seed(who: object, random_state: Any) -> int:
    """Return a whole number below 2**31 that a random state gives; validate it."""
    return int(as_random_state(who, random_state).randint(2**31))


def as_rng(who: object, random_state: Any) -> np.random.Generator:
    """Return numpy's newer kind of generator; validate what was given. A number is its seed."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    seed = checked_seed(who, random_state)
    if isinstance(random_state, Integral):
        seed = int(random_state)
    return np.random.default_rng(seed)
