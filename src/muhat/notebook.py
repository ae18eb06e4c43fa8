"""For notebooks: summaries (the verdict, a small table and a curve, every name escaped), and progress bars."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from time import monotonic
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._messages import gain_text, p_value_text, shift_text
from muhat.comparison import Comparison
from muhat.conditional import ConditionalMean, KernelMeanMatching
from muhat.density import MatchedMixture
from muhat.filters import name_of
from muhat.kernels import Linear
from muhat.mean import KernelMean
from muhat.stacking import StackedMean
from muhat.testing import DriftDetector, DriftResult, IndependenceResult, Result, TwoSampleResult
from muhat.testing._results import LEVEL

__all__ = ["summary", "with_progress"]

WIDTH, HEIGHT = 180, 44
"""Of a curve, in pixels."""

BINS = 30
LISTED = 8
"""The most rows of a table."""

BADGE_COLOURS = {
    "good": "#0b7a57",
    "bad": "#c43c1c",
    "unsure": "#b07a00",
    "found": "#2a7fc0",
    "neutral": "#8a929c",
}
"""The edge of a verdict, by its kind, as on the pages of reports; each is visible on light and on dark pages."""

SECONDS = 0.2
"""Between two updates of a bar."""


def summary(shown: object) -> str:
    """Return the HTML summary of a fitted estimator or of a result, for any notebook, light or dark."""
    describe = next((SUMMARIES[kind] for kind in type(shown).__mro__ if kind in SUMMARIES), None)
    return "" if describe is None else describe(shown).html()


@dataclass(frozen=True)
class Summary:
    """A sentence, a table, a curve with the text that describes it, and the kind of the verdict, for its colour."""

    sentence: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    curve: str = ""
    kind: str = ""

    def html(self) -> str:
        """Return it as HTML."""
        head = "".join(f"<th>{escape(each)}</th>" for each in self.header)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        edge = (
            f' style="border-left:4px solid {BADGE_COLOURS[self.kind]};padding-left:0.7em"'
            if self.kind
            else ""
        )
        return f'<div class="muhat-summary"><p{edge}>{escape(self.sentence)}</p>{self.curve}{table}</div>'


def line(values: Array, chosen: int, description: str) -> str:
    """Return values as a curve with a dot at one of them, as an inline SVG; nothing where there is no curve."""
    values = np.asarray(values, dtype=float)
    kept = np.isfinite(values)
    if kept.sum() < 2 or not kept[chosen]:
        return ""
    x = np.linspace(4, WIDTH - 4, len(values))
    y = _scaled(values, values[kept])
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[kept], y[kept], strict=True))
    dot = f'<circle cx="{x[chosen]:.1f}" cy="{y[chosen]:.1f}" r="3.5" fill="#d55e00"/>'
    return _svg(
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/>{dot}',
        description,
    )


def bars(heights: Array, description: str, mark: float | None = None) -> str:
    """Return heights as bars, with a line at a place between 0 and 1 if one is given, as an inline SVG."""
    heights = np.asarray(heights, dtype=float)
    step, largest = (WIDTH - 8) / max(len(heights), 1), float(heights.max(initial=0)) or 1.0
    shapes = [
        f'<rect x="{4 + step * place:.1f}" y="{HEIGHT - 2 - 38 * each / largest:.1f}" width="{max(step - 1, 0.5):.1f}" '
        f'height="{38 * each / largest:.1f}" fill="currentColor" opacity="0.6"/>'
        for place, each in enumerate(heights)
    ]
    if mark is not None:
        at = 4 + mark * (WIDTH - 8)
        shapes.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="2" y2="{HEIGHT - 2}" stroke="#d55e00" stroke-width="2"/>'
        )
    return _svg("".join(shapes), description)


def _scaled(values: Array, finite: Array) -> Array:
    low, high = float(finite.min()), float(finite.max())
    return HEIGHT - 6 - (HEIGHT - 12) * (values - low) / ((high - low) or 1.0)


def _svg(shapes: str, description: str) -> str:
    box = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<svg {box} role="img" aria-label="{escape(description)}"><title>{escape(description)}</title>{shapes}</svg>'


def _facts(**facts: object) -> list[tuple[str, str]]:
    """Return facts as rows of a table of two columns."""
    return [
        (name.replace("_", " "), _text(value)) for name, value in facts.items() if value is not None
    ]


def _text(value: object) -> str:
    """Return a value as text, the numbers in it with four digits."""
    text = "" if value is None else str(value)
    return re.sub(r"-?\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.4g}", text)


def _of_mean(mean: KernelMean) -> Summary:
    choice = mean.choice_
    rows = [
        (
            name_of(each.filter),
            _text(each.parameter),
            _text(float(each.gain)),
            f"{100 * each.strength:.3g} %",
        )
        for each in mean.choices_
    ]
    kernel = _text(repr(mean.kernel_))
    sentence = f"{_text(repr(mean.filter_))} on {mean.n_samples_seen_:,} rows with {kernel}; {mean.gram_reason_}."
    curve = line(
        choice.gains,
        choice.index,
        f"gain over KME along the grid of {name_of(choice.filter)}, the best marked",
    )
    return Summary(sentence, ("filter", "λ or t", "gain over KME", "shrunk"), rows[:LISTED], curve)


def _of_stack(mean: StackedMean) -> Summary:
    order = np.argsort(-mean.weights_, kind="stable")
    rows = [
        (mean.names_[place], f"{mean.weights_[place]:.3f}", f"{100 * mean.gains_[place]:.3g} %")
        for place in order
    ]
    gain = f"{gain_text(100 * mean.gain_, 100 * mean.gain_error_)} %"
    sentence = (
        f"Stacked mean of {mean.n_samples_seen_:,} rows: estimated gain over the plain average {gain} of its risk, "
        "on held-out rows."
    )
    return Summary(
        sentence, ("candidate", "weight", "alone"), rows[:LISTED], bars(mean.weights_, "weights")
    )


def _of_conditional(model: ConditionalMean) -> Summary:
    choice = model.choice_
    rows = [
        (name_of(each.filter), _text(each.parameter), _text(each.score)) for each in model.choices_
    ]
    where = "" if _is_linear(model) else " in the RKHS of y"
    sentence = f"Leave-one-out R² {model.loo_score_:.3g}{where} ({_text(repr(choice.filter))})."
    curve = line(
        -choice.scores, choice.index, f"minus the score along the grid of {name_of(choice.filter)}"
    )
    return Summary(sentence, ("filter", "λ or t", "leave-one-out error"), rows[:LISTED], curve)


def _is_linear(model: ConditionalMean) -> bool:
    return isinstance(model.kernel_y_, Linear)


def _of_matching(matching: KernelMeanMatching) -> Summary:
    n = len(matching.weights_)
    sentence = f"{n:,} weighted rows; effective sample size {matching.effective_size_:.4g}."
    facts = _facts(
        distance_left=matching.distance_,
        largest_weight=float(matching.weights_.max()),
        gap=matching.gap_,
    )
    counts = np.histogram(matching.weights_, BINS)[0]
    return Summary(sentence, ("", ""), facts, bars(counts, "histogram of the weights"))


def _of_mixture(mixture: MatchedMixture) -> Summary:
    order = np.argsort(-mixture.weights_, kind="stable")[:LISTED]
    rows = [
        (f"{mixture.weights_[j]:.3f}", f"{mixture.variances_[j]:.4g}", _numbers(mixture.means_[j]))
        for j in order
    ]
    state = "converged" if mixture.converged_ else "stopped"
    sentence = f"{len(mixture.weights_)} Gaussians, {state} after {mixture.n_iter_} steps."
    return Summary(
        sentence, ("weight", "variance", "mean"), rows, bars(mixture.weights_, "weights")
    )


def _numbers(values: Array) -> str:
    return ", ".join(f"{each:.3g}" for each in values[:LISTED]) + ", …" * (len(values) > LISTED)


def _verdicts(comparison: Comparison) -> tuple[str, ...]:
    return comparison.verdict(), comparison.default_verdict(), comparison.stacked_verdict()


def _of_comparison(comparison: Comparison) -> Summary:
    rows = [
        (row.name, row.setting, row.gain_text, f"{100 * row.strength:.3g} %")
        for row in comparison.rows
    ]
    best = comparison.best
    words = f"gain over KME along the grid of {best.name}, the best marked"
    curve = "" if best.improvements is None else line(best.improvements, best.index, words)
    sentence = " ".join(filter(None, _verdicts(comparison)))
    header = ("estimator", "parameter", "gain over KME, % of its risk", "shrunk")
    return Summary(sentence, header, rows, curve, "good" if comparison.helps else "neutral")


def _of_test(result: Result) -> Summary:
    low, high = (
        min(result.permuted.min(), result.statistic),
        max(result.permuted.max(), result.statistic),
    )
    span = (float(low), float(high) if high > low else float(low) + 1)
    counts = np.histogram(result.permuted, BINS, span)[0]
    p = p_value_text(result.p_value, result.n_permutations, result.is_complete)
    words = f"histogram of the permuted statistics, the observed one marked, {p}"
    curve = bars(counts, words, (result.statistic - span[0]) / (span[1] - span[0]))
    kind = "found" if result.p_value <= LEVEL else "neutral"
    if isinstance(result, TwoSampleResult):
        rows = [
            (
                each.name,
                shift_text(each.shift),
                p_value_text(each.p_value, result.n_permutations, result.is_complete),
            )
            for each in result.features[:LISTED]
        ]
        first, second = getattr(result, "names", None) or ("X", "Y")
        return Summary(result.verdict(), _shift_header(first, second), rows, curve, kind)
    effect = f"{result.correlation:.2g}" if isinstance(result, IndependenceResult) else None
    facts = [("p-value", p.removeprefix("p = ").removeprefix("p "))]
    if effect is not None:
        facts.append(("kernel correlation (0: independent, to 1)", effect))
    return Summary(result.verdict(), ("", ""), facts, curve, kind)


def _shift_header(first: str, second: str) -> tuple[str, str, str]:
    return (
        "column",
        f"mean of {second} − mean of {first}, in standard deviations",
        "p, corrected for all columns",
    )


def _of_batch(result: DriftResult) -> Summary:
    rows = [
        (each.name, shift_text(each.shift), f"p = {each.p_value:.2g}") for each in result.features
    ]
    kind = "bad" if result.is_alarm else "neutral"
    return Summary(result.verdict(), _shift_header("the reference", result.name), rows, kind=kind)


def _of_detector(detector: DriftDetector) -> Summary:
    latest = detector.history_[-LISTED:]
    rows = [
        (each.name, f"{each.p_value:.3g}", f"{each.level:.3g}", "drift" * each.is_alarm)
        for each in latest
    ]
    curve = line(
        -np.log10([each.p_value for each in detector.history_]),
        -1,
        "−log p of every batch, the last marked",
    )
    kind = "bad" if detector.n_alarms_ else "neutral"
    return Summary(detector.verdict(), ("batch", "p", "level", ""), rows, curve, kind)


SUMMARIES: Mapping[type, Callable[[Any], Summary]] = {
    KernelMean: _of_mean,
    StackedMean: _of_stack,
    ConditionalMean: _of_conditional,
    KernelMeanMatching: _of_matching,
    MatchedMixture: _of_mixture,
    Comparison: _of_comparison,
    Result: _of_test,
    DriftResult: _of_batch,
    DriftDetector: _of_detector,
}
"""How each class is described; a class of a family is described as its nearest base."""


def with_progress(batches: Iterable[Any], total: int | None = None) -> ShownBatches:
    """Return batches that show their progress, as a bar in a notebook or a line on a terminal.

    Parameters
    ----------
    batches : iterable of arrays
        What ``fit_batches`` or ``compare`` takes, such as ``muhat.open_batches("big.parquet")``.
    total : int, default=None
        The number of rows, if the batches do not know it.

    Returns
    -------
    batches : ShownBatches
        The same batches.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import KernelMean
    >>> batches = [np.random.default_rng(0).normal(size=(50, 2)) for _ in range(4)]
    >>> KernelMean(gram="nystrom", filter="f-kmse").fit_batches(with_progress(batches, 200)).n_samples_seen_
    200
    """
    return ShownBatches(batches, total)


class ShownBatches:
    """Batches that show the progress of each pass over them."""

    def __init__(self, batches: Iterable[Any], total: int | None) -> None:
        self.batches, self.total, self.passes = batches, total, 0

    def __iter__(self) -> Iterator[Any]:
        """Yield the batches, and show how many of their rows have been worked on.

        It is a pass, and is shown, from the second batch on: who takes the first alone only looks at it.
        """
        rows, start, shown, show = 0, monotonic(), 0.0, None
        for batch in self.batches:
            yield batch
            show = show or self._begin()
            rows += len(batch)
            if monotonic() - shown > SECONDS:
                shown = monotonic()
                show(
                    self._state(rows, monotonic() - start),
                    rows,
                    self.total or getattr(self.batches, "n", None),
                )
        show = show or self._begin()
        show(self._state(rows, monotonic() - start) + ", done", rows, rows)

    def _begin(self) -> Callable[[str, int, int | None], object]:
        self.passes += 1
        return _display()

    def _state(self, rows: int, seconds: float) -> str:
        speed = f", {rows / seconds:,.0f} rows/s" if seconds > SECONDS else ""
        return f"pass {self.passes}: {rows:,} rows{speed}"


def _display() -> Callable[[str, int, int | None], object]:
    """Return how a state is shown: as a bar that a notebook updates, as a line on a terminal, or not at all."""
    ipython = sys.modules.get("IPython")
    if ipython is not None and hasattr(ipython.get_ipython(), "kernel"):
        handle = ipython.display.display(ipython.display.HTML(""), display_id=True)
        return lambda text, done, of: handle.update(ipython.display.HTML(_bar(text, done, of)))
    if sys.stderr is not None and sys.stderr.isatty():
        return lambda text, done, of: sys.stderr.write(
            f"\r{text:<60}" + "\n" * text.endswith("done")
        )
    return lambda text, done, of: None


def _bar(text: str, done: int, of: int | None) -> str:
    known = "" if of is None else f' value="{done}" max="{max(of, 1)}"'
    return f"<label>{escape(text)} <progress{known}></progress></label>"
