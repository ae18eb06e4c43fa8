"""The places to touch for a new part: each test adds a toy to a copy of the repository and uses it.

A place is a file that has to be edited by hand. Files that ``make docs`` writes do not count.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from muhat.filters import FILTERS
from muhat.kernels import KERNELS
from muhat.selection import RULES
from muhat.testing import IndependenceTest

ROOT = Path(__file__).parents[1]

MAX_PLACES = 4
"""The number of files that a new part may take."""

PUBLIC = "src/muhat/__init__.py"


@dataclass(frozen=True)
class Edit:
    """Text that is put before some other text of a file, or a new file if that is empty."""

    path: str
    before: str
    text: str

    def apply(self, root):
        file = root / self.path
        if not self.before:
            assert not file.exists()
            file.write_text(self.text, encoding="utf-8")
            return
        old = file.read_text(encoding="utf-8")
        assert self.before in old, f"{self.path} has no {self.before!r}"
        file.write_text(old.replace(self.before, self.text + self.before, 1), encoding="utf-8")


@dataclass(frozen=True)
class Part:
    """A toy part: where it is added, and a program that fails unless it works everywhere."""

    edits: tuple[Edit, ...]
    program: str
    tests: tuple[str, ...] = ()
    """Arguments of pytest for the tests that must find the toy."""

    @property
    def places(self):
        return list(dict.fromkeys(edit.path for edit in self.edits))


FILTER = Part(
    (
        Edit("src/muhat/filters/_spectral.py", '    "TruncatedSVD",\n', '    "Toy",\n'),
        Edit(
            "src/muhat/filters/_spectral.py",
            "@dataclass\nclass TruncatedSVD",
            '''@dataclass
class Toy(Formula):
    """s_λ(γ) = 1 − (λ/(γ+λ))²."""

    name = "toy"
    label = "Toy's filter"
    colour, marker = "#123456", "p"
    qualification = 2.0
    B, C = 1.0, 1.0

    def D(self, eta: float, kappa2: float) -> float:
        return 1.0

    def shrinkage(self, gamma: Array, parameter: Any) -> Array:
        return 1 - (parameter / (gamma + parameter)) ** 2


''',
        ),
        Edit(PUBLIC, "TruncatedSVD Componentwise Filter", "Toy "),
        Edit(
            "tests/reference.py",
            '    if name == "landweber":\n',
            """    if name == "toy":
        residual = parameter * np.linalg.inv(C + parameter * np.eye(len(C)))
        return mean + residual @ residual @ (f - mean)
""",
        ),
        Edit("docs/filters.md", "| `tsvd` |", "| `toy` | `Toy` | 1 − (λ/(γ+λ))² | λ |\n"),
    ),
    """
import matplotlib
matplotlib.use("Agg")
import numpy as np, muhat
from pathlib import Path
from muhat import ConditionalMean, FilterDisplay, KernelMean, LeaveOneOutDisplay, Spectral, Toy
from muhat.theory import check_definition_1

X = np.random.default_rng(0).normal(size=(30, 3))
mu = KernelMean(filter="toy").fit(X)
assert isinstance(mu.filter_, Toy) and "toy" in repr(mu)
comparison = muhat.compare(X)
assert "toy" in [row.name for row in comparison.rows]
for display in (LeaveOneOutDisplay, FilterDisplay):
    lines = display.from_comparison(comparison).plot().ax_.lines
    assert "#123456" in [line.get_color() for line in lines]
