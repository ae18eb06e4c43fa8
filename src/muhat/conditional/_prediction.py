"""Predictions of rows with intervals, how far to trust them, and which features they follow."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array
from muhat._frames import ColumnFrame
from muhat._reportable import Reportable
from muhat._text import agree, numbered
from muhat._validation import checked_sample, checked_target
from muhat._wording import rows_text, setting_text
from muhat.conditional._estimator import ConditionalMean
from muhat.conditional._evaluation import (
    CovariateShift,
    Evaluation,
    LeftOutFit,
    copies_text,
    r2_text,
)
from muhat.conditional._extrapolation import Extrapolation, ExtrapolationWarning
from muhat.data import hashed_rows
from muhat.errors import MuhatError, MuhatTypeError
from muhat.filters import name_of
from muhat.kernels import Precomputed
from muhat.testing._marginals import far_limits, in_units
from muhat.testing._results import short
from muhat.testing._row_order import RowOrder

MAX_EFFECT_ROWS = 500
"""Rows along which the effect of a feature is measured."""

MIN_FAR_SHARE = 0.5
"""Share of the variance of y that far values must make for a caution."""

MIN_DIFFERENT_SHARE = 0.9
"""The share of different training rows above which finding new rows among them means something."""

TRAINING_NAME = "the training rows"
"""What sentences call the training rows, unless they have a name."""

LEFT_OUT_INTERVALS = "leave-one-out residuals"
"""How intervals of training rows are made: around each left-out prediction, by all residuals."""


def evaluate(
    model: ConditionalMean,
    X: Any = None,
    y: Any = None,
    *,
    confidence: float = 0.9,
    intervals: str = "residuals",
    names: Sequence[str] = (TRAINING_NAME, "the new rows"),
    columns: Sequence[str] | None = None,
    target: str = "y",
) -> PredictionResult:
    """Predict rows with intervals, and estimate how accurate the predictions are.

    New rows with their y are scored beside left-out training rows; x of new rows is tested for
    covariate shift. Without new rows, each training row is predicted from all others.

    Parameters
    ----------
    model : ConditionalMean
        A model of one output, fitted to rows in memory.
    X : array or data frame of shape (m, d), default=None
        New rows.
    y : array of shape (m,), default=None
        Their true values, if known.
    confidence : float, default=0.9
        The share of y that the intervals are made to hold.
    intervals : {'residuals', 'jackknife+', 'conformal'}, default='residuals'
        How intervals of new rows are made, as in ``ConditionalMean.predict_interval``.
    names : pair of str
        What sentences call the training rows and the new rows.
    columns : sequence of str of length d, default=None
        The names of the features; by default those that the model was fitted with.
    target : str, default='y'
        The name of y.

    Returns
    -------
    result : PredictionResult
        The predictions, with a verdict.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import ConditionalMean
    >>> x = np.linspace(0, 3, 60)[:, None]
    >>> model = ConditionalMean().fit(x[::2], np.sin(x[::2, 0]))
    >>> result = evaluate(model, x[1::2], np.sin(x[1::2, 0]))
    >>> result.r2 > 0.99, result.shift.is_found
    (True, False)
    """
    rows, _ = _training_rows(model)
    columns = _feature_names(model, columns)
    if X is None:
        names = names[:1]
        found = _left_out_predictions(model, confidence)
    else:
        new = checked_sample(model, X, reset=False).astype(np.float64, copy=False)
        true = None
        if y is not None:
            true = checked_target("evaluate", y, len(new))
        found = _new_predictions(model, new, true, confidence, intervals)
        found["shift"] = CovariateShift.from_rows(rows, new, columns)
        if model._training_region is not None:
            scaled = model._scaled(new)
            found["extrapolation"] = Extrapolation.from_rows(
                model._training_region, scaled, columns
            )
    return PredictionResult(
        model=model,
        columns=columns,
        target=target,
        names=tuple(names),
        confidence=confidence,
        importance=feature_effects(model, rows),
        row_numbers=np.arange(1, len(found["predicted"]) + 1),
        row_order=_residual_order(model),
        **found,
    )


def _residual_order(model: ConditionalMean) -> RowOrder | None:
    """Return whether left-out errors of neighbouring training rows are alike, beyond chance.

    Copies of a row are left out together and have similar errors, so only the first is looked at.
    """
    residuals = np.asarray(model.loo_residuals_)
    is_kept = np.isfinite(residuals)  # rows of mass zero have no prediction
    if model.n_copies_:
        is_first = np.zeros(len(residuals), dtype=bool)
        is_first[np.unique(hashed_rows(_training_rows(model)[0]), return_index=True)[1]] = True
        is_kept &= is_first
    return RowOrder.from_samples([residuals[is_kept, None]], ["errors"])


def _left_out_predictions(model: ConditionalMean, confidence: float) -> dict[str, Any]:
    """Return fields of the result: each training row predicted from all others."""
    rows, outputs = _training_rows(model)
    X = _named(model, rows)
    around = model.predict_interval(X, confidence) - model.predict(X)[:, None]
    predicted = model.loo_predictions_
    return {
        "intervals": LEFT_OUT_INTERVALS,
        "predicted": predicted,
        "ends": predicted[:, None] + around,
        "true": outputs,
    }


def _new_predictions(
    model: ConditionalMean, new: Array, true: Array | None, confidence: float, intervals: str
) -> dict[str, Any]:
    """Return fields of the result: predictions of new rows, scored if their y is known."""
    X = _named(model, new)
    with warnings.catch_warnings(action="ignore", category=ExtrapolationWarning):
        ends = model.predict_interval(X, confidence, intervals)  # the verdict says which are far
    found: dict[str, Any] = {
        "intervals": intervals,
        "predicted": model.predict(X),
        "ends": ends,
        "true": true,
        "new_rows": new,
    }
    if true is not None:
        rows, outputs = _training_rows(model)
        left_out = model.loo_residuals_, model.loo_score_
        found["evaluation"] = Evaluation.from_predictions(
            true, found["predicted"], ends, *left_out, confidence
        )
        found["has_training_rows"] = _are_among(
            np.column_stack([new, true]), np.column_stack([rows, outputs])
        )
    return found


@dataclass(frozen=True, eq=False)
class PredictionResult(Reportable):
    """Predictions of rows, with intervals and a verdict on how far they can be trusted.

    Attributes
    ----------
    model : ConditionalMean
        The model.
    columns : tuple of str
        The names of its features.
    target : str
        The name of y.
    names : tuple of str
        What the training rows are called, and the new rows if there are any.
    confidence : float
        The share of y that the intervals are made to hold.
    intervals : str
        How they were made.
    importance : array of shape (d,)
        The standard deviation of the prediction along each feature, all others at their medians.
    predicted : array of shape (m,)
        The predictions of the new rows, or of each training row when it is left out.
    ends : array of shape (m, 2)
        The lower and upper ends of their intervals.
    true : array of shape (m,) or None
        The true values, where they are known.
    row_numbers : array of int of shape (m,)
        The numbers of the rows in tables, from 1.
    new_rows : array of shape (m, d) or None
        x of the new rows.
    evaluation : Evaluation or None
        How well new rows are predicted, compared with left-out training rows; None if the true
        values of new rows are not known.
    shift : CovariateShift or None
        Whether x of new rows is distributed differently from x of the training rows.
    has_training_rows : bool
        Whether the new rows, with their y, are all among the training rows.
    extrapolation : Extrapolation or None
        Which new rows are far from all training rows.
    row_order : RowOrder or None
        The rank ``correlation`` of left-out errors of training rows that follow each other, if they
        are alike beyond chance, as in a time series; else None.
    left_out : tuple of str
        Sentences on what of the data was left out, with which the verdict ends.
    """

    model: ConditionalMean
    columns: tuple[str, ...]
    target: str
    names: tuple[str, ...]
    confidence: float
    intervals: str
    importance: Array
    predicted: Array
    ends: Array
    true: Array | None
    row_numbers: Array
    new_rows: Array | None = None
    evaluation: Evaluation | None = None
    shift: CovariateShift | None = None
    has_training_rows: bool = False
    extrapolation: Extrapolation | None = None
    row_order: RowOrder | None = None
    left_out: tuple[str, ...] = ()

    @property
    def training_rows(self) -> tuple[Array, Array]:
        """x and y of the rows that the model was fitted to, of shapes (n, d) and (n,)."""
        return _training_rows(self.model)

    @property
    def name(self) -> str:
        """The name of the predicted rows."""
        if self.new_rows is None:
            return f"{self.names[0]}, each row from all others"
        return self.names[1]

    @property
    def has_shift(self) -> bool:
        """Whether new rows are distributed differently from the training rows."""
        return self.shift is not None and self.shift.is_found

    @property
    def r2(self) -> float | None:
        """R² on these rows, where their true values are known and vary."""
        if self.new_rows is None:
            return float(self.model.loo_score_)
        if self.evaluation is None:
            return None
        return self.evaluation.r2

    @property
    def coverage(self) -> float | None:
        """The share of new true values in their intervals; None for training rows."""
        if self.evaluation is None:
            return None
        return self.evaluation.coverage

    @property
    def details(self) -> str:
        """The filter and its parameter, and the kernel."""
        model = self.model
        setting = setting_text(model.filter_.symbol, model.choice_.parameter)
        how = f"{name_of(model.filter_)} filter, {setting}"
        return f"{how[0].upper()}{how[1:]}, kernel {short(model.kernel_)}"

    def verdict(self) -> str:
        """Return how well these rows are predicted, with warnings, in sentences."""
        n = len(self.training_rows[0])
        sentences = [self._shift_first(), self._score_sentence(), self.far_values_note]
        sentences.append(self.two_values_note)
        if self.model.n_copies_:
            sentences.append(copies_text(self.model.n_copies_, n))
        sentences.append(self.row_order_note)
        if self.has_training_rows:
            what = "All rows of {} are training rows"
            if len(self.predicted) == n:
                what = "The rows of {} are the training rows"
            known = f"{what.format(self.name)}, so this does not show how well new rows are"
            sentences.append(f"{known} predicted.")
        if self.extrapolation is not None:
            sentences.append(self.extrapolation.sentence(self.name, self.row_numbers))
        if self.shift is not None and self.shift.is_found and self.evaluation is not None:
            sentences.append(self.shift.sentence(self.name))
        return " ".join(filter(None, [*sentences, *self.left_out]))

    def _shift_first(self) -> str:
        """Return a caution that comes first: new rows differ, and their truth is not known."""
        if self.shift is None or not self.shift.is_found or self.evaluation is not None:
            return ""
        differ = self.shift.sentence(self.name, f"the rows of {self.name}")
        return f"Caution: {differ} Predictions and intervals may be wrong."

    @property
    def far_values_note(self) -> str:
        """That a few values of y are far from all others and make most of its variance."""
        y = self.training_rows[1]
        low, high = far_limits(y[:, None])
        is_far = (y < low) | (y > high)
        if not is_far.any():
            return ""
        scaled = in_units(y)
        squares = (scaled - np.median(scaled)) ** 2
        share = float(squares[is_far].sum() / squares.sum())
        if share < MIN_FAR_SHARE:
            return ""
        far = y[is_far]
        n_far = len(far)
        extreme = f"{far[np.abs(far - np.median(y)).argmax()]:.6g}".replace("-", "−")
        are = agree(n_far, "is", "are")
        values = f"{n_far:,} of {len(y):,} values of {self.target} {are} far from all others"
        size = f"({agree(n_far, '', 'up to ')}{extreme})"
        make = f"{agree(n_far, 'makes', 'make')} {100 * share:.0f} % of its variance"
        depend = "R², RMSE and predictions depend on them"
        return f"Caution: {values} {size} and {make}: {depend}."

    @property
    def two_values_note(self) -> str:
        """That y has only two values, such as 0 and 1, so that intervals say little; else empty."""
        values = np.unique(self.training_rows[1])
        if len(values) != 2:
            return ""
        low, high = map("{:g}".format, values)
        mean = "an estimate of their mean"
        if (low, high) == ("0", "1"):
            mean = "an estimate of the probability of 1"
        return (
            f"{self.target} has only the values {low} and {high}: read a prediction as {mean}, "
            "and ignore prediction intervals, which can go beyond these values."
        )

    @property
    def row_order_note(self) -> str:
        """That training rows are not independent, so that left-out errors are too small."""
        if self.row_order is None:
            return ""
        alike = "Errors of neighbouring training rows are alike"
        measured = f"(rank correlation {self.row_order.correlation:.2f})"
        return (
            f"{alike} {measured}, as in a time series: if the training rows are in time order, R² "
            "and intervals may be far too optimistic for later rows."
        )

    @property
    def is_useless(self) -> bool:
        """Whether R² is clearly above zero neither on new rows, nor on left-out training rows.

        False where the truth of new rows is not known, or new rows are predicted worse.
        """
        if self.evaluation is None or self.true is None:
            return False
        if self.evaluation.standing in ("worse", "far worse"):
            return False
        if self.evaluation.r2 is None or LeftOutFit.from_model(self.model).helps:
            return False
        on_new = LeftOutFit.from_predictions(self.true, self.predicted, self.evaluation.r2)
        return not on_new.helps

    def _score_sentence(self) -> str:
        """Return how well rows are predicted: new ones if their y is known, else left-out ones."""
        if self.evaluation is not None:
            if self.is_useless:
                return self.evaluation.no_fit_sentence(self.target, self.name, self.columns)
            return self.evaluation.sentence(self.target, self.name)
        fit = LeftOutFit.from_model(self.model)
        known = fit.sentence(self.target, self.columns)
        if self.new_rows is None:
            return known
        rows = f"{rows_text(len(self.predicted))} of {self.name}"
        if not fit.helps:
            return f"Predictions for {rows}. {known}"
        training = f"rows of {self.names[0]}"
        if self.names[0] == TRAINING_NAME:
            training = "training rows"
        n = rows_text(len(self.training_rows[0]))
        return (
            f"{self.target} is predicted for {rows}, with {100 * self.confidence:g} % intervals. "
            f"On {training} left out of the fit ({n}) R² is {r2_text(fit.r2)}. {fit.few_rows_note}"
        ).rstrip()

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers and sentences in JSON's types."""
        model = self.model
        rmse, p_value, columns = None, None, []
        if self.evaluation is not None:
            rmse = self.evaluation.rmse
        if self.shift is not None:
            p_value, columns = self.shift.p_value, list(self.shift.columns)
        return {
            "target": self.target,
            "n": len(self.training_rows[0]),
            "n_copies": model.n_copies_,
            "filter": repr(model.filter_),
            "parameter": model.choice_.parameter,
            "kernel": repr(model.kernel_),
            "loo_r2": model.loo_score_,
            "loo_rmse": float(np.sqrt(np.mean(model.loo_residuals_**2))),
            "importance": dict(zip(self.columns, self.importance.tolist(), strict=True)),
            "confidence": self.confidence,
            "intervals": self.intervals,
            "shown": self.name,
            "r2": self.r2,
            "coverage": self.coverage,
            "rmse": rmse,
            "drift_p_value": p_value,
            "drift_columns": columns,
            **self._far_rows(),
            "row_order": None if self.row_order is None else self.row_order.to_dict(),
            "verdict": self.verdict(),
            "details": self.details,
            "predictions": self._prediction_dicts(),
        }

    def _far_rows(self) -> dict[str, Any]:
        """Return which new rows are far from all training rows, and how many leave their range."""
        found = self.extrapolation
        if found is None:
            return {"n_far": None, "far_rows": [], "n_outside_range": None}
        return {
            "n_far": found.n_far,
            "far_rows": self.row_numbers[found.is_far].tolist(),
            "n_outside_range": int(found.is_outside.sum()),
        }

    def _prediction_dicts(self) -> list[dict[str, Any]]:
        rows = []
        columns = self.row_numbers.tolist(), self.predicted.tolist(), self.ends.tolist()
        for number, predicted, (lower, upper) in zip(*columns, strict=True):
            row = {"row": number, "prediction": predicted, "lower": lower, "upper": upper}
            rows.append(row)
        return rows


