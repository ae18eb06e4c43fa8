"""Pages: what they say, that they are one file, and that no name of a user's becomes HTML."""

import json
import re
import runpy
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from muhat import (
    ConditionalMean,
    DriftDetector,
    Fixed,
    Gaussian,
    IndependenceTest,
    Nystrom,
    TwoSampleTest,
    compare,
    open_batches,
)
from muhat.__main__ import command_line
from muhat.conditional._evaluation import r2_text
from muhat.data import DataSet
from muhat.report import (
    Axis,
    Bar,
    Bars,
    Cell,
    Context,
    Plot,
    Report,
    Section,
    Series,
    Table,
    render,
    report_of,
)

RNG = np.random.default_rng(0)
MOST_BYTES = 3_000_000

ODD = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>'",
    "😀 & <b>",
    "שלום \u202e עולם",
    "n" * 300,
    "null \x00 and \udce9 half",
    "${style} $$",
    "</script><script>alert(2)</script>",
)
"""Names that users, or those who wish them ill, give to columns."""


class Parsed(HTMLParser):
    """A page as a browser reads it: elements, attributes, and whether each element is closed."""

    VOID = ("meta", "input", "img", "link", "br")

    def __init__(self, page):
        super().__init__()
        self.elements, self.attributes, self.open, self.text = [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in self.VOID and not self.get_starttag_text().endswith("/>"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.text.append(data)

    def ids(self):
        return [value for _, name, value in self.attributes if name == "id"]

    def says(self):
        return " ".join(" ".join(self.text).split())


def check_page(page):
    """What must hold of every page; return it parsed."""
    assert len(page.encode()) < MOST_BYTES
    parsed = Parsed(page)
    assert len(set(parsed.ids())) == len(parsed.ids())
    assert parsed.elements.count("h1") == 1
    assert (
        set(parsed.elements) & {"img", "link", "iframe", "object", "audio", "video", "form"}
        == set()
    )
    for tag, name, value in parsed.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in ("src", "srcset", "action"), (tag, name, value)
        assert name != "href" or value.startswith("#"), (tag, value)
        if name.startswith("aria-labelledby"):
            assert set(value.split()) <= set(parsed.ids()), value
    assert not re.search(r"https?://|@import|url\((?!#)", page)
    return parsed


@pytest.fixture(scope="module")
def comparison():
    return compare(RNG.normal(size=(40, 3)))


def two_samples(names):
    X, Y = RNG.normal(size=(30, len(names))), RNG.normal(0.8, size=(25, len(names)))
    result = TwoSampleTest("gaussian", bandwidths=2, n_permutations=49, random_state=0).test(X, Y)
    return result, {"a": DataSet("a", X, names), "b": DataSet("b", Y, names)}


def test_a_page_says_what_was_asked_what_was_found_and_how_to_get_it_again(comparison):
    said = check_page(
        comparison.to_html(settings={"random_state": 7}, warnings=["Mind the gap."])
    ).says()
    for sentence in (
        comparison.verdict(),
        comparison.stacked_verdict(),
        "random_state 7",
        "Mind the gap.",
        "40 rows",
    ):
        assert sentence in said
    for row in comparison.rows:
        assert row.name in said
        assert row.gain_text.replace("-", "−") in said


def test_the_lines_of_python_on_a_page_give_the_same(comparison, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = report_of(comparison, Context()).code
    names = {"X": np.random.default_rng(0).normal(size=(40, 3))}
    exec(code, names)
    assert names["comparison"].best.score == comparison.best.score
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_a_test_says_where_two_samples_differ():
    result, data = two_samples(("height", "weight"))
    said = check_page(result.to_html(data=data)).says()
    verdict = replace(result, names=("a", "b")).verdict()  # as the data are called
    for words in (
        verdict,
        "Do a and b come from one distribution?",
        "height",
        "30 rows",
        "25 rows",
    ):
        assert words in said
    assert "change from a to b (SD: standard deviations)" in said
    first = result.rows_x[:5] + 1
    assert f"Rows most typical of a rather than b: {', '.join(map(str, first))}." in said
    assert "≤ 0.02 the smallest value that 49 permutations can give" in said
    none = check_page(result.to_html(level=1e-3)).says()
    assert "Too few permutations" in none
    assert "with only 49 permutations, p cannot be below 0.02. Use more permutations." in none
    assert "does not prove that there is none" in none


def test_the_colour_of_a_badge_says_what_it_means(comparison):
    def tone(result, level=0.05):
        return report_of(result, Context(level=level)).tone

    result, _ = two_samples(("height", "weight"))
    assert (tone(result), tone(result, 1e-3)) == ("found", "neutral")
    detector = DriftDetector(random_state=0).fit(RNG.normal(size=(60, 2)))
    assert tone(detector) == "neutral"
    detector.update(RNG.normal(3, size=(40, 2)))
    assert (tone(detector), report_of(detector, Context()).badge) == ("bad", "Drift detected")
    assert tone(comparison) == ("good" if comparison.helps else "neutral")
    clear = compare(
        np.random.default_rng(0).normal(size=(40, 20)), kernel=Gaussian(0.5), filters=["f-kmse"]
    )
    assert (clear.helps, tone(clear), report_of(clear, Context()).badge) == (
        True,
        "good",
        "Shrinkage helps here",
    )
    noise = compare(np.random.default_rng(0).normal(size=(200, 1)))
    assert (noise.helps, tone(noise), report_of(noise, Context()).badge) == (
        False,
        "neutral",
        "No clear difference",
    )
    with pytest.raises(ValueError, match="tone"):
        Report("k", "q", "v", "b", "green", [], [], Section("d"), [], "")


def test_independence_says_what_it_found_in_words_of_its_own():
    x = RNG.normal(size=(40, 1))
    result = IndependenceTest("gaussian", bandwidths=2, n_permutations=49, random_state=0).test(
        x, x**2
    )
    said = check_page(result.to_html(settings={"x": "age", "y": "dose"})).says()
    assert "Is age independent of dose?" in said
    assert result.verdict() in said
    assert "Dependence is not causation" in said
    assert f"{result.correlation:.2g} from 0 (independent) to 1; for this pair only" in said
    assert "Do not compare it between pairs of columns: the kernels are chosen for each" in said
    for words in ("samples", "less alike", "difference"):
        assert words not in said.replace(result.verdict(), "")


def test_independence_shows_the_columns_that_depend_most():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(40, 2)), rng.integers(0, 2, 40)])
    rows = np.column_stack([rows, 1 - rows[:, 2], rows[:, 1] + 3 * rows[:, 2]])
    names = ("cement", "water", "site = north", "site = south", "strength")
    data = DataSet("concrete", rows, names)
    result = IndependenceTest("gaussian", bandwidths=2, n_permutations=49, random_state=0).test(
        rows[:, :2], rows[:, 4:]
    )

    def page(x, y, rows=data):
        return report_of(result, Context(data=rows, settings={"x": x, "y": y}))

    report = page("cement, water", "strength")
    [plot] = report.sections[0].blocks
    assert (report.question, plot.title) == (
        "Are cement and water independent of strength?",
        "strength and water",
    )
    assert plot.series[0].x.tolist() == rows[:, 1].tolist()
    [boxes] = page(["site"], "strength").sections[0].blocks
    n_north = int(rows[:, 2].sum())
    assert [text for _, text in boxes.x.ticks] == [f"north ({n_north})", f"south ({40 - n_north})"]
    assert f"median {np.median(rows[rows[:, 2] == 1, 4]):.3g}" in boxes.summary
    [counts] = page("site", "site").sections[0].blocks
    assert [cell.text for cell in counts.rows[0]] == ["north", f"{rows[:, 2].sum():.0f}", "0"]
    assert page("x", "y", None).sections[0].blocks == []
    [plot] = page("x", "y", (rows[:, :2], rows[:, 4])).sections[0].blocks
    assert plot.title == "column 0 and column 1"
    for report in (page("site", "strength"), page("site", "site"), page("cement", "water")):
        check_page(render(report))


