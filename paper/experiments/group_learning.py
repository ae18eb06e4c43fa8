"""Learning one y for each group: from kernel means, from column means, and from single rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat import GroupClassifier, GroupRegressor
from muhat.datasets import load_dataset
from paper._arrays import Array
from paper._claims import Finding, decimal
from paper._experiment import Experiment, Results, Row, Settings, Task
from paper._figures import blank, legend_of_markers, name_rows
from paper._group_laws import standardized
from paper._statistics import mean_of
from paper._tables import distinct, markdown, one, where

MEANS = ("plain", "filtered", "joint", "average", "auto")
COLUMNS, MOMENTS, ROWS = "column means", "means and SDs", "single rows"
"""Gradient boosting on these; of single rows, whose predictions are averaged over the group."""

CONFIDENCE = 0.9


@dataclass(frozen=True, eq=False)
class Groups:
    """Samples of groups, and what is to be predicted of each."""

    samples: list[Array]
    y: Array


def _normal_groups(T: int, n: int, rng: np.random.Generator, d: int = 2) -> Array:
    return rng.standard_normal((T, n, d))


def curve(T: int, n: int, rng: np.random.Generator) -> Groups:
    """Return groups on a curve in ten dimensions; y is the place on it, and noise."""
    u = rng.uniform(-2, 2, T)
    X = _normal_groups(T, n, rng, 10)
    X[:, :, 0] += u[:, None]
    X[:, :, 1] += np.sin(2 * u)[:, None]
    return Groups(list(X), u + 0.3 * rng.standard_normal(T))


def angles(T: int, n: int, rng: np.random.Generator) -> Groups:
    """Return rotated Gaussians; y is a function of the angle, and noise."""
    a = rng.uniform(0, np.pi, T)
    X = _normal_groups(T, n, rng) * [1.0, np.sqrt(10)]
    turned = np.empty_like(X)
    turned[:, :, 0] = np.cos(a)[:, None] * X[:, :, 0] - np.sin(a)[:, None] * X[:, :, 1]
    turned[:, :, 1] = np.sin(a)[:, None] * X[:, :, 0] + np.cos(a)[:, None] * X[:, :, 1]
    return Groups(list(turned), np.sin(2 * a) + 0.2 * rng.standard_normal(T))


def scales(T: int, n: int, rng: np.random.Generator) -> Groups:
    """Return groups of differing spread; y is its logarithm, and noise."""
    log_scale = rng.uniform(-1, 1, T)
    X = _normal_groups(T, n, rng) * np.exp(log_scale)[:, None, None]
    return Groups(list(X), log_scale + 0.2 * rng.standard_normal(T))


def weak(T: int, n: int, rng: np.random.Generator) -> Groups:
    """Return groups of which one column of five shifts a little with y."""
    y = rng.standard_normal(T)
    X = _normal_groups(T, n, rng, 5)
    X[:, :, 0] += 0.2 * y[:, None]
    return Groups(list(X), y)


def noise(T: int, n: int, rng: np.random.Generator) -> Groups:
    """Return groups that have nothing to do with y."""
    return Groups(list(_normal_groups(T, n, rng, 5)), rng.standard_normal(T))


def shares(name: str) -> Callable[[int, int, np.random.Generator], Groups]:
    """Return groups of real rows that mix classes; y is the share of the first class."""

    def draw(T: int, n: int, rng: np.random.Generator) -> Groups:
        sample = load_dataset(name)
        X = standardized(sample.data)
        classes, codes = np.unique(sample.target, return_inverse=True)
        counts = np.bincount(codes)
        found = rng.dirichlet(np.ones(len(classes)), size=T)
        samples = []
        for each in found:
            places = rng.choice(len(X), n, p=each[codes] / counts[codes])
            samples.append(X[places])
        return Groups(samples, found[:, 0])

    return draw


def classes_of_spread(T: int, n: int, rng: np.random.Generator) -> Groups:
    """Return groups of two classes, one a little wider than the other."""
    y = rng.integers(2, size=T)
    X = _normal_groups(T, n, rng, 3) * np.where(y == 1, 1.3, 1.0)[:, None, None]
    return Groups(list(X), y)


def classes_of_correlation(T: int, n: int, rng: np.random.Generator) -> Groups:
    """Return groups of two classes, with columns correlated by .5 or −.5."""
    y = rng.integers(2, size=T)
    X = _normal_groups(T, n, rng)
    sign = np.where(y == 1, 0.5, -0.5)[:, None]
    X[:, :, 1] = sign * X[:, :, 0] + np.sqrt(0.75) * X[:, :, 1]
    return Groups(list(X), y)


def classes_of_shares(T: int, n: int, rng: np.random.Generator) -> Groups:
    """Return groups of real rows with 35 or 55 % malignant tumours."""
    sample = load_dataset("wdbc")
    X = standardized(sample.data)
    is_malignant = np.asarray(sample.target) == "M"
    y = rng.integers(2, size=T)
    samples = []
    for kind in y:
        share = 0.35
        if kind:
            share = 0.55
        p = np.where(is_malignant, share / is_malignant.sum(), (1 - share) / (~is_malignant).sum())
        samples.append(X[rng.choice(len(X), n, p=p)])
    return Groups(samples, y)


REGRESSIONS: dict[str, Callable[[int, int, np.random.Generator], Groups]] = {
    "place on a curve": curve,
    "angle of rotated Gaussians": angles,
    "scale": scales,
    "weak shift": weak,
    "noise": noise,
    "share of class, wine": shares("wine"),
    "share of class, vehicle": shares("vehicle"),
    "share of class, glass": shares("glass"),
}
CLASSIFICATIONS: dict[str, Callable[[int, int, np.random.Generator], Groups]] = {
    "spread": classes_of_spread,
    "sign of a correlation": classes_of_correlation,
    "share of malignant, wdbc": classes_of_shares,
}


def settings(quick: bool) -> Settings:
    """Return the problems, and the numbers of draws, groups and rows."""
    regressions, classifications = list(REGRESSIONS), list(CLASSIFICATIONS)
    chosen: Settings = {
        "seed": 2413,
        "draws": 12,
        "groups": 60,
        "new_groups": 100,
        "rows": 20,
        "regressions": regressions,
        "classifications": classifications,
        "means": list(MEANS),
        "trees": 100,
        "confidence": CONFIDENCE,
    }
    if quick:
        chosen |= {
            "draws": 1,
            "groups": 12,
            "new_groups": 10,
            "rows": 6,
            "regressions": regressions[:1],
            "classifications": classifications[:1],
            "means": ["plain", "joint"],
            "trees": 5,
            "confidence": 0.8,
        }
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each draw of each problem."""
    problems = [*settings["regressions"], *settings["classifications"]]
    found = []
    for problem in problems:
        for draw in range(settings["draws"]):
            found.append({"problem": problem, "draw": draw})
    return found


