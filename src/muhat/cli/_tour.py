"""``muhat tour``: estimate, compare, test and predict on bundled data, with the Python code."""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Annotated, Any

from matplotlib.figure import Figure
from typer import Option, echo

from muhat.cli._command_line import standard_output
from muhat.cli._outputs import print_written
from muhat.errors import MuhatError
from muhat.plots import save


@dataclass(frozen=True)
class Answer:
    """A sentence, and the display that draws it."""

    sentence: str
    display: Any


def estimate() -> Answer:
    """The kernel mean of a sample is a function that is large where rows are dense.
    Two columns of 178 wines:"""
    import pyarrow
    from sklearn.datasets import load_wine

    from muhat import MeanDisplay, StackedMean

    wine = load_wine()
    table = pyarrow.table(list(wine.data.T), names=wine.feature_names)  # or a data frame
    X = table.select(["alcohol", "flavanoids"])
    mu = StackedMean().fit(X)
    typical = mu.score_samples(X)
    display = MeanDisplay.from_estimator(mu, X)

    most, least = typical.argmax() + 1, typical.argmin() + 1
    sentence = f"The most typical wine is row {most}, the least typical is row {least}"
    return Answer(f"{sentence} (counted from 1).", display)


def compare_estimators() -> Answer:
    """Does shrinkage improve the kernel mean when there are few rows and many columns?
    60 tumours, 30 columns:"""
    from sklearn.datasets import load_breast_cancer

    from muhat import LeaveOneOutDisplay, compare

    comparison = compare(load_breast_cancer().data[:60])
    display = LeaveOneOutDisplay.from_comparison(comparison)

    return Answer(comparison.verdict(), display)


def compare_growers() -> Answer:
    """Do the wines of two growers come from one distribution, and which columns differ?"""
    import pyarrow
    from sklearn.datasets import load_wine

    from muhat import TwoSampleTest
    from muhat.plots import FeatureDifferenceDisplay

    wine = load_wine()
    columns, growers = ["alcohol", "malic_acid", "ash"], ("grower 1", "grower 2")
    table = pyarrow.table(list(wine.data.T), names=wine.feature_names).select(columns)
    first, second = table.filter(wine.target == 1), table.filter(wine.target == 2)
    result = TwoSampleTest().test(first, second, names=growers)
    result.to_html("report.html", data={"grower 1": first, "grower 2": second})
    display = FeatureDifferenceDisplay.from_result(result, growers)

    page = "The report of it opens in any browser, also offline."
    return Answer(f"{result.verdict()} {page}", display)


def predict_progression() -> Answer:
    """Progression of diabetes after a year, predicted from body mass index and blood pressure,
    with intervals; the model is saved and loaded:"""
    from sklearn.datasets import load_diabetes

    from muhat import ConditionalMean, QuantileDisplay, load, save

    diabetes = load_diabetes()
    x, y = diabetes.data[:, [2, 3]], diabetes.target
    model = ConditionalMean().fit(x, y)
    lower, upper = model.predict_interval(x[:1], confidence=0.9)[0]
    save(model, "model.muhat")
    same = load("model.muhat").predict(x) == model.predict(x)
    display = QuantileDisplay.from_estimator(model, x, y, name="bmi")

    interval = f"90 % prediction interval {lower:.0f} to {upper:.0f}, observed {y[0]:.0f}"
    loaded = f"The loaded model gives the same predictions: {same.sum()} of {len(same)}"
    return Answer(
        f"Leave-one-out R² = {model.loo_score_:.2f}. First patient: {interval}. "
        f"{loaded}, to the last bit.",
        display,
    )


STEPS: dict[str, Callable[[], Answer]] = {
    "estimate": estimate,
    "compare": compare_estimators,
    "test": compare_growers,
    "predict": predict_progression,
}
"""The steps by name: the docstring asks a question, the lines up to the display answer it."""


def tour_command(
    out: Annotated[
        Path, Option(metavar="FOLDER", help="Write pictures, report and model here.")
    ] = Path("muhat-tour"),
) -> None:
    """30-second demo on bundled data: estimate, compare, test and predict, with the Python code."""
    if out.exists() and not out.is_dir():
        raise MuhatError("--out", "a folder is needed", f"a file, {str(out)!r}", "name another")
    out.mkdir(parents=True, exist_ok=True)
    overview = Figure(figsize=(12.5, 8.4), layout="constrained")
    panels = overview.subplots(2, 2).flat
    with chdir(out), standard_output():
        for number, (name, step) in enumerate(STEPS.items(), 1):
            echo(f"{number}. {name.capitalize()}. {question_of(step)}\n")
            echo(indent(code_of(step), "    ") + "\n")
            with warnings.catch_warnings(action="ignore"):
                answer = step()
            echo(answer.sentence)
            figure = Figure(figsize=(7.5, 4.2), layout="constrained")
            answer.display.plot(figure.subplots())
            save(figure, f"{name}.png")
            echo(f"Figure: {out / name}.png\n")
            _draw_panel(name, answer.display, panels[number - 1])
        save(overview, "tour.png")
        print_written(Report=out / "report.html", Saved=out / "model.muhat")
        echo(f"All figures in one: {out / 'tour.png'}")
        echo("Next: muhat test a.csv b.csv, or muhat --help.")


def question_of(step: Callable[[], Answer]) -> str:
    """Return the question of a step in one line."""
    return " ".join((step.__doc__ or "").split())


def code_of(step: Callable[[], Answer]) -> str:
    """Return the lines of a step after its docstring, up to the display."""
    source = inspect.getsource(step)
    statements = ast.parse(source).body[0].body[1:]  # type: ignore[attr-defined]
    start = end = statements[0].lineno - 1
    for statement in statements:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "display":
            end = statement.end_lineno
    return dedent("\n".join(source.splitlines()[start:end]))


def _draw_panel(name: str, display: Any, panel: Any) -> None:
    """Draw a step in the overview, its legend small and inside the panel."""
    display.plot(panel)
    panel.set_title(name, loc="left", fontweight="bold")
    legend = panel.get_legend()
    if legend is not None:
        labels = [each.get_text() for each in legend.texts]
        panel.legend(legend.legend_handles, labels, fontsize="x-small", frameon=False)