def test_a_conditional_mean_says_how_well_it_predicts():
    X = RNG.normal(size=(40, 2))
    model = ConditionalMean(filter="tikhonov", bandwidth="loo").fit(X, X[:, 0])
    page = model.to_html(data={"patients": X}, settings={"y": "outcome"})
    said = check_page(page).says()
    for words in (
        f"outcome can be predicted from column 0 and column 1: R² {r2_text(model.loo_score_)} on "
        "rows left out of the fit (40 rows; ",
        "outcome: the likely range",
        "Bandwidths",
        "patients: 40 rows",
        "For x far from all rows, predictions are extrapolations, which can be far off.",
    ):
        assert words in said
    assert "dots around the diagonal" not in page
    noise = ConditionalMean(filter="tikhonov").fit(X, RNG.normal(size=40))
    assert "x does not help" in noise.to_html() or "cannot be told" in noise.to_html()
    check_page(ConditionalMean(filter="tikhonov", kernel_y="gaussian").fit(X, X).to_html(data=X))
    check_page(
        ConditionalMean(filter="tikhonov", gram=Nystrom(10))
        .fit_batches([X, X], 0)
        .to_html(data=X[:, 1:])
    )
    with pytest.raises(
        TypeError, match="a pipeline that ends in a ConditionalMean is needed, got StandardScaler"
    ):
        report_of(make_pipeline(StandardScaler()), Context())
    check_page(ConditionalMean(selection=Fixed(0.1), filter="tikhonov").fit(X, X).to_html())


