"""When does it pay? Improvement by bandwidth, sample size, kernel, and with Theorem 1."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from muhat.datasets import Draw, SyntheticFamily
from muhat.figures import smooth
from muhat.kernels import KERNELS, Gaussian, Kernel, Polynomial
from muhat.theory import ExactLosses, admissible_fraction
from paper._arrays import Array
from paper._claims import FAILS, HOLDS, Claim, Finding, decimal, in_one_cell, with_interval
from paper._estimators import EstimatorLosses, display_name, filter_named, losses_by_rule
from paper._experiment import Experiment, Results, Row, Settings, Task
from paper._figures import (
    COLOURS,
    IMPROVEMENT,
    as_in_the_paper,
    blank,
    improvements,
    legend_below,
    legend_entries,
    legend_handle,
    letter_panels,
    line,
    lines,
    percent_scale,
    place_of,
    style_of,
)
from paper._samples import (
    PILOT_OFFSET,
    SAMPLES_PER_TASK,
    blocks,
    exact_losses,
    gaussian_kernels,
    indices,
    joined,
    loss_rows,
    median_bandwidth,
    risk_table,
)
from paper._style import logarithmic, without_frame, zero_is_kme
from paper._tables import distinct, one, picked, where

RATE_DASHES = ((0, (1, 1)), (0, (5, 1, 1, 1)), "--")
"""The dashes of S-KMSE with λ = c n^(−β), for each c and β."""

KERNEL_NAMES = {
    "gaussian": "Gaussian",
    "matern": "Matérn 3/2",
    "linear": "linear",
    "polynomial": "quadratic",
}
"""What the kernels are called, in the order of the figure."""

HORIZONTAL = {"bandwidth": "factor", "size": "n", "theorem-1": "rho"}
"""What each panel of the figure's first row has on its horizontal axis."""


def settings(quick: bool) -> Settings:
    """Return the sizes."""
    factors = [0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0]
    if quick:
        factors = [0.1, 1.0]
    chosen: Settings = {
        "seed": 2014,
        "m": 1000,
        "block": SAMPLES_PER_TASK,
        "n": 50,
        "d": 20,
        "factors": factors,
        "sizes": [10, 20, 50, 100, 200, 400],
        "pilot": 200,
        "rates": [[1.0, 1.5], [10.0, 1.5]],
    }
    if quick:
        chosen |= {"m": 10, "n": 20, "sizes": [10, 20]}
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each block of samples of each panel and place."""
    usual = {"kernel": "gaussian", "factor": 1.0, "n": settings["n"]}
    cases = []
    for factor in settings["factors"]:
        cases.append({"panel": "bandwidth", **usual, "factor": factor})
    for n in settings["sizes"]:
        cases.append({"panel": "size", **usual, "n": n})
    for factor in settings["factors"]:
        cases.append({"panel": "theorem-1", **usual, "factor": factor})
    for kernel in KERNEL_NAMES:
        cases.append({"panel": "kernel", **usual, "kernel": kernel})
    return blocks(settings, cases)


def run(settings: Settings, task: Task) -> list[Row]:
    """Return the losses of all estimators on a block of samples."""
    family = SyntheticFamily(settings["d"])
    case = picked(task, ("panel", "kernel", "factor", "n"))
    draws = list(family.draw(indices(task), task["n"], settings["seed"]))
    if task["panel"] == "theorem-1":
        bandwidths = task["factor"] * _pilot_bandwidths(settings, draws, indices(task))
        exact = exact_losses(draws, [Gaussian(float(bandwidth)) for bandwidth in bandwidths])
        rows = loss_rows([*losses_by_rule(exact), *_losses_by_rate(settings, exact)], **case)
        found = []
        for row in rows:
            found.append({**row, "rho": exact.squared_norms.tolist()})
        return found
    return loss_rows(_losses_under(_kernels(task, draws), draws), **case)


def _kernels(task: Task, draws: Sequence[Draw]) -> list[Kernel]:
    """Return a kernel for each sample; the quadratic one is (⟨x, y⟩/d + 1)²."""
    if task["kernel"] == "gaussian":
        return gaussian_kernels(draws, task["factor"])
    kernels: list[Kernel] = []
    for draw in draws:
        if task["kernel"] == "polynomial":
            kernels.append(Polynomial(gamma=1 / draw.X.shape[1]))
        else:
            kernels.append(KERNELS[task["kernel"]]().resolve(draw.X))
    return kernels


def _losses_under(kernels: Sequence[Kernel], draws: Sequence[Draw]) -> list[EstimatorLosses]:
    """Return the losses by all rules; one by one under a kernel whose κ² is the sample's."""
    if np.isfinite(kernels[0].bound):
        return losses_by_rule(exact_losses(draws, kernels))
    single = []
    for draw, kernel in zip(draws, kernels, strict=True):
        single.append(exact_losses([draw], [kernel]))
    found = []
    for exact in single:
        found.append(losses_by_rule(exact, exact.problem.kappa2(np.inf)))
    collected = []
    for each in zip(*found, strict=True):
        collected.append(
            EstimatorLosses(
                each[0].estimator, each[0].rule, np.concatenate([one.losses for one in each])
            )
        )
    return collected


