"""What is permuted as a whole: a row, a bin of rows drawn at random, or a block of rows that follow each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array, slices
from muhat.errors import MuhatError

MAX_SINGLE_ROWS = 20_000
"""Rows of both samples up to which each is permuted by itself, if nothing else is asked for."""

N_BINS = 500
"""Bins of both samples together, if nothing else is asked for; at most twice as many where one sample is small."""

MAX_IMBALANCE = 10
"""The smaller sample has at least one bin in so many of them, if it has the rows."""

MAX_ROWS = 10**9
"""Rows of a sample beyond which an urn cannot be drawn from."""

BLOCKS_PER_PAGE = 65_536
"""Items of which the urn's labels are made together."""


@dataclass(frozen=True)
class PermutationUnits:
    """How the rows of two samples form units of one size, which are permuted as wholes.

    Under the null hypothesis units of equal size are exchangeable as rows are, so that permuting them gives an exact
    p-value too. Rows that are left over, fewer than a unit, do not take part; nor does what a sample has beyond
    twenty times the other, which would add almost nothing.
    """

    block: int
    """Rows that follow each other and stay together."""
    blocks: int
    """Blocks of a unit."""
    x: int
    """Units of the first sample."""
    y: int
    """Units of the second sample."""

    @property
    def size(self) -> int:
        """Rows of a unit."""
        return self.block * self.blocks

    @property
    def observed(self) -> Array:
        """Whether each unit is of the first sample."""
        return np.arange(self.x + self.y) < self.x

    @classmethod
    def choose(
        cls, n: int, m: int, *, bins: int | None, block: int | None, one_by_one: int
    ) -> PermutationUnits:
        """Return the units of n and m rows: as many bins as asked for, none while the rows are no more than these."""
        length = block or 1
        if min(n, m) < (1 if length == 1 else 2 * length):
            needed = f"at least 2 blocks of {length} rows are needed in each sample"
            advice = "take a smaller block_length, or more rows"
            raise MuhatError("TwoSampleTest", needed, f"{n} and {m} rows", advice)
        n, m = n // length, m // length
        if bins is None and n + m <= one_by_one:
            return cls(length, 1, n, m)
        wanted = bins or N_BINS
        least = min(n, m)
        size = max(
            1, min((n + m) // wanted, MAX_IMBALANCE * least // wanted, least // 2)
        )  # two units of each at least
        x, y = n // size, m // size
        most = max(wanted, 2 * wanted - min(x, y))
        return cls(length, size, min(x, most), min(y, most))

    def arranged(self, rows: Array, units: int, rng: np.random.Generator) -> Array:
        """Return the numbers of the rows of every unit of a sample, a line each: blocks at random where these are."""
        blocks = np.arange(len(rows) // self.block)
        if self.blocks > 1 or len(blocks) > units:
            blocks = rng.permutation(blocks)[: units * self.blocks]
        numbers = blocks[:, None] * self.block + np.arange(self.block)
        return numbers.reshape(units, self.size)


@dataclass(frozen=True, eq=False)
class UnitAssignment:
    """The unit of every row of a sample by its number, drawn without replacement, however the rows are batched."""

    units: int
    block: int
    seed: int
    pages: Array
    """How many of each page's blocks go to each unit, and at last to none."""

    @classmethod
    def fill(
        cls, n: int, units: int, size: PermutationUnits, rng: np.random.Generator
    ) -> UnitAssignment:
        """Return the urn of n rows, which gives every unit as many blocks as it has."""
        if n > MAX_ROWS:
            raise MuhatError("TwoSampleTest", f"a sample may have at most {MAX_ROWS} rows", n)
        blocks = n // size.block
        left = np.full(units + 1, size.blocks)
        left[-1] = blocks - units * size.blocks
        pages = []
        for page in slices(0, blocks, BLOCKS_PER_PAGE):
            pages.append(rng.multivariate_hypergeometric(left, page.stop - page.start))
            left = left - pages[-1]
        return cls(units, size.block, int(rng.integers(2**31)), np.array(pages, np.int32))

    def __call__(self, start: int, rows: int) -> Array:
        """Return the units of some rows that follow each other; the number of units where a row has none."""
        first, last = start // self.block, (start + rows - 1) // self.block
        drawn = np.concatenate(
            [
                self._page(page)
                for page in range(first // BLOCKS_PER_PAGE, last // BLOCKS_PER_PAGE + 1)
            ]
        )
        blocks = (
            np.arange(start, start + rows) // self.block
            - first // BLOCKS_PER_PAGE * BLOCKS_PER_PAGE
        )
        return np.append(drawn, self.units)[
            np.minimum(blocks, len(drawn))
        ]  # rows after the last block have none

    def _page(self, number: int) -> Array:
        if number >= len(self.pages):
            return np.empty(0, np.int64)
        labels = np.repeat(np.arange(self.units + 1), self.pages[number])
        np.random.default_rng([self.seed, number]).shuffle(labels)
        return labels
