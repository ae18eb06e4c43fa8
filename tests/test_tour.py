"""``muhat tour``: every step of it runs, and writes what it says."""

from pathlib import Path

import numpy as np
from PIL import Image
from typer.testing import CliRunner

from muhat.__main__ import command_line
from muhat.cli._tour import STEPS, code_of, question_of

COMMITTED = Path(__file__).parents[1] / "docs" / "tour"
LARGEST_SHADE_DIFFERENCE = 64
"""Of 255, in a tile of 16 × 16 pixels: edges that are rounded differently stay below it, a line or
a word that is not there does not."""


def assert_same_picture(drawn, committed):
    """Two PNG files have the same size, legends and, tile by tile, about the same shades."""
    one, other = Image.open(drawn), Image.open(committed)
    assert (one.size, one.text) == (other.size, other.text)
    tiles = (one.width // 16, one.height // 16)
    shades = [
        np.asarray(picture.convert("L").resize(tiles, Image.Resampling.BOX), dtype=float)
        for picture in (one, other)
    ]
    assert np.abs(shades[0] - shades[1]).max() <= LARGEST_SHADE_DIFFERENCE


def test_the_tour_shows_everything_and_leaves_pictures_a_report_and_a_model(tmp_path):
    result = CliRunner().invoke(command_line(), ["tour", "--out", str(tmp_path / "tour")])
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    left = {path.name: path.stat().st_size for path in (tmp_path / "tour").iterdir()}
    pictures = {f"{name}.png" for name in STEPS}
    assert left.keys() == pictures | {"tour.png", "report.html", "model.muhat"}
    assert min(left.values()) > 10_000
    for step in STEPS.values():
        assert question_of(step) in result.stdout
        assert all(line in result.stdout for line in code_of(step).splitlines())
    assert "grower 1 (71 rows) and grower 2 (48 rows) differ (p ≤ 0.001)." in result.stdout
    assert "total_phenols and color_intensity are dependent" in result.stdout
    assert "Drift detected in new 3" in result.stdout
    assert "All 15 groups" in result.stdout
    for name in left:
        assert str(tmp_path / "tour" / name) in result.stdout
    assert "replaced" not in result.stdout
    for name in [*pictures, "tour.png"]:
        assert_same_picture(tmp_path / "tour" / name, COMMITTED / name)


def test_the_lines_that_are_printed_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for step in STEPS.values():
        names = {}
        exec(code_of(step), names)
        assert hasattr(names["display"], "plot")


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "tour").touch()
    result = CliRunner().invoke(command_line(), ["tour", "--out", str(tmp_path / "tour")])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "a folder is needed, got the file " in result.stderr
