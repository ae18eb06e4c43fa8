"""The site builds without a warning, its links lead somewhere, examples print findings."""

import ast
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from html import unescape
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote

import matplotlib as mpl
import pytest
from matplotlib import pyplot

import browser
import muhat

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
QUICK = ["covariate_shift", "mean_as_function", "report_and_keep", "two_samples"]
"""Examples that are run here, as they take less than a second each; ``make docs`` runs all."""


LINK = re.compile(r'\b(href|src)="([^"]+)"')
ADDRESS = re.compile(r"\w+:|//")


def test_the_site_builds_without_a_warning_every_link_leads_somewhere_and_the_search_finds(
    tmp_path,
):
    """The examples are not run. One test, as the site is built for all of it."""
    made = shutil.ignore_patterns("_build", "gallery", "reference", "__pycache__")
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=made)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copy(ROOT / "CITATION.cff", tmp_path)
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-b",
        "html",
        "-D",
        "plot_gallery=0",
    ]
    ran = subprocess.run([*command, "docs", "site"], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    site = tmp_path / "site"
    pages = {
        path: path.read_text(encoding="utf-8")
        for path in site.rglob("*.html")
        if "_static" not in path.parts
    }
    generated = {path.stem for path in pages if path.parent.name == "generated"}
    assert {
        "muhat.KernelMean",
        "muhat.compare",
        "muhat.load",
        "muhat.theory.Theorem2",
    } <= generated
    assert not list(broken_links(pages))
    assert_the_list_for_language_models_is_complete(site)
    assert all("<math" in pages[site / f"{name}.html"] for name in ("selection", "maths"))
    assert "Examples using this" in pages[site / "reference/generated/muhat.TwoSampleTest.html"]
    chromium = browser.found()
    if chromium is None:
        pytest.skip(browser.MISSING)
    tab = browser.Browser(chromium)
    try:
        for name in ("index", "guide", "gallery/index", "coming-from"):
            assert_accessible(site / f"{name}.html", tab)
        # Last, as the search asks for summaries, which a browser does not read from the disk.
        assert_the_search_finds("landweber", site, tab)
    finally:
        tab.close()


def broken_links(pages):
    """Yield the links of pages that lead nowhere, and what is loaded from the network."""
    places = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages.items()}
    for page, text in pages.items():
        for kind, link in set(LINK.findall(text)):
            path, _, place = unquote(unescape(link)).partition("#")
            if ADDRESS.match(path):
                if kind == "src":
                    yield page.name, link
                continue
            target = Path(os.path.normpath(page.parent / path.partition("?")[0])) if path else page
            if not target.exists() or (place and place not in places.get(target, {place})):
                yield page.name, link


def assert_the_list_for_language_models_is_complete(site):
    """llms.txt names every page of the guide, and where its text is."""
    text = (site / "llms.txt").read_text(encoding="utf-8")
    links = re.findall(r"\]\((_sources/[^)]+)\)", text)
    assert len(links) > 20
    assert all((site / link).exists() for link in links)
    assert {"_sources/tests.md.txt", "_sources/cite.md.txt"} <= set(links)


def assert_the_search_finds(word, site, tab):
    """Search in a browser that has no network, from the disk."""
    tab.open(site / "search.html")
    tab.js(f"Search.performSearch({word!r})")
    found = (
        "new Promise(done => { const look = () => { "
        "const all = document.querySelectorAll('ul.search li a'); "
        "all.length ? done(Array.from(all, each => each.textContent)) : setTimeout(look, 50); "
        "}; look(); })"
    )
    assert "Landweber" in tab.js(found)


AXE = """axe.run(document, {resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa"]})
    .then((found) => found.violations.map((each) => [each.id, each.nodes[0].html]))"""


def assert_accessible(page, tab):
    """At three widths nothing is wider than the window, and axe finds no violation."""
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    for width in (1280, 768, 390):
        tab.open(page, width)
        tab.js(axe)
        tab.js("new Promise((done) => setTimeout(done, 400))")  # colours fade in
        assert tab.js(AXE) == [], (page.name, width)
        assert tab.js("document.documentElement.scrollWidth") <= width, page.name
        assert tab.complaints() == []


def test_the_badges_are_current(monkeypatch):
    """To mend it, run ``python docs/badges.py``."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    made = import_module("badges")
    for name, text in made.badges().items():
        path = made.FOLDER / f"badge-{name}.svg"
        assert path.read_text(encoding="utf-8") == made.drawn(name, text)


def test_versions_of_the_site_are_beside_each_other_and_the_newest_release_is_first(
    tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    versions = import_module("versions")
    site, pages = tmp_path / "site", tmp_path / "pages"
    site.mkdir()
    pages.mkdir()
    for reference in ("main", "v1.9.0", "v1.10.0", "v1.9.0"):
        (site / "index.html").write_text(reference)
        versions.publish(site, pages, versions.version_of(reference), "https://an.address")
    listed = json.loads((pages / "switcher.json").read_text(encoding="utf-8"))
    assert [each["version"] for each in listed] == ["1.10.0", "1.9.0", "dev"]
    assert [each["version"] for each in listed if each.get("preferred")] == ["1.10.0"]
    assert listed[0]["url"] == "https://an.address/1.10.0/"
    assert "url=1.10.0/" in (pages / "index.html").read_text(encoding="utf-8")
    assert (pages / "1.9.0" / "index.html").read_text() == "v1.9.0"


def test_every_public_name_is_in_one_section_of_the_reference(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    sections = import_module("api").reference_sections()
    shown = [name for names in sections.values() for name in names]
    assert len(shown) == len(set(shown))
    assert {f"muhat.{name}" for name in muhat.__all__} - {"muhat.__version__"} <= set(shown)
    assert not [name for name in shown if name.startswith("muhat.cli")]


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
