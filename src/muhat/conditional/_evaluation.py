"""How well rows are predicted: left-out R², errors and coverage on new rows, covariate shift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._frames import ColumnFrame
from muhat._text import agree, listed, number
from muhat._wording import p_value_text, rows_text
from muhat.data import ReservoirSample, SampleBatch
from muhat.embedding import Embedding
from muhat.kernels import Precomputed
from muhat.mean import KernelMean
from muhat.stacking import StackedMean
from muhat.testing import TwoSampleTest
from muhat.testing._wording import change_direction, source_columns

MAX_SHIFT_ROWS = 500
"""Rows of each sample, drawn at random, that are tested for covariate shift.

They are enough to see where predictions should not be trusted.
"""

MAX_TRAINING_ROWS = 5000
"""Rows of a saved model up to which new rows are compared with them."""

SHIFT_LEVEL = 0.01
"""The p-value of the test on x up to which new rows are called differently distributed."""

MAX_NAMED_COLUMNS = 4
"""The most columns that a sentence names."""

R2_THREE_DECIMALS, R2_MAX_SHOWN = 0.99, 0.999
"""R² above which it gets a third decimal, and above which only "above 0.999" is said."""

WORSE_ERRORS, FAR_WORSE_ERRORS = 2.0, 4.0
"""Standard errors by which new rows must be predicted worse than left-out ones to say so."""

FAR_WORSE_RMSE_RATIO, FAR_WORSE_COVERAGE_LOSS = 1.5, 0.1
"""Effect sizes that "far worse" needs as well: the ratio of RMSEs, or the coverage that is lost."""

FEW_ROWS, MIN_R2_OF_FEW_ROWS = 20, 0.9
"""Rows below which R² may be chance, and the R² that "can be predicted" needs with so few rows.

