"""A report as one HTML file that needs nothing else, every string of a user escaped."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import count
from string import Template

import numpy as np

from muhat import __version__
from muhat._text import shortened
from muhat.figures import Bars, Matrix
from muhat.report._document import Cell, Fact, Report, Section, Table
from muhat.report._svg import bars_html, css_class, matrix_html, plot_html, spark_svg

LONG_FACT_LENGTH = 9
"""Characters from which on a fact is set in smaller type."""

MAX_NAME_LENGTH = 48
"""Characters of a name in a table."""

CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""What HTML may not hold: control characters, and halves of characters of undecodable names."""

MARKS = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the direction of all text after them."""


def render(report: Report) -> str:
    """Return a report as one HTML page, with style, script and figures in it."""
    numbers = count(1)
    script = _asset("page.js").strip()
    sections, contents = [], []
    for place, section in enumerate(report.sections, 1):
        name = f"part-{place}"
        sections.append(_section(name, section, numbers))
        contents.append(_link(name, section.title))
    contents += [
        _link("data", report.data.title),
        _link("sure", "How sure"),
        _link("code", "Python"),
        _link("made", "Versions and settings"),
    ]
    page = Template(_asset("page.html")).substitute(
        version=escape(__version__),
        title=escape(shortened(f"{report.question} {report.badge}", 160)),
        style=_asset("page.css").strip(),
        script=script,
        script_hash=f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}",
        kind=escape(report.kind),
        question=escape(report.question),
        badge=escape(report.badge),
        tone=escape(report.tone),
        verdict=escape(report.verdict),
        facts="".join(map(_fact, report.facts)),
        contents="".join(contents),
        sections="\n".join(sections),
        data=_inside(report.data, numbers),
        assumptions=_items(report.assumptions),
        code=escape(report.code),
        provenance=_definitions(report.provenance),
    )
    return MARKS.sub("", CONTROL_CHARACTERS.sub("\ufffd", page))


@cache
def _asset(name: str) -> str:
    return files("muhat.report").joinpath(name).read_text(encoding="utf-8")


def _link(name: str, title: str) -> str:
    return f'<li><a href="#{name}">{escape(title)}</a></li>'


def _items(texts: Sequence[str]) -> str:
    """Return the items of a list."""
    items = []
    for text in texts:
        items.append(f"<li>{escape(text)}</li>")
    return "".join(items)


def _definitions(values: Mapping[str, str]) -> str:
    """Return the items of a list of names and values."""
    items = []
    for name, value in values.items():
        items.append(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>")
    return "".join(items)


def _note(tag: str, text: str) -> str:
    """Return a note as an element of its own, or nothing for no note."""
    if not text:
        return ""
    return f'<{tag} class="note">{escape(text)}</{tag}>'


def _fact(fact: Fact) -> str:
    kind = css_class("value", long=len(fact.value) > LONG_FACT_LENGTH)
    note = _note("dd", fact.note)
    label, value = escape(fact.label), escape(fact.value)
    return f'<div><dt>{label}</dt><dd class="{kind}">{value}</dd>{note}</div>'


def _section(name: str, section: Section, numbers: count[int]) -> str:
    title, inside = escape(section.title), _inside(section, numbers)
    return f'<section id="{name}"><h2>{title}</h2>\n{inside}\n</section>'


def _inside(section: Section, numbers: count[int]) -> str:
    """Return a section's sentences, warnings and blocks."""
    parts = []
    for sentence in section.sentences:
        parts.append(f"<p>{escape(sentence)}</p>")
    if section.warnings:
        listed = _items(section.warnings)
        parts.append(f'<ul class="warnings" aria-label="Warnings">{listed}</ul>')
    for block in section.blocks:
        name = f"block-{next(numbers)}"
        if isinstance(block, Table):
            parts.append(_table(block, name))
        elif isinstance(block, Bars):
            parts.append(bars_html(block, name))
        elif isinstance(block, Matrix):
            parts.append(matrix_html(block, name))
        else:
            parts.append(plot_html(block, name))
    return "\n".join(parts)


def _table(table: Table, name: str) -> str:
    """Return a table in a box of its own, which scrolls where the table is larger."""
    body = []
    for place, row in enumerate(table.rows):
        body.append(_row(row, is_marked=place == table.marked))
    sortable = ""
    if len(table.rows) > 1:
        sortable = " data-sortable"
    caption = f'<caption id="{name}">{escape(table.caption)}</caption>'
    scroll = f'<div class="scroll" tabindex="0" role="region" aria-labelledby="{name}">'
    return f"""<div class="table">{scroll}
<table{sortable}>{caption}<thead><tr>{_titles(table)}</tr></thead>
<tbody>{"".join(body)}</tbody></table></div>{_note("p", table.note)}</div>"""


def _titles(table: Table) -> str:
    """Return the titles of the columns; those of numbers stand on the right, as numbers do."""
    titles = []
    for place, title in enumerate(table.columns):
        kind = ""
        if table.has_numbers(place):
            kind = ' class="number"'
        titles.append(f'<th scope="col"{kind}>{escape(title)}</th>')
    return "".join(titles)


def _row(cells: Sequence[Cell], is_marked: bool) -> str:
    first, *others = cells
    mark = ""
    if is_marked:
        mark = " class=marked"
    row = f'<tr{mark}><th scope="row"{_sorted_by(first)}>{_cell_text(first)}</th>'
    for cell in others:
        row += f"<td{_sorted_by(cell)}>{_cell_html(cell)}</td>"
    return f"{row}</tr>"


def _sorted_by(cell: Cell) -> str:
    """Return the attributes of a cell that has a number."""
    if cell.value is None:
        return ""
    sorted_by = np.nan_to_num(cell.value, nan=-1e300)  # what is missing comes last
    return f' class="number" data-value="{sorted_by:.10g}"'


def _cell_text(cell: Cell) -> str:
    if cell.is_name:
        name = escape(shortened(cell.text, MAX_NAME_LENGTH))
        return f'<bdi title="{escape(cell.text)}">{name}</bdi>'
    return escape(shortened(cell.text))


def _cell_html(cell: Cell) -> str:
    """Return the text of a cell, behind its small picture only for those who do not see it."""
    text = _cell_text(cell)
    if cell.spark is None:
        return text
    if cell.text:
        text = f'<span class="hidden">{text}</span>'
    return f"{spark_svg(cell.spark)}{text}"
