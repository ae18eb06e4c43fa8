"""A report as one HTML file that needs nothing else, every string of a user escaped."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import count
from string import Template

import numpy as np

from muhat import __version__
from muhat._text import shortened
from muhat.figures import Bars
from muhat.report._document import Cell, Fact, Report, Section, Table
from muhat.report._svg import bars_html, plot_html, spark_svg

LONG_FACT = 9
"""Characters from which on a fact is set in smaller type."""

MAX_NAME_LENGTH = 48
"""Characters of a name in a table."""

INVISIBLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""What HTML may not hold: control characters, and halves of characters of undecodable names."""

MARKS = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the direction of all text after them."""


def render(report: Report) -> str:
    """Return a report as one HTML page, with style, script and figures in it."""
    numbers = count(1)
    script = _asset("page.js").strip()
    sections = [(f"part-{place}", each) for place, each in enumerate(report.sections, 1)]
    contents = [(name, each.title) for name, each in sections]
    contents += [
        ("data", report.data.title),
        ("sure", "How sure"),
        ("code", "Python"),
        ("made", "Versions and settings"),
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
        contents="".join(
            f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in contents
        ),
        sections="\n".join(_section(name, each, numbers) for name, each in sections),
        data=_inside(report.data, numbers),
        assumptions="".join(f"<li>{escape(each)}</li>" for each in report.assumptions),
        code=escape(report.code),
        provenance="".join(
            f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
            for name, value in report.provenance.items()
        ),
    )
    return MARKS.sub("", INVISIBLE.sub("\ufffd", page))


@cache
def _asset(name: str) -> str:
    return files("muhat.report").joinpath(name).read_text(encoding="utf-8")


def _fact(fact: Fact) -> str:
    kind = "value long" if len(fact.value) > LONG_FACT else "value"
    note = f'<dd class="note">{escape(fact.note)}</dd>' if fact.note else ""
    label, value = escape(fact.label), escape(fact.value)
    return f'<div><dt>{label}</dt><dd class="{kind}">{value}</dd>{note}</div>'


def _section(name: str, section: Section, numbers: count[int]) -> str:
    title, inside = escape(section.title), _inside(section, numbers)
    return f'<section id="{name}"><h2>{title}</h2>\n{inside}\n</section>'


def _inside(section: Section, numbers: count[int]) -> str:
    """Return a section's sentences, warnings and blocks."""
    parts = [f"<p>{escape(sentence)}</p>" for sentence in section.sentences]
    if section.warnings:
        listed = "".join(f"<li>{escape(each)}</li>" for each in section.warnings)
        parts.append(f'<ul class="warnings" aria-label="Warnings">{listed}</ul>')
    for block in section.blocks:
        name = f"block-{next(numbers)}"
        if isinstance(block, Table):
            parts.append(_table(block, name))
        elif isinstance(block, Bars):
            parts.append(bars_html(block, name))
        else:
            parts.append(plot_html(block, name))
    return "\n".join(parts)


def _table(table: Table, name: str) -> str:
    """Return a table in a box of its own, which scrolls where the table is larger."""
    is_number = [
        any(row[place].value is not None for row in table.rows)
        for place in range(len(table.columns))
    ]
    head = "".join(
        f'<th scope="col"{_kind(numeric)}>{escape(title)}</th>'
        for title, numeric in zip(table.columns, is_number, strict=True)
    )
    body = ""
    for place, row in enumerate(table.rows):
        cells = "".join(_cell(cell, first=column == 0) for column, cell in enumerate(row))
        mark = " class=marked" if place == table.marked else ""
        body += f"<tr{mark}>{cells}</tr>"
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    sortable = " data-sortable" if len(table.rows) > 1 else ""
    caption = f'<caption id="{name}">{escape(table.caption)}</caption>'
    scroll = f'<div class="scroll" tabindex="0" role="region" aria-labelledby="{name}">'
    return f"""<div class="table">{scroll}
<table{sortable}>{caption}<thead><tr>{head}</tr></thead>
<tbody>{body}</tbody></table></div>{note}</div>"""


def _kind(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


def _cell(cell: Cell, first: bool) -> str:
    text = escape(shortened(cell.text))
    if cell.is_name:
        name = escape(shortened(cell.text, MAX_NAME_LENGTH))
        text = f'<bdi title="{escape(cell.text)}">{name}</bdi>'
    value = ""
    if cell.value is not None:
        sorted_by = np.nan_to_num(cell.value, nan=-1e300)  # what is missing comes last
        value = f' class="number" data-value="{sorted_by:.10g}"'
    spark = "" if cell.spark is None else spark_svg(cell.spark)
    if spark and cell.text:
        text = f'<span class="hidden">{text}</span>'
    return f'<th scope="row"{value}>{text}</th>' if first else f"<td{value}>{spark}{text}</td>"
