"""``muhat tour``: the questions that muhat answers, on bundled data, with the Python code."""

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


def compare_growers() -> Answer:
    """Do the wines of two growers differ, and in what?"""
    import pyarrow
    from sklearn.datasets import load_wine

    from muhat import FeatureDifferenceDisplay, TwoSampleTest

    wine = load_wine()
    columns, growers = ["alcohol", "malic_acid", "ash", "hue"], ("grower 1", "grower 2")
    table = pyarrow.table(list(wine.data.T), names=wine.feature_names).select(columns)
    first, second = table.filter(wine.target == 1), table.filter(wine.target == 2)
    result = TwoSampleTest().test(first, second, names=growers)
    result.to_html("report.html", data={"grower 1": first, "grower 2": second})
    display = FeatureDifferenceDisplay.from_result(result, growers)

    return Answer(result.verdict(), display)


def test_independence() -> Answer:
    """Are phenols and color of 178 wines independent? Their correlation is only -0.06."""
    import pyarrow
    from sklearn.datasets import load_wine

    from muhat import IndependenceTest, PairDisplay

    wine = load_wine()
    table = pyarrow.table(list(wine.data.T), names=wine.feature_names)
    phenols, color = table.select(["total_phenols"]), table.select(["color_intensity"])
    result = IndependenceTest().test(phenols, color)
    display = PairDisplay.from_samples(phenols, color)

    return Answer(result.verdict(), display)


def watch_for_drift() -> Answer:
    """Do new batches still come from the same distribution? The reference is speech of eight
    speakers; two batches are of the same eight, three of one new speaker each."""
    import numpy as np

    from muhat import DriftDetector, DriftDisplay, load_dataset

    rows = load_dataset("vowel").data  # 66 of each speaker, one speaker after the other
    known = np.random.default_rng(0).permutation(rows[:528])
    detector = DriftDetector().fit(known[:396])
    for name, batch in [("known 1", known[396:462]), ("known 2", known[462:])]:
        detector.update(batch, name)
    for place in range(3):
        result = detector.update(rows[528 + 66 * place :][:66], f"new {place + 1}")
    display = DriftDisplay.from_detector(detector)

    return Answer(result.verdict(), display)


def map_speakers() -> Answer:
    """Which of fifteen speakers, men (m) and women (f), stand out, and who is close to whom?"""
    import numpy as np

    from muhat import GroupMapDisplay, GroupTest, KernelMeans, load_dataset

    rows = load_dataset("vowel").data  # 66 of each speaker
    names = ["m1", "m2", "m3", "m4", "f1", "f2", "f3", "f4"]
    names += ["m5", "m6", "m7", "m8", "f5", "f6", "f7"]
    speakers = np.repeat(names, 66)
    result = GroupTest().test(rows, speakers)
    display = GroupMapDisplay.from_estimator(KernelMeans().fit(rows, speakers))

    return Answer(result.verdict(), display)


def predict_progression() -> Answer:
    """What is the progression of diabetes after a year, given body mass index and blood
    pressure, and how sure is it?"""
    from sklearn.datasets import load_diabetes

    from muhat import ConditionalMean, QuantileDisplay, load, save

    diabetes = load_diabetes(scaled=False)
    x, y = diabetes.data[:, [2, 3]], diabetes.target
    model = ConditionalMean().fit(x, y)
    lower, upper = model.predict_interval(x[:1], confidence=0.9)[0]
    save(model, "model.muhat")
    assert (load("model.muhat").predict(x) == model.predict(x)).all()  # to the last bit
    names = ("body mass index", "progression after a year")
    display = QuantileDisplay.from_estimator(model, x, y, names=names)

    interval = f"90 % prediction interval {lower:.0f} to {upper:.0f}, observed {y[0]:.0f}"
    return Answer(f"Leave-one-out R² = {model.loo_score_:.2f}. First patient: {interval}.", display)


