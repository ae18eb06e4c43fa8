"""Accuracy: the default conditional mean against grid searches of kernel ridge regression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from warnings import catch_warnings

import numpy as np

from muhat.conditional import ConditionalMean, ExtrapolationWarning
from muhat.datasets import find_file, load_dataset
from muhat.errors import MuhatError
from paper._arrays import Array
from paper._claims import Finding, decimal, in_one_cell
from paper._experiment import Experiment, Results, Row, Settings, Task, rows_of_tasks
from paper._figures import blank, letter_panels, name_rows, plain_numbers
from paper._statistics import mean_of
from paper._tables import column, distinct, markdown, one, where

SETS = ("housing", "bodyfat", "diabetes", "friedman", "waves", "wine-quality")
"""Four real data sets and two that are made up."""

WINE_QUALITY = "winequality-red"
"""The file of red wines (Cortez and others 2009, UCI Machine Learning Repository)."""

FOLDS = 5
CONFIDENCE = 0.9
CALIBRATION_SHARE = 1 / 3
"""The share of rows that conformal intervals are calibrated on."""

SKLEARN, CENTRED = "GridSearchCV(KernelRidge)", "the same, y centred"
"""What the default is compared with."""

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Of the quantiles whose pinball loss is averaged."""

METHODS = {"jackknife+": "#E69F00", "conformal": "#D55E00", "quantiles": "#CC79A7"}
MODELS = {"muhat": "#0072B2", "muhat, bandwidth by loo": "#56B4E9", "muhat, kernel on y": "#009E73"}


def settings(quick: bool) -> Settings:
    """Return the sizes; wine quality is left out where its file is not on this machine."""
    found = []
    for name in SETS:
        if name != "wine-quality" or find_file(WINE_QUALITY):
            found.append(name)
    chosen: Settings = {
        "seed": 2014,
        "datasets": found,
        "splits": 20,
        "most_rows": 800,
        "every": 1,
        "test_share": 0.3,
    }
    if quick:
        chosen |= {"datasets": ["diabetes", "waves"], "splits": 2, "most_rows": 60, "every": 10}
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each split of each data set."""
    found = []
    for name in settings["datasets"]:
        for split in range(settings["splits"]):
            found.append({"dataset": name, "split": split})
    return found


def regression_data(name: str, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return features and target of a data set; those that are made up are drawn anew."""
    if name == "friedman":
        X = rng.random((300, 10))
        mean = (
            10 * np.sin(np.pi * X[:, 0] * X[:, 1])
            + 20 * (X[:, 2] - 0.5) ** 2
            + 10 * X[:, 3]
            + 5 * X[:, 4]
        )
        return X, mean + rng.standard_normal(300)
    if name == "waves":  # noise that grows with x
        X = rng.uniform(-3, 3, size=(300, 2))
        return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + (
            0.1 + 0.2 * np.abs(X[:, 0])
        ) * rng.standard_normal(300)
    if name == "diabetes":
        from sklearn.datasets import load_diabetes  # here, as it takes long to import

        bunch = load_diabetes()
        return bunch.data, bunch.target
    if name == "wine-quality":
        table = wine_quality()
        return table[:, :-1], table[:, -1]
    sample = load_dataset(name)
    if (
        name == "bodyfat"
    ):  # density is computed from the percentage of fat: that is predicted from the measurements
        return sample.data[:, 1:], sample.data[:, 0]
    return sample.data, np.asarray(sample.target, float)


def wine_quality() -> Array:
    """Return the red wines, their quality last, or raise MuhatError for a file without them."""
    path = find_file(WINE_QUALITY)
    try:
        table = np.loadtxt(path or "", delimiter=";", skiprows=1, ndmin=2)
    except (OSError, ValueError) as problem:
        needed = (
            f"{WINE_QUALITY}.csv of the UCI Machine Learning Repository, separated by semicolons, "
            "is needed"
        )
        raise MuhatError("accuracy", needed, "none" if path is None else str(path)) from problem
    return table


