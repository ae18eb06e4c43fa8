"""Points that separate thousands, as in 2.440 beside 785: read as decimals, they would be wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from muhat._messages import option
from muhat.data._errors import RowsError
from muhat.data._layout import DECIMAL_COMMA, MISSING, is_numeric

__all__ = ["THOUSANDS_POINTS", "ThousandsPoints", "ThousandsPointsError", "first_with_thousands"]

THOUSANDS_POINTS = re.compile(r"[+-]?[1-9]\d{0,2}((\.\d{3}){2,}(,\d*)?|\.\d{3},\d*)")
"""A number whose points can only separate thousands: two of them, or one before a comma."""

POINT_BEFORE_THREE = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")
"""A number whose point may separate thousands, such as 2.440."""

BELOW_THOUSAND = re.compile(r"[+-]?(0|[1-9]\d{0,2})")
"""A whole number that needs no thousands separator."""


class ThousandsPointsError(RowsError):
    """A column with points that separate thousands: surely, or if read beside ``whole``."""

    def __init__(
        self, who: str, name: str, value: str, whole: str | None = None, place: str = ""
    ) -> None:
        self.whole = whole
        advice = "remove the points"
        if "," in value:
            advice += f" and use {option('decimal', ',')}"
        if whole is not None:
            advice += f", or use {option('decimal', '.')} if they are decimal points"
        super().__init__(who, name, value, advice, place, at_row=bool(place))

    def sentence(self, batch: int | None = None) -> str:
        points = "points as thousands separators"
        if self.whole is not None:
            found = f"seems to have {points}, as {self.got!r} beside {self.whole!r}"
        else:
            found = f"has {points}, as {self.got!r}"
        where = self._where(batch)
        if where:
            found += f" in {where}"
        return f"{self.who}: column {self.needed!r} {found}; {self.advice}."

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.who, self.needed, self.got, self.whole, self.place)


@dataclass(frozen=True)
class ThousandsPoints:
    """Whether points of a column of numbers may separate thousands, and examples."""

    may_be: bool
    """Whether no value contradicts it: each has a point before its last three digits, or is a whole
    number below 1000."""
    with_point: str | None = None
    """The first value with a point."""
    whole: str | None = None
    """The first whole number without one, other than 0."""

    @classmethod
    def from_fields(cls, fields: Iterable[str]) -> ThousandsPoints:
        """Return what the fields of a column show; those that are missing show nothing."""
        with_point = whole = None
        for field in fields:
            if POINT_BEFORE_THREE.fullmatch(field):
                with_point = with_point or field
            elif BELOW_THOUSAND.fullmatch(field):
                if whole is None and int(field) != 0:
                    whole = field
            elif field.lower() not in MISSING:
                return cls(False)
        return cls(True, with_point, whole)

    @property
    def are_likely(self) -> bool:
        """Whether some values have points and others do not.

        Numbers that were written with three decimals have them all, and those without zeros at the
        end rarely have exactly three.
        """
        return self.may_be and self.with_point is not None and self.whole is not None


def first_with_thousands(fields: Iterable[str]) -> str | None:
    """Return the first value of a column of numbers with points that can only separate thousands.

    None if there is none, or if a value is not a number at all.
    """
    found = None
    for field in fields:
        if THOUSANDS_POINTS.fullmatch(field):
            found = found or field
        elif not (is_numeric(field) or DECIMAL_COMMA.fullmatch(field)):
            return None
    return found