comparison.to_html("page.html")
assert "toy" in Path("page.html").read_text(encoding="utf-8")
muhat.save(mu, "model.muhat")
assert np.array_equal(muhat.load("model.muhat").weights_, mu.weights_)
ConditionalMean(filter="toy").fit(X[:, :2], X[:, 2])
muhat.TwoSampleTest(statistics=Spectral("toy"), n_permutations=19).test(X[:15], X[15:])
assert check_definition_1(Toy(), [0.01, 0.1]).holds
""",
    ("tests/test_filters.py", "-k", "definition and toy"),
)

KERNEL = Part(
    (
        Edit("src/muhat/kernels/_radial.py", '"Matern", "Rational', '"Toy", '),
        Edit(
            "src/muhat/kernels/_radial.py",
            "@dataclass\nclass RationalQuadratic",
            '''@dataclass
class Toy(ScaleMixture):
    """k(x, y) = (1 + ‖x − y‖²/4σ²)^(−2)."""

    name = "toy"

    def _profile(self, exponent: Array) -> Array:
        return (1 - exponent / 2) ** -2.0

    def _bandwidth_law(self, sigma: float) -> BandwidthLaw:
        return BandwidthLaw(sigma, 2.0, -0.5)


''',
        ),
        Edit(PUBLIC, "Function Precomputed Kernel", "Toy "),
        Edit("tests/catalogue.py", '    "linear": Linear(),\n', '    "toy": muhat.Toy(1.1),\n'),
        Edit("tests/catalogue.py", "import numpy as np\n", "import muhat\n"),
        Edit(
            "tests/reference.py",
            '    if name == "InverseMultiquadric":\n',
            """    if name == "Toy":
        return (1 + squared / (4 * kernel.bandwidth**2)) ** -2
""",
        ),
    ),
    """
import numpy as np, muhat
from pathlib import Path
from muhat import KernelMean, RandomFeatures, RationalQuadratic, StackedMean, Toy

X = np.random.default_rng(0).normal(size=(30, 3))
mu = KernelMean(kernel="toy").fit(X)
like = KernelMean(kernel=RationalQuadratic(mu.kernel_.bandwidth, alpha=2.0)).fit(X)
assert np.allclose(mu.weights_, like.weights_)
P = muhat.Mixture.isotropic([1.0], [[0.0, 0.0, 0.0]], [1.0])
assert np.isclose(P.inner(mu.kernel_, P), P.inner(like.kernel_, P))
KernelMean(kernel="toy", gram=RandomFeatures(20)).fit(X)
assert mu.radius() < np.sqrt(2)
StackedMean(kernel="toy").fit(X)
muhat.compare(X, kernel="toy").to_html("page.html")
assert "Toy(" in Path("page.html").read_text(encoding="utf-8")
muhat.save(mu, "model.muhat")
assert muhat.load("model.muhat").kernel_ == mu.kernel_
muhat.TwoSampleTest(kernel="toy", n_permutations=19).test(X[:15], X[15:])
muhat.ConditionalMean(kernel="toy").fit(X[:, :2], X[:, 2])
""",
    ("tests/test_kernels.py", "-k", "toy or catalogue"),
)

RULE = Part(
    (
        Edit("src/muhat/selection/_rules.py", '"ParameterRule", "Rate"]', '"Toy", '),
        Edit(
            "src/muhat/selection/_rules.py",
            "@dataclass\nclass Rate(",
            '''@dataclass
class Toy(ParameterRule):
    """λ = 1/n."""

    name = "toy"

    def parameter(self, filter: Shrinker, n: int) -> Array:
        return checked_grid(self, filter, cast(Filter, filter).from_lambda(1 / n))


''',
        ),
        Edit(PUBLIC, "Rate Fixed Choice", "Toy "),
        Edit("docs/selection.md", "Other rules:", '`"toy"` is λ = 1/n.\n'),
    ),
    """
import numpy as np, muhat
from muhat import ConditionalMean, KernelMean

X = np.random.default_rng(0).normal(size=(30, 3))
mu = KernelMean(filter="f-kmse", selection="toy").fit(X)
assert np.isclose(mu.choice_.parameter, 1 / 30)
for gram in ("blocks", "nystrom"):
    KernelMean(filter="landweber", selection="toy", gram=gram).fit(X)