def split(settings: Settings, task: Task) -> tuple[Array, Array, Array, Array]:
    """Return features and targets for training, and for testing; standardized by the first."""
    rng = np.random.default_rng([settings["seed"], SETS.index(task["dataset"]), task["split"]])
    X, y = regression_data(task["dataset"], rng)
    order = rng.permutation(len(X))[: settings["most_rows"]]
    count = round(settings["test_share"] * len(order))
    test, train = order[:count], order[count:]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(spread > 0, spread, 1)
    return X[train], y[train], X[test], y[test]


def run(settings: Settings, task: Task) -> list[Row]:
    """Return the errors of every model and the coverage of every kind of interval on one split."""
    X, y, new, true = split(settings, task)
    model = ConditionalMean().fit(X, y)
    wide = ConditionalMean(bandwidth="loo").fit(X, y)
    on_y = ConditionalMean(kernel_y="gaussian").fit(X, y)
    variance = float(np.var(true))
    deviation = float(np.sqrt(variance))
    predictions = {
        "muhat": model.predict(new),
        "muhat, bandwidth by loo": wide.predict(new),
        "muhat, kernel on y": on_y.distribution_at(new).mean()[:, 0],
        SKLEARN: _sklearn(X, y, new, model, settings["every"]),
        CENTRED: centred(X, y, new, model, settings["every"]),
    }
    fitted = dict(zip(predictions, (model, wide, on_y), strict=False))
    rows: list[Row] = []
    for name, predicted in predictions.items():
        error = float(np.mean((true - predicted) ** 2)) / variance
        row = {**task, "model": name, "error": error}
        if name in fitted:
            at = fitted[name].distribution_at(new)
            row["crps"] = float(at.crps(true).mean()) / deviation
            row["pinball"] = pinball(true, at.quantiles(LEVELS)[:, 0]) / deviation
        rows.append(row)
    tails = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    with catch_warnings(action="ignore", category=ExtrapolationWarning):
        jackknife = model.predict_interval(new, CONFIDENCE, "jackknife+")
    intervals = {
        "jackknife+": jackknife,
        "conformal": _conformal(X, y, new),
        "quantiles": on_y.predict_quantiles(new, tails),
    }
    for method, ends in intervals.items():
        low, high = ends.T
        coverage = float(np.mean((low <= true) & (true <= high)))
        width = float(np.mean(high - low)) / deviation
        rows.append({**task, "method": method, "coverage": coverage, "width": width})
    return rows


def _sklearn(X: Array, y: Array, new: Array, model: ConditionalMean, every: int) -> Array:
    """Return the predictions of scikit-learn's grid search; every ``every``-th λ is tried."""
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV

    bandwidth = model.kernel_.bandwidth  # type: ignore[attr-defined]
    ridge = KernelRidge(kernel="rbf", gamma=1 / (2 * bandwidth**2))
    grid = {"alpha": model.choices_[0].grid[::every] * len(X)}
    return np.asarray(
        GridSearchCV(ridge, grid, cv=FOLDS, scoring="neg_mean_squared_error").fit(X, y).predict(new)
    )


def centred(X: Array, y: Array, new: Array, model: ConditionalMean, every: int) -> Array:
    """Return the predictions of a better grid search: y is centred, and λ, not nλ, is kept.

    Each fold has one eigendecomposition for all λ.
    """
    lam, Z, kernel = model.choices_[0].grid[::every], y - y.mean(), model.kernel_

    def predictions(train: Array, places: Array, lam: Array) -> Array:
        gamma, U = np.linalg.eigh(kernel(X[train]))
        ridges = np.maximum(gamma, 0)[:, None] + len(train) * lam
        return kernel(places, X[train]) @ U @ ((U.T @ Z[train])[:, None] / ridges)

    errors, rows = np.zeros(len(lam)), np.arange(len(X))
    for fold in np.array_split(rows, FOLDS):
        errors += ((Z[fold, None] - predictions(np.setdiff1d(rows, fold), X[fold], lam)) ** 2).mean(
            axis=0
        )
    return predictions(rows, new, lam[[errors.argmin()]])[:, 0] + y.mean()


