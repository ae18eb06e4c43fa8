"""Pages in a browser without a network: no complaint, no overflow, every control works."""

from importlib.resources import files

import numpy as np
import pytest

import browser
from muhat import ConditionalMean, DriftDetector, IndependenceTest, TwoSampleTest, compare
from muhat.data import DataSet
from test_report import ODD

CHROMIUM = browser.found()
WIDTHS = (360, 768, 1280)
RNG = np.random.default_rng(0)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=browser.MISSING)


def compared(columns=3, **options):
    X = RNG.normal(size=(40, columns))
    return compare(X, **options), {
        "data": DataSet("sample", X, tuple(f"column {i}" for i in range(columns)))
    }


def compare_page():
    result, about = compared()
    return result.to_html(**about, warnings=["One warning."])


def wide_page():
    result, about = compared(500, filters=["f-kmse"])
    return result.to_html(**about)


def one_column_page():
    result, about = compared(1, filters=["tsvd", "landweber"])
    return result.to_html(**about)


def two_samples_page(names=("height", "weight")):
    X, Y = RNG.normal(size=(30, len(names))), RNG.normal(1.0, size=(25, len(names)))
    result = TwoSampleTest("gaussian", bandwidths=2, n_permutations=99, random_state=0).test(X, Y)
    samples = [
        DataSet(name, rows, names) for name, rows in zip(("a", names[0]), (X, Y), strict=True)
    ]
    return result.to_html(data={each.name: each for each in samples}, warnings=names, code=names[0])


def odd_page():
    return two_samples_page(ODD)


def independence_page():
    x = RNG.normal(size=(40, 1))
    result = IndependenceTest("gaussian", bandwidths=2, n_permutations=49, random_state=0).test(
        x, x**2
    )
    return result.to_html(
        data=DataSet("patients", np.column_stack([x, x**2]), ("age", "dose")),
        settings={"x": "age", "y": "dose"},
    )


def boxes_page():
    city = np.arange(60) % 3
    coded = np.eye(3)[city]
    y = RNG.normal(size=60) + city
    result = IndependenceTest("gaussian", bandwidths=2, n_permutations=49, random_state=0).test(
        coded, y[:, None]
    )
    names = tuple(f"city = {name}" for name in ("Bern", ODD[0], ODD[1]))
    data = DataSet("flats", np.column_stack([coded, y]), (*names, "rent"))
    return result.to_html(data=data, settings={"x": ["city"], "y": ["rent"]})


def predict_page():
    X = RNG.normal(size=(40, 2))
    model = ConditionalMean(filter=["tikhonov", "landweber"], bandwidth="loo").fit(X, X[:, 0] ** 2)
    return model.to_html(data={"patients": X}, settings={"y": "outcome"})


def drift_page():
    detector = DriftDetector(random_state=0).fit(RNG.normal(size=(60, 2)))
    for shift in (0.0, 0.0, 3.0):
        detector.update(RNG.normal(shift, size=(40, 2)), f"{ODD[0]} {shift}")
    return detector.to_html()


PAGES = {
    "compare": compare_page,
    "test": two_samples_page,
    "independence": independence_page,
    "boxes": boxes_page,
    "predict": predict_page,
    "drift": drift_page,
    "odd names": odd_page,
    "500 columns": wide_page,
    "one column": one_column_page,
}


@pytest.fixture(scope="session")
def tab():
    opened = browser.Browser(CHROMIUM)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def opened(tab, tmp_path_factory):
    """Return a function that opens a page by its kind, made once."""
    folder, paths = tmp_path_factory.mktemp("pages"), {}

    def open_page(kind, width=1280):
        if kind not in paths:
            paths[kind] = folder / f"{kind}.html"
            paths[kind].write_text(PAGES[kind](), encoding="utf-8")
        tab.media()
        tab.open(paths[kind], width)
        return tab

    return open_page


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_opens_without_a_network_and_fits_every_width(opened, kind):
    for width in WIDTHS:
        tab = opened(kind, width)
        assert tab.complaints() == []
        assert tab.requests() == []
        assert tab.misfits() == [], width
    assert tab.js("window.alerted") is None
    assert tab.js("document.querySelector('h1').textContent.length > 10")


AXE = """axe.run({exclude: [["tbody tr:nth-child(n+3)"]]}, %s)
    .then((found) => found.violations)
    .then((wrong) => wrong.map((each) => [each.id, each.nodes.map((node) => node.html)]))"""
"""Rows of a table that are like the first two are left out, as each takes long."""


@pytest.mark.parametrize(
    "kind", ["compare", "odd names", "independence", "boxes", "predict", "drift"]
)
def test_an_automatic_check_of_accessibility_finds_nothing(opened, kind):
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    tab = opened(kind)
    tab.js(axe)
    assert tab.js(AXE % "{}") == []
    tab.media("dark")
    assert tab.js(AXE % "{runOnly: ['color-contrast']}") == []


def test_a_name_in_the_legend_hides_and_shows_its_series_in_all_figures(opened):
    tab = opened("compare")
    hidden = "document.querySelectorAll('.series.off').length"
    pressed = (
        "[...document.querySelectorAll('.switch[data-key=\"f-kmse\"]')].map((e) => "
        "e.getAttribute('aria-pressed'))"
    )
    assert tab.js(hidden) == 0
    tab.click('.switch[data-key="f-kmse"]')
    assert tab.js(hidden) == 2
    assert tab.js(pressed) == ["false", "false"]
    assert "hidden" in tab.js("document.getElementById('said').textContent")
    assert tab.js("getComputedStyle(document.querySelector('.series.off')).display") == "none"
    tab.js("document.querySelector('.switch[data-key=\"f-kmse\"]').focus()")
    tab.press(" ", 32)
    assert tab.js(hidden) == 0
    assert tab.js(pressed) == ["true", "true"]
    assert tab.complaints() == []


