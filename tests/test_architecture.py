"""The tree is the table of contents: imports go one way, nothing runs in circles, and what is written runs."""

import ast
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import muhat

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "muhat"

ORDER = [
    "_messages",
    "_arrays",
    "_files",
    "_validation",
    "kernels",
    "embedding",
    "data",
    "gram",
    "filters",
    "selection",
    "_parts",
    "mean",
    "comparison",
    "density",
    "theory",
    "datasets",
    "plots",
    "cli",
    "paper",
    "__main__",
]
"""The way a sample takes: a module imports only from those before it. The paper comes last: nothing else imports it."""

MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path != PACKAGE / "__init__.py"
}


def imported(path):
    """The modules of muhat that a file imports, wherever in it the import stands, without the leading 'muhat.'."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "muhat":
            inside = node.module.removeprefix("muhat").removeprefix(".")
            for alias in node.names:
                deeper = f"{inside}.{alias.name}".removeprefix(".")
                yield deeper if deeper in MODULES else inside
        elif isinstance(node, ast.Import):
            yield from (alias.name[6:] for alias in node.names if alias.name.startswith("muhat."))


def test_a_module_imports_only_from_those_before_it():
    assert {name.split(".")[0] for name in MODULES} == set(ORDER)
    backwards = [
        f"{name} imports {other}"
        for name, path in MODULES.items()
        for other in imported(path)
        if other and ORDER.index(other.split(".")[0]) > ORDER.index(name.split(".")[0])
    ]
    assert not backwards


def test_no_import_runs_in_a_circle():
    def as_file(name):
        return name if name in MODULES else f"{name}.__init__"

    graph = {name: {as_file(other) for other in imported(path) if other} - {name} for name, path in MODULES.items()}
    list(TopologicalSorter(graph).static_order())  # raises where there is a circle


def test_importing_muhat_draws_in_nothing_heavy_that_scikit_learn_does_not():
    heavy = "{m.split('.')[0] for m in sys.modules} & {'matplotlib', 'typer', 'pandas', 'pyarrow', 'polars', 'dask'}"
    code = f"import sys, numpy, scipy.linalg, sklearn.base; before = {heavy}; import muhat; print({heavy} - before)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def every_module():
    for module in pkgutil.walk_packages(muhat.__path__, "muhat."):
        if not module.name.endswith("__main__"):
            yield importlib.import_module(module.name)


def test_examples_in_docstrings_run():
    attempted = 0
    for module in every_module():
        results = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
        assert results.failed == 0, module.__name__
        attempted += results.attempted
    assert attempted > 20


@pytest.mark.parametrize("page", ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))])
def test_code_on_a_page_runs(page, tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
    assert blocks or page != "README.md"
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


def test_a_public_class_and_function_says_what_it_is():
    for module in every_module():
        for name in getattr(module, "__all__", []):
            part = getattr(module, name)
            if callable(part):
                assert part.__doc__, f"{module.__name__}.{name}"