def _conformal(X: Array, y: Array, new: Array) -> Array:
    """Return conformal intervals, the features standardized without the rows that calibrate."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    order = np.random.default_rng(0).permutation(len(X))
    held_out, rest = np.split(order, [int(CALIBRATION_SHARE * len(X))])
    rest = np.sort(rest)
    fitted = make_pipeline(StandardScaler(), ConditionalMean()).fit(X[rest], y[rest])
    gaps = np.sort(np.abs(y[held_out] - fitted.predict(X[held_out])))
    reach = gaps[math.ceil(round(CONFIDENCE * (len(gaps) + 1), 9)) - 1]
    middle = fitted.predict(new)
    return np.column_stack([middle - reach, middle + reach])


def pinball(y: Array, quantiles: Array) -> float:
    """Return the mean pinball loss of the quantiles at ``LEVELS``, in columns."""
    gaps = y[:, None] - quantiles
    return float(np.maximum(np.array(LEVELS) * gaps, (np.array(LEVELS) - 1) * gaps).mean())


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return each model's errors with paired differences, and each interval's coverage."""
    rows = rows_of_tasks(settings, results)
    errors = [{"method": None, **row} for row in rows if "error" in row]
    covered = [row for row in rows if "coverage" in row]
    table: list[Row] = []
    for name in settings["datasets"]:
        ridge = {
            "difference": column(where(errors, dataset=name, model=SKLEARN), "error"),
            "centred": column(where(errors, dataset=name, model=CENTRED), "error"),
        }
        for model in distinct(errors, "model"):
            some = where(errors, dataset=name, model=model)
            values = column(some, "error")
            row = {
                "dataset": name,
                "model": model,
                "method": None,
                **mean_of(values).columns("error"),
            }
            for key, theirs in ridge.items():
                row |= mean_of(values - theirs).columns(key)
            for key in ("crps", "pinball"):
                row[key] = float(column(some, key).mean()) if key in some[0] else None
            table.append(row)
        for method in METHODS:
            some = where(covered, dataset=name, method=method)
            coverage = column(some, "coverage")
            row = {"dataset": name, "model": None, "method": method}
            row["coverage"] = float(coverage.mean())
            row["width"] = float(column(some, "width").mean())
            row["coverage_error"] = float(coverage.std(ddof=1) / np.sqrt(len(coverage)))
            table.append(row)
    return table


def findings(results: Results) -> list[Finding]:
    """Return the default beside grid searches, and how often intervals hold new values."""
    sets = results.settings["datasets"]
    unit = "difference of squared errors in pairs, in % of the variance of y; negative is better"
    found = []
    for key, peer in (
        (
            "difference",
            "scikit-learn's `GridSearchCV(KernelRidge)`, five folds over the same λ",
        ),
        (
            "centred",
            "the same grid search, helped: y is centred, as `KernelRidge` has no intercept, "
            "and λ is scaled from the folds to all rows",
        ),
    ):
        found.append(_accuracy(results, key, f"The default beside {peer} ({unit})."))
    for method, what in (
        ("conformal", "Share of new y in conformal intervals at 90 %"),
        ("jackknife+", "Share of new y in jackknife+ intervals at 90 % (80 % are proven)"),
        (
            "quantiles",
            "Share of new y between the 5 % and 95 % quantiles, with a Gaussian kernel on y",
        ),
    ):
        rows = []
        for name in sets:
            rows.append(one(results.rows, dataset=name, method=method))
        parts = []
        for row in rows:
            share, error = 100 * row["coverage"], 100 * row["coverage_error"]
            parts.append(f"{row['dataset']}: {share:.1f} ± {error:.1f} %")
        number = in_one_cell(parts)
        found.append(Finding(f"{what}, with its standard error.", number))
    return found


def _accuracy(results: Results, key: str, what: str) -> Finding:
    """Return differences with 95 % intervals, and on how many sets these leave zero out."""
    rows = []
    for name in results.settings["datasets"]:
        rows.append(one(results.rows, dataset=name, model="muhat"))
    better = sum(row[f"{key}_high"] < 0 for row in rows)
    worse = sum(row[f"{key}_low"] > 0 for row in rows)
    shown = (
        f"{row['dataset']}: {decimal(100 * row[key], 2)} "
        f"[{decimal(100 * row[f'{key}_low'], 2)}, {decimal(100 * row[f'{key}_high'], 2)}]"
        for row in rows
    )
    return Finding(
        what, in_one_cell([*shown, f"better on {better} of {len(rows)} sets, worse on {worse}"])
    )


