"""Saturation: ridge stops gaining from a smooth target, filters of higher qualification do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from muhat.conditional import ConditionalMean
from muhat.filters import Filter, IteratedTikhonov, Landweber, NuMethod, Tikhonov
from muhat.selection import LeaveOneOut
from paper._arrays import Array
from paper._claims import Finding, decimal
from paper._experiment import Experiment, Results, Row, Settings, Task, rows_of_tasks
from paper._figures import blank, legend_below, legend_handle, letter_panels, style_of
from paper._style import without_frame
from paper._tables import column, one, where

N_WAVES = 300
"""Cosines and sines that the error is measured in; the next eigenvalues are below 1e-5."""

SMOOTHNESS_MARGIN = 0.55
"""f_j = j^(−β−0.55): just inside the space of smoothness β."""

KAPPA2 = 1 + np.pi**2 / 3
"""k(x, x) = 1 + 2 Σ j⁻²."""

GRID = np.geomspace(1e-6, 1.0, 60)
FILTERS: dict[str, tuple[Filter, Array]] = {
    "f-kmse": (Tikhonov(), GRID),
    "iterated-tikhonov": (IteratedTikhonov(), GRID),
    "landweber": (
        Landweber().bounded_by(KAPPA2),
        np.unique(np.geomspace(1, 1e6, 60).round().astype(np.int64)),
    ),
    "nu-method": (
        NuMethod(nu=2.0).bounded_by(KAPPA2),
        np.unique(np.geomspace(1, 400, 50).round().astype(np.int64)),
    ),
}
"""The filters with the parameters that the best is taken from: qualification 1, 3, ∞ and 2."""


NAMES = {
    "f-kmse": "ridge (Tikhonov)",
    "iterated-tikhonov": "iterated Tikhonov",
    "landweber": "Landweber",
    "nu-method": "ν-method, ν = 2",
}


def settings(quick: bool) -> Settings:
    """Return the sizes."""
    chosen: Settings = {
        "seed": 2014,
        "n": [64, 128, 256, 512, 1024],
        "repetitions": 60,
        "smoothness": [1, 2, 4],
        "noise": 0.5,
    }
    if quick:
        chosen |= {"n": [32, 64], "repetitions": 3}
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each sample."""
    found = []
    for n in settings["n"]:
        for sample in range(settings["repetitions"]):
            found.append({"n": n, "sample": sample})
    return found


def run(settings: Settings, task: Task) -> list[Row]:
    """Return the squared errors of every filter on one sample, at all parameters and the chosen."""
    n = task["n"]
    rng = np.random.default_rng([settings["seed"], n, task["sample"]])
    x = rng.random((n,))
    noise = settings["noise"] * rng.standard_normal(n)
    t = np.abs(x[:, None] - x)
    K = 1 + 2 * np.pi**2 * (t**2 - t + 1 / 6)  # Bernoulli's polynomial
    gamma, U = np.linalg.eigh(K / n)
    gamma = np.maximum(gamma, gamma[-1] * 1e-16)
    sigma, E = _waves(x)
    onto = sigma[:, None] * (E @ U) / n  # from coordinates in U to those in the eigenfunctions
    rows = []
    for smoothness in settings["smoothness"]:
        f = target(smoothness)
        y = f @ E + noise
        for name, (filter, grid) in FILTERS.items():
            fitted = onto @ ((filter.path(gamma, grid) / gamma) * (U.T @ y)).T
            errors = ((f[:, None] - fitted) ** 2).sum(axis=0)
            chosen = int(np.argmin(_leave_one_out(K, y, filter, grid)))
            labels = {"n": n, "smoothness": smoothness, "estimator": name}
            rows.append({**labels, "errors": errors.tolist(), "chosen": float(errors[chosen])})
    return rows


def _leave_one_out(K: Array, y: Array, filter: Filter, grid: Array) -> Array:
    """Return the leave-one-out scores of a filter at every parameter of the grid."""
    model = ConditionalMean(
        kernel="precomputed",
        filter=filter,
        selection=LeaveOneOut(grid=grid),
        fit_intercept=False,
    )
    return model.fit(K, y).choice_.scores


def _waves(x: Array) -> tuple[Array, Array]:
    """Return eigenvalues and eigenfunctions of k(x, y) = 1 + 2 Σ j⁻² cos 2πj(x − y), at x."""
    j = np.arange(1, N_WAVES + 1)
    E = np.ones((2 * N_WAVES + 1, len(x)))
    E[1::2], E[2::2] = (np.sqrt(2) * wave(2 * np.pi * np.outer(j, x)) for wave in (np.cos, np.sin))
    return np.concatenate([[1.0], np.repeat(j**-2.0, 2)]), E


