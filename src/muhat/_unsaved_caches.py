"""Objects whose cached properties are computed again after saving, not saved with them."""

from functools import cached_property
from inspect import getattr_static
from typing import Any

__all__ = ["UnsavedCaches"]


class UnsavedCaches:
    """Leaves cached properties out of pickles, copies and files: they can be large."""

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        assert isinstance(state, dict)
        kept = {}
        for name, value in state.items():
            if not isinstance(getattr_static(type(self), name, None), cached_property):
                kept[name] = value
        return kept
