"""Columns with names: those of pyarrow in a form of ours, and what data frames of any kind hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from typing import Any, Self

import numpy as np

from muhat._arrays import Array, as_array

__all__ = [
    "ColumnFrame",
    "from_arrow",
    "has_dates",
    "is_date",
    "repeated_name",
]

PANDAS_TIMES = ("NaTType", "Period")
"""Names of what pandas has for times besides Python's classes and NumPy's."""


class ColumnFrame:
    """Columns with names, as a data frame has them: what a pyarrow table becomes without pandas.

    It has what muhat uses of a data frame: ``columns``, ``shape``, ``frame[name]``,
    ``frame.iloc[rows, places]``, and NumPy takes it as an array.
    """

    def __init__(self, values: Any, columns: Sequence[str]) -> None:
        self.values: Array = np.asarray(values)
        self.columns = list(columns)

    @classmethod
    def from_arrow(cls, table: Any) -> Self:
        """Return the columns of a pyarrow table; missing numbers are NaN, categories text."""
        columns = [_arrow_column(table.column(place)) for place in range(table.num_columns)]
        if not columns:
            return cls(np.empty((table.num_rows, 0)), table.schema.names)
        if any(column.dtype.kind not in "fiub" for column in columns):
            columns = [_as_objects(column) for column in columns]
        return cls(np.column_stack(columns), table.schema.names)

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of rows and columns."""
        return self.values.shape

    @property
    def iloc(self) -> _ByPlace:
        """Rows and columns by their places."""
        return _ByPlace(self)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, name: str) -> Array:
        return self.values[:, self.columns.index(name)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype, copy=copy)

    def to_numpy(self, dtype: Any = None, na_value: Any = None) -> Array:
        """Return the values as an array; missing ones are NaN already."""
        return self.values.astype(dtype or self.values.dtype)

    def to_arrow(self) -> Any:
        """Return a pyarrow table of the same columns: scikit-learn reads its names."""
        import pyarrow

        return pyarrow.table(list(self.values.T), names=self.columns)


@dataclass(frozen=True)
class _ByPlace:
    """What ``frame.iloc`` gives."""

    frame: ColumnFrame

    def __getitem__(self, places: tuple[Any, Any]) -> ColumnFrame:
        rows, columns = places
        names = np.array(self.frame.columns, dtype=object)[columns]
        return ColumnFrame(self.frame.values[rows][:, columns], names.tolist())


def _arrow_column(column: Any) -> Array:
    """Return a pyarrow column as an array: numbers and booleans as such, NaN for missing ones."""
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    is_boolean_with_gaps = types.is_boolean(kind) and column.null_count
    if types.is_decimal(kind) or is_boolean_with_gaps or types.is_null(kind):
        column = column.cast("float64")
    if hasattr(column, "chunks"):
        return np.asarray(column.to_numpy())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _as_objects(column: Array) -> Array:
    """Return a column as objects, in which dates stay dates: NumPy makes whole numbers of some."""
    if column.dtype.kind not in "mM":
        return column.astype(object)
    objects = np.empty(len(column), dtype=object)
    objects[:] = list(column)
    return objects


def from_arrow(values: Any) -> Any:
    """Return one of pyarrow's tables or record batches as a ColumnFrame, its arrays as arrays."""
    if hasattr(values, "schema"):
        return ColumnFrame.from_arrow(values)
    return _arrow_column(values)


def repeated_name(names: Sequence[Any]) -> Any:
    """Return the first column name that occurs twice, or None."""
    for place, name in enumerate(names):
        if name in names[:place]:
            return name
    return None


def has_dates(values: Any) -> bool:
    """Whether a column of a data frame, or an array, holds dates, times or spans of time."""
    return any(is_date(column) for column in _columns_of(values))


def _columns_of(values: Any) -> list[Array]:
    """Return the columns of a data frame, each of its own type; of an array, the array."""
    if not hasattr(values, "columns"):
        return [as_array(values)]
    if isinstance(values, ColumnFrame) or not hasattr(values, "iloc"):
        return [np.asarray(values[name]) for name in values.columns]
    return [np.asarray(values.iloc[:, place]) for place in range(values.shape[1])]


def is_date(values: Array) -> bool:
    """Whether values are dates, times or spans of time, also as Python's objects."""
    if values.dtype.kind != "O":
        return values.dtype.kind in "Mm"
    kinds = (date, time, timedelta, np.datetime64, np.timedelta64)
    for value in values.flat:
        if isinstance(value, kinds) or type(value).__name__ in PANDAS_TIMES:
            return True
    return False
