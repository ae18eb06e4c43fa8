"""The evidence page: the paper's claims beside our numbers, written from results alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from muhat.paper.evidence import table_2
from muhat.paper.evidence.base import Claim, told
from muhat.paper.evidence.claims import CLAIMS, typical_dimension
from muhat.paper.evidence.printed import TABLE_2
from muhat.paper.evidence.texts import TEXTS
from muhat.paper.experiments import EXPERIMENTS
from muhat.paper.reproduction import Results, where
from muhat.plots._style import name_of


def page(results: Mapping[str, Results], folder: Path, beside: Path) -> str:
    """Return the evidence page in Markdown.

    Parameters
    ----------
    results : mapping of str to Results
        What is there, by the experiment's name.
    folder : path
        Where tables and figures are.
    beside : path
        Where the page will be, from which it links to them.
    """
    links = quote(Path(os.path.relpath(folder, beside.parent)).as_posix())
    parts = ["# The paper's evidence", _preface(results), "## Claims", _claims(results)]
    for name in (name for name in EXPERIMENTS if name in results):
        parts += [f"## {name}: {EXPERIMENTS[name].title}", _section(name, results[name], links)]
    return "\n\n".join(parts) + "\n"


def _preface(results: Mapping[str, Results]) -> str:
    commits = sorted({str(each.about.get("commit") or "unknown") for each in results.values()})
    seconds = sum(each.about["seconds"] for each in results.values())
    small = ", ".join(name for name, each in results.items() if _is_quick(name, each))
    lines = [
        "Every figure and table of “Kernel Mean Estimation via Spectral Filtering” (Muandet, Sriperumbudur and "
        "Schölkopf, 2014), computed by `muhat reproduce`, which also writes this page. Brackets are 95 % confidence "
        "intervals unless said otherwise.",
        f"Commit {', '.join(commits)}; {seconds / 60:.0f} minutes of work on one core.",
    ]
    if small:
        lines.append(f"**Quick run, far below the paper's sizes, proving nothing: {small}.**")
    return "\n\n".join(lines)


def _is_quick(name: str, results: Results) -> bool:
    return results.settings == EXPERIMENTS[name].settings(True)


def _claims(results: Mapping[str, Results]) -> str:
    lines = ["| where | the paper says | we find | verdict |", "|---|---|---|---|"]
    for name in (name for name in EXPERIMENTS if name in results):
        lines += [_claim(claim) for claim in claims_of(name, results[name])]
    return "\n".join(lines)


def claims_of(name: str, results: Results) -> list[Claim]:
    """Return the claims that an experiment answers."""
    if name == "table-2":
        return table_2.claims(results)
    return CLAIMS[name](results) if name in CLAIMS else []


def _claim(claim: Claim) -> str:
    return f"| {claim.place} | {claim.says} | {claim.number} | **{claim.verdict}** |"


def _section(name: str, results: Results, links: str) -> str:
    parts = [TEXTS[name], f"![{EXPERIMENTS[name].title}]({links}/{name}.png)"]
    if name == "table-2":
        parts.append(table_2.markdown(results))
        parts.append(_missing(results))
    if name == "figure-3c":
        parts.append(_improvements(results))
    settings = "; ".join(f"{key}: {_short(value)}" for key, value in results.settings.items())
    files = " · ".join(f"[{kind}]({links}/{name}.{kind})" for kind in ("csv", "json", "svg"))
    parts.append(f"{files}. {settings}.")
    return "\n\n".join(part for part in parts if part)


def _missing(results: Results) -> str:
    if _is_quick("table-2", results):
        return ""
    absent = [name for name in TABLE_2 if name not in results.settings["datasets"]]
    return f"Not on the machine, and left out: {', '.join(absent)}." if absent else ""


def _improvements(results: Results) -> str:
    """Return the improvements of all estimators and rules at one dimension, for both ways of drawing the mixture."""
    d, samplings = typical_dimension(results), results.settings["samplings"]
    lines = [f"| d = {d} | rule | " + " | ".join(f"mixture {each}" for each in samplings) + " |"]
    lines.append("|---|---|" + "---|" * len(samplings))
    for row in where(results.rows, sampling=samplings[0], d=d):
        pair = {"estimator": row["estimator"], "rule": row["rule"], "d": d}
        cells = [told(where(results.rows, sampling=each, **pair)[0]) for each in samplings]
        lines.append(f"| {name_of(row['estimator'])} | {row['rule']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _short(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_short(each)}" for key, each in value.items())
    if isinstance(value, list):
        return "(" + ", ".join(map(_short, value)) + ")"
    return f"{value:g}" if isinstance(value, float) else str(value)
