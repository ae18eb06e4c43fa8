"""Registries derived from classes: a part that a module lists and names is known by its name."""

from __future__ import annotations

from types import ModuleType
from typing import Any

__all__ = ["parts_by_name"]


def parts_by_name(*modules: ModuleType) -> dict[str, Any]:
    """Return the classes in the modules' ``__all__`` by their ``name``, in order of definition."""
    found = {}
    for module in modules:
        for name, part in vars(module).items():
            known_as = getattr(part, "name", "")
            if known_as and name in module.__all__:
                found[known_as] = part
    return found
