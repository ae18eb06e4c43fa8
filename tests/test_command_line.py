"""The command line: a table, a verdict, a figure; or one sentence on stderr and no files."""

import errno
import json
import os
import re
import select
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import muhat
from muhat.__main__ import COMMANDS, command_line, main
from muhat.cli import ProgressBatches
from muhat.cli import _compare as command
from muhat.cli._progress import RowsColumn
from muhat.comparison import compare, passes
from muhat.data import FileBatches, open_batches, read_table
from muhat.datasets import wine
from muhat.filters import FILTERS
from muhat.gram import Nystrom, RandomFeatures

QUICK = ["--filter", "f-kmse"]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("muhat.plots._style.DPI", 50)
    return tmp_path


@pytest.fixture
def table():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    np.savetxt("table.csv", rows, delimiter=",", header="a,b,c", comments="")
    return "table.csv"


def run(*arguments, **options):
    """Run the command in this process."""
    return CliRunner().invoke(command_line(), [str(argument) for argument in arguments], **options)


def shell(*arguments, **environment):
    """Run the command as a user does."""
    command = [sys.executable, "-m", "muhat", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


def assert_refused(result, *words):
    """Exit code 2, one line on stderr that says what is wrong, nothing on stdout."""
    code = result.returncode if hasattr(result, "returncode") else result.exit_code
    assert code == 2, result.stderr
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("muhat: ")
    assert "Traceback" not in line
    for word in words:
        assert word in line


def write(name, text):
    Path(name).write_text(text)
    return name


def test_the_demonstration_prints_a_table_and_a_verdict_and_draws_a_figure():
    result = shell("compare", COLUMNS="80")
    assert result.returncode == 0
    assert result.stderr == ""
    for name in FILTERS:
        assert re.search(rf"^ *{name} ", result.stdout, flags=re.MULTILINE)
    assert "wine: 178 rows, 13 columns" in result.stdout
    assert compare(wine().data, standardize=True).verdict() in result.stdout
    assert Path("muhat-compare.png").read_bytes().startswith(b"\x89PNG")
    assert os.listdir() == ["muhat-compare.png"]
    assert "\x1b" not in result.stdout
    body = result.stdout[
        : result.stdout.index(compare(wine().data, standardize=True).verdict())
    ].splitlines()
    assert max(map(len, body)) <= 80


def test_a_table_is_read_from_a_file(table):
    result = run("compare", table, *QUICK)
    assert result.exit_code == 0
    assert "table: 20 rows, 3 columns" in result.stdout
    row = compare(read_table(table).data, standardize=True)["f-kmse"]
    assert f"λ = {row.parameter:.3g}" in result.stdout
    assert row.gain_text in result.stdout
    assert result.stdout.endswith("Figure: muhat-compare.png\n")


def test_json_stands_alone_on_stdout_and_makes_no_figure(table):
    result = run("compare", table, "--json")
    assert result.exit_code == 0
    assert result.stderr == ""
    written = json.loads(result.stdout)
    assert written["data"] == "table"
    assert written["figure"] is None
    assert [row["name"] for row in written["estimators"]] == list(FILTERS)
    comparison = compare(read_table(table).data, standardize=True)
    assert written["estimators"][2]["score"] == pytest.approx(comparison["f-kmse"].score)
    assert os.listdir() == [table]


def test_json_makes_a_figure_where_one_is_asked_for(table):
    result = run("compare", table, *QUICK, "--json", "--out", "figure.svg")
    assert json.loads(result.stdout)["figure"] == "figure.svg"
    assert Path("figure.svg").exists()


@pytest.mark.parametrize(
    ("name", "start"), [("f.png", b"\x89PNG"), ("f.SVG", b"<?xml"), ("f.pdf", b"%PDF")]
)
def test_the_ending_says_what_kind_of_figure(table, name, start):
    assert run("compare", table, *QUICK, "--out", name).exit_code == 0
    assert Path(name).read_bytes().startswith(start)


def test_options_reach_the_comparison(table):
    options = [
        "--kernel",
        "laplacian",
        "--bandwidth",
        "3",
        "--selection",
        "gcv",
        "--no-standardize",
    ]
    written = json.loads(
        run("compare", table, *QUICK, "--filter", "tsvd", "--json", *options).stdout
    )
    assert written["kernel"] == "Laplacian(bandwidth=3.0)"
    assert written["selection"] == "gcv"
    assert [row["name"] for row in written["estimators"]] == ["kme", "f-kmse", "tsvd"]
    given = {"selection": "gcv", "standardize": False}
    expected = compare(read_table(table).data, muhat.kernels.Laplacian(3.0), ["f-kmse"], **given)
    assert written["estimators"][1]["score"] == pytest.approx(expected["f-kmse"].score)


def test_an_edge_and_a_missing_score_are_marked():
    np.save("large.npy", np.random.default_rng(0).normal(size=(301, 2)))
    result = run(
        "compare", "large.npy", "--filter", "tsvd", "--filter", "landweber", "--selection", "rate"
    )
    assert re.search(r"^ *tsvd .*–", result.stdout, flags=re.MULTILINE)
    assert "tsvd has no leave-one-out score" in result.stdout
    opposed = np.random.default_rng(0).normal(size=(20, 2))
    np.save(
        "opposed.npy", np.concatenate([opposed, -opposed])
    )  # whose mean is zero: the strongest shrinkage is best
    result = run("compare", "opposed.npy", "--filter", "landweber", "--kernel", "linear")
    assert re.search(r"^ *landweber .*edge", result.stdout, flags=re.MULTILINE)
    assert "edge: the parameter is the first or last that was tried" in result.stdout


def test_the_version_is_told():
    assert shell("--version").stdout == f"muhat {muhat.__version__}\n"


def test_without_a_command_there_is_help():
    result = run()
    assert result.exit_code == 0
    assert "compare" in result.stdout


def test_a_warning_is_one_line_on_stderr_beside_the_result():
    write("equal.csv", "a,b\n" + "1,2\n" * 10)
    result = run("compare", "equal.csv", *QUICK, "--json")
    assert result.exit_code == 0
    assert "the plain average is exact" in json.loads(result.stdout)["verdict"]
    [line] = result.stderr.splitlines()
    assert line.startswith("muhat: warning: bandwidth='median'")


def test_a_poor_terminal_gets_no_colour_and_no_letter_that_it_does_not_have(table):
    result = shell("compare", table, *QUICK, FORCE_COLOR="1", PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert set(re.findall(r"\x1b\[([0-9;]*)m", result.stdout)) == {
        "0",
        "1",
    }  # bold for the best, and its end
    assert "? = " in result.stdout


def test_a_missing_file_is_refused():
    assert_refused(run("compare", "nowhere.csv"), "nowhere.csv", "no such file")
    assert os.listdir() == []


def test_a_column_of_words_is_refused_by_name():
    write("words.csv", "size,colour\n1,red\n2,blue\n")
    assert_refused(run("compare", "words.csv"), "'colour'", "'red'", "line 2")
    assert os.listdir() == ["words.csv"]


def test_an_unknown_name_is_refused_with_the_closest():
    assert_refused(run("compare", "--filter", "landwebber"), "did you mean 'landweber'?")
    assert os.listdir() == []


def test_an_unwritable_place_is_refused_before_the_file_is_read():
    assert_refused(
        run("compare", "nowhere.csv", "--out", "no/folder/f.png"),
        "no/folder/f.png",
        "a folder is needed",
    )
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("empty.csv", "", ["an empty file"]),
        ("header.csv", "a,b\n", ["only a header"]),
        ("holes.csv", "a,b\n1,2\n3,\n", ["line 3", "'b'"]),
        ("ragged.csv", "1,2\n3\n", ["line 2"]),
        ("one.csv", "1,2\n", ["at least 2 rows"]),
        ("table.xlsx", "PK", [".parquet"]),
        ("broken.npy", "no array", ["a damaged one"]),
        ("broken.parquet", "no table", ["a damaged one"]),
    ],
)
def test_a_file_that_is_no_sample_is_refused(name, text, words):
    assert_refused(run("compare", write(name, text)), *words)
    assert os.listdir() == [name]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kernel", "gausian"], ["did you mean 'gaussian'?"]),
        (["--kernel", "precomputed"], ["a kernel that is computed from rows"]),
        (["--selection", "lo"], ["did you mean 'loo'?"]),
        (["--bandwidth", "-1"], ["must be positive"]),
        (["--bandwidth", "nan"], ["must be positive"]),
        (["--bandwidth", "wide"], ["--bandwidth"]),
        (["--kernel", "linear", "--bandwidth", "1"], ["--bandwidth", "'linear'"]),
        (["--bandwith", "1"], ["--bandwith"]),
        (["--out", "figure.txt"], ["--out", ".svg", "'figure.txt'"]),
        (["--out", "."], ["--out", "'.'"]),
        (["--out", os.devnull], ["--out"]),
        (["one.csv", "two.csv"], ["two.csv"]),
    ],
)
def test_an_option_that_cannot_be_is_refused(arguments, words):
    assert_refused(run("compare", *arguments), *words)
    assert os.listdir() == []