Their standard error is too small: of samples of 5 rows of noise, 1 in 9 had an R² of two standard
errors or more, up to 0.89. From 15 rows on it was about 1 in 60.
"""

LITTLE_R2 = 0.5
"""R² below which y is said to be predicted in part."""

LEFT_OUT_ROWS = "rows left out of the fit"
"""What left-out rows are called in verdicts, which are read by people who know no folds."""

UNCLEAR_RMSE_RATIO, UNCLEAR_COVERAGE_LOSS = 1.2, 0.05
"""From these on a loss that may be chance is not called "about as well"."""


def training_rows(model: Any) -> Array | None:
    """Return the rows that a fitted model holds, to compare new ones with them.

    Parameters
    ----------
    model : ConditionalMean, KernelMean, StackedMean, KernelPCA or any other object
        The model.

    Returns
    -------
    rows : array of shape (n, d) or None
        None for a model that does not hold all of its rows, holds more than 5,000, or was fitted
        to a precomputed kernel.
    """
    rows: Array | None = None
    if isinstance(model, KernelMean | StackedMean):
        element = getattr(model.embedding_, "atoms", model.embedding_)
        if isinstance(element, Embedding):
            rows = element.points[: model.n_samples_seen_]
            if len(rows) < model.n_samples_seen_:
                return None
    elif getattr(model, "_rows", None) is not None:  # a conditional mean of rows in memory
        rows = model._rows[0]
    elif getattr(model, "_kept", None) is not None:  # of a kernel PCA, all rows or some at random
        rows = model._kept.X
    if rows is None or len(rows) > MAX_TRAINING_ROWS or isinstance(model.kernel_, Precomputed):
        return None
    return np.asarray(rows, np.float64)


def copies_text(n_copies: int, n: int) -> str:
    """Return a sentence that says how many rows are copies of other rows."""
    are = agree(n_copies, "is an exact copy of another", "are exact copies of other rows")
    return (
        f"{n_copies:,} of {n:,} rows {are}. Leave-one-out leaves out all copies of a row together."
    )


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
        """Return R² with its standard error, by the delta method for 1 − Σe² / Σ(y − ȳ)².

        Copies of rows add no information, so they do not make the error smaller.
        """
        good = np.isfinite(predicted)  # rows of mass zero have no prediction
        truth, predicted = truth[good], predicted[good]
        n = len(truth)
        plain, squared = (truth - truth.mean()) ** 2, (truth - predicted) ** 2
        total = float(plain.sum())
        error = 0.0
        if total:
            influence = squared - plain * float(squared.sum()) / total
            error = float(influence.std() * n / max(n - n_copies, 1) ** 0.5 / total)
        return cls(r2, error, truth - predicted)

    @classmethod
    def from_model(cls, model: Any) -> LeftOutFit:
        """Return the fit of a conditional mean of one output."""
        predicted = np.asarray(model.loo_predictions_)
        truth = predicted + np.asarray(model.loo_residuals_)
        return cls.from_predictions(truth, predicted, float(model.loo_score_), model.n_copies_ or 0)

    @property
    def helps(self) -> bool:
        """Whether R² is clearly above zero; with few rows it must also be at least 0.9."""
        if self.is_of_few_rows and self.r2 < MIN_R2_OF_FEW_ROWS:
            return False
        return self.r2 > max(0.0, WORSE_ERRORS * self.standard_error)

    @property
    def is_of_few_rows(self) -> bool:
        """Whether there are fewer than 20 rows, which show little."""
        return len(self.residuals) < FEW_ROWS

    @property
    def few_rows_note(self) -> str:
        """A sentence that R² above zero of few rows may be chance; else empty."""
        if not self.is_of_few_rows or self.r2 <= 0:
            return ""
        return f"This is from {rows_text(len(self.residuals))} only, so R² may be chance."

    def sentence(self, target: str, columns: Sequence[str]) -> str:
        """Return how well the target is predicted from the columns, if at all.

        It is one sentence, and another where there are few rows.
        """
        return f"{self._fit_sentence(target, columns)} {self.few_rows_note}".rstrip()

    def _fit_sentence(self, target: str, columns: Sequence[str]) -> str:
        """Return how well the target is predicted, however many rows there are."""
        named = listed_columns(columns)
        r2 = f"R² {r2_text(self.r2)}"
        rows = rows_text(len(self.residuals))
        if self.helps:
            median = float(np.median(np.abs(self.residuals)))
            rmse = float(np.sqrt(np.mean(self.residuals**2)))
            errors = f"median absolute error {number(median, 2)}, RMSE {number(rmse, 2)}"
            can = "can be predicted"
            if self.r2 < LITTLE_R2:
                can = "can be predicted in part"
            return f"{target} {can} from {named}: {r2} on {LEFT_OUT_ROWS} ({rows}; {errors})."
        if self.r2 <= 0:
            found = f"on {LEFT_OUT_ROWS}, predictions are no better than the mean ({rows}; {r2})"
            return f"The model cannot predict {target} from {named}: {found}."
        found = f"{r2}, standard error {self.standard_error:.2g}, on {LEFT_OUT_ROWS} ({rows})"
        return f"It is not clear whether {target} can be predicted from {named}: {found}."


def listed_columns(columns: Sequence[str]) -> str:
    """Return columns in words, the first of many.

    Examples
    --------
    >>> listed_columns(["x1", "x2", "colour = red", "colour = blue"]), listed_columns("abcdef")
    ('x1, x2 and colour', 'a, b, c and 3 more columns')
    """
    return listed(source_columns(columns), MAX_NAMED_COLUMNS, "more columns")


def r2_text(value: float) -> str:
    """Return R² with two decimals, or with more where it would round to 1.

    Examples
    --------
    >>> r2_text(0.914), r2_text(-0.012), r2_text(0.9973), r2_text(0.99999)
    ('0.91', '−0.01', '0.997', 'above 0.999')
    """
    if value == 1:
        return "1"
    if value > R2_MAX_SHOWN:
        return f"above {R2_MAX_SHOWN}"
    decimals = 2
    if value > R2_THREE_DECIMALS:
        decimals = 3
    text = f"{value:.{decimals}f}"
    if float(text) == 0:  # no minus sign before a zero
        return text.removeprefix("-")
    return text.replace("-", "−")


@dataclass(frozen=True)
class CovariateShift:
    """Whether x of new rows differs in distribution from x of the training rows, by a test."""

    p_value: float
    p_text: str
    """The p-value as text."""
    columns: tuple[str, ...]
    """The columns whose own distributions differ, the largest difference first."""
    direction: str = ""
    """"higher" or "lower": the mean of the first of them in the new rows. Empty if the means
    hardly differ, and for indicators of a text column."""

    @classmethod
    def from_rows(cls, X: Array, new: Array, names: Sequence[str]) -> CovariateShift | None:
        """Test new rows against training rows, at most 500 of each.

        Parameters
        ----------
        X, new : arrays of shape (n, d) and (m, d)
            x of the training rows and of the new ones.
        names : sequence of str
            The names of the d columns.

        Returns
        -------
        shift : CovariateShift or None
            None for a single row, which no test can compare with others.
        """
        if min(len(X), len(new)) < 2:
            return None
        samples = []
        for rows in (X, new):
            drawn = ReservoirSample.from_batch(SampleBatch(rows, 0), MAX_SHIFT_ROWS).rows
            samples.append(ColumnFrame(drawn, list(names)))
        result = TwoSampleTest(random_state=0).test(*samples)
        columns = tuple(each.name for each in result.features if each.p_value <= SHIFT_LEVEL)
        text = p_value_text(result.p_value, result.n_permutations, result.is_complete)
        direction = ""
        if columns:
            direction = change_direction(result.features[0], (result.n, result.m))
        return cls(result.p_value, text, columns, direction)

    @property
    def is_found(self) -> bool:
        """Whether the rows are distributed differently."""
        return self.p_value <= SHIFT_LEVEL

    def sentence(
        self, new: str, rows: str = "The new rows", training: str = "the training rows"
    ) -> str:
        """Return one sentence on a difference that was found; ``new`` is the new sample's name."""
        found = f"{rows} are distributed differently from {training}"
        if not self.columns:
            return f"{found} ({self.p_text})."
        first, *others = self.columns
        if self.direction:
            first = f"{first} ({self.direction} in {new})"
        named = listed([first, *others], MAX_NAMED_COLUMNS, "more columns")
        return f"{found} ({self.p_text}), most of all in {named}."


