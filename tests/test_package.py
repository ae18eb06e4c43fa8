"""Wheel and sdist hold what they may, and the library works without any extra."""

import configparser
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

import muhat

ROOT = Path(__file__).parents[1]
NOT_OURS_TO_GIVE = ("bodyfat", "housing", "svmguide2")
"""Data sets whose licences do not allow redistribution."""

WITHOUT_EXTRAS = """
import sys
class Without:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            return None
        return self.finder.find_spec(name, path, target)
sys.meta_path[:] = map(Without, sys.meta_path)
sys.path.insert(0, {wheel!r})
import muhat
assert muhat.__file__.startswith({wheel!r}), muhat.__file__
{code}
"""
"""Nothing that an extra brings is found, as in an environment without extras."""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    return build("wheel", tmp_path_factory.mktemp("wheel"))


def build(kind, folder):
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (made,) = folder.iterdir()
    return made


def run_without_extras(wheel, tmp_path, code):
    """Run code on the unpacked wheel where every package of the extras is missing."""
    unpacked = tmp_path / "unpacked"
    with ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    names = {re.match(r"[\w-]+", line)[0] for extra in declared.values() for line in extra} - {
        "muhat"
    }
    text = WITHOUT_EXTRAS.format(modules={*names, "click"}, wheel=str(unpacked), code=code)
    return subprocess.run(
        [sys.executable, "-I", "-c", text], capture_output=True, text=True, cwd=tmp_path
    )


def test_neither_wheel_nor_sdist_holds_data_that_may_not_be_given_away(wheel, tmp_path):
    with tarfile.open(build("sdist", tmp_path)) as archive:
        names = archive.getnames()
    with ZipFile(wheel) as archive:
        names += archive.namelist()
    data = [name for name in names if not name.endswith((".py", ".md", ".png", ".svg"))]
    assert not [
        name
        for name in data
        if any(name.rpartition("/")[2].startswith(each) for each in NOT_OURS_TO_GIVE)
    ]
    assert any(name.endswith("glass.csv.gz") for name in names)


def test_the_version_is_written_once(wheel):
    assert wheel.name.startswith(f"muhat-{muhat.__version__}-")
    assert (
        "version"
        not in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    )


def test_without_extras_a_kernel_mean_is_fitted_compared_and_made_a_page_of(wheel, tmp_path):
    code = """
import numpy as np
from muhat import KernelMean, compare
X = np.random.default_rng(0).normal(size=(30, 2))
page = compare(X).to_html()
print(KernelMean().fit(X).weights_.shape, type(compare(X)).__name__, "<script>" in page)
"""
    done = run_without_extras(wheel, tmp_path, code)
    assert (done.returncode, done.stdout) == (0, "(30,) Comparison True\n"), done.stderr


def test_without_extras_the_command_names_the_one_that_is_missing(wheel, tmp_path):
    scripts = configparser.ConfigParser()
    with ZipFile(wheel) as archive:
        (entry,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        scripts.read_string(archive.read(entry).decode())
    module, _, function = scripts["console_scripts"]["muhat"].partition(":")
    code = (
        f"sys.argv = ['muhat', 'compare']\nfrom {module} import {function}\nsys.exit({function}())"
    )
    done = run_without_extras(wheel, tmp_path, code)
    assert done.returncode not in (0, None)
    assert "pip install 'muhat[cli]'" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