def run(settings: Settings, task: Task) -> list[Row]:
    """Return the errors of every model for new groups."""
    problem = task["problem"]
    is_regression = problem in REGRESSIONS
    place = [*REGRESSIONS, *CLASSIFICATIONS].index(problem)
    rng = np.random.default_rng([settings["seed"], place, task["draw"]])
    draw = {**REGRESSIONS, **CLASSIFICATIONS}[problem]
    known = draw(settings["groups"], settings["rows"], rng)
    new = draw(settings["new_groups"], settings["rows"], rng)

    def row(model: str, predicted: Array, **more: float | None) -> Row:
        if is_regression:
            error = float(((new.y - predicted) ** 2).mean() / new.y.var())
        else:
            error = float((new.y != predicted).mean())
        kind = "classification"
        if is_regression:
            kind = "regression"
        return {"problem": problem, "kind": kind, "model": model, "error": error, **more}

    rows = []
    for means in settings["means"]:
        model: GroupRegressor | GroupClassifier
        if is_regression:
            model = GroupRegressor(means=means)
        else:
            model = GroupClassifier(means=means)
        model.fit(known.samples, known.y)
        more: dict[str, float | None] = {"left_out": 1 - model.loo_score_}
        if means == "plain":
            nested = model.nested_score_
            more["nested"] = None
            if nested is not None:
                more["nested"] = 1 - nested
        if isinstance(model, GroupRegressor) and means in ("plain", "auto"):
            more |= _coverage(model, new, settings["confidence"])
        rows.append(row(means, model.predict(new.samples), **more))
    for name, predicted in _boosted(known, new, is_regression, settings["trees"]).items():
        rows.append(row(name, predicted))
    return rows


