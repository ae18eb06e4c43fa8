"""What a notebook shows of a result or a fitted estimator: its verdict and a small table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

GOOD, BAD, UNSURE, FOUND, NEUTRAL = "good", "bad", "unsure", "found", "neutral"
"""The tones of a verdict: good news, an alarm, not clear, found but neither good nor bad, nothing
found."""

TONE_COLOURS = {
    GOOD: "#0b7a57",
    BAD: "#c43c1c",
    UNSURE: "#b07a00",
    FOUND: "#2a7fc0",
    NEUTRAL: "#8a929c",
}
"""The colour beside a verdict: green, red, amber, blue, grey; visible on light and dark pages."""

MAX_SUMMARY_ROWS = 8
"""Rows of a summary's table: a glance, not a listing."""

DECIMAL = re.compile(r"-?\d+\.\d+(e-?\d+)?")


@dataclass(frozen=True)
class Summary:
    """A sentence and a table; the tone of the sentence, if it is a verdict, gives it a colour."""

    sentence: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    tone: str = ""

    def html(self) -> str:
        """Return it as HTML with every text escaped."""
        edge = ""
        if self.tone:
            colour = TONE_COLOURS[self.tone]
            edge = f' style="border-left:4px solid {colour};padding-left:0.7em"'
        head = _table_row("th", self.header)
        body = "".join(_table_row("td", row) for row in self.rows[:MAX_SUMMARY_ROWS])
        return (
            f'<div class="muhat-summary"><p{edge}>{escape(self.sentence)}</p>'
            f"<table><thead>{head}</thead><tbody>{body}</tbody></table></div>"
        )


class HtmlReprMixin:
    """A result that notebooks show as its summary."""

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        raise NotImplementedError


class EstimatorHtmlReprMixin:
    """An estimator that notebooks show, once fitted, as scikit-learn's diagram and its summary."""

    @property
    def _repr_html_(self) -> Any:
        # scikit-learn has no such attribute if it is set to display text
        diagram = super()._repr_html_  # type: ignore[misc]

        def html() -> str:
            return str(diagram()) + self._fitted_summary()

        return html

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._fitted_summary()
        return bundle

    def _fitted_summary(self) -> str:
        is_fitted = any(name.endswith("_") for name in vars(self))
        if not is_fitted:
            return ""
        return self._summary().html()

    def _summary(self) -> Summary:
        raise NotImplementedError


def four_digits(value: object) -> str:
    """Return a value as text, the decimal numbers in it with four digits.

    Examples
    --------
    >>> four_digits("Gaussian(bandwidth=1.23456789)"), four_digits(12)
    ('Gaussian(bandwidth=1.235)', '12')
    """
    return DECIMAL.sub(lambda number: f"{float(number[0]):.4g}", str(value))


def _table_row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(each)}</{tag}>" for each in cells) + "</tr>"