def test_a_detector_says_which_batches_have_drifted():
    detector = DriftDetector(random_state=0).fit(RNG.normal(size=(60, 2)))
    assert "No drift detected" in check_page(detector.to_html()).says()
    for shift in (0.0, 3.0):
        detector.update(RNG.normal(shift, size=(40, 2)), f"day <{shift:.0f}>")
    said = check_page(detector.to_html()).says()
    for words in (
        detector.verdict(),
        "day <3>",
        "1 in 2 batches",
        "The first alarm is in day <3>.",
    ):
        assert words in said


def test_no_name_of_a_users_is_taken_for_html():
    result, data = two_samples(ODD)
    data = {ODD[0]: data["a"], ODD[1]: data["b"]}
    data[ODD[0]] = DataSet(ODD[0], data[ODD[0]].data, ODD, left_out=ODD)
    page = result.to_html(data=data, code="# " + ODD[0], settings={ODD[2]: ODD[7]}, warnings=ODD)
    parsed = check_page(page)
    plain = check_page(two_samples(("a",) * len(ODD))[0].to_html())
    assert parsed.elements.count("script") == plain.elements.count("script")
    assert "b" not in parsed.elements
    assert "alert(1)" in parsed.says()  # as words
    assert "\x00" not in page
    assert "\u202e" not in page
    page.encode()  # without halves of characters


def test_a_bad_place_is_refused_before_the_work(comparison, tmp_path):
    with pytest.raises(ValueError, match="a folder is needed to write into"):
        comparison.to_html(tmp_path / "no" / "page.html")
    with pytest.raises(ValueError, match="did you mean 'points'"):
        Series("s", "point", np.zeros(1), np.zeros(1))
    with pytest.raises(TypeError, match="that has a report is needed, got int"):
        report_of(1, Context())


def test_large_and_wide_data_are_thinned_for_drawing(comparison, tmp_path):
    wide = RNG.normal(size=(40, 500)).astype(np.float32)
    assert check_page(comparison.to_html(data=wide)).elements.count("tr") > 500
    np.save(tmp_path / "long.npy", RNG.normal(size=(20_000, 2)))
    page = comparison.to_html(data=open_batches(tmp_path / "long.npy"))
    assert "first 8,192 rows of long" in check_page(page).says()
    many = np.linspace(0, 1, 10**6)
    plot = Plot(
        "P",
        "",
        "",
        Axis("x", 0, 1),
        Axis("y", 0, 1),
        [Series("s", "points", many, many)],
        by_point=True,
    )
    report = Report(
        "k", "q", "v", "b", "found", [], [Section("s", blocks=[plot])], Section("d"), [], ""
    )
    assert len(render(report)) < 200_000