comparison = muhat.compare(X, filters=["f-kmse"], selection="toy")
assert comparison["f-kmse"].selection == "toy"
comparison.to_html("page.html")
muhat.save(mu, "model.muhat")
assert isinstance(muhat.load("model.muhat").rule_, muhat.Toy)
ConditionalMean(filter="f-kmse", selection="toy").fit(X[:, :2], X[:, 2])
""",
)

STATISTIC = Part(
    (
        Edit(
            "src/muhat/testing/_statistics.py",
            "def statistics_by_name",
            '''@dataclass
class Toy(Statistic):
    """h(γ) = γ²."""

    name = "toy"

    def weight(self, gamma: Array) -> Array:
        """h(γ) = γ²."""
        return gamma**2


''',
        ),
        Edit("src/muhat/testing/_statistics.py", "Spectral, ShrunkMeans)", "Toy, "),
        Edit("src/muhat/testing/__init__.py", "ShrunkMeans, Spectral, Statistic\n", "Toy, "),
        Edit("src/muhat/testing/__init__.py", '    "mmd",\n', '    "Toy",\n'),
        Edit(PUBLIC, "ShrunkCovariance mmd", "Toy "),
        Edit("docs/tests.md", '| `"shrunk-means"`', '| `"toy"`, `Toy()` | γ² | a toy |\n'),
    ),
    """
import numpy as np, muhat
from pathlib import Path
from muhat import IndependenceTest, Toy, TwoSampleTest

X = np.random.default_rng(0).normal(size=(30, 3))
result = TwoSampleTest(statistics="toy", n_permutations=19).test(X[:15], X[15:])
assert all("Toy" in str(each) for each in result.tests)
result.to_html("page.html")
assert "Toy" in Path("page.html").read_text(encoding="utf-8")
muhat.save(result, "result.muhat")
assert muhat.load("result.muhat").p_value == result.p_value
IndependenceTest(statistics=["mmd", "toy"], n_permutations=19).test(X[:, :1], X[:, 1:])
muhat.DriftDetector(TwoSampleTest(statistics="toy", n_permutations=19)).fit(X)
""",
)

CANDIDATE = Part(
    (
        Edit(
            "src/muhat/stacking/_candidates.py",
            "@dataclass\nclass GaussianFit",
            '''@dataclass
class Toy(Candidate):
    """A point at the mean of the rows."""

    def names(self, sample: Any) -> list[str]:
        """Return one name."""
        return ["toy"]

    def fit(self, sample: Any) -> list[Measure]:
        """Return a Gaussian without variance."""
        d = sample.X.shape[1]
        return [Mixture.from_moments(np.ones(1), sample.center[None], np.zeros((1, d, d)))]


''',
        ),
        Edit("src/muhat/stacking/__init__.py", "    WardMixtures,\n", "    Toy,\n"),
        Edit("src/muhat/stacking/__init__.py", '    "WardMixtures",\n', '    "Toy",\n'),
        Edit("src/muhat/stacking/_estimator.py", "        WardMixtures(),\n", "        Toy(),\n"),
        Edit(
            "src/muhat/stacking/_estimator.py",
            "from muhat.stacking._embedding",
            "from muhat.stacking._candidates import Toy\n",
        ),
    ),
    """
import matplotlib
matplotlib.use("Agg")
import numpy as np, muhat
from muhat import Gaussian, Laplacian, StackDisplay, StackedMean

X = np.random.default_rng(0).normal(size=(30, 3))
for kernel in (Gaussian(), Laplacian()):
    mu = StackedMean(kernel=kernel).fit(X)
    assert "toy" in mu.names_
    StackDisplay.from_estimator(mu).plot()
    muhat.save(mu, "model.muhat")
    assert muhat.load("model.muhat").names_ == mu.names_
muhat.compare(X).to_html("page.html")
""",
)

FIGURE = Part(
    (
        Edit(
            "src/muhat/figures/_comparison.py",
            "def filters_plot",
            '''def toy_plot(comparison: Comparison) -> Plot:
    """Return a toy."""
    x = np.arange(1.0, 4.0)
    series = Series("squares", "line", x, x**2, colour=BLUE)
    return Plot("A toy", "", "", Axis("x", 0, 4), Axis("x²", 0, 10), [series])


''',
        ),
        Edit("src/muhat/figures/__init__.py", "    stacked_bars,\n", "    toy_plot,\n"),
        Edit("src/muhat/figures/__init__.py", '    "stacked_bars",\n', '    "toy_plot",\n'),
        Edit(
            "src/muhat/report/_comparison.py",
            '        Section("The spectrum and the filters"',
            '        Section("Toys", (), (), [toy_plot(comparison)]),\n',
        ),
        Edit(
            "src/muhat/report/_comparison.py",
            "from muhat.figures import Plot",
            "from muhat.figures import toy_plot\n",
        ),
    ),
    """