def _pilot_bandwidths(settings: Settings, draws: Sequence[Draw], places: Iterable[int]) -> Array:
    """Return each distribution's median bandwidth, from a sample of its own."""
    bandwidths = []
    for draw, place in zip(draws, places, strict=True):
        rng = np.random.default_rng([settings["seed"], PILOT_OFFSET + place])
        bandwidths.append(median_bandwidth(draw.distribution.sample(settings["pilot"], rng)))
    return np.array(bandwidths)


def _losses_by_rate(settings: Settings, exact: ExactLosses) -> list[EstimatorLosses]:
    """Return the losses of S-KMSE with λ = c n^(−β)."""
    lams = []
    for c, beta in settings["rates"]:
        lams.append(c * exact.problem.n**-beta)
    losses = exact.of_multiples(filter_named("s-kmse").at_zero(np.array(lams)))
    found = []
    for place, rate in enumerate(settings["rates"]):
        found.append(EstimatorLosses("s-kmse", rate_name(*rate), losses[:, place]))
    return found


def rate_name(c: float, beta: float) -> str:
    """Return what the rule λ = c n^(−β) is called in the table."""
    return f"rate({c:g}, {beta:g})"


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return risk and improvement of every case, and for Theorem 1 what is known exactly."""
    raw = joined(results)
    known = []
    for row in raw:
        known.append(
            {"rho": float(np.mean(row["rho"])) if "rho" in row else None, **_exact(settings, row)}
        )
    plain = []
    for row in raw:
        plain.append({key: value for key, value in row.items() if key != "rho"})
    found = []
    for row, more in zip(risk_table(settings, [plain]), known, strict=True):
        found.append({**row, **more})
    return found


def _exact(settings: Settings, row: Row) -> Row:
    """Return the exact improvement of S-KMSE with λ = c n^(−β), against Theorem 1's class.

    R = (1−ρ)/n and R_λ = s²(1−ρ)/n + (1−s)²ρ with s = 1/(1+λ) and ρ = ‖μ‖², as k(x, x) = 1.
    """
    names = ("exact_risk", "exact_improvement", "boundary", "inside", "wins", "inside_and_wins")
    rate = next((rate for rate in settings["rates"] if row["rule"] == rate_name(*rate)), None)
    if "rho" not in row or (rate is None and row["estimator"] != "kme"):
        return dict.fromkeys(names)
    rho, n = np.array(row["rho"]), row["n"]
    risk = (1 - rho) / n
    if rate is None:
        return {**dict.fromkeys(names), "exact_risk": float(risk.mean())}
    s = float(filter_named("s-kmse").at_zero(np.array([rate[0] * n ** -rate[1]]))[0])
    shrunk = s**2 * risk + (1 - s) ** 2 * rho
    boundary = admissible_fraction(*rate)
    inside, wins = rho < boundary, shrunk < risk
    shares = (float(np.mean(each)) for each in (inside, wins, inside & wins))
    values = (float(shrunk.mean()), 100 * float(1 - shrunk.mean() / risk.mean()), boundary, *shares)
    return dict(zip(names, values, strict=True))


def claims(results: Results) -> list[Claim]:
    """Return what Theorem 1 says about where there is something to gain."""
    return _claims_of_theorem_1(results)


def findings(results: Results) -> list[Finding]:
    """Return where there is much to gain and where little."""
    rows = where(results.rows, panel="bandwidth", estimator="f-kmse", rule="paper")
    parts = []
    for row in rows:
        parts.append(f"{decimal(row['improvement'], 1)} % at {row['factor']:g}")
    number = in_one_cell(parts)
    found = [
        Finding(
            "Improvement of F-KMSE over KME by bandwidth, in multiples of the median rule's.",
            number,
        )
    ]
    rows = where(results.rows, panel="size", estimator="f-kmse", rule="paper")
    entries = []
    for row in rows:
        entries.append(f"{with_interval(row)} at n = {row['n']}")
    number = in_one_cell(entries)
    found.append(Finding("Improvement of F-KMSE over KME by sample size.", number))
    return found


def _claims_of_theorem_1(results: Results) -> list[Claim]:
    """Return the claims of Theorem 1: inside its class S-KMSE with λ = c·n^(−β) wins."""
    found = []
    for c, beta in results.settings["rates"]:
        rows = where(results.rows, panel="theorem-1", rule=rate_name(c, beta))
        total = sum(row["m"] for row in rows)
        inside, wins, both = (
            sum(row["m"] * row[key] for row in rows)
            for key in ("inside", "wins", "inside_and_wins")
        )
        boundary = f"A = {rows[0]['boundary']:.3f}"
        says = (
            f"Whoever is in the class ‖μ‖² < A∫k(x, x)dP wins by λ = {c:g}·n^(−{beta:g}); "
            f"{boundary}."
        )
        number = (
            f"inside: {both:.0f} of {inside:.0f} pairs of a distribution and a bandwidth win; "
            f"outside: {wins - both:.0f} of {total - inside:.0f} (exact risks, no sampling error)"
        )
        verdict = FAILS
        if 0 < round(inside) == round(both):
            verdict = HOLDS
        if verdict == HOLDS and round(wins) > round(both):
            verdict += "; it is not necessary at one n"
        found.append(Claim("Theorem 1", says, number, verdict))
    return found


def figure(results: Results) -> Any:
    """Return the figure: improvement against bandwidth, n, and ‖μ‖²/∫k(x, x)dP with Theorem 1."""
    shown = as_in_the_paper(results.rows)
    by_kernel = where(shown, panel="kernel")
    drawn = blank(6.6 if by_kernel else 4.4)
    upper, lower = drawn.subfigures(2, 1, height_ratios=[1, 0.8]) if by_kernel else (drawn, None)
    axes = list(upper.subplots(1, len(HORIZONTAL), sharey=True))
    for ax, (panel, column) in zip(axes, HORIZONTAL.items(), strict=True):
        improvements(
            ax, lines(where(shown, panel=panel), column, "improvement"), named=ax is axes[-1]
        )
    rates = _draw_theorem_1(
        axes[2], where(results.rows, panel="theorem-1"), results.settings["rates"]
    )
    for ax in axes[:2]:
        logarithmic(ax.xaxis)
    percent_scale(axes[0])
    axes[0].set(xlabel="bandwidth / median", ylabel=IMPROVEMENT)
    axes[1].set_xlabel("sample size $n$")
    axes[2].set_xlabel(r"$\|\mu\|^2\,/\int k(x,x)\,dP$")
    n = results.settings["n"]
    titles = [
        f"$n = {n}$",
        "median bandwidth",
        f"$n = {n}$, bandwidth given",
        f"$n = {n}$, by kernel",
    ]
    if lower is not None:
        axes.append(lower.subplots())
        _draw_kernels(axes[-1], by_kernel)
    letter_panels(axes, titles[: len(axes)])
    legend_below(drawn, {**legend_entries(lines(shown, "n", "improvement")), **rates}, columns=3)
    return drawn


def _draw_kernels(ax: Any, rows: Sequence[Row]) -> None:
    """Draw the improvements of all estimators under each kernel, side by side."""
    kernels = distinct(rows, "kernel", KERNEL_NAMES)
    estimators = distinct(sorted(rows, key=place_of), "estimator")
    zero_is_kme(ax)
    for place, name in enumerate(estimators):
        for middle, kernel in enumerate(kernels):
            row = one(rows, kernel=kernel, estimator=name)
            x = middle + 0.8 * ((place + 0.5) / len(estimators) - 0.5)
            look = style_of(name)
            ax.vlines(
                x,
                row["improvement_low"],
                row["improvement_high"],
                color=look["color"],
                linewidth=1.8,
            )
            ax.plot(
                x,
                row["improvement"],
                linestyle="",
                markersize=4.5,
                label=display_name(name),
                **look,
            )
    percent_scale(ax)
    ax.set_xticks(range(len(kernels)), [KERNEL_NAMES[kernel] for kernel in kernels])
    ax.set(xlabel="kernel, its bandwidth by the median rule", ylabel=IMPROVEMENT)
    without_frame(ax)


def _draw_theorem_1(
    ax: Any, rows: Sequence[Row], rates: Sequence[Sequence[float]]
) -> dict[str, Any]:
    """Draw S-KMSE with λ = c n^(−β) and the theorem's boundaries; return legend entries."""
    keys = {}
    for (c, beta), dashes in zip(rates, RATE_DASHES, strict=False):
        group = sorted(where(rows, rule=rate_name(c, beta)), key=lambda row: row["rho"])
        if not group:
            continue
        simulated = line("s-kmse", "rate", group, "rho", "improvement")
        exact = smooth(simulated.x, np.array([row["exact_improvement"] for row in group], float))
        style = {"color": COLOURS["s-kmse"], "linestyle": dashes}
        ax.plot(*exact, linewidth=1.5, **style)
        ax.vlines(simulated.x, simulated.low, simulated.high, color=style["color"], linewidth=2.5)
        ax.plot(simulated.x, simulated.y, **{**simulated.style, "linestyle": "", "markersize": 2.5})
        ax.axvline(group[0]["boundary"], linewidth=0.9, zorder=1, **style)
        if c == 1:
            factor = ""
        else:
            factor = f"{c:g}\\,"
        label = (
            rf"{display_name('s-kmse')}, $\lambda = {factor}n^{{-{beta:g}}}$ (vertical: Theorem 1)"
        )
        keys[label] = legend_handle(linewidth=1.5, **style)
    return keys


EXPERIMENT = Experiment(
    name="when-it-pays",
    title="improvement against bandwidth, n, and ‖μ‖²/∫k(x, x)dP with Theorem 1's boundary",
    text=(
        "Not in the paper. (a) Gains are large where the bandwidth is far below the median rule's, "
        "and small at it; (b) most fall with n. (c) The bandwidth is fixed in advance, so that "
        "Theorem 1 applies to the letter: left of its boundary S-KMSE with that rate must win for "
        "every n."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    claims=claims,
    findings=findings,
    figure=figure,
)
