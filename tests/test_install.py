"""What the pages promise works with what they install: the wheel with one extra.

Every command line and every line of Python that is run is taken from the pages themselves. The
environments are made by pip, from the registry or its cache.
"""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

NEVER = ("pandas", "polars", "pytest")
"""What none of our commands may need; the environment of the tests has all of it."""

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


class Environment:
    """A virtual environment with the wheel and one of its extras, and a folder to work in."""

    def __init__(self, wheel, folder, extra=""):
        self.folder = folder / "work"
        self.folder.mkdir()
        place = folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
        self.scripts = place / ("Scripts" if os.name == "nt" else "bin")
        self.python = self.scripts / f"python{sysconfig.get_config_var('EXE') or ''}"
        # Without compiling, which takes as long as all else: what is imported is compiled then.
        options = ["--quiet", "--no-compile", "--disable-pip-version-check"]
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(self.python),
            "install",
            *options,
            f"{wheel}{extra}",
        ]
        subprocess.run(pip, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": ""})

    def run(self, *command):
        """Run a command in the folder with nothing but this environment."""
        names = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        variables = {name: value for name, value in os.environ.items() if name not in names}
        variables |= {
            "PATH": f"{self.scripts}{os.pathsep}{os.environ['PATH']}",
            "MPLBACKEND": "agg",
        }
        options = {
            "cwd": self.folder,
            "env": variables,
            "capture_output": True,
            "text": True,
            "encoding": "utf-8",
        }
        return subprocess.run([*map(str, command)], **options)

    def has(self, module):
        return self.run(self.python, "-c", f"import {module}").returncode == 0


def command_lines():
    """Return the commands of all pages, as a shell gets them, with their pages."""
    found = []
    for page in PAGES:
        for language, block in BLOCK.findall(page.read_text(encoding="utf-8")):
            lines = [] if language == "python" else block.splitlines()
            found += [
                (page.name, line.partition("#")[0].strip())
                for line in lines
                if line.startswith("muhat ")
            ]
    return found


def python_blocks(page):
    return [
        code
        for language, code in BLOCK.findall(page.read_text(encoding="utf-8"))
        if language == "python"
    ]


MAKE_FILES = """
import numpy as np, pyarrow
from pyarrow import csv, parquet
rng = np.random.default_rng(0)
names = ["age", "dose", "outcome", "y"]
for place, name in enumerate({files!r}):
    x = rng.normal(size=(60, 4)) + 0.01 * place
    x[:, 3] = np.sin(x[:, 0]) + 0.1 * x[:, 3]
    table = pyarrow.table(list(x.T), names=names)
    if name == "sales.csv":
        table = table.append_column("shop", pyarrow.array(["north", "south", "east"] * 20))
    if name == "trial.csv":
        table = table.append_column("group", pyarrow.array(["treated", "control"] * 30))
    (csv.write_csv if name.endswith(".csv") else parquet.write_table)(table, name)
"""
"""Files under the names that the pages use, with the columns that they name."""


def test_with_the_extra_cli_every_command_of_the_pages_runs(wheel, tmp_path):
    environment = Environment(wheel, tmp_path, "[cli]")
    assert [name for name in NEVER if environment.has(name)] == []
    lines = command_lines()
    assert len(lines) > 15
    assert {page for page, _ in lines} >= {
        "README.md",
        "index.md",
        "persistence.md",
        "report.md",
        "drift.md",
    }
    names = sorted(
        {name for _, line in lines for name in re.findall(r"[\w-]+\.(?:csv|parquet)\b", line)}
    )
    made = environment.run(environment.python, "-c", MAKE_FILES.format(files=names))
    assert made.returncode == 0, made.stderr
    fitted = environment.run(environment.python, "-c", REGRESSION)
    assert fitted.returncode == 0, fitted.stderr
    lines = [line for _, line in lines]
    started = environment.run(environment.scripts / "muhat", *lines[0].split()[1:])
    assert started.returncode == 0, started.stderr
    done = environment.run(
        environment.python, "-c", IN_ONE_PROCESS.format(lines=list(dict.fromkeys(lines)))
    )
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["all ran"]), (
        done.stdout + done.stderr
    )


IN_ONE_PROCESS = """
import contextlib, io, shlex, sys
from muhat.__main__ import command_line
for line in {lines!r}:
    for command in line.split(" && "):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            try:
                command_line()(shlex.split(command)[1:], prog_name="muhat")
            except SystemExit as left:
                status = left.code or 0
        if status not in ((0, 3) if "--fail-below" in command else (0,)):
            sys.exit(f"{{command}}: status {{status}}: {{said.getvalue()}}")
print("all ran")
"""
"""Runs commands in one process, as imports take longest; 3 is the status of --fail-below."""

REGRESSION = """
import muhat, pyarrow
rows = muhat.read_table("new.csv")
x = pyarrow.table(list(rows.data[:, :3].T), names=list(rows.feature_names[:3]))
muhat.save(muhat.ConditionalMean().fit(x, rows.data[:, 3]), "regression.muhat")
"""
"""The model that docs/persistence.md applies."""


def test_without_extras_the_python_of_the_readme_runs_and_the_command_names_the_extra(
    wheel, tmp_path
):
    environment = Environment(wheel, tmp_path)
    assert [
        name
        for name in (*NEVER, "pyarrow", "typer", "matplotlib", "dask", "skops")
        if environment.has(name)
    ] == []
    code = "\n".join(python_blocks(ROOT / "README.md"))
    assert code.count("\n") > 20
    done = environment.run(environment.python, "-W", "error", "-c", code)
    assert done.returncode == 0, done.stderr
    for command in ("compare", "test", "tour", "--help"):
        said = environment.run(environment.scripts / "muhat", command)
        assert said.returncode == 2
        assert said.stderr.endswith("run pip install 'muhat[cli]'.\n")
        assert len(said.stderr.splitlines()) == 1
    read = environment.run(environment.python, "-c", "import muhat; muhat.read_table('there.csv')")
    assert "no such file: there.csv" in read.stderr


def test_with_the_extra_dask_the_first_example_of_its_page_runs(wheel, tmp_path):
    environment = Environment(wheel, tmp_path, "[dask]")
    assert not environment.has("typer")
    assert not environment.has("matplotlib")
    done = environment.run(environment.python, "-c", python_blocks(ROOT / "docs" / "dask.md")[0])
    assert done.returncode == 0, done.stderr
    assert "KernelMean" in done.stdout
