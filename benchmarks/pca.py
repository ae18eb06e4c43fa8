"""Kernel PCA: many rows, denoising against scikit-learn, and the level of novelty p-values."""

from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA as SklearnKernelPCA

from benchmarks.scale import GIB, measured
from benchmarks.timing import Ratio
from muhat import KernelPCA
from muhat._arrays import Array

NOISE = 0.25
"""Standard deviation of the noise on digits, whose pixels are between 0 and 1."""

LIMITS = {40: 1.25}
"""Largest ratio of errors where it is not one: with 40 components scikit-learn is better."""


def many_rows(n: int = 50_000, d: int = 30) -> Iterator[Ratio]:
    """Scores of many rows on landmarks: time and memory above the data."""
    setup = f"from muhat import KernelPCA; X = np.random.default_rng(0).normal(size=({n}, {d}))"
    peak, seconds = measured("KernelPCA(5).fit(X).transform(X)", setup)
    what = f"KernelPCA(5), fit and transform of {n} x {d}"
    yield Ratio(f"{what}, against a minute", seconds, 60.0, 1.0)
    yield Ratio(f"{what}, memory above the data", peak / GIB, 1.0, 1.0, unit=" GiB")


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
            yield Ratio(what, error, squared_error(theirs, clean), LIMITS.get(count, 1.0), unit="")


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
    denoising: {"rows": 40, "components": (2,)},
    novelty_level: {"fits": 1, "n": 20, "new": 10},
}
"""With the arguments of a tiny run."""