def _coverage(model: GroupRegressor, new: Groups, confidence: float) -> dict[str, float | None]:
    """Return the shares of new y in intervals of each method that the model has."""
    methods = ["residuals", "conformal"]
    if model.means_ != "average":
        methods.append("jackknife+")
    found: dict[str, float | None] = {}
    for method in methods:
        low, high = model.predict_interval(new.samples, confidence=confidence, method=method).T
        found[method] = float(((low <= new.y) & (new.y <= high)).mean())
    return found


def _boosted(known: Groups, new: Groups, is_regression: bool, trees: int) -> dict[str, Array]:
    """Return the predictions of gradient boosting on column means, and on single rows."""
    from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

    def model() -> Any:
        maker = GradientBoostingClassifier
        if is_regression:
            maker = GradientBoostingRegressor
        return maker(n_estimators=trees, random_state=0)

    found = {}
    for name, features in ((COLUMNS, _columns), (MOMENTS, _moments)):
        fitted = model().fit(features(known.samples), known.y)
        found[name] = fitted.predict(features(new.samples))
    lengths = []
    for sample in known.samples:
        lengths.append(len(sample))
    fitted = model().fit(np.concatenate(known.samples), np.repeat(known.y, lengths))
    averages = []
    for sample in new.samples:
        if is_regression:
            outputs = fitted.predict(sample)
        else:
            outputs = fitted.predict_proba(sample)[:, 1]
        averages.append(float(np.mean(outputs)))
    found[ROWS] = np.array(averages)
    if not is_regression:
        found[ROWS] = (found[ROWS] > known.y.mean()).astype(int)
    return found


def _columns(samples: Sequence[Array]) -> Array:
    means = []
    for sample in samples:
        means.append(sample.mean(axis=0))
    return np.array(means)


