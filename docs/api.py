"""Write docs/api.md and the pages of the site's reference from docstrings: ``make docs``."""

import inspect
import re
import sys
from collections.abc import Iterator
from enum import EnumMeta
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import muhat

PAGE = Path(__file__).with_name("api.md")
HEAD = """# The public names

`make docs` writes this page from the docstrings. The names of the first section come from `muhat`
itself, in the order in which data flows; the others from its subpackages. `help(name)` has
parameters and examples. Every name that is not here is internal.
"""

REFERENCE_HEAD = """Reference
=========

What you call, by task. Everything in the first list of a section is imported from ``muhat``
itself. Names for contributors, such as the parts of a Gram matrix, are on
:doc:`one page with all public names </api>`.
"""

GUIDE = {
    "Test and compare": ("testing", "comparison"),
    "Predict": ("conditional",),
    "Groups": ("groups",),
    "Components and novelty": ("pca",),
    "Kernel means": ("mean", "stacking", "embedding", "density"),
    "Kernels": ("kernels",),
    "Filters and their parameter": ("filters", "selection"),
    "Many rows": ("gram",),
    "Plots": ("plots",),
    "Files, data sets, saved models": ("data", "datasets", "persistence"),
}
"""Sections of the reference, and the modules whose names in ``muhat`` they show."""

ALSO = {
    "Test and compare": """
        testing.TwoSampleResult testing.GroupResult testing.IndependenceResult testing.DriftResult
        comparison.fit_best""",
    "Predict": "conditional.evaluate conditional.PredictionResult conditional.LeftOutFit",
    "Components and novelty": "pca.describe_components pca.ComponentsResult pca.ComponentPath",
    "Kernel means": "stacking.MixedEmbedding stacking.default_candidates",
    "Kernels": "kernels.Sum kernels.Product kernels.Scaled kernels.SklearnKernel",
    "Many rows": "gram.PivotedCholesky gram.pivoted_cholesky notebook.with_progress",
    "Plots": "plots.figure_of_test plots.figure_of_drift plots.figure_of_prediction plots.save",
    "Files, data sets, saved models": "datasets.standardized data.DataSet",
    "Reports": "report.to_html report.Report report.Section report.Table report.render",
    "Parts of your own": """
        testing.Statistic testing.Witness selection.Rule stacking.Candidate stacking.GaussianFit
        stacking.WardMixtures stacking.NuSteps stacking.PlainMean stacking.IndependentBlocks
        stacking.ClusterJitter stacking.GaussianCopula figures.Plot figures.Bars figures.Axis
        figures.Series plots.draw plots.Display errors.MuhatError""",
    "The paper's theorems": """
        theory.theorem_1 theory.theorem_2 theory.theorem_3 theory.check_definition_1 theory.rates
        theory.admissible_fraction theory.characteristic_bound theory.shrink_components
        theory.whitening theory.ExactLosses theory.SmoothOperator theory.Theorem1 theory.Theorem2
        theory.Theorem3 theory.Definition1 theory.Rates theory.Constants
        theory.CharacteristicBound""",
}
"""Names of submodules that a section shows besides; all others are for contributors."""


def page() -> str:
    """Return the page."""
    listed: set[int] = set()
    return "\n".join([HEAD, *(part for module in modules() for part in _section(module, listed))])


def modules() -> Iterator[ModuleType]:
    """Yield muhat, its public modules, and the packages inside them."""
    yield muhat
    for name in sorted(
        name for name in set(dir(muhat)) - set(muhat.__all__) if not name.startswith("_")
    ):
        module = import_module(f"muhat.{name}")
        yield from (module, *_subpackages(module))


def _subpackages(module: ModuleType) -> Iterator[ModuleType]:
    """Yield the packages inside a package; single modules inside one are its own affair."""
    for inside in iter_modules(getattr(module, "__path__", ())):
        if inside.ispkg:
            yield import_module(f"{module.__name__}.{inside.name}")


def public_names(module: ModuleType) -> list[str]:
    """Return what a module offers: its ``__all__``, or else the public names that it defines."""
    own = [
        name
        for name, part in vars(module).items()
        if getattr(part, "__module__", "") == module.__name__
    ]
    return list(getattr(module, "__all__", [name for name in own if not name.startswith("_")]))