def find_components() -> Answer:
    """What are the main directions of 13 measurements of wines, and which wines are unusual?
    The colours are not used to find them."""
    from sklearn.datasets import load_wine
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from muhat import ComponentMapDisplay, KernelPCA
    from muhat.pca import describe_components

    wine = load_wine()
    model = make_pipeline(StandardScaler(), KernelPCA(2)).fit(wine.data)
    result = describe_components(model, wine.data, name="wine", columns=wine.feature_names)
    growers = [f"grower {number}" for number in wine.target]
    display = ComponentMapDisplay.from_estimator(model, wine.data, growers)

    return Answer(result.verdict(), display)


def estimate_mean() -> Answer:
    """Which wine is typical? The kernel mean of a sample is a function that is large where
    rows are dense."""
    import pyarrow
    from sklearn.datasets import load_wine

    from muhat import KernelMean, MeanDisplay

    wine = load_wine()
    table = pyarrow.table(list(wine.data.T), names=wine.feature_names)  # or a data frame
    X = table.select(["alcohol", "flavanoids"])
    mu = KernelMean().fit(X)
    typical = mu.score_samples(X)
    display = MeanDisplay.from_estimator(mu, X)

    most, least = typical.argmax() + 1, typical.argmin() + 1
    sentence = f"The most typical wine is row {most}, the least typical is row {least}"
    return Answer(f"{sentence} (counted from 1).", display)


STEPS: dict[str, Callable[[], Answer]] = {
    "test": compare_growers,
    "independence": test_independence,
    "drift": watch_for_drift,
    "groups": map_speakers,
    "predict": predict_progression,
    "pca": find_components,
    "mean": estimate_mean,
}
"""The steps by name: the docstring asks a question, the lines up to the display answer it."""

TITLES = {
    "test": "Do two samples differ, and in what?",
    "independence": "Are x and y independent?",
    "drift": "Has it drifted?",
    "groups": "Which groups stand out?",
    "predict": "What is y, and how sure?",
    "pca": "What are the main directions?",
}
"""The question above each panel of the overview, which not all steps are in."""


def tour_command(
    out: Annotated[
        Path, Option(metavar="FOLDER", help="Folder for pictures, report and model.")
    ] = Path("muhat-tour"),
) -> None:
    """Answer seven questions on bundled data, with pictures and Python code, in under a minute."""
    if out.exists() and not out.is_dir():
        raise MuhatError(
            "--out", "a folder is needed", f"the file {str(out)!r}", "choose another name"
        )
    out.mkdir(parents=True, exist_ok=True)
    replaced = set(out.iterdir())
    overview = Figure(figsize=(15, 8), layout="constrained")
    panels = iter(overview.subplots(2, 3).flat)
    with chdir(out), standard_output():
        for number, (name, step) in enumerate(STEPS.items(), 1):
            echo(f"{number}. {question_of(step)}\n")
            echo(indent(code_of(step), "    ") + "\n")
            with warnings.catch_warnings(action="ignore"):
                answer = step()
            echo(answer.sentence)
            figure = Figure(figsize=(5.8, 3.6), layout="constrained")
            answer.display.plot(figure.subplots())
            save(figure, f"{name}.png")
            print_written(replaced, Figure=out / f"{name}.png")
            echo("")
            if name in TITLES:
                _draw_panel(TITLES[name], answer.display, next(panels))
        save(overview, "tour.png")
        print_written(replaced, Report=out / "report.html", Saved=out / "model.muhat")
        print_written(replaced, **{"Six figures in one": out / "tour.png"})
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


def _draw_panel(title: str, display: Any, panel: Any) -> None:
    """Draw a step in the overview, its legend small and inside the panel."""
    display.plot(panel)
    panel.set_title(title, loc="left", fontweight="bold")
    panel.xaxis.label.set_size("small")
    panel.yaxis.label.set_size("small")
    legend = panel.get_legend()
    if legend is not None:
        labels = [each.get_text() for each in legend.texts]
        panel.legend(legend.legend_handles, labels, fontsize="x-small", frameon=False)
