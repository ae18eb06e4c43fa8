"""The rows of a batch that a drift detector tests."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Rows that were drawn from a batch of n, and a digest that tells it from others."""

    rows: Array
    n: int
    digest: str

    @property
    def spacing(self) -> float:
        """How many rows there were for each one that was drawn."""
        return self.n / len(self.rows)

    @classmethod
    def from_draw(cls, rows: Array, n: int) -> DrawnRows:
        """Return rows that were drawn from n."""
        return cls(rows, n, _digest(rows, n))

    @classmethod
    def from_rows(cls, rows: Array, size: int, block: int, seed: int) -> DrawnRows:
        """Draw whole blocks of rows at random, in their order; all rows if they are few."""
        blocks = len(rows) // block
        digest = _digest(rows, len(rows))
        if len(rows) <= size or blocks < 2:
            return cls(rows, len(rows), digest)
        chosen = np.sort(
            np.random.default_rng(seed).choice(blocks, max(2, size // block), replace=False)
        )
        numbers = (chosen[:, None] * block + np.arange(block)).ravel()
        return cls(rows[numbers], len(rows), digest)


def _digest(rows: Array, n: int) -> str:
    return hashlib.sha256(np.ascontiguousarray(rows).tobytes() + str(n).encode()).hexdigest()[:16]
