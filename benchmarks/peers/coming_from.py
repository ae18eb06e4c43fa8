"""The same task in another package and in muhat: times and answers of docs/coming-from.md.

The code that is measured is the code that the page shows. Packages that cannot be in one
environment take one each, and the same file of results; muhat is measured where it can be.

    python -m venv peers && peers/bin/pip install hyppo dcor mapie pot
    PYTHONPATH=src peers/bin/python benchmarks/peers/coming_from.py measure
    # and environments of their own for alibi-detect[torch] and for evidently with "pandas<3"
    python benchmarks/peers/coming_from.py page

Times are processor time with one thread, the median of three runs after one to warm up.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "evidence" / "coming-from.json"
PAGE = ROOT / "docs" / "coming-from.md"
ROUNDS = 3
LEAST_SECONDS = 0.3
"""What takes less is repeated that long, as processor time counts in hundredths of a second."""

SETUP = """\
import numpy as np
from sklearn.datasets import load_diabetes, load_digits, load_wine
from sklearn.model_selection import train_test_split

digits = load_digits().data / 16
table, progression = load_diabetes(return_X_y=True, scaled=False)
women, men = table[table[:, 1] == 1], table[table[:, 1] == 2]
women, men = np.delete(women, 1, axis=1), np.delete(men, 1, axis=1)
alcohol, hue = load_wine().data[:, [0]], load_wine().data[:, [10]]
reference, batch = digits[:1000], digits[1000:1200]  # other people wrote these digits
X, new_X, y, new_y = train_test_split(table, progression, random_state=0)
"""


@dataclass(frozen=True)
class Side:
    """One way to do the task: a package, its code, and how its answer is said."""

    package: str
    code: str
    answer: str


@dataclass(frozen=True)
class Task:
    """A task with the other package's way, ours, and what to know when you change."""

    title: str
    peer: Side
    ours: Side
    note: str


P_VALUES = "f'women and men p = {p_values[0]:.3f}; alcohol and hue p = {p_values[1]:.3f}'"

OUR_TESTS = Side(
    "muhat",
    """\
from muhat import IndependenceTest, TwoSampleTest

differ = TwoSampleTest().test(women, men)
depend = IndependenceTest().test(alcohol, hue)
p_values = differ.p_value, depend.p_value
""",
    P_VALUES,
)