def target(smoothness: float) -> Array:
    """Return the coordinates of a function of smoothness β, Σ_j f_j²/γ_j^β < ∞, with norm one."""
    f = np.zeros(2 * N_WAVES + 1)
    f[1::2] = np.arange(1, N_WAVES + 1) ** (-smoothness - SMOOTHNESS_MARGIN)
    return f / np.linalg.norm(f)


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return risks at the best parameter and by leave-one-out, and their slopes against n."""
    groups: dict[tuple[int, str, int], list[Row]] = {}
    for row in rows_of_tasks(settings, results):
        groups.setdefault((row["smoothness"], row["estimator"], row["n"]), []).append(row)
    table: list[Row] = []
    for (smoothness, name, n), rows in groups.items():
        errors = column(rows, "errors")
        best = errors[:, int(errors.mean(axis=0).argmin())]
        for rule, values in (("oracle", best), ("loo", column(rows, "chosen"))):
            risk, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
            labels = {
                "quantity": "risk",
                "smoothness": smoothness,
                "estimator": name,
                "rule": rule,
                "n": n,
            }
            table.append({**labels, "value": risk, "error": error})
    for smoothness in settings["smoothness"]:
        for name in FILTERS:
            for rule in ("oracle", "loo"):
                some = where(
                    table, quantity="risk", smoothness=smoothness, estimator=name, rule=rule
                )
                labels = {
                    "quantity": "slope",
                    "smoothness": smoothness,
                    "estimator": name,
                    "rule": rule,
                    "n": None,
                }
                table.append({**labels, **slope(some)})
    return table


def slope(rows: Sequence[Row]) -> Row:
    """Return minus the slope of log risk against log n, with its standard error."""
    x = np.log(column(rows, "n"))
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    y, errors = (
        np.array(each)
        for each in zip(*((np.log(r["value"]), r["error"] / r["value"]) for r in rows), strict=True)
    )
    return {"value": float(-weights @ y), "error": float(np.sqrt(weights**2 @ errors**2))}


def rate(smoothness: float, qualification: float) -> float:
    """Return b/(b + 1/2), the exponent of the rate, with b = min(β, 2·qualification)."""
    b = min(smoothness, 2 * qualification)
    return b / (b + 0.5)


def findings(results: Results) -> list[Finding]:
    """Return how the rate of each filter rises with the smoothness, beside what theory says."""
    largest = max(row["n"] for row in where(results.rows, quantity="risk"))
    risks = {}
    for name in FILTERS:
        risks[name] = one(
            results.rows, quantity="risk", smoothness=4, estimator=name, rule="oracle", n=largest
        )["value"]
    found = []
    for name in FILTERS:
        slopes = {}
        for s in (2, 4):
            slopes[s] = one(
                results.rows, quantity="slope", smoothness=s, estimator=name, rule="oracle"
            )
        gain = slopes[4]["value"] - slopes[2]["value"]
        error = float(np.hypot(slopes[2]["error"], slopes[4]["error"]))
        theory = rate(4, FILTERS[name][0].qualification) - rate(2, FILTERS[name][0].qualification)
        number = f"{decimal(gain, 3)} ± {error:.3f} (theory: {decimal(theory, 3)})"
        if name != "f-kmse":
            number += (
                f"; at n = {largest} its risk is {100 * risks[name] / risks['f-kmse']:.0f} % of "
                "ridge's"
            )
        what = f"{NAMES[name]}: the slope of its risk at smoothness 4 less that at smoothness 2."
        found.append(Finding(what, number))
    return found


def details(results: Results) -> str:
    """Return the slopes as a table."""
    lines = [
        "| filter | smoothness | slope, best parameter | slope, leave-one-out | theory |",
        "|---|---|---|---|---|",
    ]
    for name, (filter, _) in FILTERS.items():
        for smoothness in results.settings["smoothness"]:
            cells = []
            for rule in ("oracle", "loo"):
                cells.append(
                    one(
                        results.rows,
                        quantity="slope",
                        smoothness=smoothness,
                        estimator=name,
                        rule=rule,
                    )
                )
            shown = " | ".join(
                f"{decimal(cell['value'], 3)} ± {cell['error']:.3f}" for cell in cells
            )
            expected = rate(smoothness, filter.qualification)
            lines.append(f"| {NAMES[name]} | {smoothness} | {shown} | {expected:.3f} |")
    return "\n".join(lines)


def figure(results: Results) -> Any:
    """Return the figure: risk against n for each smoothness, at the best parameter."""
    drawn = blank(2.9)
    smoothness = results.settings["smoothness"]
    axes = drawn.subplots(1, len(smoothness), sharey=True)
    for ax, each in zip(axes, smoothness, strict=True):
        for name in FILTERS:
            rows = where(
                results.rows, quantity="risk", smoothness=each, estimator=name, rule="oracle"
            )
            n, risk, error = (
                np.array([row[key] for row in rows]) for key in ("n", "value", "error")
            )
            if len(rows):
                ax.fill_between(
                    n,
                    risk - 2 * error,
                    risk + 2 * error,
                    color=style_of(name)["color"],
                    alpha=0.2,
                    linewidth=0,
                )
                ax.plot(n, risk, label=NAMES[name], markersize=4, linewidth=1.3, **style_of(name))
        ax.set(xscale="log", yscale="log", xlabel="n")
        ax.set_xticks(results.settings["n"], map(str, results.settings["n"]))
        ax.xaxis.minorticks_off()
        without_frame(ax)
    axes[0].set_ylabel("squared error")
    letter_panels(axes, [f"smoothness {each}" for each in smoothness])
    legend_below(
        drawn, {NAMES[name]: legend_handle(markersize=4, **style_of(name)) for name in FILTERS}
    )
    return drawn


EXPERIMENT = Experiment(
    name="saturation",
    title="how fast filters learn targets of smoothness 1, 2 and 4",
    text=(
        "Regression on the circle with k(x, y) = 1 + 2 Σ j⁻² cos 2πj(x − y), whose eigenfunctions "
        "are cosines and sines and whose eigenvalues are j⁻², so that the smoothness β of a target "
        "Σ f_j e_j, Σ f_j² j^(2β) < ∞, and the squared error are known exactly. The best rate is "
        "n^(−β/(β + 1/2)); a filter of qualification η has that of β = 2η at most. Lines are at "
        "the best parameter of each n; bands are two standard errors."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    findings=findings,
    details=details,
    figure=figure,
)
