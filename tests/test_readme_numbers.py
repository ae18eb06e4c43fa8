"""The README's numbers are those of the committed results."""

import re
from pathlib import Path

import pytest

from benchmarks.summary import committed
from paper._headlines import headlines

ROOT = Path(__file__).parents[1]
SENTENCES = headlines(ROOT / "docs" / "evidence")


def test_sentences_have_the_numbers_of_the_tables():
    assert len(SENTENCES) == 6
    for name, sentence in SENTENCES.items():
        assert (ROOT / "docs" / "evidence" / f"{name}.csv").exists()
        assert sum(character.isdigit() for character in sentence) >= 4
        assert "nan" not in sentence


@pytest.mark.parametrize("name", SENTENCES)
def test_the_readme_has_the_sentence(name):
    """To mend it, put the sentence that the failure shows into the README."""
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert SENTENCES[name] in text


def test_the_readme_shows_the_verdict_that_its_first_test_prints(capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)[:2]
    exec(compile("\n".join(blocks), "README.md", "exec"), {})
    shown = [line[2:] for line in blocks[1].splitlines() if line.startswith("# ")]
    assert " ".join(shown) == capsys.readouterr().out.strip()


@pytest.mark.parametrize("page", ["README.md", "docs/packages.md"])
def test_a_page_has_the_table_of_speed_ups(page):
    """To mend it, put what ``python -m benchmarks.summary`` prints into the page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    note, table = committed()
    assert note in " ".join(text.split())
    assert table in text
