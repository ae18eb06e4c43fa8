"""``muhat tour``: estimate, compare, test, predict, save and report on bundled data, with the Python code."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from matplotlib.figure import Figure
from typer import Option, echo

from muhat.cli._command_line import standard_output
from muhat.errors import MuhatError
from muhat.plots import (
    FeatureDifferenceDisplay,
    LeaveOneOutDisplay,
    MeanDisplay,
    QuantileDisplay,
    save,
)

GROWERS = ("grower 1", "grower 2")

INSIDE = {"fontsize": "x-small", "frameon": False}


@dataclass(frozen=True)
class Step:
    """One step of the tour: a question, the Python lines that answer it, the answer, and its picture."""

    name: str
    question: str
    code: str
    finding: str
    """A Python expression, evaluated after the lines."""
    picture: Callable[[dict[str, Any], Any], object] | None = None


STEPS = (
    Step(
        "estimate",
        "The kernel mean of a sample is a function that is large where rows are dense. Two columns of 178 wines:",
        """
import pyarrow
from sklearn.datasets import load_wine
from muhat import StackedMean

wine = load_wine()
table = pyarrow.table(list(wine.data.T), names=wine.feature_names)  # or a data frame of pandas or polars
X = table.select(["alcohol", "flavanoids"])
mu = StackedMean().fit(X)
typical = mu.score_samples(X)
""",
        'f"The most typical wine is row {typical.argmax() + 1}, the least typical is row {typical.argmin() + 1} "'
        ' "(counted from 1)."',
        lambda names, ax: MeanDisplay.from_estimator(names["mu"], names["X"]).plot(ax),
    ),
    Step(
        "compare",
        "Does shrinkage improve the kernel mean when there are few rows and many columns? 60 tumours, 30 columns:",
        """
from sklearn.datasets import load_breast_cancer
from muhat import compare

comparison = compare(load_breast_cancer().data[:60])
""",
        "comparison.verdict()",
        lambda names, ax: LeaveOneOutDisplay.from_comparison(names["comparison"]).plot(ax),
    ),
    Step(
        "test",
        "Do the wines of two growers come from one distribution, and which columns differ?",
        """
from muhat import TwoSampleTest

columns = ["alcohol", "malic_acid", "ash"]
first, second = (table.select(columns).filter(wine.target == grower) for grower in (1, 2))
result = TwoSampleTest().test(first, second, names=("grower 1", "grower 2"))
""",
        "result.verdict()",
        lambda names, ax: FeatureDifferenceDisplay.from_result(names["result"], GROWERS).plot(ax),
    ),
    Step(
        "predict",
        "Progression of diabetes after a year, predicted from body mass index and blood pressure, with intervals:",
        """
from sklearn.datasets import load_diabetes
from muhat import ConditionalMean

diabetes = load_diabetes()
x, y = diabetes.data[:, [2, 3]], diabetes.target
model = ConditionalMean().fit(x, y)
lower, upper = model.predict_interval(x[:1], confidence=0.9)[0]
""",
        'f"Leave-one-out R² = {model.loo_score_:.2f}. First patient: 90 % prediction interval {lower:.0f} to "'
        ' f"{upper:.0f}, observed {y[0]:.0f}."',
        lambda names, ax: QuantileDisplay.from_estimator(
            names["model"], names["x"], names["y"], name="bmi"
        ).plot(ax),
    ),
    Step(
        "save and report",
        "Save the model, and write a report of the test:",
        """
import muhat

muhat.save(model, "model.muhat")
same = muhat.load("model.muhat").predict(x) == model.predict(x)
result.to_html("report.html", data={"grower 1": first, "grower 2": second})
""",
        'f"The loaded model gives the same predictions: {same.sum()} of {len(same)}, to the last bit. "'
        ' "The report opens in any browser, also offline."',
    ),
)


def tour_command(
    out: Annotated[
        Path, Option(metavar="FOLDER", help="Write pictures, report and model here.")
    ] = Path("muhat-tour"),
) -> None:
    """30-second demo on bundled data: estimate, compare, test, predict, save and report, with the Python code."""
    if out.exists() and not out.is_dir():
        raise MuhatError("--out", "a folder is needed", f"a file, {str(out)!r}", "name another")
    out.mkdir(parents=True, exist_ok=True)
    names: dict[str, Any] = {}
    overview = Figure(figsize=(12.5, 8.4), layout="constrained")
    panels = iter(overview.subplots(2, 2).flat)
    with chdir(out), standard_output():
        for number, step in enumerate(STEPS, 1):
            echo(f"{number}. {step.name.capitalize()}. {step.question}\n")
            echo("\n".join(f"    {line}" for line in step.code.strip().splitlines()) + "\n")
            _run(step, names)
            echo(eval(step.finding, names))
            if step.picture is not None:
                _draw(step, names, next(panels))
                echo(f"Figure: {out / step.name}.png")
            echo("")
        save(overview, "tour.png")
        for name, file in (
            ("Report", "report.html"),
            ("Saved", "model.muhat"),
            ("All figures in one", "tour.png"),
        ):
            echo(f"{name}: {out / file}")
        echo("Next: muhat test a.csv b.csv, or muhat --help.")


def _run(step: Step, names: dict[str, Any]) -> None:
    """Run the lines as they are printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(step.code, f"<{step.name}>", "exec"), names)


def _draw(step: Step, names: dict[str, Any], panel: Any) -> None:
    """Draw a step's picture in a file of its own, and in the overview."""
    assert step.picture is not None
    alone = Figure(figsize=(7.5, 4.2), layout="constrained")
    step.picture(names, alone.subplots())
    save(alone, f"{step.name}.png")
    step.picture(names, panel)
    panel.set_title(step.name, loc="left", fontweight="bold")
    if panel.get_legend() is not None:  # inside, where it takes no place from the others
        panel.legend(
            panel.get_legend().legend_handles,
            [each.get_text() for each in panel.get_legend().texts],
            **INSIDE,
        )