def _section(module: ModuleType, listed: set[int]) -> Iterator[str]:
    """Yield a module's names that are not listed yet, one paragraph each."""
    parts = [
        (name, getattr(module, name)) for name in public_names(module) if not name.startswith("_")
    ]
    fresh = [
        (name, part)
        for name, part in parts
        if id(part) not in listed and not inspect.ismodule(part)
    ]
    if fresh:
        yield f"## {module.__name__}\n{_first_line(module)}\n"
    for name, part in fresh:
        listed.add(id(part))
        if callable(part):
            yield f"### `{name}{_signature(part)}`\n{_first_line(part)}\n"
            methods = list(_methods(part)) if inspect.isclass(part) else []
            if methods:
                yield "\n".join(methods) + "\n"
        else:
            yield f"### `{name}`\nOf type `{type(part).__name__}`.\n"


def _methods(part: type) -> Iterator[str]:
    """Yield the public methods and properties of a class, its bases in muhat included."""
    for name, member in inspect.getmembers_static(part):
        plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if name.startswith("_") or not _is_ours(part, name):
            continue
        if inspect.isfunction(plain):
            yield f"- `{name}{_signature(getattr(part, name))}`: {_inherited_line(part, name)}"
        elif isinstance(plain, property) or hasattr(plain, "attrname"):
            yield f"- `{name}`: {_inherited_line(part, name)}"


def _inherited_line(part: type, name: str) -> str:
    """Return the first line of a method's docstring, or of the one that it overrides."""
    members = [vars(base)[name] for base in part.__mro__ if name in vars(base)]
    return next(filter(None, map(_first_line, members)), "")


def _is_ours(part: type, name: str) -> bool:
    """Whether the class that defines a member is one of muhat's."""
    owner = next(base for base in part.__mro__ if name in vars(base))
    return owner.__module__.split(".")[0] == "muhat"


def _signature(part: Any) -> str:
    """Return the parameters with defaults, without types, which docstrings describe."""
    if isinstance(
        part, EnumMeta
    ):  # whose parameters are Python's own, and differ between its versions
        return ""
    try:
        signature = inspect.signature(part)
    except (TypeError, ValueError):
        return ""
    parameters = [
        p.replace(
            annotation=p.empty,
            default=_Named(p.default) if inspect.isroutine(p.default) else p.default,
        )
        for p in signature.parameters.values()
        if p.name != "self"
    ]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


class _Named:
    """A function as a default, which is shown by its name."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __repr__(self) -> str:
        return self.function.__name__


def _first_line(part: Any) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(part) or "").strip().split("\n")[0]


def reference_sections() -> dict[str, list[str]]:
    """Return the sections of the reference with full names, each name of ``muhat`` in one."""
    section_of = {}
    for title, names in GUIDE.items():
        for module in names:
            section_of[module] = title
    sections: dict[str, list[str]] = {title: [] for title in [*GUIDE, *ALSO]}
    for name in muhat.__all__:
        if name != "__version__":
            sections[section_of[muhat._MODULE_OF[name]]].append(f"muhat.{name}")
    for title, names in ALSO.items():
        sections[title] += [f"muhat.{name}" for name in names.split()]
    return sections


def write_reference(folder: Path) -> None:
    """Write a page for each task, and one that lists all; Sphinx makes a page of each name."""
    folder.mkdir(exist_ok=True)
    head, overview = REFERENCE_HEAD + "\n.. toctree::\n   :hidden:\n\n", ""
    for title, names in reference_sections().items():
        shown = "".join(f"   {name}\n" for name in names if _is_named(_part(name)))
        place = re.sub(r"\W+", "-", title.lower())
        table = f".. autosummary::\n{{options}}   :nosignatures:\n\n{shown}"
        options = "   :toctree: generated\n"
        page = f"{title}\n{'=' * len(title)}\n\n{table.format(options=options)}"
        _write_if_changed(folder / f"{place}.rst", page)
        head += f"   {place}\n"
        overview += f"\n{title}\n{'-' * len(title)}\n\n{table.format(options='')}"
    _write_if_changed(folder / "index.rst", head + overview)


def _write_if_changed(place: Path, text: str) -> None:
    """Write a page, unless it is there: Sphinx does not build an unchanged one again."""
    if not place.exists() or place.read_text(encoding="utf-8") != text:
        place.write_text(text, encoding="utf-8")


def _part(full_name: str) -> Any:
    """Return what a full name stands for."""
    module, _, name = full_name.rpartition(".")
    return getattr(import_module(module), name)


def _is_named(part: Any) -> bool:
    """Whether it is a class or function, which has a page; a type of functions has none."""
    return inspect.isclass(part) or inspect.isfunction(part)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
