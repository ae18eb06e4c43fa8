"""The README's numbers are those of the committed results."""

from pathlib import Path

import pytest

from paper._headlines import headlines

ROOT = Path(__file__).parents[1]
SENTENCES = headlines(ROOT / "docs" / "evidence")


def test_sentences_have_the_numbers_of_the_tables():
    assert set(SENTENCES) == {"finite-populations", "when-it-pays"}
    for sentence in SENTENCES.values():
        assert sentence.count("%") >= 3
        assert "nan" not in sentence


@pytest.mark.parametrize("name", SENTENCES)
def test_the_readme_has_the_sentence(name):
    """To mend it, put the sentence that the failure shows into the README."""
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert SENTENCES[name] in text
