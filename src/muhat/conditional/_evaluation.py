"""How well a conditional mean predicts new rows, and which features it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._messages import p_value_text
from muhat._validation import ColumnFrame
from muhat.data import ReservoirSample, SampleBatch
from muhat.testing import TwoSampleTest
from muhat.testing._wording import source_columns

ROWS_LOOKED_AT = 500
"""Rows along which the effect of a feature is measured."""

ROWS_COMPARED = 500
"""Rows of each sample, drawn at random, that are tested for drift.

Enough to see where not to trust predictions.
"""

DRIFT_LEVEL = 0.01
"""Largest p-value at which new rows are said to be distributed differently in x."""

MOST_NAMED = 4
"""The most columns that a sentence names."""

NEARLY_ALL, ALL_BUT = 0.99, 0.999
"""R² from which on it has a third decimal, and from which on it is said to be above."""

CLEAR, SLIGHT = 4.0, 2.0
"""Standard errors by which new rows are predicted far worse, and worse, than left-out ones."""

FAR_RATIO, FAR_COVERAGE = 1.5, 0.1
"""What far worse also takes: an RMSE so many times larger, or so much less coverage."""


def effects(model: Any, X: Array) -> Array:
    """Return the standard deviation of predictions along each feature.

    The other features are at their medians.
    """
    some = X[np.linspace(0, len(X) - 1, min(len(X), ROWS_LOOKED_AT)).astype(int)]
    found = np.empty(X.shape[1])
    for column in range(len(found)):
        points = np.tile(np.median(X, axis=0), (len(some), 1))
        points[:, column] = some[:, column]
        found[column] = model.predict(points).std()
    return found


def copies_text(n_copies: int, n: int) -> str:
    """Return one sentence on rows that are copies of others."""
    are = "is an exact copy of another" if n_copies == 1 else "are exact copies of others"
    return f"{n_copies:,} of {n:,} rows {are}; all copies of a row are left out together."


@dataclass(frozen=True, eq=False)
class LeftOutFit:
    """How well one output is predicted for rows that were left out."""

    r2: float
    standard_error: float
    residuals: Array

    @classmethod
    def from_predictions(
        cls, truth: Array, predicted: Array, r2: float, n_copies: int = 0
    ) -> LeftOutFit:
        """Return R² with its standard error, from what each row gains over the mean of all others.

        Copies of rows say nothing, and make the error no smaller.
        """
        good = np.isfinite(predicted)  # rows of mass zero have no prediction
        truth, predicted = truth[good], predicted[good]
        n = len(truth)
        plain = (truth - truth.mean()) * n / max(n - 1, 1)
        gains, total = plain**2 - (truth - predicted) ** 2, float((plain**2).sum())
        error = gains.std() * n / max(n - n_copies, 1) ** 0.5
        return cls(r2, float(error / total) if total else 0.0, truth - predicted)

    @classmethod
    def from_model(cls, model: Any) -> LeftOutFit:
        """Return that of a fitted conditional mean of one output."""
        predicted = np.asarray(model.loo_predictions_)
        truth, score = predicted + np.asarray(model.loo_residuals_), float(model.loo_score_)
        return cls.from_predictions(truth, predicted, score, model.n_copies_ or 0)

    @property
    def helps(self) -> bool:
        """Whether R² is clearly above zero."""
        return self.r2 > max(0.0, SLIGHT * self.standard_error)

    def sentence(self, target: str, columns: Sequence[str]) -> str:
        """Return how well the target is predicted from the columns, in one sentence."""
        named = listed_columns(columns)
        if self.helps:
            typical, rmse = (
                float(np.median(np.abs(self.residuals))),
                float(np.sqrt(np.mean(self.residuals**2))),
            )
            found = (
                f"R² {r2_text(self.r2)} on rows left out, typical error {typical:.2g} (RMSE "
                f"{rmse:.2g})"
            )
            return f"{target} is predicted from {named}: {found}."
        do = "does" if len(source_columns(columns)) == 1 else "do"
        if self.r2 <= 0:
            return (
                f"{named} {do} not help to predict {target} (R² {r2_text(self.r2)} on rows "
                "left out)."
            )
        error = f"{r2_text(self.r2)} ± {self.standard_error:.2g}"
        return f"{named} {do} not clearly help to predict {target} (R² {error} on rows left out)."


def listed_columns(columns: Sequence[str]) -> str:
    """Return columns in words, the first of many.

    Examples
    --------
    >>> listed_columns(["x1", "x2", "colour = red", "colour = blue"]), listed_columns("abcdef")
    ('x1, x2 and colour', 'a, b, c and 3 more columns')
    """
    names = source_columns(columns)
    if len(names) > MOST_NAMED:
        names = [*names[: MOST_NAMED - 1], f"{len(names) - MOST_NAMED + 1} more columns"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def r2_text(value: float) -> str:
    """Return R² with two decimals, or with more where it would round to 1.

    Examples
    --------
    >>> r2_text(0.914), r2_text(-0.012), r2_text(0.9973), r2_text(0.99999)
    ('0.91', '−0.01', '0.997', 'above 0.999')
    """
    if value > ALL_BUT:
        return "1" if value == 1 else f"above {ALL_BUT}"
    text = f"{value:.{3 if value > NEARLY_ALL else 2}f}"
    return text.replace("-", "−") if float(text) else text.removeprefix("-")


@dataclass(frozen=True)
class Drift:
    """Whether x of new rows is distributed as x of the training rows, by a two-sample test."""

    p_value: float
    text: str
    """The p-value as text."""
    columns: tuple[str, ...]
    """The columns that differ by themselves, the largest difference first."""

    @classmethod
    def from_rows(cls, X: Array, new: Array, names: Sequence[str]) -> Drift | None:
        """Test new rows against training rows, some of many.

        None for a single new row, which no test can speak of.
        """
        if min(len(X), len(new)) < 2:
            return None
        drawn = (
            ReservoirSample.from_batch(SampleBatch(rows, 0), ROWS_COMPARED).rows
            for rows in (X, new)
        )
        samples = (ColumnFrame(rows, list(names)) for rows in drawn)
        result = TwoSampleTest(random_state=0).test(*samples)
        columns = tuple(each.name for each in result.features if each.p_value <= DRIFT_LEVEL)
        text = p_value_text(result.p_value, result.n_permutations, result.is_complete)
        return cls(result.p_value, text, columns)

    @property
    def is_found(self) -> bool:
        """Whether the rows are distributed differently."""
        return self.p_value <= DRIFT_LEVEL

    def sentence(self, train: str, new: str) -> str:
        """Return one sentence on a difference that was found."""
        named = ", ".join(self.columns[:MOST_NAMED]) + ", …" * (len(self.columns) > MOST_NAMED)
        found = f"{new} is distributed differently from {train} ({self.text})"
        return f"{found}: {named}." if named else f"{found}."


@dataclass(frozen=True)
class Evaluation:
    """Predictions of new rows beside those of left-out training rows."""

    errors: Array
    """True values minus predictions of new rows."""
    left_out: Array
    """The same of training rows, each predicted without it."""
    inside: Array
    """Whether each new value lies in its interval."""
    confidence: float
    r2: float | None
    loo_r2: float

    @classmethod
    def from_predictions(
        cls,
        true: Array,
        predicted: Array,
        ends: Array,
        left_out: Array,
        loo_r2: float,
        confidence: float,
    ) -> Evaluation:
        """Compare true values with predictions and the ends of their intervals."""
        spread = float(np.var(true))
        r2 = None if spread == 0 else float(1 - np.mean((true - predicted) ** 2) / spread)
        inside = (ends[:, 0] <= true) & (true <= ends[:, 1])
        return cls(true - predicted, left_out, inside, confidence, r2, loo_r2)

    @property
    def rmse(self) -> float:
        """The root mean squared error on new rows."""
        return float(np.sqrt(np.mean(self.errors**2)))

    @property
    def loo_rmse(self) -> float:
        """The same on left-out training rows."""
        return float(np.sqrt(np.mean(self.left_out**2)))

    @property
    def coverage(self) -> float:
        """The share of new values inside their intervals."""
        return float(self.inside.mean())

    @property
    def coverage_error(self) -> float:
        """The binomial standard error of the coverage, were the intervals as they should be."""
        share = self.confidence * (1 - self.confidence)
        return float(np.sqrt(share / len(self.inside) + share / len(self.left_out)))

    @property
    def standing(self) -> str:
        """How new rows are predicted beside left-out ones.

        ``'far worse'``, ``'worse'`` or ``'as well'``.

        Squared errors and coverage are compared with their standard errors. R² is not: it depends
        on how much the new values vary.
        """
        mine, its = self.errors**2, self.left_out**2
        error = float(np.sqrt(mine.var() / len(mine) + its.var() / len(its)))
        excess = float(mine.mean() - its.mean())
        lacking = (self.confidence - self.coverage) / self.coverage_error
        far_off = excess > CLEAR * error and self.rmse > FAR_RATIO * self.loo_rmse
        if far_off or (lacking > CLEAR and self.confidence - self.coverage > FAR_COVERAGE):
            return "far worse"
        return "worse" if excess > SLIGHT * error or lacking > SLIGHT else "as well"

    def sentence(self, new: str) -> str:
        """Return one sentence: how well new rows are predicted, beside left-out training rows."""
        worse = self.standing != "as well"
        start = (
            f"On {new} it does {self.standing} "
            + ("than" if worse else "as")
            + " on left-out training rows: "
        )
        r2 = "" if self.r2 is None else f"R² {_signed(self.r2)} against {_signed(self.loo_r2)}, "
        found = f"{r2}RMSE {self.rmse:.3g} against {self.loo_rmse:.3g}"
        percent, asked = f"{100 * self.coverage:.0f} %", f"{100 * self.confidence:g} %"
        return f"{start}{found}; {percent} of values are inside the {asked} intervals."


def _signed(value: float) -> str:
    """Return a number with two decimals and a true minus sign."""
    return f"{value:.2f}".replace("-", "−")