def test_an_unknown_command_is_refused():
    assert_refused(run("comapre"), "comapre")


def test_too_many_points_for_the_memory_are_refused(monkeypatch):
    def full(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr(command, "compare", full)
    assert_refused(run("compare"), "memory", "--gram nystrom")


def test_an_interruption_is_one_line_and_leaves_nothing(monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "comparison_figure", interrupted)
    result = run("compare", *QUICK)
    assert result.exit_code == 130
    assert result.stderr == "muhat: interrupted.\n"
    assert result.stdout == ""
    assert os.listdir() == []


@pytest.mark.parametrize(
    "problem", [AssertionError("odd"), ValueError("shapes (2,3) and (3,3)"), KeyError("x")]
)
def test_a_bug_is_called_a_bug_and_not_an_error_of_the_user(monkeypatch, problem):
    def bug(*arguments, **options):
        raise problem

    monkeypatch.setattr(command, "compare", bug)
    result = run("compare")
    assert result.exit_code == 1
    [line] = result.stderr.splitlines()
    assert line.startswith(f"muhat: this is a bug in muhat ({type(problem).__name__}: ")
    assert "--traceback" in line


def test_a_traceback_is_printed_where_it_is_asked_for():
    for arguments in (
        ["--traceback", "compare", "nowhere.csv"],
        ["compare", "nowhere.csv", "--traceback"],
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "Traceback (most recent call last)" in result.stderr
        assert result.stderr.splitlines()[-1].startswith("muhat: no such file: nowhere.csv")


def test_an_error_of_the_system_names_its_file_and_not_standard_output(monkeypatch, table):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device", "figure.png")

    monkeypatch.setattr(command, "save", full)
    assert_refused(run("compare", table, *QUICK), "figure.png: ", "No space left on device")


IMPORTED_SLOWLY = """
import os, time
os.kill(os.getpid(), 2)  # SIGINT, but signal may be this file
time.sleep(60)
"""


def test_nothing_is_imported_before_ctrl_c_is_caught():
    code = "import sys; before = {*sys.modules}; import muhat.__main__; "
    code += "print(*sorted({*sys.modules} - before))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["muhat", "muhat.__main__"]


@pytest.mark.skipif(os.name != "posix", reason="a shell as on POSIX")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_no_bug(closed):
    write("data.csv", "a,b\n1,2\n3,5\n")
    file = "-" if closed == "<&-" else "data.csv"
    command = f"{sys.executable} -m muhat compare {file} --out figure.png {closed}"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "bug" not in result.stderr
    assert "Traceback" not in result.stderr
    assert result.returncode == (2 if closed == "<&-" else 0)
    assert Path("figure.png").exists() == (closed != "<&-")


@pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
@pytest.mark.parametrize("module", ["signal", "typer", "rich", "scipy"])
def test_ctrl_c_during_the_first_imports_is_one_line(tmp_path, module):
    write(f"{module}.py", IMPORTED_SLOWLY)
    result = shell(
        "compare", PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    )
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "muhat: interrupted.\n")


@pytest.mark.parametrize("missing", ["typer", "rich", "pyarrow"])
def test_without_its_packages_the_command_names_the_extra(monkeypatch, capsys, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr(sys, "argv", ["muhat", "compare"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert f"got no {missing}; run pip install 'muhat[cli]'." in line


@pytest.mark.parametrize("arguments", [[], ["compare"]])
def test_help_fits_80_columns(arguments):
    result = run(*arguments, "--help")
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "…" not in result.stdout
    assert not set("│╭") & set(result.stdout)


def test_the_command_that_moved_says_where_it_is():
    result = run("reproduce", "loss", "--quick")
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "muhat: The paper's experiments are now run from a clone: python -m paper."
    ]


def test_the_help_of_all_imports_no_command():
    code = "import sys; from muhat.__main__ import main; sys.argv[1:] = ['--help']"
    code += "\ntry: main()\nfinally: print({})"
    loaded = "sorted({'matplotlib', 'pyarrow', 'muhat.comparison'} & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code.format(loaded)], capture_output=True, text=True, check=True
    )
    assert result.stdout.endswith("[]\n")
    for name, (_, summary) in COMMANDS.items():
        assert re.search(rf"{name} +{re.escape(summary)}", result.stdout)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--no-standardize", "--filter", "tsvd"],
        ["--kernel", "laplacian", "--bandwidth", "3", "--selection", "gcv", "--drop", "b"],
        ["--gram", "nystrom", "--features", "7", "--columns", "c,a", "--separator", ","],
        ["--kernel", "linear", "--only-numeric"],
    ],
)
def test_the_lines_of_python_give_the_same_numbers(table, options):
    result = json.loads(run("compare", table, "--json", *QUICK, *options).stdout)
    printed = run("compare", table, *QUICK, *options).stdout
    assert "\n".join(["The same in Python:", *result["python"], "Figure: "]) in printed
    names = {}
    exec("\n".join(result["python"]), names)
    comparison = names["comparison"]
    assert [row.name for row in comparison.rows] == [row["name"] for row in result["estimators"]]
    for row, printed_row in zip(comparison.rows, result["estimators"], strict=True):
        assert row.score == printed_row["score"]
        assert row.parameter == printed_row["parameter"]


