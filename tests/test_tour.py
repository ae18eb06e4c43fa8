"""``muhat tour``: every stop of it runs, and leaves what it says."""

from typer.testing import CliRunner

from muhat.__main__ import command_line
from muhat.cli._tour import STEPS


def test_the_tour_shows_everything_and_leaves_pictures_a_report_and_a_model(tmp_path):
    result = CliRunner().invoke(command_line(), ["tour", "--out", str(tmp_path / "tour")])
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    left = {path.name: path.stat().st_size for path in (tmp_path / "tour").iterdir()}
    pictures = {f"{step.name}.png" for step in STEPS if step.picture is not None}
    assert left.keys() == pictures | {"tour.png", "report.html", "model.muhat"}
    assert min(left.values()) > 10_000
    for step in STEPS:
        assert step.question in result.stdout
        assert all(line in result.stdout for line in step.code.strip().splitlines())
    assert "The two samples of 71 and 48 rows differ" in result.stdout
    assert "Of 442 predictions of the model that was loaded, 442 are the same" in result.stdout


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "tour").touch()
    result = CliRunner().invoke(command_line(), ["tour", "--out", str(tmp_path / "tour")])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "a folder is needed, got a file" in result.stderr
