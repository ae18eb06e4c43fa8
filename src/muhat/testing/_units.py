"""What is permuted as one: a row, a bin of random rows, or a block of consecutive rows."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from muhat._arrays import Array, slices
from muhat.errors import MuhatError

MAX_SINGLE_ROWS = 20_000
"""Rows of both samples up to which single rows are permuted, unless ``bins`` is given."""

N_BINS = 500
"""Default number of bins of both samples; at most twice as many where one sample is small."""

MAX_IMBALANCE = 10
"""The smaller sample has at least one bin in this many, if it has the rows."""

MAX_ROWS = 10**9
"""Rows of a sample beyond which units cannot be drawn."""

BLOCKS_PER_PAGE = 65_536
"""Blocks whose units are drawn together: a page can be drawn again without those before it."""


@dataclass(frozen=True)
class PermutationUnits:
    """How the rows of two samples form units of one size, which are permuted as wholes.

    Under the null hypothesis units of equal size are exchangeable as rows are, so that permuting
    them gives an exact p-value too. Left-over rows, fewer than a unit, are not used; nor is what a
    sample has beyond twenty times the other, which would add almost nothing.
    """

    block: int
    """Consecutive rows that stay together."""
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

    @property
    def n_relabelings(self) -> int:
        """How many ways there are to choose the units of the first sample."""
        return comb(self.x + self.y, self.x)

    @classmethod
    def choose(
        cls, n: int, m: int, *, bins: int | None, block: int | None, one_by_one: int
    ) -> PermutationUnits:
        """Return the units of n and m rows: single blocks if they are few, else bins of them.

        ``one_by_one`` is the number of blocks up to which they are permuted singly by default.
        """
        length = block or 1
        least_rows = 1
        if length != 1:
            least_rows = 2 * length
        if min(n, m) < least_rows:
            needed = f"at least 2 blocks of {length} rows are needed in each sample"
            advice = "use a smaller block_length, or more rows"
            raise MuhatError("TwoSampleTest", needed, f"{n} and {m} rows", advice)
        n, m = n // length, m // length
        if bins is None and n + m <= one_by_one:
            return cls(length, 1, n, m)
        wanted = bins or N_BINS
        least = min(n, m)
        # At least two units of each sample.
        size = max(1, min((n + m) // wanted, MAX_IMBALANCE * least // wanted, least // 2))
        x, y = n // size, m // size
        most = max(wanted, 2 * wanted - min(x, y))
        return cls(length, size, min(x, most), min(y, most))

    def arranged(self, rows: Array, units: int, rng: np.random.Generator) -> Array:
        """Return the row numbers of every unit of a sample, shape (units, size)."""
        blocks = np.arange(len(rows) // self.block)
        if self.blocks > 1 or len(blocks) > units:
            blocks = rng.permutation(blocks)[: units * self.blocks]
        numbers = blocks[:, None] * self.block + np.arange(self.block)
        return numbers.reshape(units, self.size)

    def least_p_value(self, n_permutations: int) -> float:
        """Return the least p-value that data of this size can give.

        Of all relabelings, the one that swaps two samples of one size has the observed statistics.
        """
        if self.n_relabelings > n_permutations + 1:
            return 1 / (n_permutations + 1)
        return (2 if self.x == self.y else 1) / self.n_relabelings


@dataclass(frozen=True, eq=False)
class UnitAssignment:
    """The unit of every row of a sample by its number, however the rows are batched.

    Units are drawn without replacement, a page of blocks at a time.
    """

    units: int
    block: int
    seed: int
    pages: Array
    """How many blocks of each page each unit has, and in the last column how many have no unit."""

    @classmethod
    def draw(
        cls, n: int, units: int, size: PermutationUnits, rng: np.random.Generator
    ) -> UnitAssignment:
        """Return an assignment of n rows that gives every unit its number of blocks."""
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
        """Return the units of consecutive rows; ``units`` for a row without one."""
        first, last = start // self.block, (start + rows - 1) // self.block
        first_page, last_page = first // BLOCKS_PER_PAGE, last // BLOCKS_PER_PAGE
        drawn = np.concatenate([self._page(page) for page in range(first_page, last_page + 1)])
        blocks = np.arange(start, start + rows) // self.block - first_page * BLOCKS_PER_PAGE
        # Rows after the last block have no unit.
        return np.append(drawn, self.units)[np.minimum(blocks, len(drawn))]

    def _page(self, number: int) -> Array:
        """Return the units of the blocks of a page."""
        if number >= len(self.pages):
            return np.empty(0, np.int64)
        labels = np.repeat(np.arange(self.units + 1), self.pages[number])
        np.random.default_rng([self.seed, number]).shuffle(labels)
        return labels
