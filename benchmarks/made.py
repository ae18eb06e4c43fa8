"""Made samples larger than memory, the same from the same seed."""

import os
from collections.abc import Iterator
from typing import Literal

import numpy as np
import pyarrow
from pyarrow import parquet

from muhat._files import check_writable

GROUP = 100_000
"""Rows of a row group: what is held at a time."""

PAGE = 2**17
"""Bytes of a page, of which a reader holds one per column; pyarrow's default varies."""

COMPONENTS = 5
"""Normals in the mixture, of equal weights and of deviation 1, with means drawn from N(0, 3²)."""


def made_parquet(
    path: str | os.PathLike[str],
    rows: int,
    d: int,
    seed: int,
    dtype: Literal["float32", "float64"] = "float64",
) -> None:
    """Write rows of a mixture of normals to a Parquet file with columns ``x1`` to ``xd``.

    Each row group has its own generator: a longer file begins with the row groups of a shorter
    one.
    """
    check_writable(path)
    names = [f"x{place}" for place in range(1, d + 1)]
    schema = pyarrow.schema([(name, pyarrow.from_numpy_dtype(np.dtype(dtype))) for name in names])
    layout = {"use_dictionary": False, "compression": "none", "data_page_size": PAGE}
    with parquet.ParquetWriter(path, schema, **layout) as writer:
        for points in _groups(rows, d, seed):
            columns = list(np.asfortranarray(points, dtype=dtype).T)
            writer.write_table(
                pyarrow.Table.from_arrays(
                    [pyarrow.array(column) for column in columns], schema=schema
                )
            )


def _groups(rows: int, d: int, seed: int) -> Iterator[np.ndarray]:
    """Yield the rows, a group at a time."""
    means = 3 * np.random.default_rng(seed).standard_normal((COMPONENTS, d))
    for group, start in enumerate(range(0, rows, GROUP)):
        random = np.random.default_rng([seed, group])
        size = min(GROUP, rows - start)
        yield means[random.integers(COMPONENTS, size=size)] + random.standard_normal((size, d))
