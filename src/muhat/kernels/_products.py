"""Products k(X, Y) V with a kernel matrix that is never held: a block of it is computed, multiplied and forgotten."""

from collections.abc import Callable, Iterator
from threading import Event

import numpy as np

from muhat._arrays import Array, available_cores, share_between_cores, slices
from muhat.kernels._tiles import TILE, Pairs

LANES_PER_CORE = 4
"""With some to spare, a thread that is ahead seldom waits for one that is behind."""

BYTES_OF_LANES = 2**28
"""What all lanes may take together."""

BLOCK = 2048
"""Rows and columns of a block of a kernel that only gives matrices (32 MB in float64)."""


def by_blocks(kernel: Callable[[Array, Array | None], Array], X: Array, V: Array, Y: Array | None) -> Array:
    """Return k(X, Y) V from the matrices k(X_i, Y_j) of blocks of rows; with ``Y=None`` each serves both halves."""
    other = X if Y is None else Y
    total = np.zeros((len(X), V.shape[1]), np.result_type(kernel(X[:1], other[:1]), V))
    for i in slices(0, len(X), BLOCK):
        for j in slices(i.start if Y is None else 0, len(V), BLOCK):
            values = kernel(X[i], None if Y is None and i == j else other[j])
            total[i] += values @ V[j]
            if Y is None and i != j:
                total[j] += values.T @ V[i]
    return total


def by_tiles(pairs: Pairs, V: Array) -> Array:
    """Return the values at all pairs times V.

    Symmetric values are computed once and used for both halves. The lower half of a strip is added up on a lane that
    takes every so many strips, one after the other, so that the sum is the same to the last digit each time.
    """
    V = V.astype(pairs.dtype, copy=False)
    strips = list(slices(0, pairs.rows, TILE))
    size = max(pairs.rows * V.shape[1] * pairs.dtype.itemsize, 1)
    lanes = max(1, min(LANES_PER_CORE * available_cores(), BYTES_OF_LANES // size)) if pairs.symmetric else 1
    sums = np.zeros((lanes, pairs.rows, V.shape[1]), pairs.dtype)
    finished = [Event() for _ in strips]

    def multiply(number: int) -> None:
        i, lower = strips[number], sums[number % lanes]
        if pairs.symmetric and number >= lanes:
            finished[number - lanes].wait()
        try:
            upper = np.zeros_like(sums[0, i])
            buffers = np.empty((2, TILE * TILE), pairs.dtype)
            for j in _tiles_of(i, pairs):
                values, factor = pairs.at(i, j, buffers)
                if pairs.symmetric and i == j:
                    np.fill_diagonal(values, pairs.diagonal / factor)
                elif pairs.symmetric:
                    lower[j] += values.T @ (factor * V[i])
                upper += values @ (factor * V[j])
            lower[i] += upper
        finally:
            finished[number].set()

    share_between_cores(multiply, range(len(strips)))
    return sums.sum(axis=0)


def _tiles_of(i: slice, pairs: Pairs) -> Iterator[slice]:
    """Yield the columns of the tiles in the rows i: all, or from the diagonal on, whose tile is a square."""
    if pairs.symmetric:
        yield i
    yield from slices(i.stop if pairs.symmetric else 0, pairs.columns, TILE)