def test_the_lines_of_python_of_the_demonstration_and_of_batches_run(monkeypatch, table):
    monkeypatch.setattr(command, "MAX_ROWS_DENSE", 1)
    monkeypatch.setattr(command, "available_memory", lambda: 0.0)
    for arguments in ([], [table]):
        result = json.loads(run("compare", *arguments, "--json", *QUICK).stdout)
        names = {}
        exec("\n".join(result["python"]), names)
        assert names["comparison"]["f-kmse"].score == pytest.approx(
            result["estimators"][1]["score"], rel=1e-12
        )
    assert "open_batches('table.csv')" in result["python"][1]


def test_text_is_parsed_once_where_it_fits_in_memory(monkeypatch, table):
    passes = []
    monkeypatch.setattr(command, "MAX_ROWS_DENSE", 1)
    monkeypatch.setattr(
        FileBatches, "_chunks", lambda self, own=FileBatches._chunks: passes.append(1) or own(self)
    )
    for memory, expected in ((1e9, 1), (0.0, 4)):
        monkeypatch.setattr(command, "available_memory", lambda memory=memory: memory)
        passes.clear()
        assert (
            run(
                "compare", table, "--json", "--gram", "nystrom", "--features", "5", *QUICK
            ).exit_code
            == 0
        )
        assert len(passes) == expected