TASKS = (
    Task(
        "scikit-learn: `KernelPCA`",
        Side(
            "scikit-learn",
            """\
from sklearn.decomposition import KernelPCA

pca = KernelPCA(10, kernel="rbf", gamma=0.1)
scores = pca.fit_transform(digits)
""",
            "f'{scores.shape[1]} components; first variance {scores[:, 0].var():.6f}'",
        ),
        Side(
            "muhat",
            """\
from muhat import Gaussian, KernelPCA

gaussian = Gaussian(bandwidth=(2 * 0.1) ** -0.5)  # gamma is 1 / (2 bandwidth²)
pca = KernelPCA(10, kernel=gaussian, gram="dense")
scores = pca.fit(digits).transform(digits)
""",
            "f'{scores.shape[1]} components; first variance {scores[:, 0].var():.6f}'",
        ),
        """\
Both packages give the same scores, up to sign. muhat also has exact leave-one-out reconstruction
errors, p-values for unusual rows (`novelty_p_values`), batches and landmarks. The default
bandwidths differ: muhat uses the median distance, scikit-learn `gamma = 1 / n_features`. [Kernel
PCA](pca.md)""",
    ),
    Task(
        "scikit-learn: `KernelRidge`",
        Side(
            "scikit-learn",
            """\
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

ridge = make_pipeline(StandardScaler(), KernelRidge(kernel="rbf"))
grid = {
    "kernelridge__alpha": np.geomspace(1e-3, 10, 9),
    "kernelridge__gamma": np.geomspace(1e-3, 1, 7),
}
model = GridSearchCV(ridge, grid).fit(X, y - y.mean())
predicted = model.predict(new_X) + y.mean()
""",
            "r2_text(new_y, predicted)",
        ),
        Side(
            "muhat",
            """\
from muhat import ConditionalMean

model = ConditionalMean().fit(X, y)
predicted = model.predict(new_X)
""",
            "r2_text(new_y, predicted) + f'; {model.loo_score_:.3f} by leave-one-out'",
        ),
        """\
`KernelRidge(alpha=alpha)` gives the same predictions as `ConditionalMean(filter='tikhonov',
fit_intercept=False, standardize=False, selection=Fixed(alpha / n))` with the same kernel. By
default muhat standardizes columns, has an intercept, uses the median bandwidth, and chooses filter
and λ by exact leave-one-out. `bandwidth='loo'` chooses the bandwidth too.
[Prediction](conditional.md)""",
    ),
    Task(
        "hyppo: k-sample and independence tests",
        Side(
            "hyppo",
            """\
from hyppo.independence import Dcorr
from hyppo.ksample import MMD

differ = MMD().test(women, men, reps=999, auto=False, random_state=0)
depend = Dcorr().test(alcohol, hue, reps=999, auto=False, random_state=0)
p_values = differ[1], depend[1]
""",
            P_VALUES,
        ),
        OUR_TESTS,
        """\
hyppo has many more statistics, and tests of conditional independence. The MMD of hyppo does not
scale columns and uses one bandwidth; without `auto=False` it may use a chi-squared approximation.
muhat standardizes columns, combines many kernels in one exact p-value, and names the columns that
differ (`result.features`, `result.verdict()`). [Tests](tests.md)""",
    ),
    Task(
        "dcor: energy test and distance covariance",
        Side(
            "dcor",
            """\
import dcor

differ = dcor.homogeneity.energy_test(women, men, num_resamples=999, random_state=0)
depend = dcor.independence.distance_covariance_test(alcohol, hue, num_resamples=999, random_state=0)
p_values = differ.pvalue, depend.pvalue
""",
            P_VALUES,
        ),
        OUR_TESTS,
        """\
The energy test of dcor has more power against a plain shift of the mean. muhat has more power
against differences of shape, spread, correlation and fine structure
([measured](tests-evidence.md)). muhat does not compute the distance correlation;
`result.correlation` is a kernel correlation with another scale.""",
    ),
    Task(
        "alibi-detect: `MMDDrift`",
        Side(
            "alibi-detect",
            """\
from alibi_detect.cd import MMDDrift

detector = MMDDrift(reference, backend="pytorch", n_permutations=999)
found = detector.predict(batch)["data"]
""",
            'f\'drift: {bool(found["is_drift"])}, p = {found["p_val"]:.3f}\'',
        ),
        Side(
            "muhat",
            """\
from muhat import DriftDetector

detector = DriftDetector().fit(reference)
found = detector.update(batch, "new writers")
""",
            "f'drift: {bool(found.is_alarm)}, p = {found.p_value:.4g}'",
        ),
        """\
`MMDDrift` tests every batch at the same level, so with many batches false alarms are certain.
`DriftDetector` bounds the probability of any false alarm over all batches, names the columns that
changed, and needs neither PyTorch nor TensorFlow. Only alibi-detect has detectors for images, text
and learned kernels. [Drift](drift.md)""",
    ),
    Task(
        "evidently: `DataDriftPreset`",
        Side(
            "evidently",
            """\
import pandas as pd
from evidently import Report
from evidently.presets import DataDriftPreset

names = [f"pixel {t}" for t in range(64)]
report = Report([DataDriftPreset()])
found = report.run(pd.DataFrame(batch, columns=names), pd.DataFrame(reference, columns=names))
drifted = found.dict()["metrics"][0]["value"]
""",
            "f'{drifted[\"count\"]:.0f} of 64 columns drifted'",
        ),
        Side(
            "muhat",
            """\
from muhat import DriftDetector

detector = DriftDetector().fit(reference)
found = detector.update(batch, "new writers")
""",
            "f'drift: {bool(found.is_alarm)}, p = {found.p_value:.4g}'",
        ),
        """\
evidently tests each column separately. By default it reports drift of the data set if half of the
columns have drifted. evidently also has dashboards, data quality checks and text metrics. muhat
tests all columns together, with one exact p-value, and also finds changes in how columns depend on
each other. `found.test.to_html(path)` writes a report. [Drift](drift.md)""",
    ),
    Task(
        "MAPIE: prediction intervals",
        Side(
            "mapie",
            """\
from mapie.regression import CrossConformalRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

ridge = make_pipeline(StandardScaler(), KernelRidge(kernel="rbf", alpha=0.3, gamma=0.003))
conformal = CrossConformalRegressor(ridge, confidence_level=0.9, cv=len(X), method="plus")
intervals = conformal.fit_conformalize(X, y - y.mean()).predict_interval(new_X)[1][:, :, 0]
intervals = intervals + y.mean()
""",
            "intervals_text(new_y, intervals)",
        ),
        Side(
            "muhat",
            """\
from muhat import ConditionalMean

model = ConditionalMean().fit(X, y)
intervals = model.predict_interval(new_X, confidence=0.9, method="jackknife+")
""",
            "intervals_text(new_y, intervals)",
        ),
        """\
Both packages compute jackknife+ intervals here. MAPIE works with any scikit-learn regressor, which
it refits for each row, and also supports classification. muhat has intervals only for its own
regression, but needs no refits and chooses the regularisation itself. `method='conformal'` gives
split conformal intervals. [Intervals](conditional.md#intervals-and-quantiles)""",
    ),
    Task(
        "POT: distance between two samples",
        Side(
            "pot",
            """\
import ot

scale = np.vstack([women, men]).std(axis=0)
distance = ot.emd2([], [], ot.dist(women / scale, men / scale))
""",
            "f'squared Wasserstein distance {distance:.3f}'",
        ),
        Side(
            "muhat",
            """\
from muhat import mmd

scale = np.vstack([women, men]).std(axis=0)
distance = mmd(women / scale, men / scale)
""",
            "f'MMD {distance:.3f}'",
        ),
        """\
The Wasserstein distance and the MMD have different units. Only optimal transport matches each row
of one sample with rows of the other. The MMD can be estimated from few rows in many columns, and
`TwoSampleTest` gives its p-value. `KernelMeanMatching` finds sample weights that make one sample
similar to another.""",
    ),
)


