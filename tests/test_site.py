"""The site builds without a warning, every link in it leads somewhere, and the examples say what they find."""

import ast
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import pyplot

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
QUICK = ["covariate_shift", "mean_as_function", "report_and_keep", "two_samples"]
"""Examples that are run here, as they take less than a second each; ``make docs`` runs all."""


def test_every_page_and_link_is_right(tmp_path):
    """The examples are not run; pages are read and every reference resolved, with warnings as errors."""
    made = shutil.ignore_patterns("_build", "gallery", "reference", "__pycache__")
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=made)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copy(ROOT / "CITATION.cff", tmp_path)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "dummy", "-D", "plot_gallery=0"]
    ran = subprocess.run([*command, "docs", "out"], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    pages = {path.stem for path in (tmp_path / "docs" / "reference" / "generated").glob("*.rst")}
    assert {"muhat.KernelMean", "muhat.compare", "muhat.load", "muhat.paper.theory.Theorem2"} <= pages


def test_there_are_enough_examples_and_those_that_are_run_here_are_among_them():
    assert len(EXAMPLES) >= 15
    assert {f"plot_{name}" for name in QUICK} <= {path.stem for path in EXAMPLES}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_title_a_picture_and_ends_in_a_finding(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    title, underline, *_ = ast.get_docstring(tree).splitlines()
    assert underline == "=" * len(title)
    *_, last = tree.body
    assert isinstance(last, ast.Expr)
    assert last.value.func.id == "print"
    called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert called & {"plot", "subplots"}


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_example_runs(name, capsys):
    with mpl.rc_context({"backend": "agg"}):
        runpy.run_path(str(ROOT / "examples" / f"plot_{name}.py"))
        drawn = [figure.axes for figure in map(pyplot.figure, pyplot.get_fignums())]
        pyplot.close("all")
    assert any(drawn)
    [finding] = capsys.readouterr().out.splitlines()
    assert finding.endswith(".")
