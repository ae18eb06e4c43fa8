"""Learning from groups: one y for each group, by regression on their kernel means."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import floor
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array, as_array
from muhat._bases import BaseEstimator, ClassifierMixin, RegressorMixin
from muhat._labels import distinct_labels
from muhat._messages import unknown_name
from muhat._parts import HasKernel
from muhat._unsaved_caches import UnsavedCaches
from muhat._validation import checked_target
from muhat.conditional._intervals import (
    CALIBRATION_SHARE,
    INTERVALS,
    ResidualQuantiles,
    check_calibration,
    checked_confidence,
    checked_place,
    reach_of,
)
from muhat.errors import MuhatError
from muhat.groups._estimator import KernelMeans
from muhat.groups._regression import MEANS, GroupRegressions, fitted_vectors, new_vectors
from muhat.groups._rows import LabelledRows, is_by_sample, is_missing, labelled_rows, new_groups
from muhat.groups._targets import target_by_group

N_FOLDS = 5
"""Folds of groups that choices are cross-validated by."""

MIN_GROUPS_TO_CHOOSE = 10
"""Groups from which on ``means="auto"`` chooses: with fewer it takes the plain means."""


class _GroupLearner(UnsavedCaches, HasKernel):
    """What learning numbers and classes from groups have in common."""

    groups_: Array
    means_: str
    means_errors_: dict[str, float] | None
    group_means_: KernelMeans
    left_out_predictions_: Array

    _rows: LabelledRows
    """The rows of the groups that were fitted, as they were given."""
    _y: Array
    """What is learnt, of shape (T, outputs)."""
    _fit: GroupRegressions

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        means: str = "plain",
        filter: Any = "tikhonov",
        gram: Any = "auto",
        standardize: bool = True,
        transductive: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.means = means
        self.filter = filter
        self.gram = gram
        self.standardize = standardize
        self.transductive = transductive
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Fit to groups whose y is known.

        Parameters
        ----------
        X, groups, sample_weight
            As of `KernelMeans.fit`.
        y : array of shape (T,), mapping of labels to values, or Series with labels as its index
            One for each group. An array has them in the order of the samples of a list; for rows
            with labels, in the order of the labels, in which the groups must appear.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        rows = labelled_rows(self, X, groups, sample_weight, None)
        by_group = target_by_group(type(self).__name__, y, rows, is_by_sample(X, groups))
        self._y = self._encoded(by_group)
        self._rows = rows
        self.groups_ = rows.labels
        for name in ("nested_score_", "_calibration"):  # of an earlier fit
            self.__dict__.pop(name, None)
        self.group_means_ = self._estimated_means(rows)
        self.means_errors_ = None
        self.means_ = self.means
        if self.means == "auto":
            self.means_ = self._best_means()
        vectors = fitted_vectors(self.group_means_, self._names)
        self._fit = GroupRegressions.fit(vectors, self._y, self.filter)
        self.left_out_predictions_ = self._decoded(self._fit.left_out)
        return self

    def predict(self, X: Any, groups: Any = None) -> Array:
        """Return a prediction for each new group, in the order of the list or of sorted labels.

        Parameters
        ----------
        X, groups
            New groups, as for ``fit``. With ``transductive=True`` their rows join those that were
            fitted, and everything is fitted again: a prediction then depends on the other groups
            that are predicted with it.

        Returns
        -------
        predicted : array of shape (groups,)
            The predictions.
        """
        return self._decoded(self._outputs(X, groups))

    @property
    def loo_score_(self) -> float:
        """The score on left-out groups; optimistic, as choices used the same groups."""
        check_is_fitted(self, "groups_")
        return self._scored(self._observed, self.left_out_predictions_)

    @cached_property
    def nested_score_(self) -> float | None:
        """The score on unseen groups, by nested cross-validation with five folds.

        Everything is fitted five times, when this is first asked for. None if there are too few
        groups, or too few of a class.
        """
        check_is_fitted(self, "groups_")
        T = len(self.groups_)
        if T <= N_FOLDS or not self._can_be_split:
            return None
        predicted = np.empty_like(self.left_out_predictions_)
        for left_out in self._folds():
            model = clone(self)._fit_some(self._rows, self._observed, ~left_out)
            predicted[left_out] = model.predict(self._rows.of_groups(left_out).samples())
        return self._scored(self._observed, predicted)

    def score(self, X: Any, y: Any, groups: Any = None) -> float:
        """Return R², or the share of correct classes, for new groups whose y is known.

        Parameters
        ----------
        X, groups
            New groups, as for ``predict``.
        y : array, mapping or Series
            One for each group, as for ``fit``.
        """
        predicted = self.predict(X, groups)
        rows = new_groups(self, X, groups)
        known = target_by_group(type(self).__name__, y, rows, is_by_sample(X, groups))
        return self._scored(self._checked(known), predicted)

    @property
    def _names(self) -> Sequence[str]:
        """The estimates of the means that are learnt from."""
        if self.means_ == "average":
            return MEANS
        return (self.means_,)

    def _check_parameters(self) -> None:
        known = (*MEANS, "average", "auto")
        if self.means not in known:
            raise MuhatError(unknown_name(f"{type(self).__name__}, means", self.means, known))
        if not isinstance(self.transductive, bool | np.bool_):
            raise MuhatError(self, "transductive must be True or False", repr(self.transductive))

    def _estimated_means(self, rows: LabelledRows) -> KernelMeans:
        """Return the means of groups."""
        means = KernelMeans(
            kernel=self.kernel,
            gram=self.gram,
            standardize=self.standardize,
            random_state=self.random_state,
        )
        means.fit(rows.X, rows.labels[rows.codes], rows.masses)
        if hasattr(self, "feature_names_in_"):
            means.feature_names_in_ = self.feature_names_in_
        return means

    def _fit_some(self, rows: LabelledRows, y: Array, kept: Array) -> Self:
        """Fit to some of the groups of another estimator."""
        some = rows.of_groups(kept)
        by_label = dict(zip(some.labels.tolist(), y[kept], strict=True))
        return self.fit(some.X, by_label, some.labels[some.codes], some.masses)

    def _folds(self) -> list[Array]:
        """Return which groups are left out in each of five folds, of shape (T,)."""
        T = len(self._y)
        order = np.random.default_rng(0).permutation(T)
        order = order[np.argsort(self._strata[order], kind="stable")]
        return [np.isin(np.arange(T), order[fold::N_FOLDS]) for fold in range(N_FOLDS)]

    def _best_means(self) -> str:
        """Return the means with the least squared error for groups that are left out by folds.

        Unless they are joined by what is predicted, the means are estimated without the rows of
        these groups, which are then new ones.
        """
        if len(self.groups_) < MIN_GROUPS_TO_CHOOSE:
            return "plain"
        totals = dict.fromkeys([*MEANS, "average"], 0.0)
        for left_out in self._folds():
            fitted, new = self._split(left_out)
            fits = GroupRegressions.fit(fitted, self._y[~left_out], self.filter)
            for name in totals:
                some = fits.of(MEANS if name == "average" else (name,))
                gaps = self._y[left_out] - some.predict(new)
                totals[name] += float((gaps**2).sum()) / self._y.size
        self.means_errors_ = totals
        return min(totals, key=lambda name: totals[name])

    def _split(self, left_out: Array) -> tuple[dict[str, Array], dict[str, Array]]:
        """Return the means of groups that are kept, and of those that are left out."""
        if not self.transductive:
            means = self._estimated_means(self._rows.of_groups(~left_out))
            samples = self._rows.of_groups(left_out).samples()
            return fitted_vectors(means, MEANS), new_vectors(means, samples, MEANS)
        kept, new = {}, {}
        for name, vectors in fitted_vectors(self.group_means_, MEANS).items():
            kept[name], new[name] = vectors[~left_out], vectors[left_out]
        return kept, new

    def _outputs(self, X: Any, groups: Any) -> Array:
        """Return the outputs for new groups, of shape (groups, outputs)."""
        fit, vectors = self._fit_and_vectors(X, groups)
        return fit.predict(vectors)

    def _fit_and_vectors(self, X: Any, groups: Any) -> tuple[GroupRegressions, dict[str, Array]]:
        """Return the regressions and the means of new groups that these take."""
        check_is_fitted(self, "groups_")
        rows = new_groups(self, X, groups)
        if not self.transductive:
            return self._fit, new_vectors(self.group_means_, rows.samples(), self._names)
        T = len(self.groups_)
        means = self._estimated_means(_joined(self._rows, rows))
        fitted, new = {}, {}
        for name, vectors in fitted_vectors(means, self._names).items():
            fitted[name], new[name] = vectors[:T], vectors[T:]
        return GroupRegressions.fit(fitted, self._y, self.filter), new

    _observed: Array
    """y of each group, as it was given."""
    _strata: Array
    """What is spread evenly over the folds, of shape (T,)."""
    _can_be_split: bool
    """Whether every fold leaves enough of each class."""

    def _checked(self, y: Any) -> Array:
        """Return y of each group as an array of shape (T,); raise MuhatError if it is invalid."""
        raise NotImplementedError

    def _encoded(self, y: Any) -> Array:
        """Return y as numbers of shape (T, outputs); raise MuhatError if it is invalid."""
        raise NotImplementedError

    def _decoded(self, outputs: Array) -> Array:
        """Return predictions from outputs, of shape (groups,)."""
        raise NotImplementedError

    def _scored(self, y: Array, predicted: Array) -> float:
        """Return how well y is predicted."""
        raise NotImplementedError


class GroupRegressor(_GroupLearner, RegressorMixin, BaseEstimator):
    """Predict one number y per group from the distribution of its rows.

    Each group is represented by its kernel mean. Kernel ridge regression, or another filter,
    predicts y from these means, with the kernel exp(−MMD²/2h²) or a linear kernel. Exact
    leave-one-out over groups chooses the kernel, h and λ.

    Parameters
    ----------
    kernel, gram, standardize, random_state
        As of `KernelMeans`.
    means : {'plain', 'filtered', 'joint', 'average', 'auto'}, default='plain'
        Which estimates of the means are used. 'plain': plain averages. 'filtered': spectral filters
        only. 'joint': those of `KernelMeans`. 'average': all three, with averaged predictions.
        'auto': the one of these with the smallest squared error in five folds, in which the rows of
        left-out groups are not used for the means; it costs about five more fits.
    filter : str, Filter or list of these, default='tikhonov'
        As in `ConditionalMean`; 'tikhonov' is ridge regression.
    transductive : bool, default=False
        Whether the means are estimated again at each ``predict``, from the rows of the fitted and
        of the new groups together (without the new y). Predictions then depend on which groups are
        predicted together.

    Attributes
    ----------
    groups_ : array of shape (T,)
        The labels of the groups, sorted.
    means_ : str
        The means that were chosen.
    means_errors_ : dict of str to float, or None
        With ``means="auto"``, the cross-validated mean squared error with each of the means.
    left_out_predictions_ : array of shape (T,)
        The prediction for each group by a fit without its y, at the chosen kernel and λ.
    loo_score_ : float
        R² of ``left_out_predictions_``. It is optimistic, because kernel and λ were chosen by the
        same error. Unless ``transductive``, it is more so for means other than 'plain', because the
        rows of the left-out group were used to estimate the means.
    nested_score_ : float or None
        R² for groups that were not used for any choice, by five folds. Computed when first used.
    group_means_ : KernelMeans
        The means of the groups.
    n_features_in_, feature_names_in_ : int and array of shape (n_features_in_,)
        The number of columns, and their names if X had any.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import GroupRegressor
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(-1, 1, 40)
    >>> samples = [rng.normal(centre, 1, size=(20, 2)) for centre in y]
    >>> model = GroupRegressor().fit(samples, y)
    >>> bool(model.nested_score_ > 0.8)
    True
    >>> model.predict(samples[:3]).shape
    (3,)
    >>> model.predict_interval(samples[:3]).shape
    (3, 2)
    """

    def predict_interval(
        self, X: Any, groups: Any = None, confidence: float = 0.9, method: str = "residuals"
    ) -> Array:
        """Return intervals for the y of new groups, of shape (groups, 2): lower and upper ends.

        ``"residuals"``: the prediction plus quantiles of left-out residuals, wider where residuals
        of nearby groups are larger, as in `ConditionalMean`. The coverage is not guaranteed. With
        means other than 'plain', intervals are too narrow for new groups, unless ``transductive``.

        ``"jackknife+"``: as in `ConditionalMean`. Not available for 'average'.

        ``"conformal"``: the same model is fitted again, with all choices, to two thirds of the
        groups, and its residuals on the other groups calibrate the interval. For exchangeable
        groups the interval contains y with probability at least ``confidence``, whatever the
        distribution. It costs one more fit when first used.

        Parameters
        ----------
        X, groups
            New groups, as for ``predict``.
        confidence : float, default=0.9
            The share of new y that the intervals should contain, between 0 and 1.
        method : {'residuals', 'jackknife+', 'conformal'}, default='residuals'
            How the intervals are computed.
        """
        who = "GroupRegressor.predict_interval"
        check_is_fitted(self, "groups_")
        level = checked_confidence(who, confidence)
        if method not in INTERVALS:
            raise MuhatError(unknown_name(f"{who} method", str(method), INTERVALS))
        T = len(self.groups_)
        if method == "conformal":
            return self._conformal(who, X, groups, level)
        if method == "jackknife+":
            checked_place(who, level, T, noun="groups")
        else:
            checked_confidence(who, level, T, "groups")
        fit, vectors = self._fit_and_vectors(X, groups)
        found = None
        if fit.single is not None:
            found = fit.single.interval(vectors[self.means_], level, method)
        if found is None and method == "jackknife+":
            needed = "jackknife+ needs means of a single kind, and groups that differ"
            raise MuhatError(who, needed, f"means={self.means_!r}", "use 'residuals'")
        if found is None:
            found = self._around(fit.predict(vectors), self._y - fit.left_out, level)
        return found[:, 0]

    def _around(self, predicted: Array, residuals: Array, level: float) -> Array:
        """Return predictions plus quantiles of residuals, of shape (groups, 1, 2)."""
        masses = np.full(len(residuals), 1 / len(residuals))
        quantiles = ResidualQuantiles(None, np.empty((0, 0)), np.abs(residuals), masses, residuals)
        levels = np.array([(1 - level) / 2, (1 + level) / 2])
        return predicted[:, :, None] + quantiles.around(predicted, levels)

    def _conformal(self, who: str, X: Any, groups: Any, level: float) -> Array:
        """Return split conformal intervals, of shape (groups, 2)."""
        if self.transductive:
            needed = "conformal intervals need transductive=False"
            raise MuhatError(who, needed, "transductive=True", "use 'residuals'")
        check_calibration(who, level, len(self.groups_), "groups")
        model, gaps = self._calibration
        middle = model.predict(X, groups)
        reach = reach_of(who, level, gaps)
        return np.stack([middle - reach, middle + reach], axis=-1)

    @cached_property
    def _calibration(self) -> tuple[GroupRegressor, Array]:
        """A model of two thirds of the groups, and the absolute residuals of the others."""
        order = np.random.default_rng(0).permutation(len(self.groups_))
        n_held_out = floor(CALIBRATION_SHARE * len(order))
        held_out = np.isin(np.arange(len(order)), order[:n_held_out])
        model = clone(self)._fit_some(self._rows, self._observed, ~held_out)
        predicted = model.predict(self._rows.of_groups(held_out).samples())
        return model, np.abs(self._observed[held_out] - predicted)

    def _checked(self, y: Any) -> Array:
        target = checked_target(type(self).__name__, y)
        if target.ndim != 1:
            raise MuhatError(self, "y must have one number for each group", f"shape {target.shape}")
        return target

    def _encoded(self, y: Any) -> Array:
        target = self._observed = self._checked(y)
        self._strata = np.zeros(len(target))
        self._can_be_split = True
        return target[:, None]

    def _decoded(self, outputs: Array) -> Array:
        return outputs[:, 0]

    def _scored(self, y: Array, predicted: Array) -> float:
        if np.ptp(y) == 0:
            return 0.0
        return float(r2_score(y, predicted))


class GroupClassifier(_GroupLearner, ClassifierMixin, BaseEstimator):
    """Classify groups by the distribution of their rows.

    As `GroupRegressor`, with one output for each class, 1 for its groups and 0 for others; the
    class with the largest output is predicted.

    Parameters
    ----------
    kernel, means, filter, gram, standardize, transductive, random_state
        As of `GroupRegressor`.

    Attributes
    ----------
    classes_ : array of shape (classes,)
        The classes.
    groups_, means_, means_errors_, group_means_
        As of `GroupRegressor`.
    left_out_predictions_ : array of shape (T,)
        The class of each group by the fit without its y, at the chosen kernel and λ.
    loo_score_ : float
        The share of these that is right; too high, as that of `GroupRegressor`.
    nested_score_ : float or None
        The share of right classes for groups that no choice has seen, by five folds; computed when
        it is first asked for. None if a class has only one group.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import GroupClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["wide", "narrow"], 10)
    >>> samples = [rng.normal(size=(15, 2)) * (3 if kind == "wide" else 1) for kind in y]
    >>> GroupClassifier().fit(samples, y).nested_score_
    1.0
    """

    classes_: Array

    def decision_function(self, X: Any, groups: Any = None) -> Array:
        """Return the outputs for new groups, of shape (groups, classes).

        Of two classes, the output of the second minus that of the first, of shape (groups,).
        """
        outputs = self._outputs(X, groups)
        if len(self.classes_) == 2:
            return outputs[:, 1] - outputs[:, 0]
        return outputs

    def _checked(self, y: Any) -> Array:
        classes = as_array(y)
        needed = "y must have one class for each group"
        if classes.ndim != 1:
            raise MuhatError(self, needed, f"shape {classes.shape}")
        if is_missing(classes).any():
            raise MuhatError(self, needed, "missing ones", "drop these groups")
        return classes

    def _encoded(self, y: Any) -> Array:
        self._observed = self._checked(y)
        if self._observed.dtype.kind == "f" and (self._observed % 1 != 0).any():
            needed = "y must have one class for each group"
            raise MuhatError(self, needed, "fractional numbers", "use GroupRegressor")
        self.classes_, codes = distinct_labels(self._observed)
        if len(self.classes_) < 2:
            raise MuhatError(self, "at least two classes are needed", len(self.classes_))
        self._strata = codes
        self._can_be_split = bool(np.bincount(codes).min() > 1)
        return np.eye(len(self.classes_))[codes]

    def _decoded(self, outputs: Array) -> Array:
        return self.classes_[outputs.argmax(axis=1)]

    def _scored(self, y: Array, predicted: Array) -> float:
        return float(accuracy_score(y, predicted))


def _joined(rows: LabelledRows, new: LabelledRows) -> LabelledRows:
    """Return rows with those of new groups behind them, labelled by their places."""
    T = len(rows.labels)
    return LabelledRows(
        X=np.concatenate([rows.X, new.X]),
        labels=np.arange(T + len(new.labels)),
        codes=np.append(rows.codes, T + new.codes),
        masses=np.append(rows.masses, new.masses),
    )