def test_columns_and_separator_reach_the_file():
    write("odd.txt", "# made up\na:kind:b\n" + "".join(f"{i * 7 % 5}:x:{i}.5\n" for i in range(9)))
    assert_refused(
        run("compare", "odd.txt", "--separator", ":"), "column 'kind' must be numeric", "line 3"
    )
    for options in (["--only-numeric"], ["--columns", "b,a"], ["--drop", "kind"]):
        result = json.loads(
            run("compare", "odd.txt", "--separator", ":", "--json", *QUICK, *options).stdout
        )
        assert (result["n"], result["d"]) == (9, 2)


def test_standard_input_is_read(table):
    result = run("compare", "-", "--json", *QUICK, input=Path(table).read_bytes())
    assert json.loads(result.stdout)["data"] == "standard input"
    assert json.loads(result.stdout)["n"] == 20


def test_a_column_of_row_numbers_is_warned_of_once():
    rows = np.random.default_rng(0).normal(size=(30, 2))
    write("frame.csv", ",a,b\n" + "".join(f"{i},{a},{b}\n" for i, (a, b) in enumerate(rows)))
    result = run("compare", "frame.csv", "--json", *QUICK)
    assert json.loads(result.stdout)["d"] == 2
    [line] = result.stderr.splitlines()
    assert "counts the rows; it is left out" in line


