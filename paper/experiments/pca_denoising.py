"""Denoising digits by kernel PCA, beside scikit-learn's pre-images."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as SklearnKernelPCA

from muhat import KernelPCA
from paper._arrays import Array
from paper._claims import Finding, decimal, in_one_cell
from paper._experiment import Experiment, Results, Row, Settings, Task
from paper._figures import blank, letter_panels
from paper._tables import column, distinct, markdown, where

MUHAT, INVERSE = "muhat, denoise", "muhat, inverse_transform"
CHOSEN, FILTERED = "muhat, denoise, components by loo", "muhat, denoise, Tikhonov"
SKLEARN, DEFAULT = "scikit-learn, same bandwidth", "scikit-learn, its default gamma"
TUNED = "scikit-learn, same bandwidth, best alpha and gamma of pre-images"
LINEAR = "linear PCA"
COLOURS = {
    MUHAT: "#0072B2",
    INVERSE: "#56B4E9",
    SKLEARN: "#E69F00",
    DEFAULT: "#D55E00",
    TUNED: "#882255",
    LINEAR: "#999999",
}
ALPHAS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
GAMMA_FACTORS = (1.0, 10.0, 100.0)
"""What scikit-learn's pre-images are given with the noise-free rows at hand: the best is taken."""


def settings(quick: bool) -> Settings:
    """Return the sizes."""
    chosen: Settings = {
        "seed": 2026,
        "rows": 600,
        "noise": [0.1, 0.25, 0.5],
        "components": [5, 10, 20, 40, 80],
        "splits": 5,
    }
    if quick:
        chosen |= {"rows": 60, "noise": [0.25], "components": [3], "splits": 1}
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each split and level of noise."""
    found: list[Task] = []
    for noise in settings["noise"]:
        for split in range(settings["splits"]):
            found.append({"noise": noise, "split": split})
    return found


def run(settings: Settings, task: Task) -> list[Row]:
    """Return the mean squared error of denoised new digits by every method."""
    rng = np.random.default_rng([settings["seed"], round(100 * task["noise"]), task["split"]])
    digits = rng.permutation(load_digits().data / 16)
    noisy = digits + task["noise"] * rng.normal(size=digits.shape)
    count = settings["rows"]
    X, new, clean = noisy[:count], noisy[count:], digits[count:]

    def row(method: str, components: int, denoised: Array) -> Row:
        error = float(((denoised - clean) ** 2).mean())
        return {**task, "method": method, "components": components, "error": error}

    rows = [row("none", 0, new)]
    for components in settings["components"]:
        pca = KernelPCA(components).fit(X)
        rows.append(row(MUHAT, components, pca.denoise(new)))
        rows.append(row(INVERSE, components, pca.inverse_transform(pca.transform(new))))
        gamma = 1 / (2 * pca.kernel_.bandwidth**2)  # type: ignore[attr-defined]
        for method, given in {SKLEARN: gamma, DEFAULT: None}.items():
            peer = SklearnKernelPCA(
                components, kernel="rbf", gamma=given, fit_inverse_transform=True
            ).fit(X)
            rows.append(row(method, components, peer.inverse_transform(peer.transform(new))))
        rows.append(row(TUNED, components, best_peer(X, new, clean, components, gamma)))
        linear = PCA(min(components, X.shape[1])).fit(X)
        rows.append(row(LINEAR, components, linear.inverse_transform(linear.transform(new))))
    chosen = KernelPCA("loo").fit(X)
    rows.append(row(CHOSEN, chosen.n_components_, chosen.denoise(new)))
    filtered = KernelPCA(filter="tikhonov").fit(X)
    rows.append(row(FILTERED, 0, filtered.denoise(new)))
    return rows


def best_peer(X: Array, new: Array, clean: Array, components: int, gamma: float) -> Array:
    """Return scikit-learn's pre-images with alpha and gamma that the noise-free rows choose.

    They are kernel ridge regressions of x on scores, whose kernel has any gamma here.
    """
    pca = SklearnKernelPCA(components, kernel="rbf", gamma=gamma).fit(X)
    own, scores = pca.transform(X), pca.transform(new)
    squares = _squares(own, own)
    across = _squares(scores, own)
    best, least = new, np.inf
    for factor in GAMMA_FACTORS:
        K = np.exp(-factor * gamma * squares)
        for alpha in ALPHAS:
            weights = np.linalg.solve(K + alpha * np.eye(len(K)), X)
            rows = np.exp(-factor * gamma * across) @ weights
            error = float(((rows - clean) ** 2).mean())
            if error < least:
                best, least = rows, error
    return best


def _squares(A: Array, B: Array) -> Array:
    """Return squared distances."""
    return np.maximum((A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T, 0)


def table(settings: Settings, results: list[list[Row]]) -> list[Row]:
    """Return the mean error of each method, level of noise and number of components."""
    rows = []
    for some in results:
        rows.extend(some)
    found: list[Row] = []
    for noise in settings["noise"]:
        for method in distinct(rows, "method"):
            given = method not in (CHOSEN, FILTERED)
            numbers = [None]
            if given:
                numbers = distinct(where(rows, noise=noise, method=method), "components")
            for components in numbers:
                same = where(rows, noise=noise, method=method)
                if given:
                    same = where(same, components=components)
                errors = column(same, "error")
                taken = float(np.median(column(same, "components")))
                found.append(
                    {
                        "noise": noise,
                        "method": method,
                        "components": taken,
                        "error": float(errors.mean()),
                    }
                )
    return found


def findings(results: Results) -> list[Finding]:
    """Return where muhat's error is below the peers', with all numbers of components."""
    found = []
    for peer in (SKLEARN, DEFAULT, TUNED, LINEAR):
        lines = []
        better = count = 0
        for noise in results.settings["noise"]:
            ratios = []
            for components in results.settings["components"]:
                ours = _error(results, noise, MUHAT, components)
                ratio = ours / _error(results, noise, peer, components)
                ratios.append(f"{decimal(ratio, 2)} ({components})")
                better += ratio < 1
                count += 1
            lines.append(f"noise {noise}: {', '.join(ratios)}")
        lines.append(f"better in {better} of {count} cases")
        what = f"Error of `KernelPCA(k).denoise` over that of {peer} (number of components)."
        found.append(Finding(what, in_one_cell(lines)))
    return found


def _error(results: Results, noise: float, method: str, components: int) -> float:
    same = where(results.rows, noise=noise, method=method)
    return float(np.mean([row["error"] for row in same if row["components"] == components]))


def details(results: Results) -> str:
    """Return a table of errors for each level of noise."""
    parts = []
    for noise in results.settings["noise"]:
        rows = []
        same = where(results.rows, noise=noise)
        for method in distinct(same, "method"):
            if method in (*COLOURS,):
                cells = []
                for components in results.settings["components"]:
                    cells.append(decimal(_error(results, noise, method, components), 4))
                rows.append([method, *cells])
        before = where(same, method="none")[0]["error"]
        chosen, filtered = where(same, method=CHOSEN)[0], where(same, method=FILTERED)[0]
        titles = ["method", *map(str, results.settings["components"])]
        parts.append(
            f"Noise of standard deviation {noise}: {decimal(before, 4)} before denoising; "
            f'`KernelPCA("loo")` takes {decimal(chosen["components"], 0)} components: '
            f'{decimal(chosen["error"], 4)}; `KernelPCA(filter="tikhonov")`: '
            f"{decimal(filtered['error'], 4)}."
        )
        parts.append("\n".join(markdown(titles, rows)))
    return "\n\n".join(parts)


def figure(results: Results) -> Any:
    """Return the figure: errors against the number of components, a panel for each noise."""
    levels = results.settings["noise"]
    drawn = blank(3.0)
    axes = np.atleast_1d(drawn.subplots(1, len(levels)))
    for ax, noise in zip(axes, levels, strict=True):
        for method, colour in COLOURS.items():
            x = results.settings["components"]
            y = []
            for components in x:
                y.append(_error(results, noise, method, components))
            label = None
            if ax is axes[0]:
                label = method
            ax.plot(x, y, "o-", color=colour, markersize=3.5, linewidth=1.4, label=label)
        ax.set_xscale("log")
        ax.set_xticks(x, list(map(str, x)))
        ax.minorticks_off()
        ax.set_ylim(bottom=0)
        ax.set_xlabel("components")
    axes[0].set_ylabel("mean squared error")
    letter_panels(axes, [f"noise {noise}" for noise in levels])
    drawn.legend(loc="outside lower center", ncols=2, frameon=False)
    return drawn


EXPERIMENT = Experiment(
    name="pca-denoising",
    title="denoising digits by kernel PCA, beside scikit-learn's pre-images",
    text=(
        "Digits (8 × 8 pixels between 0 and 1) with Gaussian noise; 600 noisy rows to fit, 1,197 "
        "new ones to denoise, errors against these without noise, five splits. Scikit-learn is "
        "`KernelPCA(fit_inverse_transform=True)` with its default alpha of 1. Its third line is "
        "not available in practice: alpha and the kernel's gamma of its pre-images are the best "
        "of fifteen for the rows without noise."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    findings=findings,
    details=details,
    figure=figure,
)