def _moments(samples: Sequence[Array]) -> Array:
    spreads = []
    for sample in samples:
        spreads.append(sample.std(axis=0))
    return np.column_stack([_columns(samples), np.array(spreads)])


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return mean errors for new groups, left-out ones, and coverage, with intervals."""
    draws = [row for rows in results for row in rows]
    found = []
    for problem in distinct(draws, "problem"):
        for model in distinct(where(draws, problem=problem), "model"):
            some = where(draws, problem=problem, model=model)
            row: Row = {"problem": problem, "kind": some[0]["kind"], "model": model}
            row["draws"] = len(some)
            for name in ("error", "left_out", "nested", "residuals", "jackknife+", "conformal"):
                values = []
                for each in some:
                    if each.get(name) is not None:
                        values.append(each[name])
                if values:
                    row |= mean_of(np.array(values)).columns(name)
            found.append(row)
    return found


def findings(results: Results) -> list[Finding]:
    """Return how the default compares, and the coverage of intervals."""
    found = []
    boosted = (COLUMNS, MOMENTS, ROWS)
    for kind in distinct(results.rows, "kind"):
        wins, problems = 0, distinct(where(results.rows, kind=kind), "problem")
        for problem in problems:
            some = where(results.rows, problem=problem)
            ours = one(some, model="plain")["error"]
            theirs = min(row["error"] for row in some if row["model"] in boosted)
            wins += ours <= theirs
        what = f"Problems of {kind} where the default has at most the error of the best boosting."
        found.append(Finding(what, f"{wins} of {len(problems)}"))
    plain = where(results.rows, kind="regression", model="plain")
    for method in ("residuals", "jackknife+", "conformal"):
        values = []
        for row in plain:
            if row.get(method) is not None:
                values.append(row[method])
        what = (
            f"Share of new y in intervals of {100 * results.settings['confidence']:.0f} %, "
            f"method “{method}”, plain means: least and mean over problems."
        )
        number = f"{100 * min(values):.0f} % and {100 * float(np.mean(values)):.0f} %"
        found.append(Finding(what, number))
    return found


def details(results: Results) -> str:
    """Return the tables of errors and of coverage."""
    models = distinct(results.rows, "model")
    lines, covered = [], []
    for problem in distinct(results.rows, "problem"):
        some = where(results.rows, problem=problem)
        cells = []
        for model in models:
            row = one(some, model=model)
            half = (row["error_high"] - row["error_low"]) / 2
            cells.append(f"{decimal(row['error'], 2)} ± {half:.2f}")
        lines.append([problem, *cells])
        for model in ("plain", "auto"):
            for row in where(some, model=model):
                shown = []
                for name in ("error", "left_out", "nested"):
                    value = row.get(name)
                    shown.append("" if value is None else decimal(value, 2))
                for name in ("residuals", "jackknife+", "conformal"):
                    value = row.get(name)
                    shown.append("" if value is None else f"{100 * value:.0f}")
                covered.append([problem, model, *shown])
    header = ["problem", "means", "error", "left-out error", "nested error"]
    return "\n".join(
        [
            "Error for new groups: of numbers, the squared error over the variance of y; of "
            "classes, the share of wrong ones. ± is half of the 95 % interval.\n",
            *markdown(["problem", *models], lines),
            "\nErrors that the model states before it sees new groups, and the share of new y in "
            f"intervals of {100 * results.settings['confidence']:.0f} %, in percent.\n",
            *markdown([*header, "residuals", "jackknife+", "conformal"], covered),
        ]
    )


COLOURS = {
    "plain": ("#0072B2", "o"),
    "filtered": ("#56B4E9", "s"),
    "joint": ("#AA0044", "*"),
    "average": ("#009E73", "D"),
    "auto": ("#111111", "X"),
    COLUMNS: ("#E69F00", "v"),
    MOMENTS: ("#D55E00", "^"),
    ROWS: ("#999999", "P"),
}


def figure(results: Results) -> Any:
    """Return the figure: the error of every model in every problem."""
    problems = distinct(results.rows, "problem")
    drawn = blank(1.8 + 0.3 * len(problems))
    ax = drawn.subplots()
    for place, problem in enumerate(problems):
        for row in where(results.rows, problem=problem):
            colour, marker = COLOURS[row["model"]]
            ax.plot(
                min(row["error"], 2),
                place,
                marker=marker,
                markersize=5.5,
                linestyle="none",
                color=colour,
            )
    name_rows(ax, problems)
    ax.set_xlabel("error for new groups (1: the mean of y; at most 2 is drawn)")
    legend_of_markers(drawn, COLOURS)
    return drawn


EXPERIMENT = Experiment(
    name="group-learning",
    title="learning one y for each group",
    text=(
        "60 groups of 20 rows with a y each, and 100 new ones. `GroupRegressor` and "
        "`GroupClassifier` with each kind of means (plain is the default); beside them "
        "scikit-learn's gradient boosting, 100 trees, on the column means of a group, on means "
        "and standard deviations, and on single rows that have the y of their group, whose "
        "predictions are averaged. Kernel and λ are chosen by leave-one-out over groups; boosting "
        "has scikit-learn's defaults and was not tuned."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    findings=findings,
    details=details,
    figure=figure,
)
