"""ConditionalMean: E[f(Y) | X = x] for every f at once, as a scikit-learn regressor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.metrics import r2_score

from muhat._arrays import Array
from muhat._bases import MultiOutputMixin, RegressorMixin
from muhat._parts import HasKernel, Parts
from muhat._reportable import Reportable
from muhat._summary import EstimatorHtmlReprMixin, Summary, four_digits
from muhat._unsaved_caches import UnsavedCaches
from muhat._validation import (
    as_frame,
    check_range,
    checked_gram,
    checked_masses,
    checked_sample,
    checked_target,
    checked_weights,
    is_dask,
)
from muhat.conditional._answers import ConditionalAnswers
from muhat.conditional._arguments import checked_kernel_y, checked_parts, kernels_to_try
from muhat.conditional._fits import (
    Fit,
    RegressionRows,
    SpectralFit,
    choices_by_leaving_out,
)
from muhat.conditional._inputs import (
    check_masses,
    check_outputs,
    has_copies,
    joined_on_cluster,
    leading_columns,
    reordered,
    rows_taken,
    split_columns,
    standardized_rows,
)
from muhat.conditional._landmarks import with_enough_landmarks
from muhat.conditional._streams import JointSource
from muhat.data import (
    ColumnMoments,
    SampleBatch,
    Source,
    StreamSource,
    TransformedSource,
    checked_batch,
    is_empty,
)
from muhat.data._copies import EqualRows
from muhat.errors import MuhatError
from muhat.filters import name_of
from muhat.gram import Approximation
from muhat.gram._plan import Plan, plan_in_memory, plan_one_pass
from muhat.kernels import Kernel, Linear, Precomputed
from muhat.selection import Choice


class ConditionalMean(
    UnsavedCaches,
    HasKernel,
    EstimatorHtmlReprMixin,
    Reportable,
    MultiOutputMixin,
    RegressorMixin,
    ConditionalAnswers,
):
    """Kernel regression: predict y given x, with intervals, quantiles and distributions.

    It estimates the conditional mean embedding μ_{Y|x} = Σ_i α_i(x) l(y_i, ·) with α(x) =
    g_λ(K/n) k(X, x)/n, for any filter g_λ. With the linear kernel on y this is regression, also of
    several outputs; with Tikhonov's filter it is kernel ridge regression with the ridge nλ. Other
    filters are more accurate if the target is smooth. Filter and parameter are chosen by exact
    leave-one-out, from one eigendecomposition, in double precision.

    Parameters
    ----------
    kernel : str, Kernel, scikit-learn kernel or callable, default='gaussian'
        The kernel on x, as for ``KernelMean``.
    kernel_y : str, Kernel, scikit-learn kernel or callable, default='linear'
        The kernel on y; leave-one-out errors are measured in its RKHS. ``'gaussian'`` chooses λ for
        the whole distribution of y instead of its mean; ``predict`` is then not available.
    filter : str, Filter or list of these, default='auto'
        ``'tikhonov'`` (or ``'f-kmse'``), ``'iterated-tikhonov'``, ``'landweber'``, ``'nu-method'``,
        ``'tsvd'``, or an object. From a list, the best is chosen; ``'auto'`` is the list of all
        except truncated SVD.
    selection : {'loo', 'gcv'}, LeaveOneOut, GCV, Fixed or Rate, default='loo'
        How the parameter is chosen. Truncated SVD, and other filters that are not smooth, are
        refitted once for each row, with that row left out, up to 300 rows; beyond, generalised
        cross-validation is used.
    gram : str, Nystrom or RandomFeatures, default='auto'
        How the Gram matrix is stored: 'dense', 'nystrom' or 'random-features'. 'auto' is 'dense' up
        to 5,000 rows. Beyond, it takes 500 landmarks. If these miss more than 0.1 % of the trace of
        the Gram matrix, it takes 1,000 (up to 40,000 rows) or 2,000 (up to 10,000 rows).
    fit_intercept : bool, default=True
        Whether predictions tend to the mean of y far from all data. If False, they tend to zero, as
        in scikit-learn's ``KernelRidge``.
    bandwidth : None, float, 'median' or 'loo', default=None
        The bandwidth of the kernel on x: a number or 'median'. None keeps the kernel's own, by
        default 'median'. 'loo' tries an eighth to eight times that bandwidth, with one
        eigendecomposition each, and takes the best by leave-one-out.
    standardize : bool, default=True
        Whether columns of X are scaled to mean 0 and variance 1 by the training rows; y is not
        scaled. Constant columns become 0. Bandwidths are then in standard deviations. Leave-one-out
        does not recompute the scaling. A precomputed kernel is not scaled.

    Attributes
    ----------
    choice_, choices_ : Choice and list of Choice
        The final choice, and the choice for each filter, with all scores.
    filter_, kernel_, kernel_y_ : Filter, Kernel and Kernel
        The chosen filter, and the kernels with their bandwidths as numbers.
    bandwidths_, bandwidth_scores_ : arrays
        With ``bandwidth="loo"``, the bandwidths that were tried and the best score of each;
        otherwise None.
    loo_predictions_, loo_residuals_ : arrays of the shape of y
        Left-out predictions, and y minus these; for the linear kernel on y.
    scaling_ : ColumnMoments or None
        The means and variances used to standardize X; None if X is not standardized.
    loo_score_ : float
        R² on left-out rows, measured in the RKHS of y.
    n_copies_ : int or None
        The number of rows that are exact copies, in x and y, of an earlier row. All copies of a row
        are left out together. 0 if rows are equal only because few values are possible; None after
        ``fit_batches``.
    n_features_in_, feature_names_in_ : int and array of shape (n_features_in_,)
        The number of features, and their names if X had any.

    See Also
    --------
    IndependenceTest : Does y depend on x at all?
    GroupRegressor : One y for each group of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat.conditional import ConditionalMean
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(200, 1))
    >>> y = np.sin(X[:, 0]) + rng.normal(scale=0.1, size=200)
    >>> model = ConditionalMean().fit(X, y)
    >>> model.predict([[0.0], [1.5]]).round(1) + 0.0
    array([0., 1.])
    >>> round(model.loo_score_, 2)
    0.98
    """

    scaling_: Any
    kernel_: Kernel
    bandwidths_: Array | None
    bandwidth_scores_: Array | None
    gram_: Any
    gram_reason_: str
    choice_: Choice
    choices_: list[Choice]
    filter_: Any

    n_copies_: int | None

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        kernel_y: Any = "linear",
        filter: Any = "auto",
        selection: Any = "loo",
        gram: Any = "auto",
        fit_intercept: bool = True,
        bandwidth: float | str | None = None,
        standardize: bool = True,
    ) -> None:
        self.kernel = kernel
        self.kernel_y = kernel_y
        self.filter = filter
        self.selection = selection
        self.gram = gram
        self.fit_intercept = fit_intercept
        self.bandwidth = bandwidth
        self.standardize = standardize

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to rows of x and y.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            The x_i, or their Gram matrix if the kernel is precomputed.
        y : array of shape (n,) or (n, n_outputs)
            The y_i.
        sample_weight : array of shape (n,), default=None
            Weights of the rows, not negative; equal by default. Rows of weight zero are ignored.
            The median bandwidth does not depend on weights.

        Returns
        -------
        self : ConditionalMean
            The fitted estimator.
        """
        parts, kernel_y = checked_parts(self), checked_kernel_y(self.kernel_y)
        if is_dask(X):
            return self._fit_source(parts, *joined_on_cluster(self, X, y, sample_weight))
        X = checked_sample(self, X, reset=True).astype(np.float64, copy=False)
        y = checked_target("ConditionalMean", y, len(X))
        masses = checked_masses("ConditionalMean", sample_weight, len(X))
        check_masses(masses)
        return self._fit_rows(parts, kernel_y, X, y, masses)

    def fit_batches(self, batches: Iterable[Any], target: Any) -> Self:
        """Fit to any number of rows, read in batches, with landmarks or random features.

        Batches are read five times: to draw the rows for landmarks and bandwidth, for means and
        variances of columns (not with ``standardize=False``), to sum, to score every filter and
        parameter by exact leave-one-out of the approximated kernel, and to leave rows out. Only the
        outputs and the left-out prediction of each row are kept; methods that need the weights of
        all rows are not available.

        Parameters
        ----------
        batches : iterable of arrays, data frames or pyarrow tables of shape (rows, d + n_outputs)
            They must be readable several times, as a list or ``muhat.open_batches("big.parquet")``
            is.
        target : str or int, or list of these
            The columns that are y, by name or by number; all others are x.

        Returns
        -------
        self : ConditionalMean
            The fitted estimator.
        """
        parts = checked_parts(self)
        who = "ConditionalMean.fit_batches"
        needed = "batches must be arrays that can be iterated more than once"
        is_one = hasattr(batches, "shape") or isinstance(batches, str | PathLike)
        if is_one or isinstance(batches, Iterator) or not isinstance(batches, Iterable):
            advice = "give a list of arrays, or muhat.open_batches(path)"
            raise MuhatError(who, needed, f"a {type(batches).__name__}", advice)
        first = next((each for each in map(as_frame, batches) if not is_empty(each)), None)
        if first is None:
            raise MuhatError("batches", "at least one batch is needed", "none")
        names = getattr(batches, "columns", getattr(first, "columns", range(first.shape[1])))
        order, outputs = split_columns(who, [*names], target)
        if hasattr(first, "iloc"):
            x = first.iloc[:, order[:-outputs]]
        else:
            x = checked_batch(first, 0)[:, order[:-outputs]]
        checked_sample(self, x, reset=True)
        source = TransformedSource(StreamSource(batches), partial(reordered, order))
        return self._fit_source(
            parts, source, outputs, is_flat=not isinstance(target, list | tuple)
        )

    def _fit_rows(self, parts: Parts, kernel_y: Kernel, X: Array, y: Array, masses: Array) -> Self:
        """Fit to validated rows in memory."""
        taken = masses > 0
        self._rows = X, y, masses
        X, masses = rows_taken(parts.kernel, X, taken), masses[taken]
        outputs = y.reshape(len(y), -1)[taken]
        check_outputs(outputs)
        kernel_y = kernel_y.resolve(outputs)
        equal = EqualRows.from_pairs(X, outputs)
        is_copied = has_copies(equal)
        n = len(X)
        if is_copied:
            n = len(equal.first)
        plan = plan_in_memory(parts.gram, parts.kernel, n, X.itemsize)
        rules = parts.rules(plan.access, n)
        parts.check_enough(rules, n)
        kernel, X = self._resolve_kernel(parts.kernel, X, masses)
        different, self._copied, self.n_copies_ = outputs, None, 0
        if is_copied:  # one row of their mass has the same estimate, and is left out as a whole
            self.n_copies_ = equal.n_copies
            merged = np.bincount(equal.groups, masses)
            self._copied = equal.first, equal.groups, masses / merged[equal.groups]
            different, masses = outputs[equal.first], merged
            if isinstance(kernel, Precomputed):
                kernel = Precomputed(kernel(equal.first[:, None]))
            X = rows_taken(kernel, X, np.isin(np.arange(len(X)), equal.first))
        rows = RegressionRows(X, masses, different, kernel_y, bool(self.fit_intercept))
        fits, plans = [], []
        for each in kernels_to_try(kernel, self.bandwidth):
            choose = partial(choices_by_leaving_out, parts, each, rules)
            refined = plan
            if parts.gram == "auto" and isinstance(plan.gram, Approximation):
                refined = with_enough_landmarks(plan, each, X)
            plans.append(refined)
            fits.append(SpectralFit.from_rows(each, rows, plans[-1], choose))
        return self._keep(fits, kernel_y, outputs, taken, is_flat=y.ndim == 1, plans=plans)

    def _resolve_kernel(self, kernel: Kernel, X: Array, masses: Array) -> tuple[Kernel, Array]:
        """Return the kernel with every parameter a number, and x as it sees it."""
        self.scaling_ = None
        if isinstance(kernel, Precomputed):
            return Precomputed(checked_gram("ConditionalMean", X)), X
        self.scaling_ = self._moments(X, masses)
        X = self._scaled(X)
        check_range("ConditionalMean", X)
        return kernel.resolve(X), X

    def _moments(self, X: Array, masses: Array) -> ColumnMoments | None:
        """Return the moments that columns are standardized by.

        A row of weight two counts as two rows.
        """
        if not self.standardize:
            return None
        weights = None
        if masses.min() < masses.max():
            weights = masses * len(masses)
        return ColumnMoments.from_batch(SampleBatch(X, 0, weights))

    def _fit_source(self, parts: Parts, source: Source, outputs: int, is_flat: bool) -> Self:
        """Fit to rows [x, y] that can be passed over again.

        So few that one decomposition serves are read at once.
        """
        parts.check_batches(rows_again=True)
        kernel_y = checked_kernel_y(self.kernel_y)
        if not isinstance(kernel_y, Linear):
            needed = "rows in batches need kernel_y='linear'"
            advice = "fit an array for other kernels on y"
            raise MuhatError("ConditionalMean", needed, repr(kernel_y), advice)
        plan = plan_one_pass(parts.gram)
        rows = JointSource.from_source(source, self.n_features_in_, parts, plan)
        check_outputs(rows.y)
        if parts.gram == "auto" and plan_in_memory("auto", parts.kernel, rows.n, 8).gram == "dense":
            y = rows.y
            if is_flat:
                y = y[:, 0]
            return self._fit_rows(parts, kernel_y, rows.X, y, np.full(rows.n, 1 / rows.n))
        self.scaling_ = None
        if self.standardize:
            x = TransformedSource(source, partial(leading_columns, self.n_features_in_))
            self.scaling_ = x.total(ColumnMoments.from_batch)
            rows = rows.transformed(partial(standardized_rows, self.scaling_))
        assert isinstance(plan.gram, Approximation)
        rules = parts.rules(
            plan.access | plan_in_memory(plan.gram, parts.kernel, rows.n, 8).access, rows.n
        )
        parts.check_enough(rules, rows.n)
        settings = plan.gram, rules, bool(self.fit_intercept)
        fits: list[Fit] = []
        for kernel in kernels_to_try(parts.kernel.resolve(rows.X), self.bandwidth):
            fits.append(rows.fit(parts, kernel, *settings))
        plans = [plan] * len(fits)
        self._rows = self._copied = self.n_copies_ = None
        taken = np.broadcast_to(True, rows.n)
        empty = np.empty((0, outputs))
        return self._keep(fits, kernel_y, empty, taken, is_flat=is_flat, plans=plans)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² of the predictions at rows whose y is known.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            Rows.
        y : array of shape (m,) or (m, n_outputs)
            What is to be predicted. Of several outputs, the scores are averaged.
        sample_weight : array of shape (m,), optional
            The weights of the rows.

        Returns
        -------
        score : float
            1 for perfect predictions, 0 for those no better than the mean of y.
        """
        predicted = self.predict(X)
        y = checked_target("ConditionalMean.score", y, len(predicted))
        if sample_weight is not None:
            sample_weight = checked_weights("ConditionalMean.score", sample_weight, len(predicted))
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    def _keep(
        self,
        fits: Sequence[Fit],
        kernel_y: Kernel,
        outputs: Array,
        taken: Array,
        *,
        is_flat: bool,
        plans: Sequence[Plan],
    ) -> Self:
        """Keep the best fit, and the plan it was made by."""
        best = min(fits, key=attrgetter("choice.score"))
        plan = plans[fits.index(best)]
        self.bandwidths_ = self.bandwidth_scores_ = None
        if self.bandwidth == "loo":
            self.bandwidths_ = np.array([*map(attrgetter("kernel.bandwidth"), fits)])
            self.bandwidth_scores_ = np.array([*map(attrgetter("choice.score"), fits)])
        self.kernel_ = best.kernel
        self.kernel_y_ = kernel_y
        self.gram_ = plan.gram
        self.gram_reason_ = plan.reason
        self.choice_, self.choices_, self.filter_ = best.choice, best.choices, best.choice.filter
        self._fit, self._outputs, self._taken, self._is_flat = best, outputs, taken, is_flat
        self._calibration = None
        for name in ("_residual_quantiles", "_training_region"):  # of an earlier fit
            self.__dict__.pop(name, None)
        return self

    def _summary(self) -> Summary:
        where = ""
        if not isinstance(self.kernel_y_, Linear):
            where = " in the RKHS of y"
        chosen = four_digits(repr(self.choice_.filter))
        rows = [
            (name_of(each.filter), four_digits(each.parameter), four_digits(each.score))
            for each in self.choices_
        ]
        return Summary(
            f"Leave-one-out R² {self.loo_score_:.3g}{where} ({chosen}).",
            ("filter", "λ or t", "leave-one-out error"),
            rows,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed" or isinstance(
            self.kernel, Precomputed
        )
        return tags
