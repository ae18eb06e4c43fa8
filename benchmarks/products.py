"""Products with a kernel matrix that is never held, against those who offer the same."""

from collections.abc import Callable, Iterator

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.timing import Ratio, medians
from muhat._arrays import share_between_cores
from muhat.kernels import Gaussian

BATCH = 500


def least(X: np.ndarray, n_pairs: int) -> Callable[[], object]:
    """Return work that no way around a kernel matrix saves: one GEMM and ``exp`` of its values.

    It uses every core and pieces that stay in the cache. Limits are ratios to its time in the same
    run: how far peers are behind differs between machines, by their caches and their ``exp``.
    """
    side = min(len(X), 256)
    piece = X[:side] @ X[:side].T
    pieces = [slice(None)] * max(1, n_pairs // side**2)

    def work(_: slice) -> None:
        out = X[:side] @ X[:side].T
        np.exp(-np.abs(piece), out=out)

    return lambda: share_between_cores(work, pieces)


def symmetric_products(n: int = 50_000, rounds: int = 3) -> Iterator[Ratio]:
    """(g) K v for the Gaussian kernel at d = 20, one column."""
    sigma = np.sqrt(40.0)
    rng = np.random.default_rng(0)
    X, v = rng.normal(size=(n, 20)), rng.normal(size=n)
    single, single_v = X.astype(np.float32), v.astype(np.float32)
    kernel, gamma = Gaussian(sigma), 1 / (2 * sigma**2)

    def by_batches() -> np.ndarray:
        batches = (X[start : start + BATCH] for start in range(0, n, BATCH))
        return np.concatenate([rbf_kernel(batch, X, gamma=gamma) @ v for batch in batches])

    ours, ours32, loop, bound = medians(
        lambda: kernel.product(X, v),
        lambda: kernel.product(single, single_v),
        by_batches,
        least(X, n**2 // 2),  # the matrix is symmetric
        rounds=rounds,
    )
    print(
        f"(g) {n**2 / ours / 1e9:.2f} billion values per second in float64, "
        f"{n**2 / ours32 / 1e9:.2f} in float32"
    )
    yield Ratio(f"(g) product, n = {n}, d = 20, against GEMM and exp of half", ours, bound, 1.0)
    yield Ratio(
        f"(g) product, n = {n}, d = 20, against batches of rbf_kernel",
        ours,
        loop,
        larger_is_better=True,
    )
    yield Ratio(
        "(g) the same in float32, against our float64", ours32, ours, 1.6, larger_is_better=True
    )

    def by_keops() -> np.ndarray:
        from pykeops.numpy import LazyTensor

        x, y = LazyTensor(X[:, None] / sigma), LazyTensor(X[None] / sigma)
        return (-((x - y) ** 2).sum(-1) / 2).exp() @ v[:, None]

    try:
        theirs = by_keops()[:, 0]
    except ImportError:  # also of what it could not compile
        print(
            "(g) no ratio against PyKeOps: it needs pip install 'muhat[bench]' and a C++ compiler"
        )
        return
    error = float(np.abs(theirs - kernel.product(X, v)).max() / np.abs(v).sum())
    print(f"(g) largest difference to PyKeOps over the sum of |v|: {error:.1e} (≤ 1e-13)")
    ours, keops = medians(lambda: kernel.product(X, v), by_keops, rounds=rounds)
    yield Ratio(
        f"(g) product, n = {n}, d = 20, against PyKeOps", ours, keops, larger_is_better=True
    )


def rectangular_blocks(rows: int = 8192, landmarks: int = 500, rounds: int = 9) -> Iterator[Ratio]:
    """(h) k(rows, landmarks): what a Nyström fit computes all day."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(rows, 20)), rng.normal(size=(landmarks, 20))
    kernel = Gaussian(np.sqrt(40.0))
    ours, peer, bound, writing = medians(
        lambda: kernel(X, Y),
        lambda: rbf_kernel(X, Y, gamma=1 / 80),
        least(X, rows * landmarks),
        lambda: np.ones((rows, landmarks)),
        rounds=rounds,
    )
    what = f"(h) k({rows} rows, {landmarks} landmarks), d = 20"
    yield Ratio(f"{what}, against GEMM, exp and writing", ours, bound + writing, 1.25)
    yield Ratio(f"{what}, against rbf_kernel", ours, peer, larger_is_better=True)


def beside_their_limits(n: int = 10_000, rounds: int = 5) -> Iterator[Ratio]:
    """(i) The Gram matrix and a product with it, against one GEMM and ``exp`` of half of it."""
    rng = np.random.default_rng(0)
    X, v = rng.normal(size=(n, 20)), rng.normal(size=n)
    kernel = Gaussian(np.sqrt(40.0))
    gram, product, bound, writing = medians(
        lambda: kernel(X),
        lambda: kernel.product(X, v),
        least(X, n**2 // 2),
        lambda: np.ones((n, n)),
        rounds=rounds,
    )
    print(
        f"(i) n = {n}: one GEMM and exp of half of the pairs take {bound:.3f} s, writing all "
        f"{writing:.3f} s: the Gram matrix takes {gram / (bound + writing):.2f} of both, "
        f"a product {product / bound:.2f} of the first"
    )
    yield Ratio(f"(i) product, n = {n}, against GEMM and exp of half of it", product, bound, 2)


BENCHMARKS = {
    beside_their_limits: {"n": 300, "rounds": 1},
    symmetric_products: {"n": 300, "rounds": 1},
    rectangular_blocks: {"rows": 200, "landmarks": 20, "rounds": 1},
}
