"""Wheel and sdist hold what they may, and the library works without any extra."""

import configparser
import email
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

import muhat
from built import build

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


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build("sdist", tmp_path_factory.mktemp("sdist"))


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


def test_neither_wheel_nor_sdist_holds_data_that_may_not_be_given_away(wheel, sdist):
    with tarfile.open(sdist) as archive:
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


def test_the_same_files_give_the_same_bytes_and_the_sdist_holds_all_that_a_wheel_needs(
    wheel, sdist, tmp_path
):
    again = build("sdist", tmp_path / "again")
    assert again.read_bytes() == sdist.read_bytes()
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    rebuilt = build("wheel", tmp_path / "rebuilt", unpacked)
    assert rebuilt.name == wheel.name
    assert rebuilt.read_bytes() == wheel.read_bytes()


def metadata(wheel):
    with ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("/METADATA"))
        return email.message_from_string(archive.read(name).decode())


def test_the_version_is_the_same_wherever_it_is_written(wheel):
    assert wheel.name.startswith(f"muhat-{muhat.__version__}-")
    assert (
        "version"
        not in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    )
    for name, line in (
        ("CITATION.cff", f"version: {muhat.__version__}\n"),
        ("docs/cite.md", f"version = {{{muhat.__version__}}},\n"),
        ("CHANGELOG.md", f"\n## {muhat.__version__}\n"),
        ("conda/meta.yaml", f'version = "{muhat.__version__}"'),
    ):
        assert line in (ROOT / name).read_text(encoding="utf-8"), name


def test_the_summary_is_the_first_sentence_of_the_readme(wheel):
    page = metadata(wheel)
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"**{page['Summary']}**" in text
    assert page["Description-Content-Type"] == "text/markdown"


def test_where_the_repository_is_known_links_and_pictures_have_whole_addresses(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("GITHUB_REPOSITORY", "an-owner/a-name")
    page = metadata(build("wheel", tmp_path))
    assert "Repository, https://github.com/an-owner/a-name" in page.get_all("Project-URL")
    text = page.get_payload()
    links = re.findall(r'\]\(([^)]+)\)|src="([^"]+)"', text)
    assert len(links) > 30
    for link in map("".join, links):
        assert link.startswith(("https://", "#")), link
    assert f"raw.githubusercontent.com/an-owner/a-name/v{muhat.__version__}/docs/tour/" in text


def test_every_action_of_a_workflow_is_pinned_to_a_commit():
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert len(workflows) >= 3
    for workflow in workflows:
        for use in re.findall(r"uses: (.*)", workflow.read_text(encoding="utf-8")):
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", use), (workflow.name, use)


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
    assert "run pip install 'muhat[cli]'" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