def feature_effects(model: ConditionalMean, X: Array) -> Array:
    """Return the standard deviation of predictions along each feature, others at their medians.

    Parameters
    ----------
    model : ConditionalMean
        The model.
    X : array of shape (n, d)
        Rows; at most 500 of them are the values along each feature.

    Returns
    -------
    effects : array of shape (d,)
        In units of y.
    """
    some = X[np.linspace(0, len(X) - 1, min(len(X), MAX_EFFECT_ROWS)).astype(int)]
    effects = np.empty(X.shape[1])
    for column in range(len(effects)):
        points = np.tile(np.median(X, axis=0), (len(some), 1))
        points[:, column] = some[:, column]
        effects[column] = model.predict(_named(model, points)).std()
    return effects


def _training_rows(model: ConditionalMean) -> tuple[Array, Array]:
    """Return x and y of the rows that a model of one output was fitted to, or raise MuhatError."""
    if not isinstance(model, ConditionalMean):
        raise MuhatTypeError("evaluate", "a ConditionalMean is needed", type(model).__name__)
    check_is_fitted(model, "choice_")
    if model._rows is None or isinstance(model.kernel_, Precomputed):
        needed = "a model that was fitted to rows in memory is needed"
        raise MuhatError("evaluate", needed, "one fitted in batches or with a precomputed kernel")
    X, y, _ = model._rows
    if y.ndim != 1:
        raise MuhatError("evaluate", "a model of one output is needed", f"{y.shape[1]} outputs")
    return X, y


def _feature_names(model: ConditionalMean, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return names for the features: as given, as fitted, or numbered from 1."""
    if columns is None:
        unnamed = numbered("column", model.n_features_in_, start=1)
        columns = getattr(model, "feature_names_in_", unnamed)
    return tuple(map(str, columns))


def _named(model: ConditionalMean, X: Array) -> Any:
    """Return rows with the names of the features, if the model was fitted with names."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return X
    return ColumnFrame(X, list(names))


def _are_among(new: Array, training: Array) -> bool:
    """Whether all new rows are among the training rows, most of which differ from each other."""
    hashes = hashed_rows(training)
    if len(np.unique(hashes)) <= MIN_DIFFERENT_SHARE * len(hashes):
        return False
    return bool(np.isin(hashed_rows(new), hashes).all())