def test_what_is_not_a_number_does_not_break_a_page():
    line = np.array([0.0, np.nan, 1.0, np.inf])
    plot = Plot(
        "P",
        "",
        "",
        Axis("x", 0, 1),
        Axis("y", 1e-3, 1, is_log=True),
        [Series("s", "line", line, line)],
    )
    table = Table(
        "t", ["a", "b"], [[Cell("x"), Cell("–", float("nan"))], [Cell("y"), Cell("1", 1.0)]]
    )
    bars = Bars("B", "", ("a", "b"), [Bar("x", 2.0, "much"), Bar("y", -1.0, "none")])
    constant = np.zeros((5, 2))
    data = Context(data=constant).samples("zeros")
    assert data[0].columns == ("column 0", "column 1")
    report = Report(
        "k",
        "q",
        "v",
        "b",
        "found",
        [],
        [Section("s", blocks=[plot, table, bars])],
        Section("d"),
        [],
        "",
    )
    page = render(report)
    check_page(page)
    assert not re.search(r"[\s\"M]nan|inf[\s\"]", page.split("</style>")[1].split("<script>")[0])


def test_encoded_columns_are_named_and_not_said_to_be_left_out(files, tmp_path):
    command = (
        "test a.csv b.csv --one-hot --drop id --kernel gaussian --permutations 49 --report "
        "page.html"
    )
    assert CliRunner().invoke(command_line(), command.split()).exit_code == 0
    said = check_page((tmp_path / "page.html").read_text(encoding="utf-8")).says()
    for words in ("kind = w", "Text columns were encoded", "Left out of a: id."):
        assert words in said


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, shift in (("a.csv", 0.0), ("b.csv", 1.0)):
        rows = shift + np.random.default_rng(1).normal(size=(40, 2))
        lines = ["height,<weight>,kind,id", *(f"{x},{y},w,{i}" for i, (x, y) in enumerate(rows))]
        (tmp_path / name).write_text("\n".join(lines))


COMMANDS = [
    ("compare a.csv --filter f-kmse --only-numeric", "comparison", "a"),
    ("test a.csv b.csv --only-numeric --kernel gaussian --permutations 49", "result", "a and b"),
    (
        "test a.csv --by half --only-numeric --kernel gaussian --permutations 49 --no-standardize",
        "result",
        "half = 0",
    ),
    ("drift a.csv b.csv --only-numeric", "detector", "Has the data drifted since a?"),
    (
        "predict a.csv --target height --drop kind --drop id",
        "model",
        "How well can height be predicted from <weight>",
    ),
    ("predict a.csv b.csv --target height --only-numeric --no-standardize", "model", "b"),
    (
        "independence a.csv --x height --y <weight> --kernel gaussian --permutations 49",
        "result",
        "height",
    ),
]


@pytest.mark.parametrize(("command", "name", "asked"), COMMANDS)
def test_commands_write_a_page_whose_lines_give_the_same(files, tmp_path, command, name, asked):
    if "--by" in command:
        text = (tmp_path / "a.csv").read_text().splitlines()
        (tmp_path / "a.csv").write_text(
            "\n".join([text[0] + ",half", *(f"{line},{i % 2}" for i, line in enumerate(text[1:]))])
        )
    asked_of = CliRunner().invoke(
        command_line(), [*command.split(), "--json", "--report", "page.html"]
    )
    assert asked_of.exit_code == 0, asked_of.output
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    parsed = check_page(page)
    assert asked in parsed.says()
    if "--only-numeric" in command:
        assert "Left out of" in parsed.says()
        assert "looks like an id" in parsed.says()
    code = re.search(r"<code>(.*?)</code>", page, flags=re.DOTALL)[1]
    (tmp_path / "same.py").write_text(
        "import warnings\nwarnings.simplefilter('ignore')\n" + unescape(code)
    )
    found, told = runpy.run_path(str(tmp_path / "same.py"))[name], json.loads(asked_of.stdout)
    if name == "detector":
        assert [each.p_value for each in found.history_] == [
            each["p_value"] for each in told["batches"]
        ]
        return
    if name == "model":
        fitted = found[-1] if hasattr(found, "steps") else found
        assert fitted.loo_score_ == pytest.approx(told["loo_r2"], rel=1e-9)
        return
    found = found.to_dict()
    key = "p_value" if "p_value" in told else "risk"
    assert found[key] == pytest.approx(told[key], rel=1e-9)
    assert (
        found["best"] == told["best"] or found["best"]["statistics"] == told["best"]["statistics"]
    )


def test_a_report_must_be_html(files):
    asked = CliRunner().invoke(command_line(), ["compare", "a.csv", "--report", "page.pdf"])
    assert asked.exit_code == 2
    assert "--report: a file name ending in .html or .htm is needed, got 'page.pdf'" in asked.output
