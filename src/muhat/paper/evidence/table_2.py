"""Table 2 of the paper beside ours: cell by cell, with paired tests, and what the solver's stopping does to it."""

from __future__ import annotations

import numpy as np

from muhat.paper.evidence.base import FAILS, HOLDS, Claim, minus, one
from muhat.paper.evidence.claims import OURS
from muhat.paper.evidence.printed import cells_below_kme, printed
from muhat.paper.experiments.base import Row
from muhat.paper.experiments.contenders import PAPER
from muhat.paper.experiments.table_2 import LIKELIHOOD, START
from muhat.paper.plots.dots import above, below, significant, steps_in_words
from muhat.paper.reproduction import Results, where
from muhat.plots._style import name_of

SHRUNK = PAPER[1:]
EARLY = "holds only for solvers stopped early"

EXTRA = {
    ("auto", "loo"): "auto",
    ("tsvd", "kfold"): "truncated SVD by 5-fold",
    (START, "baseline"): "K-means, the start",
    (LIKELIHOOD, "baseline"): "maximum likelihood (EM)",
    ("best", "oracle"): "best of the seven (oracle)",
}
"""Our own estimators and rules, and the baselines, with what they are called."""


def nearest_steps(results: Results) -> int:
    """Return the number of the solver's steps with which KME's column is nearest to the printed one."""
    return min(results.settings["steps"], key=lambda steps: deviation(results, steps))


def deviation(results: Results, steps: int) -> float:
    """Return by how many percent KME's column is away from the printed one, on average over the data sets."""
    return float(np.mean([abs(_away(one_cell(results, name, "kme", steps))) for name in results.settings["datasets"]]))


def one_cell(results: Results, dataset: str, estimator: str, steps: int, rule: str = "paper") -> Row:
    """Return a cell of our table."""
    return one(results.rows, dataset=dataset, estimator=estimator, steps=steps, rule=rule)


def _away(row: Row) -> float:
    """Return by how many percent a cell is above the printed one."""
    return float(100 * (row["nll"] / printed(row["dataset"], row["estimator"]) - 1))


def shrunk_cells(results: Results, steps: int) -> list[Row]:
    """Return the cells of the six shrinkage estimators."""
    return [one_cell(results, name, each, steps) for name in results.settings["datasets"] for each in SHRUNK]


def markdown(results: Results) -> str:
    """Return the section's tables: the cells, our own rows and the baselines, and the effect of stopping."""
    steps = nearest_steps(results)
    tables = [_cells(results, steps), _extra(results, steps), _stopping(results, steps)]
    return "\n\n".join([*tables, _reading(results, steps)])


def _cells(results: Results, steps: int) -> str:
    lines = [_line(["", *(name_of(name) for name in PAPER), "KME against the printed"]), _line(["---"] * 9)]
    for name in results.settings["datasets"]:
        rows = [one_cell(results, name, each, steps) for each in PAPER]
        told = [f"{_marked(row)} ({printed(name, row['estimator']):.4f})" for row in rows]
        lines.append(_line([name, *told, f"{minus(_away(rows[0]), 1)} %"]))
    return "\n".join(lines)


def _marked(row: Row) -> str:
    """Return a cell's value, bold if significantly below KME, with a dagger if significantly above."""
    value = f"{row['nll']:.4f}"
    if significant(below([row])):
        return f"**{value}**"
    return f"{value}†" if significant(above([row])) else value


def _extra(results: Results, steps: int) -> str:
    there = [pair for pair in EXTRA if where(results.rows, estimator=pair[0], rule=pair[1], steps=steps)]
    titles = ["difference from KME", *(EXTRA[pair] for pair in there)]
    lines = [_line(titles), _line(["---"] * len(titles))]
    for name in results.settings["datasets"]:
        rows = [one_cell(results, name, estimator, steps, rule) for estimator, rule in there]
        told = [
            f"{minus(row['difference'], 3)} [{minus(row['difference_low'], 3)}, {minus(row['difference_high'], 3)}]"
            for row in rows
        ]
        lines.append(_line([name, *told]))
    return "\n".join(lines)


def _stopping(results: Results, chosen: int) -> str:
    titles = ["stopped after", "KME away from the printed", "cells below KME", "significantly", "significantly above",
              "KME worse than its start", "share of components that truncated SVD keeps"]  # fmt: skip
    lines = [_line(titles), _line(["---"] * len(titles))]
    for steps in results.settings["steps"]:
        rows = shrunk_cells(results, steps)
        kept = np.mean([row["kept"] for row in rows if row["estimator"] == "tsvd"])
        worse = sum(_worse_than_start(results, name, steps) for name in results.settings["datasets"])
        told = steps_in_words(steps)
        cells = [f"**{told}**" if steps == chosen else told, f"{deviation(results, steps):.1f} %"]
        cells += [
            f"{len(below(rows))} of {len(rows)}",
            str(len(significant(below(rows)))),
            str(len(significant(above(rows)))),
        ]
        lines.append(_line([*cells, f"{worse} of {len(results.settings['datasets'])} sets", f"{100 * kept:.1f} %"]))
    return "\n".join(lines)


