"""Novelty by kernel PCA's reconstruction error, beside scikit-learn's detectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

from muhat import KernelPCA, load_dataset
from paper._arrays import Array
from paper._claims import Finding, decimal, in_one_cell
from paper._experiment import Experiment, Results, Row, Settings, Task
from paper._figures import blank, name_rows
from paper._tables import column, distinct, markdown, one, where

SETS = ("wine", "glass", "ionosphere", "vehicle", "vowel", "iris", "breast-cancer", "digits")
"""Those of muhat, and those that come with scikit-learn."""

LEAST_ROWS = 40
"""Rows that a class needs to be the normal one."""

MUHAT, FEW, TIKHONOV = "KernelPCA, loo", "KernelPCA, 10 components", "KernelPCA, Tikhonov"
ALL = "KernelPCA, 95 % of the variance"
FOREST, SVM, LOF = "IsolationForest", "OneClassSVM", "LOF"
COLOURS = {
    MUHAT: "#0072B2",
    FEW: "#56B4E9",
    TIKHONOV: "#009E73",
    ALL: "#000000",
    FOREST: "#E69F00",
    SVM: "#D55E00",
    LOF: "#CC79A7",
}
LEVEL = 0.1
"""Of the novelty p-values whose share among normal rows is measured."""


def settings(quick: bool) -> Settings:
    """Return the sizes."""
    chosen: Settings = {
        "seed": 2027,
        "datasets": list(SETS),
        "splits": 5,
        "most_rows": 400,
    }
    if quick:
        chosen |= {"datasets": ["iris"], "splits": 1, "most_rows": 40}
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each split of each data set."""
    found: list[Task] = []
    for name in settings["datasets"]:
        for split in range(settings["splits"]):
            found.append({"dataset": name, "split": split})
    return found


def rows_and_classes(name: str) -> tuple[Array, Array]:
    """Return the rows of a data set and their classes."""
    loaders = {"iris": load_iris, "breast-cancer": load_breast_cancer, "digits": load_digits}
    loader = loaders.get(name)
    if loader is None:
        found = load_dataset(name)
    else:
        found = loader()
    return np.asarray(found.data, float), np.asarray(found.target)