def r2_text(y: Any, predicted: Any) -> str:
    """Return R² on new rows."""
    r2 = 1 - ((y - predicted) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    return f"R² {r2:.3f} on {len(y)} new rows"


def intervals_text(y: Any, intervals: Any) -> str:
    """Return the share of new rows inside their intervals, and the width of these."""
    lower, upper = intervals.T
    share, width = ((lower <= y) & (y <= upper)).mean(), (upper - lower).mean()
    return f"{share:.0%} of {len(y)} new rows inside, mean width {width:.0f}"


def processor_time() -> float:
    """Return the processor time of this process and its children."""
    return sum(os.times()[:4])


def measured(side: Side) -> dict[str, Any]:
    """Return the time and the answer of one side, or why there is none."""
    try:
        found: dict[str, Any] = {"version": version(side.package)}
    except PackageNotFoundError:
        if side.package != "muhat":
            return {"missing": f"{side.package} was not installed"}
        import muhat

        found = {"version": muhat.__version__}
    names: dict[str, Any] = {"r2_text": r2_text, "intervals_text": intervals_text}
    exec(SETUP, names)
    times = []
    for _ in range(ROUNDS + 1):
        start, repeats = processor_time(), 0
        while repeats == 0 or processor_time() - start < LEAST_SECONDS:
            exec(side.code, names)
            repeats += 1
        times.append((processor_time() - start) / repeats)
    found["seconds"] = median(times[1:])
    found["answer"] = eval(side.answer, names)
    return found


def measure(part: str = "") -> None:
    """Measure what is installed here, of tasks with this in their title; add it to the results."""
    results: dict[str, Any] = {}
    if RESULTS.exists():
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
    for task in TASKS:
        if part not in task.title:
            continue
        kept = results.setdefault(task.title, {})
        for name, side in (("peer", task.peer), ("ours", task.ours)):
            try:
                with warnings.catch_warnings(action="ignore"):
                    found = measured(side)
            except Exception as problem:  # a failure is a finding
                found = {"failed": f"{type(problem).__name__}: {problem}"}
            if "seconds" not in kept.get(name, {}) or "seconds" in found:
                kept[name] = found
            print(task.title, name, found, flush=True)
    RESULTS.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


HEAD = """\
# Coming from another package

Each section shows the same task in another package and in muhat, with the result and the time of
both. The script `benchmarks/peers/coming_from.py` ran exactly this code and wrote this page. Times
are processor seconds on one thread, without imports (the median of three runs). All examples use
these data:

```python
{setup}```
"""

SECTION = """
## {title}

::::{{grid}} 1 1 1 2
:gutter: 2

:::{{grid-item}}
**{package}**
```py
{peer}```
:::

:::{{grid-item}}
**muhat**
```{language}
{ours}```
:::
::::

| | answer | seconds |
|---|---|---|
| {package} {peer_version} | {peer_answer} | {peer_seconds} |
| muhat | {our_answer} | {our_seconds} |

{note}
"""


def seconds_text(found: dict[str, Any]) -> str:
    """Return a time with two digits."""
    if "seconds" not in found:
        return "not measured"
    return f"{found['seconds']:.2g}"


def page(results: dict[str, Any]) -> str:
    """Return docs/coming-from.md."""
    text, shown = HEAD.format(setup=SETUP), set()
    for task in TASKS:
        found = results[task.title]
        language = "python"  # what is shown again has another name, and is not tested again
        if task.ours.code in shown:
            language = "py"
        shown.add(task.ours.code)
        peer, ours = found["peer"], found["ours"]
        text += SECTION.format(
            title=task.title,
            package=task.peer.package,
            peer=task.peer.code,
            ours=task.ours.code,
            language=language,
            peer_version=peer.get("version", ""),
            peer_answer=peer.get("answer") or peer.get("missing") or peer.get("failed"),
            peer_seconds=seconds_text(peer),
            our_answer=ours["answer"],
            our_seconds=seconds_text(ours),
            note=task.note,
        )
    return text


def main(action: str, part: str = "") -> None:
    """Measure, or write the page."""
    if action == "measure":
        measure(part)
    else:
        PAGE.write_text(page(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