@pytest.mark.parametrize(
    ("kind", "figure", "read"),
    [
        ("compare", 0, "% at"),
        ("test", 1, "permutation"),
        ("independence", 0, "age "),
        ("boxes", 0, "median "),
        ("predict", 0, "predicted"),
        ("predict", 2, " to "),
        ("drift", 0, "p ="),
    ],
)
def test_values_are_read_off_with_the_pointer_and_with_the_keyboard(opened, kind, figure, read):
    tab = opened(kind)
    here = f"document.querySelectorAll('figure.plot')[{figure}]"
    tab.js(
        f"{here}.querySelector('.area').scrollIntoView({{block: 'center', behavior: 'instant'}})"
    )
    box = tab.js(f"{here}.querySelector('.area').getBoundingClientRect().toJSON()")
    texts = []
    for share in (0.02, 0.9):
        tab.point(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        assert tab.js(f"{here}.querySelector('.tip').hidden") is False
        texts.append(tab.js(f"{here}.querySelector('.tip').innerText"))
    assert read in texts[0]
    assert texts[0] != texts[1]
    tab.point(1, 1)
    assert tab.js(f"{here}.querySelector('.tip').hidden") is True

    tab.js(f"{here}.querySelector('.reader').focus()")
    tab.press("Home", 36)
    first = tab.js(f"{here}.querySelector('.reader').getAttribute('aria-valuetext')")
    tab.press("ArrowRight", 39)
    second = tab.js(f"{here}.querySelector('.reader').getAttribute('aria-valuetext')")
    assert read in first
    assert first != second
    assert tab.js(f"{here}.querySelector('.tip').hidden") is False
    tab.press("Escape", 27)
    assert tab.js(f"{here}.querySelector('.tip').hidden") is True


def test_a_hidden_series_is_not_read(opened):
    tab = opened("compare")
    value = "document.querySelector('.reader').getAttribute('aria-valuetext')"
    assert "f-kmse" in tab.js(value)
    tab.click('.switch[data-key="f-kmse"]')
    assert "f-kmse" not in tab.js(value)
    tab.js(
        "document.querySelectorAll('.legend')[0].querySelectorAll('[aria-pressed=true]')"
        ".forEach((e) => e.click())"
    )
    assert tab.js(value) == "nothing is shown"
    assert tab.js("document.querySelector('.reader').disabled") is True
    assert tab.complaints() == []


def test_a_table_is_sorted_by_the_title_that_is_pressed(opened):
    tab = opened("compare")
    column = (
        "[...document.querySelectorAll('table')[0].tBodies[0].rows].map((row) => "
        "Number(row.cells[2].dataset.value))"
    )
    before = tab.js(column)
    tab.click("table thead th:nth-child(3) button")
    assert tab.js(column) == sorted(before)
    assert (
        tab.js("document.querySelector('thead th:nth-child(3)').getAttribute('aria-sort')")
        == "ascending"
    )
    tab.click("table thead th:nth-child(3) button")
    assert tab.js(column) == sorted(before, reverse=True)
    tab.click("table thead th:nth-child(1) button")
    names = tab.js(
        "[...document.querySelectorAll('table')[0].tBodies[0].rows].map((row) => "
        "row.cells[0].textContent)"
    )
    assert names == sorted(names)


def test_light_and_dark_follow_the_reader_and_the_button(opened):
    tab = opened("test")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = tab.js(colour)
    assert tab.js("document.getElementById('theme').textContent") == "Dark page"
    tab.click("#theme")
    dark = tab.js(colour)
    assert dark != light
    tab.media("dark")
    tab.click("#theme")
    assert tab.js(colour) == light
    tab.media("dark", "print")
    assert tab.js(colour) == "rgb(255, 255, 255)"


def test_the_lines_of_python_are_copied(opened):
    tab = opened("compare")
    origin = tab.js("location.origin")
    tab.call(
        "Browser.grantPermissions",
        permissions=["clipboardReadWrite", "clipboardSanitizedWrite"],
        origin=origin,
    )
    tab.click("#copy")
    assert (
        tab.js(
            "new Promise((done) => setTimeout(() => "
            "done(document.getElementById('copy').textContent), 50))"
        )
        == "Copied"
    )
    assert tab.js("navigator.clipboard.readText()") == tab.js(
        "document.querySelector('#code code').textContent"
    )


def test_numbers_behind_a_figure_open(opened):
    tab = opened("independence")
    tab.click("details.numbers summary")
    assert tab.js("document.querySelector('details.numbers').open") is True
    assert tab.js("document.querySelectorAll('details.numbers tbody tr').length") > 3


def test_a_script_in_a_name_would_not_run_even_if_it_were_not_escaped(tab, tmp_path):
    page = compare_page().replace("<h1>", "<script>window.alerted = 1</script><h1>", 1)
    (tmp_path / "hostile.html").write_text(page, encoding="utf-8")
    tab.open(tmp_path / "hostile.html")
    assert tab.js("window.alerted") is None
    assert tab.js("document.getElementById('theme').hidden") is False  # our own script does
    assert any("Content Security Policy" in str(each) for each in tab.complaints())