import matplotlib
matplotlib.use("Agg")
import numpy as np, muhat
from pathlib import Path
from matplotlib import pyplot
from muhat.figures import toy_plot
from muhat.plots import draw

comparison = muhat.compare(np.random.default_rng(0).normal(size=(20, 2)))
ax = pyplot.subplots()[1]
draw(toy_plot(comparison), ax)
assert ax.lines and ax.get_xlabel() == "x"
comparison.to_html("page.html")
page = Path("page.html").read_text(encoding="utf-8")
assert "A toy" in page and "squares" in page
""",
)

EXPERIMENT = Part(
    (
        Edit(
            "paper/experiments/toy.py",
            "",
            '''"""A toy."""

from paper._experiment import Experiment


def settings(quick):
    return {"seed": 1, "count": 2 if quick else 20}


def tasks(settings):
    return [{"number": number} for number in range(settings["count"])]


def run(settings, task):
    return [{"square": task["number"] ** 2}]


def table(settings, results):
    return [row for rows in results for row in rows]


def figure(results):
    return None


EXPERIMENT = Experiment(
    name="toy", title="A toy", text="", settings=settings, tasks=tasks, run=run, table=table,
    figure=figure,
)
''',
        ),
        Edit("paper/experiments/__init__.py", "    when_it_pays,\n)", "    toy,\n"),
        Edit("paper/experiments/__init__.py", "    table_2,\n)", "    toy,\n"),
    ),
    """
from paper import EXPERIMENTS, read_results, reproduce

if __name__ == "__main__":
    reproduce([EXPERIMENTS["toy"]], "results", quick=True, n_jobs=1)
    assert read_results("results", "toy").rows == [{"square": 0}, {"square": 1}]
""",
)

COMMAND = Part(
    (
        Edit(
            "src/muhat/cli/_toy.py",
            "",
            '''"""A toy command."""


def toy_command(word: str) -> None:
    """Print a word twice."""
    print(word, word)
''',
        ),
        Edit(
            "src/muhat/__main__.py",
            '    "tour": (',
            '    "toy": ("muhat.cli._toy:toy_command", "Print a word twice."),\n',
        ),
    ),
    """
import subprocess, sys

def muhat(*arguments):
    command = [sys.executable, "-m", "muhat", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout

assert "Print a word twice." in muhat("--help")
assert muhat("toy", "hello") == "hello hello\\n"
""",
)

PARTS = {
    "filter": FILTER,
    "kernel": KERNEL,
    "selection rule": RULE,
    "test statistic": STATISTIC,
    "stack candidate": CANDIDATE,
    "figure": FIGURE,
    "experiment": EXPERIMENT,
    "command": COMMAND,
}
"""The places to touch for each kind of part."""


def run(root, *arguments):
    paths = os.pathsep.join([str(root / "src"), str(root / "tests"), str(root)])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("kind", PARTS)
def test_a_new_part_takes_few_places_and_works_everywhere(kind, tmp_path):
    part = PARTS[kind]
    assert len(part.places) <= MAX_PLACES
    skipped = shutil.ignore_patterns("__pycache__", "evidence")
    for folder in ("src", "tests", "docs", "paper"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=skipped)
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    for edit in part.edits:
        edit.apply(tmp_path)
    found = run(tmp_path, "-c", part.program)
    assert found.returncode == 0, found.stderr
    if part.tests:
        found = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *part.tests)
        assert found.returncode == 0, found.stdout


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("docs/filters.md", FILTERS),
        ("docs/selection.md", RULES),
        ("docs/tests.md", IndependenceTest.names),
    ],
)
def test_a_page_lists_every_part_by_name(page, names):
    text = (ROOT / page).read_text(encoding="utf-8")
    missing = [name for name in names if f"`{name}`" not in text and f'"{name}"' not in text]
    assert not missing


def test_every_kernel_with_a_name_is_public_by_its_class():
    import muhat

    for kind in {*KERNELS.values(), *FILTERS.values(), *RULES.values()}:
        assert getattr(muhat, kind.__name__) is kind
