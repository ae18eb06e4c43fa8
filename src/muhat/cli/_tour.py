"""``muhat tour``: estimate, compare, test, condition, keep and report on embedded data, with the lines that do it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from matplotlib.figure import Figure
from typer import Option, echo

from muhat._messages import refusal
from muhat.cli._command_line import standard_output
from muhat.plots import LeaveOneOutDisplay, MeanDisplay, QuantileDisplay, WitnessDisplay, save

INSIDE = {"fontsize": "x-small", "frameon": False}


@dataclass(frozen=True)
class Step:
    """One stop of the tour: a question, the lines of Python that answer it, the answer, and its picture."""

    name: str
    question: str
    code: str
    finding: str
    """An expression of what the lines have made."""
    picture: Callable[[dict[str, Any], Any], object] | None = None


STEPS = (
    Step(
        "estimate",
        "What is the mean of a sample, as a function? Two measurements of 178 wines:",
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
        'f"The mean is a function that is high where rows are dense: wine {typical.argmax()} is the most typical, "'
        ' f"wine {typical.argmin()} the least."',
        lambda names, ax: MeanDisplay.from_estimator(names["mu"], names["X"]).plot(ax),
    ),
    Step(
        "compare",
        "Which estimator of the mean is best on few rows of many columns? 60 tumours, 30 measurements:",
        """
from sklearn.datasets import load_breast_cancer
from muhat import compare

comparison = compare(load_breast_cancer().data[:60], standardize=True)
""",
        "comparison.verdict()",
        lambda names, ax: LeaveOneOutDisplay.from_comparison(names["comparison"]).plot(ax),
    ),
    Step(
        "test",
        "Do two growers' wines come from one distribution, and where do they differ?",
        """
from muhat import TwoSampleTest

columns = ["alcohol", "malic_acid", "ash"]
first, second = (table.select(columns).filter(wine.target == grower) for grower in (1, 2))
result = TwoSampleTest(random_state=0).test(first, second)
""",
        "result.verdict()",
        lambda names, ax: WitnessDisplay.from_result(names["result"]).plot(ax),
    ),
    Step(
        "condition",
        "What is y given x, and how sure is that? Diabetes a year later by body mass index and blood pressure:",
        """
from sklearn.datasets import load_diabetes
from muhat import ConditionalMean

diabetes = load_diabetes()
x, y = diabetes.data[:, [2, 3]], diabetes.target
model = ConditionalMean().fit(x, y)
low, high = model.predict_interval(x[:1], confidence=0.9)[0]
""",
        'f"{100 * model.loo_score_:.0f} % of the variance of y is predicted for patients that were left out; for the "'
        ' f"first one y is between {low:.0f} and {high:.0f}, by an interval made to hold 90 % (it was {y[0]:.0f})."',
        lambda names, ax: QuantileDisplay.from_estimator(names["model"], names["x"], names["y"], name="bmi").plot(ax),
    ),
    Step(
        "keep and report",
        "How is it kept, and sent around?",
        """
import muhat

muhat.save(model, "model.muhat")
same = muhat.load("model.muhat").predict(x) == model.predict(x)
result.to_html("report.html", data={"grower 1": first, "grower 2": second})
""",
        'f"Of {len(same)} predictions of the model that was loaded, {same.sum()} are the same to the last bit; the "'
        ' "report opens in any browser, without a network."',
    ),
)


def tour_command(
    out: Annotated[Path, Option(metavar="FOLDER", help="Where pictures, report and model go.")] = Path("muhat-tour"),
) -> None:
    """Show the whole of it in half a minute, on embedded data: estimate, compare, test, condition, keep, report."""
    if out.exists() and not out.is_dir():
        raise ValueError(refusal("--out", "a folder is needed", f"a file, {str(out)!r}", "name another"))
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
                echo(f"Picture: {out / step.name}.png")
            echo("")
        save(overview, "tour.png")
        echo(f"All pictures in one: {out / 'tour.png'}. Next: muhat compare your.csv, and muhat --help.")


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
            panel.get_legend().legend_handles, [each.get_text() for each in panel.get_legend().texts], **INSIDE
        )