def details(results: Results) -> str:
    """Return the errors and the widths as a table."""
    models = distinct([row for row in results.rows if row["model"]], "model")
    errors = []
    widths = []
    for name in results.settings["datasets"]:
        errors.append([name])
        for model in models:
            row = one(results.rows, dataset=name, model=model)
            crps = ""
            if row["crps"]:
                crps = f" (CRPS {row['crps']:.3f})"
            errors[-1].append(f"{100 * row['error']:.2f}{crps}")
        widths.append([name])
        for method in METHODS:
            row = one(results.rows, dataset=name, method=method)
            widths[-1].append(f"{row['width']:.2f}")
    first = (
        "Squared error in % of the variance of the test targets; CRPS in their standard deviations:"
    )
    return "\n\n".join(
        [
            first,
            "\n".join(markdown(["data", *models], errors)),
            "Mean width of 90 % intervals, in standard deviations:",
            "\n".join(markdown(["data", *METHODS], widths)),
        ]
    )


def figure(results: Results) -> Any:
    """Return the figure: paired differences to the grid search with y centred, and coverage."""
    sets = results.settings["datasets"]
    drawn = blank(0.9 + 0.38 * len(sets))
    left, right = drawn.subplots(1, 2)
    left.axvline(0, color="black", linewidth=0.8, zorder=1)
    right.axvline(100 * CONFIDENCE, color="black", linewidth=0.8, zorder=1)
    for number, (model, colour) in enumerate(MODELS.items()):
        for place, name in enumerate(sets):
            row = one(results.rows, dataset=name, model=model)
            y, label = place + 0.22 * (number - 1), model if place == 0 else None
            left.plot(
                [100 * row["centred_low"], 100 * row["centred_high"]],
                [y, y],
                color=colour,
                linewidth=1.8,
            )
            left.plot(100 * row["centred"], y, "o", color=colour, markersize=4.5, label=label)
    for number, (method, colour) in enumerate(METHODS.items()):
        for place, name in enumerate(sets):
            row = one(results.rows, dataset=name, method=method)
            y, error = place + 0.22 * (number - 1), 200 * row["coverage_error"]
            right.plot(
                [100 * row["coverage"] - error, 100 * row["coverage"] + error],
                [y, y],
                color=colour,
                linewidth=1.8,
            )
            right.plot(
                100 * row["coverage"],
                y,
                "o",
                color=colour,
                markersize=4.5,
                label=method if place == 0 else None,
            )
    left.set_xscale("symlog", linthresh=1.0)
    plain_numbers(left.xaxis)
    left.set_xlabel("squared error − grid search's (% of the variance)")
    right.set_xlabel("% of new y in 90 % intervals")
    for ax in (left, right):
        name_rows(ax, sets)
    right.set_yticklabels([])
    letter_panels([left, right], ["accuracy", "coverage"])
    handles = []
    for ax in (left, right):
        handles.append(ax.get_legend_handles_labels())
    drawn.legend(
        [each for pair in handles for each in pair[0]],
        [each for pair in handles for each in pair[1]],
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
    return drawn


EXPERIMENT = Experiment(
    name="accuracy",
    title="predictions and intervals on real data, beside a grid search of kernel ridge regression",
    text=(
        "`ConditionalMean()` on twenty random splits of real and of two made-up data sets, 30 % "
        "held out, at most 800 rows a split, features standardized. The grid searches have the "
        "same kernel and the same λ and five folds; the figure is beside the one with y centred. "
        "Housing's median value, the percentage of body fat from measurements (without density), "
        "diabetes' progression; Friedman's first function, and waves with noise that grows; the "
        "quality of red wines where `--data` names a folder with UCI's winequality-red.csv. "
        "Whiskers are 95 % intervals of paired differences, and two standard errors of coverage."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    findings=findings,
    details=details,
    figure=figure,
)