@dataclass(frozen=True)
class Evaluation:
    """Predictions of new rows, compared with left-out predictions of training rows."""

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
        variance = float(np.var(true))
        r2 = None  # of values that do not vary
        if variance > 0:
            r2 = float(1 - np.mean((true - predicted) ** 2) / variance)
        inside = (ends[:, 0] <= true) & (true <= ends[:, 1])
        return cls(true - predicted, left_out, inside, confidence, r2, loo_r2)

    @property
    def rmse(self) -> float:
        """The root mean squared error on new rows."""
        return float(np.sqrt(np.mean(self.errors**2)))

    @property
    def loo_rmse(self) -> float:
        """The root mean squared error on left-out training rows."""
        return float(np.sqrt(np.mean(self.left_out**2)))

    @property
    def coverage(self) -> float:
        """The share of new values inside their intervals."""
        return float(self.inside.mean())

    @property
    def coverage_error(self) -> float:
        """The binomial standard error of the coverage, if the intervals are right."""
        share = self.confidence * (1 - self.confidence)
        return float(np.sqrt(share / len(self.inside) + share / len(self.left_out)))

    @property
    def standing(self) -> str:
        """How well new rows are predicted: 'far worse', 'worse', 'unclear' or 'as well'.

        Squared errors and coverage are compared with their standard errors. R² is not compared: it
        depends on how much the new values vary.
        """
        new, left_out = self.errors**2, self.left_out**2
        error = float(np.sqrt(new.var() / len(new) + left_out.var() / len(left_out)))
        excess = float(new.mean() - left_out.mean())
        lost = self.confidence - self.coverage
        errors_lost = lost / self.coverage_error
        is_far_off = self.rmse > FAR_WORSE_RMSE_RATIO * self.loo_rmse
        if is_far_off and excess > FAR_WORSE_ERRORS * error:
            return "far worse"
        if lost > FAR_WORSE_COVERAGE_LOSS and errors_lost > FAR_WORSE_ERRORS:
            return "far worse"
        if excess > WORSE_ERRORS * error or errors_lost > WORSE_ERRORS:
            return "worse"
        if self.rmse > UNCLEAR_RMSE_RATIO * self.loo_rmse or lost > UNCLEAR_COVERAGE_LOSS:
            return "unclear"
        return "as well"

    def sentence(self, target: str, new: str) -> str:
        """Return a sentence that compares new rows with left-out training rows."""
        rows = f"{new} ({rows_text(len(self.errors))})"
        start, doubt = f"The model predicts {target} {self.standing} on {rows} than", ""
        if self.standing == "as well":
            start = f"The model predicts {target} about as well on {rows} as"
        elif self.standing == "unclear":
            start = f"The model seems to predict {target} worse on {rows} than"
            doubt = ", but this may be chance"
        found = f"RMSE {number(self.rmse)} against {number(self.loo_rmse)}"
        if self.r2 is not None:
            below = ""
            if self.r2 < 0:
                below = " (below zero: worse than predicting the mean)"
            found = f"R² {_signed(self.r2)}{below} against {_signed(self.loo_r2)}, {found}"
        left_out = f"on training {LEFT_OUT_ROWS}"
        sentences = [f"{start} {left_out}{doubt}: {found}.", self._disagreement(target, new)]
        sentences.append(f"{self._coverage_text} of {new}.")
        return " ".join(filter(None, sentences))

    def _disagreement(self, target: str, new: str) -> str:
        """Return why R² is higher on new rows though errors are larger; empty if it is not."""
        if self.standing == "as well" or self.r2 is None:
            return ""
        if self.r2 <= self.loo_r2 or self.rmse <= self.loo_rmse:
            return ""
        return f"R² is higher although errors are larger, because {target} varies more in {new}."

    def no_fit_sentence(self, target: str, new: str, columns: Sequence[str]) -> str:
        """Return the sentence for the case that neither R² is clearly above zero."""
        finding = f"The model cannot predict {target} from {listed_columns(columns)}"
        if max(self.r2 or 0.0, self.loo_r2) > 0:
            named = listed_columns(columns)
            finding = f"It is not clear whether {target} can be predicted from {named}"
        on_new = f"R² is {_signed(self.r2 or 0.0)} on {new} ({rows_text(len(self.errors))})"
        on_training = f"{_signed(self.loo_r2)} on training {LEFT_OUT_ROWS}"
        return f"{finding}: {on_new} and {on_training}. {self._coverage_text} of {new}."

    @property
    def _coverage_text(self) -> str:
        """The share of values inside their intervals, in words."""
        percent, asked = f"{100 * self.coverage:.0f} %", f"{100 * self.confidence:g} %"
        return f"The {asked} intervals contain {percent} of the true values"


def _signed(value: float) -> str:
    """Return a number with two decimals and a true minus sign."""
    return f"{value:.2f}".replace("-", "−")
