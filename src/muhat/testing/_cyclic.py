"""Random orders of rows, each with all cyclic shifts of its blocks: permutations by one FFT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from math import factorial

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from scipy.fft import irfft, next_fast_len, rfft

from muhat._arrays import Array, share_between_cores, slices
from muhat._validation import check_finite
from muhat.kernels import Kernel

ROWS_PER_STRIP = 64
"""Rows of a matrix that are computed at a time, so that they stay in the cache."""

MIN_BLOCKS = 200
"""Blocks that rows are divided into at least, so that few rows are left over."""

LEFT_OVER_FOR_SPEED = 0.01
"""Share of the blocks that may be left over where an FFT of the others is faster."""

COLUMNS_PER_TRANSFORM = 16
"""Columns that are transformed at a time."""

PRODUCTS_HELD = 2**20
"""Products of Fourier transforms that a thread holds at a time (16 MB)."""


@dataclass(frozen=True, eq=False)
class CyclicOrders:
    """B + 1 different orders π of n rows: some of the cyclic shifts of a few random orders.

    Blocks of L rows are shifted as one, L = 1 unless orders are drawn in blocks. The rows left over
    behind the last block stay where they are.

    The p-value is exact. Order 0 is as observed; if any other order g of the set had been the
    observed one, the set seen from there, g⁻¹π, would have the same distribution, because it
    consists of all shifts of g⁻¹σ for the drawn σ, which are as random as the σ are. All this needs
    of shifts is that they are a group. Where x and y are independent the rows of y are
    exchangeable, so that the observed order is no more likely to be the extreme one than any other;
    and a random choice among the shifts keeps that.
    """

    drawn: Array
    """The orders σ, shape (k, n), the first 0, 1, 2, …; all begin with 0 if no row is left over."""
    chosen: Array
    """Of each π, the number of its σ times m plus its shift; 0 is as observed; shape (B + 1,)."""
    is_complete: bool
    """Whether these are all n! orders."""
    n_blocks: int
    """The number m of blocks, and so of shifts of each σ."""

    @classmethod
    def draw(
        cls, n: int, n_permutations: int, rng: np.random.Generator, in_blocks: bool = False
    ) -> CyclicOrders:
        """Return the observed order and random ones; all orders if they are few.

        In blocks there are hardly more shifts than orders, however many rows there are.
        """
        wanted = n_permutations + 1
        n_blocks = n
        if in_blocks:
            n_blocks = _fast_length(n // max(1, n // max(wanted, MIN_BLOCKS)))
        count = -(-wanted // n_blocks)
        if n_blocks == n:
            most = _factorial(n - 1)
            drawn = _different_orders(n, min(count, most), rng)
            is_complete = len(drawn) == most and drawn.size <= wanted
        else:  # with more rows than MIN_BLOCKS no two random orders are shifts of each other
            drawn = np.array([np.arange(n), *(rng.permutation(n) for _ in range(count - 1))])
            is_complete = False
        n_shifts = len(drawn) * n_blocks
        if n_shifts <= wanted:
            return cls(drawn, np.arange(n_shifts), is_complete, n_blocks)
        others = 1 + rng.permutation(n_shifts - 1)[: wanted - 1]
        return cls(drawn, np.concatenate([[0], np.sort(others)]), False, n_blocks)

    def __len__(self) -> int:
        return len(self.chosen)

    def __getitem__(self, place: int) -> Array:
        """Return one of the orders, shape (n,): σ(a + L shift) for a = 0, 1, …"""
        number, shift = divmod(int(self.chosen[place]), self.n_blocks)
        order = self.drawn[number].copy()
        block_length = len(order) // self.n_blocks
        moved = order[: self.n_blocks * block_length]
        moved[:] = np.roll(moved, -shift * block_length)
        return order


def _fast_length(n: int) -> int:
    """Return n, or slightly less if the FFT of that length is faster."""
    for length in range(n, n - int(LEFT_OVER_FOR_SPEED * n) - 1, -1):
        if next_fast_len(length) == length:
            return length
    return n


def _factorial(n: int) -> int:
    """Return n!, or 20! if that is less: more orders than any test takes."""
    return factorial(min(n, 20))


def _different_orders(n: int, count: int, rng: np.random.Generator) -> Array:
    """Return different random orders of n rows that begin with row 0, the first 0, 1, 2, …"""
    if _factorial(n - 1) <= 2 * count:  # so that drawing them would give many twice
        rest = np.array(list(permutations(range(1, n))), dtype=np.intp)
        others = 1 + rng.permutation(len(rest) - 1)[: count - 1]
        return np.pad(rest[np.append(0, others)], ((0, 0), (1, 0)))
    found = {tuple(range(n)): None}
    while len(found) < count:
        found[0, *(1 + rng.permutation(n - 1)).tolist()] = None
    return np.array(list(found), dtype=np.intp)


def half_of_matrix(A: Array) -> Array:
    """Return A_a,a+k of a symmetric matrix, k = 0 … n/2 modulo n: shape (n, n // 2 + 1).

    These are all entries of A, most of them once instead of twice.
    """
    return diagonals_of_strip(np.concatenate([A, A[:, : len(A) // 2]], axis=1))


def diagonals_of_strip(strip: Array) -> Array:
    """Return strip_i,i+k, a view: from m rows and m + c columns, shape (m, c + 1)."""
    down, right = strip.strides
    m, columns = strip.shape
    return as_strided(strip, (m, columns - m + 1), (down + right, right), writeable=False)


def half_of_product(L: Array, R: Array) -> Array:
    """Return the half of the symmetric matrix L Rᵀ, both of shape (n, r)."""
    n = len(L)
    found = np.empty((n, n // 2 + 1))
    around = np.concatenate([R, R[: n // 2]])
    for some in slices(0, n, ROWS_PER_STRIP):
        strip = L[some] @ around[some.start : some.stop + n // 2].T
        found[some] = diagonals_of_strip(strip)
    return found


def half_of_gram(kernel: Kernel, rows: Array) -> Array:
    """Return the half of a kernel's Gram matrix, without the whole of it."""
    n = len(rows)
    found = np.empty((n, n // 2 + 1))
    around = np.concatenate([rows, rows[: n // 2]])
    with np.errstate(over="ignore", invalid="ignore"):  # raises in words below
        for some in slices(0, n, ROWS_PER_STRIP):
            strip = kernel(rows[some], around[some.start : some.stop + n // 2])
            found[some] = diagonals_of_strip(strip)
        check_finite(found.sum(), kernel)
    return found


def centre_half(half: Array) -> None:
    """Turn the half of K into that of HKH."""
    n, width = half.shape
    sums = half.sum(axis=1)
    twice = (n + 1) // 2  # the diagonals 1 … (n − 1)/2 are met in the other direction too
    for some in slices(0, n, ROWS_PER_STRIP):
        rows = half[some]
        strip = np.zeros((len(rows), len(rows) + width - 1))
        down, right = strip.strides
        as_strided(strip, rows.shape, (down + right, right))[:, 1:twice] = rows[:, 1:twice]
        np.add.at(sums, np.arange(some.start, some.start + strip.shape[1]) % n, strip.sum(axis=0))
    means = sums / n
    half += means.mean() - means[:, None]
    around = np.concatenate([means, means[: n // 2]])
    half -= sliding_window_view(around, width)


def times_counted(n: int) -> Array:
    """Return how often the entries of each diagonal of a half are in the matrix."""
    k = np.arange(n // 2 + 1)
    return np.where((k == 0) | (2 * k == n), 1.0, 2.0)


def transformed(half: Array) -> Array:
    """Return the Fourier transform of every diagonal, shape (n // 2 + 1, n // 2 + 1)."""
    return rfft(half, axis=0)


def sums_over_shifts(of_x: Sequence[Array], of_y: Sequence[Sequence[Array]], n: int) -> Array:
    """Return Σ_ab S_ab R_π(a)π(b) of all shifts of all orders, from transforms of both sides.

    For the order σ shifted by s the sum over one diagonal, Σ_a S_a,a+k R_σ(a+s),σ(a+k+s), is a
    cyclic correlation: a product of Fourier transforms, for all s at once.

    Parameters
    ----------
    of_x : p arrays of shape (n // 2 + 1, n // 2 + 1)
        The matrices S, ``transformed``.
    of_y : q lists of m such arrays
        The matrices R in each of the orders σ, likewise.

    Returns
    -------
    array of shape (p, q, m n)
    """
    counted = times_counted(n)
    shape = (n // 2 + 1, len(of_y[0]), len(of_x), len(of_y))
    products = np.empty(shape, dtype=np.complex128)

    def multiply(some: slice) -> None:
        x = np.array([each[some] for each in of_x])
        x *= counted
        y = np.array([[one[some] for one in each] for each in of_y])
        products[some] = x.conj().transpose(1, 0, 2)[:, None] @ y.transpose(2, 1, 3, 0)

    share_between_cores(multiply, slices(0, n // 2 + 1, ROWS_PER_STRIP))
    values = irfft(products, n, axis=0)
    return values.transpose(2, 3, 1, 0).reshape(len(of_x), len(of_y), -1)


@dataclass(frozen=True, eq=False)
class ShiftedColumns:
    """Columns of n rows, Fourier transformed over the blocks of rows that shifts move."""

    transforms: Array
    """Of m blocks of L rows, shape (m // 2 + 1, L, columns)."""
    left_over: Array
    """The rows that no shift moves."""
    n_blocks: int

    @classmethod
    def from_columns(cls, U: Array, order: Array, n_blocks: int) -> ShiftedColumns:
        """Return the transforms of an array of shape (n, columns) with its rows in an order."""
        block_length, n_columns = len(U) // n_blocks, U.shape[1]
        moved, left_over = np.split(order, [n_blocks * block_length])
        transforms = np.empty((n_blocks // 2 + 1, block_length, n_columns), dtype=np.complex128)

        def transform(some: slice) -> None:
            blocks = U[moved, some].reshape(n_blocks, block_length, -1)
            transforms[..., some] = rfft(blocks, axis=0)

        share_between_cores(transform, slices(0, n_columns, COLUMNS_PER_TRANSFORM))
        return cls(transforms, U[left_over], n_blocks)


def squares_over_shifts(x: ShiftedColumns, y: ShiftedColumns, H: Array, G: Array) -> Array:
    """Return Σ_kl H_ik G_jl (Σ_a U_ak V_π(a)l)² of all shifts π, shape (p, q, shifts).

    U are the columns of x, and V those of y. The same as from the matrices U diag(H_i) Uᵀ and
    V diag(G_j) Vᵀ, by a transform for each pair of columns instead of one for each diagonal.
    """
    m = x.n_blocks
    of_x = x.transforms.conj().transpose(0, 2, 1)
    found = np.zeros((len(H), len(G), m))
    size = max(1, PRODUCTS_HELD // of_x[..., 0].size)
    for some in slices(0, G.shape[1], size):
        products = of_x @ y.transforms[..., some]
        constants = x.left_over.T @ y.left_over[:, some]
        for k in range(H.shape[1]):
            sums = irfft(np.ascontiguousarray(products[:, k].T), m)
            sums += constants[k, :, None]
            np.square(sums, out=sums)
            found += H[:, k, None, None] * (G[:, some] @ sums)
    return found
