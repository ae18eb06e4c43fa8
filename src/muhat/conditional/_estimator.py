"""ConditionalMean: E[f(Y) | X = x] for every f at once, as a scikit-learn regressor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from numbers import Real
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array, slices
from muhat._bases import BaseEstimator, MultiOutputMixin, RegressorMixin
from muhat._caches import UnsavedCaches
from muhat._messages import unknown_name
from muhat._parts import HasKernel, Parts, as_kernel
from muhat._reportable import Reportable
from muhat._summary import EstimatorHtmlReprMixin, Summary, four_digits
from muhat._validation import (
    as_frame,
    check_range,
    checked_gram,
    checked_masses,
    checked_sample,
    checked_target,
    is_dask,
)
from muhat.conditional._distribution import ConditionalDistribution, checked_levels
from muhat.conditional._fits import (
    Fit,
    RegressionRows,
    SpectralFit,
    choices_by_leaving_out,
)
from muhat.conditional._inputs import (
    as_real_numbers,
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
from muhat.conditional._intervals import (
    INTERVALS,
    QUANTILES,
    ResidualQuantiles,
    calibrated,
    check_calibration,
    checked_confidence,
    checked_place,
    reach_of,
)
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
from muhat.embedding import Embedding
from muhat.errors import MuhatError
from muhat.filters import CONDITIONAL_AUTO, Filter, name_of
from muhat.gram import Approximation
from muhat.gram._plan import plan_in_memory, plan_one_pass
from muhat.kernels import Kernel, Linear, Precomputed
from muhat.selection import GCV, Choice, LeaveOneOut, ParameterRule

BANDWIDTH_FACTORS = 2.0 ** np.arange(-3, 4)
"""Multiples of the kernel's own bandwidth that ``bandwidth="loo"`` chooses from."""

ROWS_PER_BLOCK = 1024
"""New points whose kernel values to the sample are held at once."""