def run(settings: Settings, task: Task) -> list[Row]:
    """Return the area under the curve of every detector, with each class as the normal one."""
    X, classes = rows_and_classes(task["dataset"])
    rows: list[Row] = []
    labels, counts = np.unique(classes, return_counts=True)
    for place, label in enumerate(labels[counts >= LEAST_ROWS]):
        seed = [settings["seed"], SETS.index(task["dataset"]), task["split"], place]
        rng = np.random.default_rng(seed)
        own = rng.permutation(np.flatnonzero(classes == label))
        others = rng.permutation(np.flatnonzero(classes != label))
        half = min(len(own) // 2, settings["most_rows"])
        train, normal, novel = own[:half], own[half:], others[: settings["most_rows"]]
        mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
        scaled = (X - mean) / np.where(spread > 0, spread, 1)
        new = scaled[np.concatenate([normal, novel])]
        is_novel = np.repeat([0, 1], [len(normal), len(novel)])
        for name, scores in detector_scores(scaled[train], new).items():
            area = float(roc_auc_score(is_novel, scores))
            rows.append({**task, "normal": str(label), "detector": name, "auc": area})
        p = KernelPCA("loo").fit(scaled[train]).novelty_p_values(new)
        rows[-1]["level"] = float((p[is_novel == 0] <= LEVEL).mean())
    return rows


def detector_scores(X: Array, new: Array) -> dict[str, Array]:
    """Return how unusual new rows are by every detector, fitted to rows X."""
    found = {
        MUHAT: KernelPCA("loo"),
        FEW: KernelPCA(min(10, len(X) - 1)),
        TIKHONOV: KernelPCA(filter="tikhonov"),
        ALL: KernelPCA(components_for(X, 0.95)),
    }
    scores = {}
    for name, pca in found.items():
        scores[name] = pca.fit(X).reconstruction_error(new)
    scores[FOREST] = -IsolationForest(random_state=0).fit(X).score_samples(new)
    scores[SVM] = -OneClassSVM().fit(X).score_samples(new)
    neighbours = min(20, len(X) - 1)
    scores[LOF] = -LocalOutlierFactor(neighbours, novelty=True).fit(X).score_samples(new)
    return scores


def components_for(X: Array, share: float) -> int:
    """Return how many components have this share of the kernel's variance."""
    shares = np.cumsum(KernelPCA().fit(X).explained_variance_ratio_)
    return min(int(np.searchsorted(shares, share)) + 1, len(shares))


def table(settings: Settings, results: list[list[Row]]) -> list[Row]:
    """Return the mean area of each detector and data set, and its mean rank."""
    rows = []
    for some in results:
        rows.extend(some)
    found: list[Row] = []
    for name in settings["datasets"]:
        same = where(rows, dataset=name)
        detectors = distinct(same, "detector")
        areas = []
        for detector in detectors:
            areas.append([row["auc"] for row in same if row["detector"] == detector])
        ranks = rankdata(-np.array(areas), axis=0)
        levels = []
        for row in same:
            if row.get("level") is not None:
                levels.append(row["level"])
        for detector, area, rank in zip(detectors, areas, ranks, strict=True):
            found.append(
                {
                    "dataset": name,
                    "detector": detector,
                    "auc": float(np.mean(area)),
                    "rank": float(rank.mean()),
                    "cases": len(area),
                    "level": float(np.mean(levels)),
                }
            )
    return found


def findings(results: Results) -> list[Finding]:
    """Return the mean rank and area of each detector over data sets, and the level of p-values."""
    lines = []
    for detector in distinct(results.rows, "detector"):
        same = where(results.rows, detector=detector)
        rank = decimal(float(np.mean(column(same, "rank"))), 2)
        area = decimal(float(np.mean(column(same, "auc"))), 3)
        lines.append(f"{detector}: rank {rank}, AUC {area}")
    levels = []
    for name in results.settings["datasets"]:
        row = one(results.rows, dataset=name, detector=MUHAT)
        levels.append(f"{name} {decimal(100 * row['level'], 1)} %")
    count = len(distinct(results.rows, "detector"))
    return [
        Finding(
            f"Mean rank among {count} detectors (1 is best) and mean AUC, over data sets.",
            in_one_cell(lines),
        ),
        Finding(
            f'Normal rows that were not fitted with `KernelPCA("loo").novelty_p_values` ≤ {LEVEL}.',
            in_one_cell(levels),
        ),
    ]


def details(results: Results) -> str:
    """Return the areas as a table."""
    detectors = distinct(results.rows, "detector")
    rows = []
    for name in results.settings["datasets"]:
        areas = []
        for detector in detectors:
            areas.append(one(results.rows, dataset=name, detector=detector)["auc"])
        best = max(areas)
        cells = []
        for area in areas:
            text = decimal(area, 3)
            cells.append(f"**{text}**" if area == best else text)
        cases = one(results.rows, dataset=name, detector=detectors[0])["cases"]
        rows.append([name, str(int(cases)), *cells])
    titles = ["data", "cases", *detectors]
    return "Mean AUC; the largest is bold:\n\n" + "\n".join(markdown(titles, rows))


def figure(results: Results) -> Any:
    """Return the figure: the area of each detector on each data set."""
    sets = results.settings["datasets"]
    drawn = blank(1.1 + 0.34 * len(sets))
    ax = drawn.subplots()
    for number, (detector, colour) in enumerate(COLOURS.items()):
        for place, name in enumerate(sets):
            row = one(results.rows, dataset=name, detector=detector)
            y = place + 0.11 * (number - 3)
            label = None
            if place == 0:
                label = detector
            ax.plot(row["auc"], y, "o", color=colour, markersize=4.5, label=label)
    ax.set_xlabel("area under the ROC curve")
    name_rows(ax, sets)
    drawn.legend(loc="outside lower center", ncols=4, frameon=False)
    return drawn


EXPERIMENT = Experiment(
    name="pca-novelty",
    title="novelty by kernel PCA, beside scikit-learn's detectors",
    text=(
        "One class of a data set is normal: half of its rows (at most 400) are fitted, the other "
        "half and rows of all other classes (at most 400) are scored. Every class of at least 40 "
        "rows is the normal one in turn; columns are standardized by the rows that "
        "are fitted. All detectors have their defaults; nothing was tuned on these data."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    findings=findings,
    details=details,
    figure=figure,
)