def test_numbers_are_printed_with_the_digits_they_have():
    row = {"name": "KME", "setting": "", "score": None, "gain_text": "", "at_edge": False}
    rows = [
        SimpleNamespace(**row, strength=share)
        for share in (0.0, 1e-14, 0.025249, 1.2345e-3, 4.56e-8)
    ]
    shrunk = command._table(SimpleNamespace(rows=rows, best=None)).columns[3]
    assert list(shrunk.cells) == ["0", "0", "2.52", "0.123", "0"]
    assert command.kernel_text(muhat.Laplacian(51.0588230525312)) == "Laplacian(bandwidth=51.1)"


def test_an_unknown_command_gets_a_suggestion():
    assert_refused(run("comprae"), "No such command 'comprae'. Did you mean 'compare'?")
    assert_refused(run("xyzzyq"), "No such command 'xyzzyq'. The commands are tour, test,")


def test_a_new_command_is_a_module_and_a_line(tmp_path, monkeypatch):
    """Its errors, its help and its close names come from the command line as they do for others."""
    module = '''
from typer import echo
from muhat.errors import MuhatError

def count_command(file: str) -> None:
    """Count the letters of a name."""
    if file == "bad":
        raise MuhatError("muhat count", "another name is needed", file)
    echo(len(file))
'''
    (tmp_path / "toy_command.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    line = ("toy_command:count_command", "Count letters.")
    monkeypatch.setitem(COMMANDS, "count", line)
    assert run("count", "wine.csv").stdout == "8\n"
    assert re.search(r"count +Count letters\.", run("--help").stdout)
    assert "Count the letters of a name." in run("count", "--help").stdout
    assert_refused(run("count", "bad"), "muhat count: another name is needed, got bad.")
    assert_refused(run("cuont"), "Did you mean 'count'?")


def test_a_bandwidth_is_a_number_or_the_median(table):
    median, default = (
        json.loads(run("compare", table, "--json", *QUICK, *each).stdout)
        for each in (["--bandwidth", "median"], [])
    )
    assert median["kernel"] == default["kernel"]
    assert_refused(
        run("compare", table, "--bandwidth", "loo"),
        "--bandwidth: a number or 'median' is needed, got 'loo'",
    )


def test_every_file_that_is_written_is_printed(table):
    result = run("compare", table, *QUICK, "--report", "page.html", "--save", "best.muhat")
    assert result.stdout.endswith(
        "Figure: muhat-compare.png\nReport: page.html\nSaved: best.muhat\n"
    )


def test_a_label_can_be_dropped():
    name = write("labelled.csv", "a,b,kind\n1,2,x\n3,5,y\n4,4,x\n0,1,y\n")
    assert_refused(run("compare", name), "column 'kind' must be numeric")
    result = run("compare", name, "--drop", "kind", "--json", *QUICK)
    assert json.loads(result.stdout)["d"] == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is needed")
def test_a_full_standard_output_is_one_line(table):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "muhat", "compare", table, "--json", *QUICK]
        result = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120
        )
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert "a path that can be written to is needed" in result.stderr


# Large files


LARGE = 9_000
NAMES = ("a", "b", "c", "d")
FEW = (*QUICK, "--features", "40")
SAME = 1e-8
"""The same number by another route."""


def sample(n):
    X = np.random.default_rng(0).normal(size=(n, 4)) * np.geomspace(1, 50, 4) + 4
    X[:, -1] = 7  # a column that says nothing
    return X


