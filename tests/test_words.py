"""Sentences are plain technical English: phrases that readers had to read twice stay out."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from muhat.__main__ import COMMANDS, command_line

ROOT = Path(__file__).parents[1]

DIALECT = {
    r"\bspoke\b": "is the largest",
    r"\b(has|have|had) to do with\b": "depends on",
    r"\bto be told\b|\btold apart\b|\bcan be told\b": "detectable, distinguishable",
    r"\bno difference to\b": "no detectable difference from",
    r"\bwhat is no\b|\bthat (is|are) none\b": "say what it is",
    r"\b(is|are) no (good|landmarks?|features?|numbers?|default)\b": "is not a ..., is poor",
    r"\bbe it (that|given|a|the)\b": "whether, either",
    r"\b(Return|by|after|with|of|until|or) so many\b": "the name of the number",
    r"\btaken by itself\b|\basked without a word\b": "alone, by default",
    r"\bchance had dealt\b": "under the null hypothesis",
    r"\bas the data deserve\b": "the error that is kept",
    r"\bgot no such file\b": "no such file",
    r"\bwhole life\b|\bnew life\b": "all batches",
    r"\b(stand|stands) for it\b": "replaces it",
    r"\blets? .{0,30} speak\b": "applies",
    r"\bbegun\b": "started",
    r"\biterated anew\b|\b(rows|that) come once\b": "read again, read once",
    r"\bmust have as many\b": "the same number of",
    r"\balso sees\b": "also measures",
}
"""Phrases that readers stumbled over, and what to say instead."""

TEXTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "src").rglob("*.py")),
    *sorted((ROOT / "examples").glob("*.py")),
]


def dialect_in(text):
    """Return the phrases of a text that are on the list, with some words around them."""
    text = re.sub(r"\s*\n\s*(#\s*)?", " ", text)
    found = []
    for pattern, better in DIALECT.items():
        for match in re.finditer(pattern, text):
            around = text[max(0, match.start() - 40) : match.end() + 40]
            found.append(f"{around!r}: say {better}")
    return found


def test_the_list_finds_what_it_is_for():
    for sentence in (
        "MMD of Laplacian(4.7) spoke",
        "no difference to KME can be told",
        "Does x have to do with y?",
        "the kernel is no good for landmarks",
        "Return so\n        many leading eigenpairs",
    ):
        assert dialect_in(sentence)


def test_no_page_docstring_or_comment_has_a_phrase_of_the_list():
    found = {}
    for path in TEXTS:
        phrases = dialect_in(path.read_text(encoding="utf-8"))
        if phrases:
            found[str(path.relative_to(ROOT))] = phrases
    assert found == {}


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_a_help_text_has_no_phrase_of_the_list(command):
    result = CliRunner().invoke(command_line(), [*command.split(), "--help"])
    assert result.exit_code == 0
    assert dialect_in(result.output) == []
