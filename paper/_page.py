"""The page of evidence, written from results: the paper's claims beside our numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from paper._experiment import Experiment, Results
from paper._tables import markdown

QUICK = "quick run"
"""What stands in place of a verdict that a small experiment cannot give."""

MAX_SETTING = 250
"""Characters of a list of settings that a page shows."""

PREFACE = (
    "Every figure and table of “Kernel Mean Estimation via Spectral Filtering” (Muandet, "
    "Sriperumbudur and Schölkopf, 2014), computed by `python -m paper`, which also writes this "
    "page. It has the paper's estimators with its rules, with ours and with the default of "
    "`KernelMean()`; the stacked mean has a page of its own, by `python -m paper stacking`."
)


@dataclass(frozen=True)
class Page:
    """A page of results: its experiments by name, in order, and what stands above them."""

    experiments: Mapping[str, Experiment]
    title: str = "The paper's evidence"
    preface: str = PREFACE


def evidence_page(page: Page, results: Mapping[str, Results], folder: Path, beside: Path) -> str:
    """Return a page of evidence in Markdown.

    Parameters
    ----------
    page : Page
        Its experiments, and what stands above them.
    results : mapping of str to Results
        What is there of them, by name.
    folder : path
        Where tables and figures are.
    beside : path
        Where the page will be, from which it links to them.
    """
    links = quote(Path(os.path.relpath(folder, beside.parent)).as_posix())
    found = []
    for name, experiment in page.experiments.items():
        if name in results:
            found.append((experiment, results[name]))
    parts = [f"# {page.title}", _preface(page, found)]
    for title, table in (("Claims", _claims(found)), ("Results", _findings(found))):
        parts += [f"## {title}", table] if table else []
    for experiment, result in found:
        parts += [f"## {experiment.name}: {experiment.title}", _section(experiment, result, links)]
    return "\n\n".join(parts) + "\n"


def _preface(page: Page, found: list[tuple[Experiment, Results]]) -> str:
    commits = sorted({str(results.provenance.get("commit") or "unknown") for _, results in found})
    seconds = sum(results.provenance["seconds"] for _, results in found)
    small = []
    for experiment, results in found:
        if experiment.is_quick(results):
            small.append(experiment.name)
    lines = [
        f"{page.preface} Brackets are 95 % confidence intervals unless said otherwise.",
        f"Commit {', '.join(commits)}; {seconds / 60:.0f} minutes of work on one core.",
    ]
    dirty = []
    for experiment, results in found:
        if str(results.provenance.get("commit")).endswith("-dirty"):
            dirty.append(experiment.name)
    if dirty:
        lines.append(f"Computed with changes that were not committed: {', '.join(dirty)}.")
    missing = list(page.experiments)
    for experiment, _ in found:
        missing.remove(experiment.name)
    if missing:
        lines.append(f"Without results: {', '.join(missing)}.")
    if small:
        lines.append(
            f"**Quick run, far below the paper's sizes, without verdicts: {', '.join(small)}.**"
        )
    return "\n\n".join(lines)


def _claims(found: list[tuple[Experiment, Results]]) -> str:
    """Return the table of the paper's claims, with a verdict on each; empty without claims."""
    lines = []
    for experiment, results in found:
        is_quick = experiment.is_quick(results)
        for claim in experiment.claims(results):
            verdict = QUICK
            if not is_quick:
                verdict = f"**{claim.verdict}**"
            lines.append([claim.place, claim.says, claim.number, verdict])
    return _table(["where", "the paper says", "we find", "verdict"], lines)


def _findings(found: list[tuple[Experiment, Results]]) -> str:
    """Return the table of results on what the paper does not state; nothing if there are none."""
    lines = []
    for experiment, results in found:
        for finding in experiment.findings(results):
            lines.append([experiment.name, finding.what, finding.number])
    return _table(["experiment", "measured", "result"], lines)


def _table(header: list[str], lines: list[list[str]]) -> str:
    if lines:
        return "\n".join(markdown(header, lines))
    return ""


def _section(experiment: Experiment, results: Results, links: str) -> str:
    name = experiment.name
    settings = []
    for key, value in results.settings.items():
        settings.append(f"{key}: {_setting(value)}")
    files = []
    for kind in ("csv", "json", "svg"):
        files.append(f"[{kind}]({links}/{name}.{kind})")
    last = f"{' · '.join(files)}. {'; '.join(settings)}."
    figure = f"![{experiment.title}]({links}/{name}.png)"
    parts = [experiment.text, figure, experiment.details(results), last]
    return "\n\n".join(filter(None, parts))


def _setting(value: object) -> str:
    """Return a setting in words; of a long list its length, as the table shows what is in it."""
    text = _short(value)
    if isinstance(value, list) and len(text) > MAX_SETTING:
        return f"{len(value)}, listed in the json"
    return text


def _short(value: object) -> str:
    if isinstance(value, Mapping):
        parts = []
        for key, each in value.items():
            parts.append(f"{key} {_short(each)}")
        return ", ".join(parts)
    if isinstance(value, list):
        return "(" + ", ".join(map(_short, value)) + ")"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)