def as_parquet(X, path):
    pq.write_table(pa.table(dict(zip(NAMES, X.T, strict=True))), path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same rows as Parquet, as CSV and as a folder."""
    place = tmp_path_factory.mktemp("large")
    X = sample(LARGE)
    as_parquet(X, place / "large.parquet")
    pd.DataFrame(X, columns=NAMES).to_csv(place / "large.csv", index=False)
    (place / "folder").mkdir()
    for number, part in enumerate(np.split(X, [5_000])):
        as_parquet(part, place / "folder" / f"{number}.parquet")
    return place


@pytest.fixture
def in_batches(monkeypatch):
    """No file is read at once."""
    monkeypatch.setattr(command, "available_memory", lambda: 0.0)
    monkeypatch.setattr(FileBatches, "read", partial(pytest.fail, "the file was read at once"))


def on_a_terminal(*arguments, interrupt_at=None):
    """Run the command with stderr on a terminal; return exit code, stdout and terminal output."""
    mine, its = pytest.importorskip("pty", reason="a terminal as on POSIX").openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "muhat", "compare", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=its,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        text=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # whoever runs the tests may ignore it
    )
    os.close(its)
    seen = b""
    while select.select([mine], [], [], 120)[0]:
        try:
            read = os.read(mine, 65536)
        except OSError:  # Linux's end of a terminal
            break
        if not read:
            break
        seen += read
        if interrupt_at and interrupt_at in seen:
            process.send_signal(signal.SIGINT)
            interrupt_at = None
    out = process.communicate(timeout=120)[0]
    os.close(mine)
    return process.returncode, out, seen.decode()


@pytest.mark.parametrize(
    ("name", "gram"),
    [("large.parquet", "nystrom"), ("large.csv", "random-features"), ("folder", "nystrom")],
)
def test_a_large_file_is_compared_in_batches(files, name, gram, in_batches):
    result = run("compare", files / name, "--gram", gram, *FEW, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    printed = json.loads(result.stdout)
    assert (printed["data"], printed["n"], printed["d"]) == (Path(name).stem, LARGE, len(NAMES))
    assert (printed["gram"], printed["gram_reason"], printed["n_components"]) == (
        gram,
        "as requested",
        40,
    )
    held = {"nystrom": Nystrom(40), "random-features": RandomFeatures(40)}[gram]
    expected = compare(sample(LARGE), filters=["f-kmse"], gram=held, standardize=True)
    for row in printed["estimators"]:
        np.testing.assert_allclose(row["scores"], expected[row["name"]].scores, rtol=SAME)


def test_left_to_itself_the_command_takes_features_for_a_large_file(files):
    printed = json.loads(run("compare", files / "large.csv", "--filter", "s-kmse", "--json").stdout)
    assert (printed["gram"], printed["n"]) == ("nystrom", LARGE)


@pytest.mark.parametrize("gram", ["auto", "dense"])
def test_few_rows_of_a_file_or_a_folder_are_compared_dense(gram):
    pd.DataFrame(sample(60), columns=NAMES).to_csv("small.csv", index=False)
    os.mkdir("folder")
    for number, part in enumerate(np.split(sample(60), [20])):
        as_parquet(part, f"folder/{number}.parquet")
    expected = compare(sample(60), filters=["f-kmse"], standardize=True)
    for name in ("small.csv", "folder"):
        printed = json.loads(run("compare", name, "--json", "--gram", gram, *QUICK).stdout)
        assert printed["gram"] == "dense"
        assert printed["estimators"][1]["score"] == pytest.approx(
            expected["f-kmse"].score, rel=SAME
        )


def test_a_terminal_shows_which_pass_of_how_many_and_how_fast(files):
    code, out, seen = on_a_terminal(
        files / "large.parquet", "--gram", "nystrom", "--filter", "f-kmse", "--out", "f.png"
    )
    assert code == 0
    for number, name in enumerate(passes(), start=1):
        assert f"pass {number} of 4: {name}" in seen
    assert "0 of 9,000 rows" in seen
    assert "pass" not in out
    assert "approximated by" in out
    assert out.endswith("Figure: f.png\n")
    assert Path("f.png").read_bytes().endswith(b"IEND\xaeB`\x82")
    assert os.listdir() == ["f.png"]


def test_a_terminal_shows_that_rows_in_memory_are_being_compared():
    pd.DataFrame(sample(1500), columns=NAMES).to_csv("rows.csv", index=False)
    code, out, seen = on_a_terminal("rows.csv", "--filter", "s-kmse", "--out", "f.png")
    assert code == 0
    assert "comparing on 1,500 rows" in seen
    assert "comparing" not in out


def test_rows_are_shown_with_their_number_and_speed_if_known():
    task = SimpleNamespace(total=9000, completed=4500, finished_speed=None, speed=1234.0)
    assert str(RowsColumn().render(task)) == "4,500 of 9,000 rows, 1,234 rows/s"
    task = SimpleNamespace(total=None, completed=4500, finished_speed=None, speed=None)
    assert str(RowsColumn().render(task)) == "4,500 rows"


def test_nothing_is_shown_with_json_or_where_there_is_no_terminal(files):
    code, out, seen = on_a_terminal(files / "large.parquet", "--gram", "nystrom", *FEW, "--json")
    assert (code, seen) == (0, "")
    assert json.loads(out)["n"] == LARGE
    assert run("compare", files / "large.parquet", "--gram", "nystrom", *FEW).stderr == ""


def test_an_interrupted_pass_is_one_line_and_leaves_no_figure(files):
    code, out, seen = on_a_terminal(
        files / "large.csv", "--gram", "nystrom", interrupt_at=b"pass 1 of 1: reading"
    )
    assert (code, out) == (130, "")
    assert "muhat: interrupted." in seen
    assert "Traceback" not in seen
    assert os.listdir() == []


def test_a_pass_beyond_those_foreseen_is_counted_too():
    np.save("rows.npy", sample(10))
    watched = ProgressBatches(open_batches("rows.npy"), passes(standardize=False), shown=False)
    with watched:
        titles = [watched.bars.tasks[-1].description for _ in range(4) for _ in watched]
    assert titles == [
        "pass 1 of 3: drawing",
        "pass 2 of 3: summing up",
        "pass 3 of 3: leaving out",
        "pass 4 of 4: leaving out",
    ]


def test_a_bad_row_far_down_is_named_by_its_place_in_the_file():
    X = sample(30_000)
    X[25_000, 1] = np.nan
    as_parquet(X, "holes.parquet")
    assert_refused(
        run("compare", "holes.parquet", "--gram", "nystrom"),
        "data row 25001 (counted from 1)",
        "'b'",
    )


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("words.csv", "a,b\n1,2\n" + "3,4\n" * 9000 + "5,red\n", ["line 9003", "'b'"]),
        ("one.csv", "1,2\n", ["at least 2 rows"]),
        ("few.csv", "1,2\n3,4\n", ["must be at most the number of rows, 2"]),
    ],
    ids=["word", "one row", "few rows"],
)
def test_a_file_of_which_no_features_can_be_made_is_refused(name, text, words):
    assert_refused(
        run("compare", write(name, text), "--gram", "nystrom", "--features", "50"), *words
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gram", "nystroem"], ["--gram", "did you mean 'nystrom'?"]),
        (["--gram", "blocks"], ["--gram", "'dense', 'nystrom', 'random-features'", "got 'blocks'"]),
        (
            ["--features", "10"],
            ["--features", "--gram nystrom or random-features is needed", "--gram auto"],
        ),
        (["--features", "10", "--gram", "dense"], ["--features", "--gram dense"]),
        (["--features", "0", "--gram", "nystrom"], ["--features"]),
        (["--features", "many", "--gram", "nystrom"], ["--features"]),
        (["--features", "41", "--gram", "random-features"], ["RandomFeatures"]),
        (["--gram", "random-features", "--kernel", "linear"], ["got Linear()"]),
        ([".", "--gram", "nystrom"], ["a folder of .parquet files"]),
    ],
)
def test_a_way_to_hold_the_matrix_that_cannot_be_is_refused(arguments, words):
    assert_refused(run("compare", *arguments), *words)


def test_the_demonstration_takes_features_too():
    printed = json.loads(
        run("compare", "--gram", "nystrom", "--features", "30", "--json", *QUICK).stdout
    )
    assert (printed["data"], printed["n_components"]) == ("wine", 30)
