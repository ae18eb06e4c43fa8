"""A property that is computed on first use, of different objects by several threads at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Found = TypeVar("Found")


class ThreadedProperty(Generic[Found]):
    """As ``functools.cached_property``, which before Python 3.12 has one lock for all objects.

    With that lock, threads that compute it for different objects wait for each other. Here two
    threads that ask one object at the same time both compute it.
    """

    def __init__(self, function: Callable[[Any], Found]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type | None = None) -> Found:
        found = vars(instance)[self.name] = self.function(instance)
        return found
