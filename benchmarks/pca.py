"""Kernel PCA: many rows, landmarks beside exact scores, denoising, the level of novelty."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA as SklearnKernelPCA

from benchmarks.made import made_parquet
from benchmarks.scale import GIB, measured
from benchmarks.timing import Ratio
from muhat import Gaussian, KernelPCA, Nystrom
from muhat._arrays import Array

NOISE = 0.25
"""Standard deviation of the noise on digits, whose pixels are between 0 and 1."""


def many_rows(n: int = 50_000, d: int = 30) -> Iterator[Ratio]:
    """Scores of many rows on landmarks: time and memory above the data."""
    setup = f"from muhat import KernelPCA; X = np.random.default_rng(0).normal(size=({n}, {d}))"
    peak, seconds = measured("KernelPCA(5).fit(X).transform(X)", setup)
    what = f"KernelPCA(5), fit and transform of {n} x {d}"
    yield Ratio(f"{what}, against a minute", seconds, 60.0, 1.0)
    yield Ratio(f"{what}, memory above the data", peak / GIB, 1.0, 1.0, unit=" GiB")


def growth(n: int = 100_000, d: int = 30) -> Iterator[Ratio]:
    """The time of four times as many rows: linear is four, here as a ratio to linear growth."""
    seconds = []
    for rows in (n, 4 * n):
        setup = (
            f"from muhat import KernelPCA; X = np.random.default_rng(0).normal(size=({rows}, {d}))"
        )
        seconds.append(measured("KernelPCA(5).fit(X).transform(X)", setup)[1])
    what = f"KernelPCA(5), {4 * n} rows against four times the time of {n}"
    yield Ratio(what, seconds[1], 4 * seconds[0], 1.25)


def files(n: int = 1_000_000, d: int = 20) -> Iterator[Ratio]:
    """Components and scores of a Parquet file in batches: memory does not grow with its rows."""
    with tempfile.TemporaryDirectory() as folder:
        peaks = []
        for rows in (n // 4, n):
            path = Path(folder, f"{rows}.parquet")
            made_parquet(path, rows, d, seed=0)
            setup = f"from muhat import KernelPCA; batches = open_batches({str(path)!r})"
            work = (
                "pca = KernelPCA(5).fit_batches(batches)\n"
                "for batch in batches: pca.transform(batch)"
            )
            peak, seconds = measured(work, setup)
            peaks.append(peak)
        print(f"KernelPCA(5), {n} rows of Parquet, fit and scores: {seconds:.0f} s")
        what = f"KernelPCA(5), memory of {n} rows of Parquet against a quarter of them"
        yield Ratio(what, peaks[1] / GIB, peaks[0] / GIB, 1.2, unit=" GiB")


def landmark_scores(
    n: int = 2000, columns: tuple[int, ...] = (5, 30), landmarks: int = 500, count: int = 50
) -> Iterator[Ratio]:
    """Correlation of scores on landmarks with exact ones, of normal rows and of digits.

    With a quarter of the median bandwidth it is printed only: rows are then nearly orthogonal.
    """
    samples = {}
    for d in columns:
        scale = np.linspace(1, 0.5, d)  # components of one variance could be turned at will
        samples[f"normal, {d} columns"] = scale * np.random.default_rng(0).normal(size=(n, d))
    samples["digits"] = load_digits().data[:n]
    for name, X in samples.items():
        median = Gaussian().resolve(X).bandwidth
        for factor in (1.0, 0.25):
            kernel = Gaussian(factor * median)
            shared = score_correlations(X, kernel, landmarks, count)
            listed = []
            for k in (0, 1, 2, 4, 9, 19, count - 1):
                listed.append(f"{k + 1}: {shared[k]:.3f}")
            print(f"{name}, {factor} of the median, component: correlation: {', '.join(listed)}")
            if factor == 1:
                what = f"least correlation of the first three scores, {name}"
                yield Ratio(what, 0.99, float(shared[:3].min()), 1.0, unit="")


def score_correlations(X: Array, kernel: Gaussian, landmarks: int, count: int) -> Array:
    """Return the correlations of scores on landmarks with exact ones: shape (count,)."""
    exact = KernelPCA(count, kernel=kernel, gram="dense").fit(X).transform(X)
    gram = Nystrom(landmarks, random_state=0)
    close = KernelPCA(count, kernel=kernel, gram=gram).fit(X).transform(X)
    shared = []
    for k in range(count):
        shared.append(abs(float(np.corrcoef(exact[:, k], close[:, k])[0, 1])))
    return np.array(shared)


def squared_error(rows: Array, clean: Array) -> float:
    """Return the mean squared error of pixels."""
    return float(((rows - clean) ** 2).mean())


def denoising(
    rows: int = 1000, components: tuple[int, ...] = (10, 20, 40), seed: int = 0
) -> Iterator[Ratio]:
    """Held-out noisy digits, against scikit-learn's pre-images with its default alpha."""
    rng = np.random.default_rng(seed)
    digits = rng.permutation(load_digits().data / 16)
    noisy = digits + NOISE * rng.normal(size=digits.shape)
    train, new, clean = noisy[:rows], noisy[rows:], digits[rows:]
    for count in components:
        ours = KernelPCA(count).fit(train)
        error = squared_error(ours.denoise(new), clean)
        same_bandwidth = 1 / (2 * ours.kernel_.bandwidth**2)
        for name, gamma in {"the same bandwidth": same_bandwidth, "default gamma": None}.items():
            peer = SklearnKernelPCA(count, kernel="rbf", gamma=gamma, fit_inverse_transform=True)
            theirs = peer.fit(train).inverse_transform(peer.transform(new))
            what = f"mse of digits, {count} components, against scikit-learn with {name}"
            yield Ratio(what, error, squared_error(theirs, clean), 1.0, unit="")


def novelty_level(fits: int = 20, n: int = 200, new: int = 300, d: int = 5) -> Iterator[Ratio]:
    """The share of new normal rows with a p-value of at most .1."""
    shares = []
    for seed in range(100, 100 + fits):
        rng = np.random.default_rng(seed)
        pca = KernelPCA(5).fit(rng.normal(size=(n, d)))
        p_values = pca.novelty_p_values(rng.normal(size=(new, d)))
        shares.append(float((p_values <= 0.1).mean()))
    what = f"share of novelty p-values <= .1, {fits} fits of {n} rows, {new} new rows each"
    yield Ratio(what, float(np.mean(shares)), 0.1, 1.2, unit="")


BENCHMARKS = {
    many_rows: {"n": 50, "d": 3},
    growth: {"n": 50, "d": 3},
    files: {"n": 200, "d": 3},
    landmark_scores: {"n": 60, "columns": (12,), "landmarks": 60, "count": 20},
    denoising: {"rows": 40, "components": (2,)},
    novelty_level: {"fits": 1, "n": 20, "new": 10},
}
"""With the arguments of a tiny run."""
