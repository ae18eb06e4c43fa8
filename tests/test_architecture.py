"""The tree is the table of contents: imports go one way, modules stay small, and what is written runs."""

import ast
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import muhat

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "muhat"

ORDER = [
    "messages",
    "arrays",
    "kernels",
    "embedding",
    "sources",
    "features",
    "spectrum",
    "gram",
    "problem",
    "filters",
    "selection",
    "accumulation",
    "targets",
    "validation",
    "batches",
    "estimator",
    "theory",
    "datasets",
    "density",
    "experiments",
    "files",
    "reproduction",
    "comparison",
    "plots",
    "evidence",
    "progress",
    "cli",
]
"""The way a sample takes: a module imports only from those before it."""

WITHIN = {
    "kernels": [
        *("bandwidth", "exponential", "tiles", "products", "base", "checks", "dot", "foreign", "radial", "mixtures"),
        "__init__",
    ],
    "sources": ["base", "stream", "draw", "dask", "scaling", "__init__"],
    "features": ["base", "landmarks", "nystrom", "fourier", "summary", "__init__"],
    "gram": ["base", "blocks", "dense", "__init__", "plan"],
    "problem": ["base", "features", "sample", "products", "__init__"],
    "filters": ["base", "componentwise", "constant", "landweber", "tikhonov", "truncation", "__init__"],
    "selection": [
        *("base", "contour", "krylov", "by_products", "leave_out", "moments", "gcv", "given", "kfold"),
        *("leave_one_out", "lepski", "__init__"),
    ],
    "theory": ["arguments", "admissibility", "components", "definition", "consistency", "__init__"],
    "datasets": ["base", "catalogue", "loading", "synthetic", "__init__"],
    "experiments": [
        *("base", "contenders", "statistics", "samples", "loss", "figure_1", "figure_2", "figure_3a", "figure_3b"),
        *("figure_3c", "appendix", "when_it_pays", "table_2", "__init__"),
    ],
    "files": ["errors", "pieces", "npy", "parquet", "text", "reading", "batches", "writing", "__init__"],
    "reproduction": [
        *("tables", "circumstances", "store", "results", "workers", "cluster", "progress", "run", "__init__"),
    ],
    "comparison": ["tuning", "held", "result", "run", "__init__"],
    "plots": [
        *("style", "saving", "comparison", "bands", "geometry", "figure_3", "conditions", "dots", "experiments"),
        "__init__",
    ],
    "evidence": ["printed", "texts", "base", "claims", "table_2", "page", "__init__"],
}
"""The same inside a folder."""

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__main__.py" and path.parent.name != "muhat")
TOP = sorted(path for path in PACKAGE.glob("*.py") if path.name not in ("__init__.py", "__main__.py"))


def imported(path):
    """The modules of muhat that a file imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "muhat":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "muhat")


@pytest.mark.parametrize("path", MODULES + TOP, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_those_before_it(path):
    place = path.relative_to(PACKAGE).with_suffix("").parts
    for name in imported(path):
        parts = name.split(".")[1:]
        if parts[0] not in ORDER:  # muhat.__version__
            continue
        assert ORDER.index(parts[0]) <= ORDER.index(place[0]), f"{path.name} imports {name}"
        if parts[0] == place[0] and len(place) > 1:
            inside = WITHIN[place[0]]
            source = parts[1] if parts[1] in inside else "__init__"
            assert inside.index(source) < inside.index(place[1]), f"{path.name} imports {name}"


def test_every_module_has_its_place_in_the_order():
    assert {path.stem for path in TOP} | {path.parent.name for path in MODULES} == set(ORDER)
    for folder, names in WITHIN.items():
        assert {path.stem for path in (PACKAGE / folder).glob("*.py")} == set(names)


@pytest.mark.parametrize("path", MODULES + TOP, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_fits_in_the_head(path):
    assert len(path.read_text().splitlines()) <= 350


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
