"""What a notebook shows of a fitted estimator or of a result: its own summary, beside scikit-learn's diagram."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Shown:
    """A result that notebooks show as a small table with its verdict."""

    def _repr_html_(self) -> str:
        return _summary(self)


class ShownEstimator:
    """An estimator of which notebooks show, once it is fitted, a summary below scikit-learn's diagram."""

    @property
    def _repr_html_(self) -> Any:
        diagram = super()._repr_html_  # type: ignore[misc]  # not there if scikit-learn is set to display text
        return lambda: diagram() + self._fitted_summary()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._fitted_summary()
        return bundle

    def _fitted_summary(self) -> str:
        """Return the summary of what was fitted, empty before."""
        return _summary(self) if any(name.endswith("_") for name in vars(self)) else ""


def _summary(shown: object) -> str:
    summary: str = import_module("muhat.notebook").summary(
        shown
    )  # which is made of results, and so comes after them
    return summary