def _reading(results: Results, chosen: int) -> str:
    """Return what the tables say of stopping and of truncated SVD, in words."""
    counts = {steps: len(below(shrunk_cells(results, steps))) for steps in results.settings["steps"]}
    most, last = max(counts, key=lambda steps: counts[steps]), max(counts)
    also = "also" if counts[most] == counts[chosen] else "not"
    names = results.settings["datasets"]
    by_gcv, folds = ([one_cell(results, name, "tsvd", chosen, rule) for name in names] for rule in ("paper", "kfold"))
    shares = [f"{100 * float(np.mean([row['kept'] for row in rows])):.0f} %" for rows in (by_gcv, folds)]
    return (
        f"The stop of the first table is {also} the one of those tried that favours shrinkage most: {counts[most]} "
        f"cells are below KME at {steps_in_words(most)}, {counts[last]} at {steps_in_words(last)}. By GCV truncated "
        f"SVD keeps {shares[0]} of the components and is below KME on {len(below(by_gcv))} of {len(names)} data sets; "
        f"by 5-fold cross-validation it keeps {shares[1]} and is below on {len(below(folds))}. The training parts of "
        "the repetitions overlap, which makes paired tests somewhat too sure."
    )


def _worse_than_start(results: Results, name: str, steps: int) -> bool:
    start = one_cell(results, name, START, steps, "baseline")
    return bool(start["difference"] < 0)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def claims(results: Results) -> list[Claim]:
    """Return what the paper claims of its Table 2."""
    steps, last = nearest_steps(results), max(results.settings["steps"])
    names, rows = results.settings["datasets"], shrunk_cells(results, steps)
    others = [row for row in rows if row["estimator"] != "tsvd"]
    furthest, at_last = (_furthest(results, each) for each in (steps, last))
    best = {name: min(SHRUNK, key=lambda each: float(one_cell(results, name, each, steps)["nll"])) for name in names}
    likelihood = [one_cell(results, name, LIKELIHOOD, steps, "baseline") for name in names]
    stopped = f"stopped after {steps_in_words(steps)}"
    return [
        Claim(
            "Table 2",
            f"KME's column ({stopped}, which was chosen to be nearest to it).",
            f"{deviation(results, steps):.1f} % away on average, at most {_away_told(furthest)}<br>"
            f"at {steps_in_words(last)} {deviation(results, last):.1f} % and at most {_away_told(at_last)}",
            HOLDS + " within 15 %" if abs(_away(furthest)) <= 15 else FAILS,
        ),
        Claim(
            "Table 2",
            f"Mixtures from shrinkage estimators tend to have a lower score than from KME ({stopped}).",
            f"{len(below(rows))} of {len(rows)} cells below KME (the paper: {cells_below_kme()} of 54)<br>"
            f"{len(below(others))} of {len(others)} without truncated SVD<br>"
            f"{len(significant(below(rows)))} significantly below, {len(significant(above(rows)))} above",
            _tendency(results, rows),
        ),
        Claim(
            "Table 2",
            "The relative performance of the filters varies across data sets.",
            "best: " + ", ".join(f"{name_of(each)} on {name}" for name, each in best.items()),
            HOLDS if len(set(best.values())) > 1 else FAILS,
        ),
        Claim(
            OURS,
            "Kernel mean matching against maximum likelihood (scikit-learn's EM, same form, same start).",
            f"maximum likelihood is lower on {sum(row['difference'] < 0 for row in likelihood)} of {len(names)} sets, "
            f"by {minus(-float(np.mean([row['difference'] for row in likelihood])), 2)} on average",
            "for the density itself, maximum likelihood is the better choice"
            if all(row["difference"] < 0 for row in likelihood)
            else "no clear winner",
        ),
    ]


def _furthest(results: Results, steps: int) -> Row:
    """Return the cell of KME that is furthest from the printed one."""
    cells = [one_cell(results, name, "kme", steps) for name in results.settings["datasets"]]
    return max(cells, key=lambda row: abs(_away(row)))


def _away_told(row: Row) -> str:
    return f"{minus(_away(row), 1)} % ({row['dataset']})"


def _tendency(results: Results, rows: list[Row]) -> str:
    """Return the verdict on shrinkage: also whether it lasts when the solver runs on."""
    if not _tend_below(rows):
        return FAILS
    return HOLDS if _tend_below(shrunk_cells(results, max(results.settings["steps"]))) else EARLY


def _tend_below(rows: list[Row]) -> bool:
    """Whether most cells are below KME, and more significantly so than above."""
    return 2 * len(below(rows)) > len(rows) and len(significant(below(rows))) > len(significant(above(rows)))