class ConditionalMean(
    UnsavedCaches,
    HasKernel,
    EstimatorHtmlReprMixin,
    Reportable,
    MultiOutputMixin,
    RegressorMixin,
    BaseEstimator,
):
    """The mean of y given x, of any function of y, and its distribution.

    The conditional mean embedding.

    μ_{Y|x} = Σ_i α_i(x) l(y_i, ·) with α(x) = g_λ(K/n) k(X, x)/n, for every filter g_λ. With the
    linear kernel on y this is regression, of several outputs; Tikhonov's filter is then kernel
    ridge regression with the ridge nλ, and others do not saturate where it does. Filter and
    parameter are chosen by exact leave-one-out, from one eigendecomposition. Everything is computed
    in double precision.

    Parameters
    ----------
    kernel : str, Kernel, scikit-learn kernel or callable, default='gaussian'
        The kernel on x, as for ``KernelMean``.
    kernel_y : str, Kernel, scikit-learn kernel or callable, default='linear'
        The kernel on y, in whose RKHS leave-one-out measures errors. ``'gaussian'`` chooses for the
        whole distribution of y rather than for its mean; ``predict`` is then not available.
    filter : str, Filter or list of these, default='auto'
        ``'tikhonov'`` (or ``'f-kmse'``), ``'iterated-tikhonov'``, ``'landweber'``, ``'nu-method'``,
        ``'tsvd'``, or an object. Of a list, the best is taken; ``'auto'`` is the list of all but
        truncated SVD.
    selection : {'loo', 'gcv'}, LeaveOneOut, GCV, Fixed or Rate, default='loo'
        How the parameter is chosen. For truncated SVD, and filters that jump, a point is left out
        by a refit, up to 300 points; beyond, generalised cross-validation stands in.
    gram : str, Nystrom or RandomFeatures, default='auto'
        One of 'auto', 'dense', 'nystrom', 'random-features'.
        How the Gram matrix is held: dense up to 5,000 rows, and by Nyström's features beyond.
    fit_intercept : bool, default=True
        Whether what the weights α_i(x) lack to one goes to the mean of y, so that predictions move
        along with y and far from all data are its mean. Without, they shrink towards zero, as
        scikit-learn's ``KernelRidge``.
    bandwidth : None, float, 'median' or 'loo', default=None
        None takes the kernel's own bandwidth, by default of the median rule; a number or 'median'
        stands in its place; 'loo' also tries an eighth to eight times the kernel's own and takes
        the one with the least leave-one-out score, an eigendecomposition each.
    standardize : bool, default=True
        Whether each column of X is brought to mean 0 and variance 1 first (y never is), by the
        moments of the rows that are fitted, weighted if they are; constant columns become 0.
        Bandwidths are then in standard deviations. Leave-one-out takes the scaling as given. It
        does not apply to a precomputed kernel.

    Attributes
    ----------
    choice_, choices_ : Choice and list of Choice
        The choice that was taken, and those of every filter, with all scores.
    filter_, kernel_, kernel_y_ : Filter, Kernel and Kernel
        The filter that was taken, and the kernels with every parameter a number.
    bandwidths_, bandwidth_scores_ : arrays
        With ``bandwidth="loo"``, the bandwidths that were tried and the least score of each; else
        None.
    loo_predictions_, loo_residuals_ : arrays of the shape of y
        What is predicted for each row without it, and y minus that; for the linear kernel on y.
    scaling_ : ColumnMoments or None
        The means and variances that X is standardized by; None without.
    loo_score_ : float
        The share of the variance of y, in its RKHS, that is predicted without each row: R² by
        leave-one-out.
    n_copies_ : int or None
        Rows that are exact copies, in x and y, of one before them. All copies of a row are left out
        together, so that scores and intervals are those of the different rows; 0 where rows are
        equal because few values are possible, None for rows in batches, of which copies are not
        known.
    n_features_in_, feature_names_in_ : int and array of shape (n_features_in_,)
        The number of features, and their names if X had any.

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
    bandwidths_: Array | None
    bandwidth_scores_: Array | None
    kernel_: Kernel
    kernel_y_: Kernel
    gram_: Any
    gram_reason_: str
    choice_: Choice
    choices_: list[Choice]
    filter_: Any

    n_copies_: int | None
    _copied: tuple[Array, Array, Array] | None

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
            Masses of the rows, not negative; equal by default. A row of mass zero does not take
            part. The median bandwidth does not look at weights.

        Returns
        -------
        self : ConditionalMean
            The fitted estimator.
        """
        parts, kernel_y = self._parts(), self._kernel_y()
        if is_dask(X):
            return self._fit_source(parts, *joined_on_cluster(self, X, y, sample_weight))
        X = checked_sample(self, X, reset=True).astype(np.float64, copy=False)
        y = checked_target("ConditionalMean", y, len(X))
        masses = checked_masses("ConditionalMean", sample_weight, len(X))
        check_masses(masses)
        return self._fit_rows(parts, kernel_y, X, y, masses)

    def fit_batches(self, batches: Iterable[Any], target: Any) -> Self:
        """Fit to rows that come in batches, of any number, by features of each.

        Nyström's or random ones.

        Batches are passed over five times: to draw landmarks and bandwidth from all rows, for means
        and variances of columns (not with ``standardize=False``), to sum up, to score every filter
        and parameter by exact leave-one-out of the approximated kernel, and to leave rows out. Of
        each row only its outputs and its left-out prediction are kept; methods that take every
        output's weight are not available.

        Parameters
        ----------
        batches : iterable of arrays, data frames or pyarrow tables of shape (rows, d + n_outputs)
            What can be iterated anew, such as a list or ``muhat.open_batches("big.parquet")``.
        target : str or int, or list of these
            The columns that are y, by name or by number; all others are x.

        Returns
        -------
        self : ConditionalMean
            The fitted estimator.
        """
        parts = self._parts()
        who = "ConditionalMean.fit_batches"
        needed = "batches must be an iterable of arrays that can be iterated anew"
        is_one = hasattr(batches, "shape") or isinstance(batches, str | PathLike)
        if is_one or isinstance(batches, Iterator) or not isinstance(batches, Iterable):
            advice = "give a list of arrays, or muhat.open_batches(path)"
            raise MuhatError(who, needed, f"a {type(batches).__name__}", advice)
        first = next((each for each in map(as_frame, batches) if not is_empty(each)), None)
        if first is None:
            raise MuhatError("batches", "at least one batch is needed", "none")
        names = getattr(batches, "columns", getattr(first, "columns", range(first.shape[1])))
        order, outputs = split_columns(who, [*names], target)
        x = (
            first.iloc[:, order[:-outputs]]
            if hasattr(first, "iloc")
            else checked_batch(first, 0)[:, order[:-outputs]]
        )
        checked_sample(self, x, reset=True)
        source = TransformedSource(StreamSource(batches), partial(reordered, order))
        return self._fit_source(
            parts, source, outputs, is_flat=not isinstance(target, list | tuple)
        )

    def _fit_rows(self, parts: Parts, kernel_y: Kernel, X: Array, y: Array, masses: Array) -> Self:
        """Fit to validated rows in memory."""
        taken = masses > 0
        self._rows: tuple[Array, Array, Array] | None = (X, y, masses)
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
        fits = []
        for each in self._kernels_to_try(kernel):
            choose = partial(choices_by_leaving_out, parts, each, rules)
            fits.append(SpectralFit.from_rows(each, rows, plan, choose))
        return self._keep(fits, kernel_y, outputs, taken, is_flat=y.ndim == 1, plan=plan)

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

    def _scaled(self, X: Array) -> Array:
        """Return x as the kernel sees it."""
        if self.scaling_ is None:
            return X
        return self.scaling_.standardized(X)

    def _fit_source(self, parts: Parts, source: Source, outputs: int, is_flat: bool) -> Self:
        """Fit to rows [x, y] that can be passed over again.

        So few that one decomposition serves are read at once.
        """
        parts.check_batches(rows_again=True)
        kernel_y = self._kernel_y()
        if not isinstance(kernel_y, Linear):
            needed = "rows in batches take kernel_y='linear'"
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
        fits: list[Fit] = [
            rows.fit(parts, kernel, *settings)
            for kernel in self._kernels_to_try(parts.kernel.resolve(rows.X))
        ]
        self._rows = self._copied = self.n_copies_ = None
        taken = np.broadcast_to(True, rows.n)
        return self._keep(fits, kernel_y, np.empty((0, outputs)), taken, is_flat=is_flat, plan=plan)

    def _keep(
        self,
        fits: Sequence[Fit],
        kernel_y: Kernel,
        outputs: Array,
        taken: Array,
        *,
        is_flat: bool,
        plan: Any,
    ) -> Self:
        """Keep the best fit."""
        best = min(fits, key=lambda fit: fit.choice.score) if len(fits) > 1 else fits[0]
        has_ladder = self.bandwidth == "loo"
        self.bandwidths_ = None
        if has_ladder:
            kernels: list[Any] = [fit.kernel for fit in fits]  # only some kernels have a bandwidth
            self.bandwidths_ = np.array([kernel.bandwidth for kernel in kernels])
        self.bandwidth_scores_ = (
            np.array([fit.choice.score for fit in fits]) if has_ladder else None
        )
        self.kernel_ = best.kernel
        self.kernel_y_ = kernel_y
        self.gram_ = plan.gram
        self.gram_reason_ = plan.reason
        self.choice_, self.choices_, self.filter_ = best.choice, best.choices, best.choice.filter
        self._fit, self._outputs, self._taken, self._is_flat = best, outputs, taken, is_flat
        self._calibration: tuple[ConditionalMean, Any, Array] | None = None
        self.__dict__.pop("_residual_quantiles", None)  # of an earlier fit
        return self

    def predict(self, X: Any) -> Array:
        """Return the mean of y at new points, of shape (m,) or (m, n_outputs).

        For the linear kernel on y.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The points; for a precomputed kernel, the matrix k(x, x_i) to the sample.
        """
        self._check_linear("predict")
        return self._shaped(self._by_chunks(X, self._fit.predictions))

    def predict_interval(self, X: Any, confidence: float = 0.9, method: str = "residuals") -> Array:
        """Return intervals for y at new points, of shape (m, 2) or (m, n_outputs, 2).

        Lower and upper ends.

        ``"residuals"``: from the quantile (1 − confidence)/2 to (1 + confidence)/2 of
        ``predict_quantiles``: the prediction plus quantiles of left-out residuals, wider where
        errors nearby are larger. In simulations it holds y about as often as asked for; nothing is
        proven.

        ``"jackknife+"``: from all left-out predictions ŷ_(−i)(x) at the new point and all left-out
        residuals R_i, the interval goes from the ⌊(1 − confidence)(n + 1)⌋-th smallest ŷ_(−i)(x) −
        |R_i| to the ⌈confidence (n + 1)⌉-th smallest ŷ_(−i)(x) + |R_i|. For exchangeable rows of
        one weight it holds y with probability at least 2·confidence − 1, whatever their
        distribution (Barber, Candès, Ramdas and Tibshirani 2021), and in practice about
        ``confidence``; scaling, filter, parameter and bandwidth are taken as given, and choosing
        them from the same rows costs a percent or so where rows are few. After ``fit_batches`` the
        left-out predictions at x are not known and the prediction itself is taken for each: this is
        the plain jackknife, for which no coverage is proven.

        ``"conformal"``: the same model, everything learnt and chosen anew, is fitted to two thirds
        of the rows, and its residuals on the others calibrate the interval (split conformal; Lei et
        al. 2018): for exchangeable rows it holds y with probability at least ``confidence``,
        whatever their distribution. It costs one more fit, the first time it is asked for, and is a
        little wider. What stands before the model in a pipeline has seen the rows that calibrate,
        and is not part of the promise.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The points.
        confidence : float, default=0.9
            The share of new y that the intervals are made to hold, between 0 and 1.
        method : {'residuals', 'jackknife+', 'conformal'}, default='residuals'
            How they are made.
        """
        self._check_linear("predict_interval")
        who = "ConditionalMean.predict_interval"
        level = checked_confidence(who, confidence)
        if method not in INTERVALS:
            raise MuhatError(unknown_name(f"{who} method", str(method), INTERVALS))
        if method == "residuals":
            checked_confidence(who, level, self._fit.n)
            return self._quantiles_by_residuals(
                who, X, np.array([(1 - level) / 2, (1 + level) / 2])
            )
        if method == "conformal":
            model, columns, gaps = self._calibrated(level)
            reach = reach_of(who, level, gaps)
            new = checked_sample(self, X, reset=False)[
                :, columns if columns is not None else slice(None)
            ]
            middle = model._by_chunks(new, model._fit.predictions)
            return self._shaped(np.stack([middle - reach, middle + reach], axis=-1))
        n, upper = self._fit.n, checked_place(who, level, self._fit.n)
        residuals = np.abs(self._fit.residuals).T[:, None]

        def interval(some: Array) -> Array:
            values = self._fit.left_out_values(some)
            low = np.partition(values - residuals, n - upper, axis=-1)[..., n - upper]
            high = np.partition(values + residuals, upper - 1, axis=-1)[..., upper - 1]
            return np.moveaxis(np.stack([low, high], axis=-1), 0, 1)

        return self._shaped(self._by_chunks(X, interval))

    def _calibrated(self, level: float) -> tuple[ConditionalMean, Any, Array]:
        """Return a model of two thirds of the rows, its columns of X, and others' |residuals|."""
        who = "ConditionalMean.predict_interval"
        if self._rows is None:
            needed, advice = "conformal intervals take rows in memory", "use 'jackknife+'"
            raise MuhatError(who, needed, "a fit in batches", advice)
        X, y, masses = self._rows
        if masses.min() < masses.max():
            needed = "conformal intervals take rows that all weigh the same"
            advice = "use 'jackknife+'"
            raise MuhatError(who, needed, "sample_weight", advice)
        groups = None
        if self._copies is not None:
            groups = self._copies[1]
        check_calibration(who, level, self._fit.n)
        if self._calibration is None:
            self._calibration = calibrated(
                self, X, y, isinstance(self.kernel_, Precomputed), groups
            )
        return self._calibration

    def predict_quantiles(self, X: Any, q: Any, method: str | None = None) -> Array:
        """Return quantiles of y at new points.

        Their shape is (m, quantiles), or (m, n_outputs, quantiles) if y had two dimensions.

        ``"residuals"``: the prediction plus quantiles of left-out residuals. These are scaled by
        the size of errors near x, where the kernel says which rows are near: Gaussian, Laplacian,
        Matérn, rational quadratic and inverse multiquadric ones do. The quantiles 0.05 and 0.95 are
        the ends of the 90 % interval. At most 1,000 rows calibrate.

        ``"weights"``: the quantiles of ``distribution_at(X)``, for distributions whose form changes
        with x. They are wider, and the prediction, a mean by weights of any sign, may lie outside
        of them.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The points.
        q : float or list of floats
            The levels, between 0 and 1, such as ``[0.05, 0.5, 0.95]``.
        method : {'residuals', 'weights'}, default=None
            How they are made: by default from residuals, and from weights where ``kernel_y`` is not
            linear.
        """
        who = "ConditionalMean.predict_quantiles"
        levels = checked_levels(who, q)
        check_is_fitted(self, "choice_")
        if method is None:
            method = "weights"
            if isinstance(self.kernel_y_, Linear):
                method = "residuals"
        if method not in QUANTILES:
            raise MuhatError(unknown_name(f"{who} method", str(method), QUANTILES))
        if method == "residuals":
            self._check_linear("predict_quantiles: method='residuals'")
            return self._quantiles_by_residuals(who, X, levels)

        def quantiles(some: Array) -> Array:
            return ConditionalDistribution.from_weights(
                self._outputs, self._weights(some)
            ).quantiles(levels)

        return self._shaped(self._by_chunks(X, quantiles))

    @cached_property
    def _residual_quantiles(self) -> ResidualQuantiles:
        """Quantiles of left-out residuals, for any x."""
        points, numbers = self._fit.calibrating_rows()
        residuals, masses = self._fit.residuals[numbers], self._fit.masses[numbers]
        return ResidualQuantiles.from_residuals(self.kernel_, points, residuals, masses)

    def _quantiles_by_residuals(self, who: str, X: Array, levels: Array) -> Array:
        """Return predictions plus quantiles of left-out residuals."""
        around = self._residual_quantiles
        around.check_levels(who, levels)

        def quantiles(some: Array) -> Array:
            return self._fit.predictions(some)[:, :, None] + around.around(some, levels)

        return self._shaped(self._by_chunks(X, quantiles))

    def sample(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Return draws of y from ``distribution_at(X)``.

        Their shape is (m, n_samples), or (m, n_samples, n_outputs) if y had two dimensions.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The points.
        n_samples : int, default=1
            How many draws at each.
        random_state : int, RandomState or None, default=0
            The generator's seed; None draws anew each time.
        """
        drawn = self.distribution_at(X).sample(n_samples, random_state)
        if self._is_flat:
            return drawn[..., 0]
        return drawn

    def distribution_at(self, X: Any) -> ConditionalDistribution:
        """Return the distribution of y at new points.

        The probabilities nearest to ``weights_at(X)``.

        Its attribute ``moved`` says how much probability was moved to make these of the weights.
        """
        weights = self.weights_at(X)[:, self._taken]
        return ConditionalDistribution.from_weights(self._outputs, weights)

    def weights_at(self, X: Any) -> Array:
        """Return the weights α_i(x) of the sample's outputs, of any sign, in shape (m, n).

        With an intercept they sum to one.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The points.
        """
        check_is_fitted(self, "choice_")
        found = self._by_chunks(X, self._weights)
        weights = np.zeros((len(found), len(self._taken)))
        weights[:, self._taken] = found
        return weights

    def expect(self, function: Callable[[Array], Any], X: Any) -> Array:
        """Return the mean of a function of y at new points: Σ_i α_i(x) f(y_i).

        Parameters
        ----------
        function : callable
            Takes the sample's outputs, as an array of the shape that y had in ``fit``, and returns
            a number or a row for each.
        X : array or data frame of shape (m, d)
            The points.
        """
        check_is_fitted(self, "choice_")
        outputs = self._outputs
        values = as_real_numbers(function(outputs[:, 0] if self._is_flat else outputs))
        if values.ndim not in (1, 2) or len(values) != len(outputs):
            needed = (
                f"the function must return a number or a row for each of {len(outputs)} outputs"
            )
            raise MuhatError("ConditionalMean.expect", needed, f"shape {values.shape}")
        return self.weights_at(X)[:, self._taken] @ values

    def embedding_at(self, x: Any) -> Embedding:
        """Return μ_{Y

        x} at one point, of shape (d,) or (1, d), in the RKHS of y.
        """
        weights = self.weights_at(np.atleast_2d(x) if not hasattr(x, "columns") else x)
        if len(weights) != 1:
            needed, advice = "one point is needed", "take the rows one by one"
            raise MuhatError("ConditionalMean.embedding_at", needed, len(weights), advice)
        return Embedding(self.kernel_y_, self._outputs, weights[0, self._taken])

    def mmd_at(self, X: Any, other: ConditionalMean) -> Array:
        """Return how far two conditional distributions are apart at new points.

        ‖μ_{Y|x} − μ'_{Y|x}‖, of shape (m,).

        With a linear kernel on y it is the distance of the two means; with a Gaussian one, of whole
        distributions.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The points.
        other : ConditionalMean
            Another fitted model with the same kernel on y, every parameter a number:
            ``kernel_y=Gaussian(1.0)``.
        """
        if not isinstance(other, ConditionalMean):
            needed, got = "another ConditionalMean is needed", f"a {type(other).__name__}"
            raise MuhatError("ConditionalMean.mmd_at", needed, got, "fit it to other rows")
        mine, its = self.weights_at(X)[:, self._taken], other.weights_at(X)[:, other._taken]
        if self.kernel_y_ != other.kernel_y_:
            needed = f"both models must have the kernel_y {self.kernel_y_!r}"
            advice = "give its bandwidth as a number"
            raise MuhatError("ConditionalMean.mmd_at", needed, repr(other.kernel_y_), advice)
        weights = np.hstack([mine, -its])
        L = self.kernel_y_(np.concatenate([self._outputs, other._outputs]))
        return np.sqrt(np.maximum(((weights @ L) * weights).sum(axis=1), 0))

    @property
    def loo_predictions_(self) -> Array:
        """What is predicted for each row without it; NaN for rows of mass zero."""
        self._check_linear("loo_predictions_")
        return self._on_rows(self._fit.left_out_predictions())

    @property
    def loo_residuals_(self) -> Array:
        """Each y_i minus what is predicted for it without row i; NaN for rows of mass zero."""
        self._check_linear("loo_residuals_")
        self._fit.left_out_predictions()
        return self._on_rows(self._fit.residuals)

    @property
    def loo_distribution_(self) -> ConditionalDistribution:
        """The distribution of y at each x_i by the model made without row i.

        Rows of mass zero are left out.
        """
        check_is_fitted(self, "choice_")
        weights = self._fit.left_out_weights()
        if self._copies is not None:
            weights = self._shared(weights)[self._copies[1]]
        return ConditionalDistribution.from_weights(self._outputs, weights)

    def loo_coverage(self, confidence: float = 0.9) -> Any:
        """Return the share of rows whose y lies inside their left-out central interval.

        It goes from the quantile (1 − confidence)/2 to (1 + confidence)/2 of ``loo_distribution_``.

        These are the quantiles of weights. A number, or one for each output; rows count by their
        weights.
        """
        level = checked_confidence("ConditionalMean.loo_coverage", confidence)
        low, high = np.moveaxis(
            self.loo_distribution_.quantiles([(1 - level) / 2, (1 + level) / 2]), -1, 0
        )
        return self._averaged((low <= self._outputs) & (self._outputs <= high))

    def loo_crps(self) -> Any:
        """Return the mean CRPS of the distributions predicted for each row without it.

        A number, or one an output.
        """
        return self._averaged(self.loo_distribution_.crps(self._outputs))

    @property
    def loo_score_(self) -> float:
        """The share of the variance of y, in its RKHS, that is predicted without each row."""
        check_is_fitted(self, "choice_")
        return self._fit.share_explained()

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

    def _parts(self) -> Parts:
        """Resolve and check every argument but the kernel on y."""
        arguments = {
            name: getattr(self, name) for name in ("kernel", "filter", "selection", "gram")
        }
        parts = Parts.from_arguments("ConditionalMean", **arguments, auto=CONDITIONAL_AUTO)
        for filter in parts.filters:
            if not isinstance(filter, Filter) or filter.constant:
                needed = "a filter that inverts, γ g_λ(γ) → 1, is needed"
                name = type(filter).__name__
                raise MuhatError(
                    "ConditionalMean", needed, name, "use 'tikhonov', 'landweber' or 'auto'"
                )
        if parts.gram == "blocks":
            needed = "gram must be 'auto', 'dense', 'nystrom' or 'random-features'"
            advice = "use landmarks, as in gram=Nystrom(1000), for more rows than memory allows"
            raise MuhatError("ConditionalMean", needed, "'blocks'", advice)
        if not isinstance(parts.rule, LeaveOneOut | ParameterRule | GCV):
            needed = "selection must be 'loo', 'gcv', LeaveOneOut, GCV, Fixed or Rate"
            raise MuhatError("ConditionalMean", needed, repr(parts.rule))
        for name in ("fit_intercept", "standardize"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise MuhatError(self, f"{name} must be True or False", repr(getattr(self, name)))
        return self._with_bandwidth(parts)

    def _with_bandwidth(self, parts: Parts) -> Parts:
        """Return the parts with the bandwidth that was given; raise MuhatError if it is invalid."""
        bandwidth = self.bandwidth
        if bandwidth is None:
            return parts
        is_word = isinstance(bandwidth, str) and bandwidth in ("median", "loo")
        is_number = (
            isinstance(bandwidth, Real)
            and not isinstance(bandwidth, bool)
            and 0 < float(bandwidth) < np.inf
        )
        if not (is_word or is_number):
            needed = "bandwidth must be None, a positive number, 'median' or 'loo'"
            raise MuhatError("ConditionalMean", needed, repr(bandwidth))
        if not hasattr(parts.kernel, "bandwidth") or (
            bandwidth == "loo" and isinstance(parts.rule, ParameterRule)
        ):
            needed = f"bandwidth={bandwidth!r} takes a kernel with a bandwidth"
            needed += " and a rule with scores" if bandwidth == "loo" else ""
            raise MuhatError("ConditionalMean", needed, f"{parts.kernel!r} and {parts.rule!r}")
        if bandwidth == "loo":
            return parts
        kernel: Any = parts.kernel
        return replace(parts, kernel=replace(kernel, bandwidth=bandwidth))

    def _kernel_y(self) -> Kernel:
        kernel = as_kernel(self.kernel_y, "kernel_y")
        if isinstance(kernel, Precomputed):
            needed, advice = "kernel_y must be a kernel of points", "pass the outputs and a kernel"
            raise MuhatError("ConditionalMean", needed, "'precomputed'", advice)
        return kernel

    def _kernels_to_try(self, kernel: Kernel) -> Sequence[Kernel]:
        if self.bandwidth != "loo":
            return [kernel]
        narrowed: Any = kernel  # checked to have a bandwidth
        ladder: list[Kernel] = []
        for factor in BANDWIDTH_FACTORS:
            ladder.append(replace(narrowed, bandwidth=factor * narrowed.bandwidth))
        return ladder

    def _by_chunks(self, X: Any, function: Callable[[Array], Array]) -> Array:
        """Return a function of new points, computed for a block of them at a time.

        The kernel values of a block to the sample fit in memory.
        """
        check_is_fitted(self, "choice_")
        X = checked_sample(self, X, reset=False).astype(np.float64, copy=False)
        if isinstance(self.kernel_, Precomputed):
            X = X[:, self._taken]
            X = X if self._copies is None else X[:, self._copies[0]]
        else:
            X = self._scaled(X)
        return np.concatenate([function(X[some]) for some in slices(0, len(X), ROWS_PER_BLOCK)])

    @property
    def _copies(self) -> tuple[Array, Array, Array] | None:
        """The rows that stand for their copies.

        For each row which of them does, and its share of their mass.
        """
        return getattr(
            self, "_copied", None
        )  # models that were saved by earlier versions have none

    def _weights(self, X: Array) -> Array:
        """Return the weight of each row's output at new points, as the kernel sees these."""
        return self._shared(self._fit.weights(X))

    def _shared(self, weights: Array) -> Array:
        """Return weights of different rows, in columns, with each shared out among its copies."""
        if self._copies is None:
            return weights
        _, groups, shares = self._copies
        return weights[:, groups] * shares

    def _on_rows(self, values: Array) -> Array:
        """Return values of rows that take part, NaN for the others."""
        on_rows = np.full((len(self._taken), values.shape[1]), np.nan)
        on_rows[self._taken] = values if self._copies is None else values[self._copies[1]]
        return self._shaped(on_rows)

    def _averaged(self, values: Array) -> Any:
        """Return the mean over rows of a value for each output."""
        means = self._shared(self._fit.masses[None])[0] @ values
        if self._is_flat:
            return float(means[0])
        return means

    def _check_linear(self, method: str) -> None:
        check_is_fitted(self, "choice_")
        if not isinstance(self.kernel_y_, Linear):
            needed = "kernel_y must be 'linear' for the mean of y"
            advice = "use expect, predict_quantiles or sample"
            raise MuhatError(f"ConditionalMean.{method}", needed, repr(self.kernel_y_), advice)

    def _shaped(self, values: Array) -> Array:
        if self._is_flat:
            return values[:, 0]
        return values
