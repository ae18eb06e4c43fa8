"""What a fitted conditional mean answers: means, intervals, quantiles, and left-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array, slices
from muhat._bases import BaseEstimator
from muhat._messages import unknown_name
from muhat._validation import checked_sample
from muhat.conditional._distribution import ConditionalDistribution, checked_levels
from muhat.conditional._extrapolation import ExtrapolationWarning, TrainingRegion, far_text
from muhat.conditional._fits import Fit
from muhat.conditional._inputs import as_real_numbers
from muhat.conditional._intervals import (
    INTERVALS,
    QUANTILES,
    ResidualQuantiles,
    calibrated,
    check_calibration,
    checked_confidence,
    checked_place,
    reach_of,
    widened_to,
)
from muhat.embedding import Embedding
from muhat.errors import MuhatError
from muhat.kernels import Kernel, Linear, Precomputed

ROWS_PER_BLOCK = 1024
"""New points whose kernel values to the sample are held at once."""


class ConditionalAnswers(BaseEstimator):
    """The methods of ``ConditionalMean`` that ask a fitted model."""

    scaling_: Any
    kernel_: Kernel
    kernel_y_: Kernel
    _fit: Fit
    _outputs: Array
    """The y of rows that take part, of shape (rows, n_outputs); empty after ``fit_batches``."""
    _taken: Array
    """Which rows have a mass."""
    _is_flat: bool
    """Whether y had one dimension."""
    _rows: tuple[Array, Array, Array] | None
    """X, y and masses, if they are in memory."""
    _copied: tuple[Array, Array, Array] | None
    _calibration: tuple[Any, Any, Array] | None

    def predict(self, X: Any) -> Array:
        """Return the mean of y at new points, of shape (m,) or (m, n_outputs).

        Available only for the linear kernel on y.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The points; for a precomputed kernel, the matrix k(x, x_i) to the sample.
        """
        self._check_linear("predict")
        return self._shaped(self._by_chunks(X, self._fit.predictions))

    def predict_interval(self, X: Any, confidence: float = 0.9, method: str = "residuals") -> Array:
        """Return the lower and upper ends of intervals for y at new points.

        Their shape is (m, 2), or (m, n_outputs, 2) for several outputs.

        ``"residuals"``: the prediction plus quantiles of left-out residuals, wider where errors
        nearby are larger. The ends are the quantiles (1 − confidence)/2 and (1 + confidence)/2 of
        ``predict_quantiles``. In simulations the intervals contain y about as often as requested;
        this is not guaranteed.

        ``"jackknife+"``: let ŷ_(−i)(x) be the predictions at the new point by models without row i,
        and R_i the left-out residuals. The interval goes from the ⌊(1 − confidence)(n + 1)⌋-th
        smallest ŷ_(−i)(x) − |R_i| to the ⌈confidence (n + 1)⌉-th smallest ŷ_(−i)(x) + |R_i|. For
        exchangeable rows of equal weight it contains y with probability at least 2·confidence − 1,
        whatever the distribution (Barber, Candès, Ramdas and Tibshirani 2021), and in practice
        about ``confidence``. This is for given scaling, filter, parameter and bandwidth; choosing
        them from the same rows lowers the coverage by about a percent if rows are few. After
        ``fit_batches``, the prediction itself replaces ŷ_(−i)(x). This is the plain jackknife,
        whose coverage is not guaranteed.

        ``"conformal"``: the same model is fitted again, with all choices, to two thirds of the
        rows, and its residuals on the other rows calibrate the interval (split conformal; Lei et
        al. 2018). For exchangeable rows it contains y with probability at least ``confidence``,
        whatever the distribution. It costs one more fit when first used, and intervals are a little
        wider. The guarantee does not include earlier steps of a pipeline, which were fitted to all
        rows.

        Every interval contains the prediction: it is widened to it where a few extreme y move
        predictions out of the range of most errors.

        All methods rely on errors near the training rows. For points far from all training rows
        (``is_far``), intervals may be much too narrow, and an ``ExtrapolationWarning`` is issued.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The points.
        confidence : float, default=0.9
            The share of new y that the intervals should contain, between 0 and 1.
        method : {'residuals', 'jackknife+', 'conformal'}, default='residuals'
            How the intervals are computed.
        """
        self._check_linear("predict_interval")
        who = "ConditionalMean.predict_interval"
        level = checked_confidence(who, confidence)
        if method not in INTERVALS:
            raise MuhatError(unknown_name(f"{who} method", str(method), INTERVALS))
        self._warn_of_far_points(X)
        ends = self._interval_ends(who, X, level, method)
        return widened_to(ends, self._shaped(self._by_chunks(X, self._fit.predictions)))

    def _interval_ends(self, who: str, X: Any, level: float, method: str) -> Array:
        """Return the ends of intervals by one of the methods, as residuals have them."""
        if method == "residuals":
            checked_confidence(who, level, self._fit.n)
            levels = np.array([(1 - level) / 2, (1 + level) / 2])
            return self._quantiles_by_residuals(who, X, levels)
        if method == "conformal":
            model, columns, gaps = self._calibrated(level)
            reach = reach_of(who, level, gaps)
            new = checked_sample(self, X, reset=False)
            if columns is not None:
                new = new[:, columns]
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

    def is_far(self, X: Any) -> Array:
        """Return which points are far from all training rows, of shape (m,).

        Predictions at such points are extrapolations. A point is far if it is outside the range of
        a column by more than half of that range, or if the distance to its nearest training row is
        more than twice that of 99 % of the training rows to their nearest one. At most 1,000
        training rows are used; columns are scaled as for the kernel. With a precomputed kernel
        there are no distances, and no point is far.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The points.
        """
        check_is_fitted(self, "choice_")
        region = self._training_region
        if region is None:
            return np.zeros(len(checked_sample(self, X, reset=False)), dtype=bool)
        return self._by_chunks(X, region.is_far)

    @cached_property
    def _training_region(self) -> TrainingRegion | None:
        """Where the training rows are; None if only their Gram matrix is known."""
        points, _ = self._fit.calibrating_rows()
        if points is None:
            return None
        return TrainingRegion.from_points(points)

    def _warn_of_far_points(self, X: Any) -> None:
        is_far = self.is_far(X)
        if is_far.any():
            far = far_text(int(is_far.sum()), len(is_far))
            message = f"{far}: their intervals may be much too narrow."
            warnings.warn(message, ExtrapolationWarning, stacklevel=3)

    def _calibrated(self, level: float) -> tuple[ConditionalAnswers, Any, Array]:
        """Return a model of two thirds of the rows, its columns of X, and others' |residuals|."""
        who = "ConditionalMean.predict_interval"
        if self._rows is None:
            needed, advice = "conformal intervals need rows in memory", "use 'jackknife+'"
            raise MuhatError(who, needed, "a fit in batches", advice)
        X, y, masses = self._rows
        if masses.min() < masses.max():
            needed = "conformal intervals need rows of equal weight"
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

        ``"residuals"``: the prediction plus quantiles of left-out residuals. With a kernel
        that is never negative, such as the Gaussian or another of the distance, the residuals are
        scaled by the size of errors near x. The quantiles 0.05 and 0.95 are the ends of the 90 %
        interval. At most 1,000 residuals are used.

        ``"weights"``: the quantiles of ``distribution_at(X)``, for distributions whose shape
        changes with x. They are wider. The prediction, a mean with weights that can be negative,
        may lie outside of them.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The points.
        q : float or list of floats
            The levels, between 0 and 1, such as ``[0.05, 0.5, 0.95]``.
        method : {'residuals', 'weights'}, default=None
            How the quantiles are computed. The default is 'residuals' if ``kernel_y`` is linear,
            and 'weights' otherwise.
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
            The number of draws at each point.
        random_state : int, RandomState or None, default=0
            Seed of the draws. With None, every call draws new ones.
        """
        drawn = self.distribution_at(X).sample(n_samples, random_state)
        if self._is_flat:
            return drawn[..., 0]
        return drawn

    def distribution_at(self, X: Any) -> ConditionalDistribution:
        """Return the distribution of y at new points.

        Its probabilities are those nearest to ``weights_at(X)``, which can be negative. Its
        attribute ``moved`` is the probability by which the two differ.
        """
        weights = self.weights_at(X)[:, self._taken]
        return ConditionalDistribution.from_weights(self._outputs, weights)

    def weights_at(self, X: Any) -> Array:
        """Return the weights α_i(x) of the outputs y_i, which can be negative: shape (m, n).

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
        values = as_real_numbers(function(self._shaped(outputs)))
        if values.ndim not in (1, 2) or len(values) != len(outputs):
            needed = (
                f"the function must return a number or a row for each of {len(outputs)} outputs"
            )
            raise MuhatError("ConditionalMean.expect", needed, f"shape {values.shape}")
        return self.weights_at(X)[:, self._taken] @ values

    def embedding_at(self, x: Any) -> Embedding:
        """Return μ_{Y|x}, an element of the RKHS of y, at one point x of shape (d,) or (1, d)."""
        if not hasattr(x, "columns"):
            x = np.atleast_2d(x)
        weights = self.weights_at(x)
        if len(weights) != 1:
            needed, advice = "one point is needed", "pass one row at a time"
            raise MuhatError("ConditionalMean.embedding_at", needed, len(weights), advice)
        return Embedding(self.kernel_y_, self._outputs, weights[0, self._taken])

    def mmd_at(self, X: Any, other: ConditionalAnswers) -> Array:
        """Return the distance (MMD) between the predictions of two models at new points.

        The distance is ‖μ_{Y|x} − μ'_{Y|x}‖, of shape (m,).

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
        if not isinstance(other, ConditionalAnswers):
            needed, got = "other must be a fitted ConditionalMean", f"a {type(other).__name__}"
            raise MuhatError("ConditionalMean.mmd_at", needed, got)
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
        """The prediction for each row from all other rows; NaN for rows of weight zero."""
        self._check_linear("loo_predictions_")
        return self._on_rows(self._fit.left_out_predictions())

    @property
    def loo_residuals_(self) -> Array:
        """Each y_i minus its left-out prediction; NaN for rows of weight zero."""
        self._check_linear("loo_residuals_")
        self._fit.left_out_predictions()
        return self._on_rows(self._fit.residuals)

    @property
    def loo_distribution_(self) -> ConditionalDistribution:
        """The distribution of y at each x_i, from the model without row i.

        Rows of weight zero are not included.
        """
        check_is_fitted(self, "choice_")
        weights = self._fit.left_out_weights()
        if self._copies is not None:
            weights = self._shared(weights)[self._copies[1]]
        return ConditionalDistribution.from_weights(self._outputs, weights)

    def loo_coverage(self, confidence: float = 0.9) -> Any:
        """Return the share of rows whose y lies in the interval predicted without the row.

        The interval goes from the quantile (1 − confidence)/2 to (1 + confidence)/2 of
        ``loo_distribution_``, as by ``predict_quantiles(method="weights")``. The result is one
        number, or one for each output. Rows count by their weights.
        """
        level = checked_confidence("ConditionalMean.loo_coverage", confidence)
        low, high = np.moveaxis(
            self.loo_distribution_.quantiles([(1 - level) / 2, (1 + level) / 2]), -1, 0
        )
        return self._averaged((low <= self._outputs) & (self._outputs <= high))

    def loo_crps(self) -> Any:
        """Return the mean CRPS of left-out rows, each predicted from all other rows.

        The result is one number, or one for each output.
        """
        return self._averaged(self.loo_distribution_.crps(self._outputs))

    @property
    def loo_score_(self) -> float:
        """R² on left-out rows; with ``kernel_y``, measured in the RKHS of y."""
        check_is_fitted(self, "choice_")
        return self._fit.share_explained()

    def _scaled(self, X: Array) -> Array:
        """Return x as the kernel sees it."""
        if self.scaling_ is None:
            return X
        return self.scaling_.standardized(X)

    def _by_chunks(self, X: Any, function: Callable[[Array], Array]) -> Array:
        """Return a function of new points, computed for a block of them at a time.

        The kernel values of a block to the sample fit in memory.
        """
        check_is_fitted(self, "choice_")
        X = checked_sample(self, X, reset=False).astype(np.float64, copy=False)
        if isinstance(self.kernel_, Precomputed):
            X = X[:, self._taken]
            if self._copies is not None:
                X = X[:, self._copies[0]]
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
        if self._copies is not None:
            values = values[self._copies[1]]
        on_rows[self._taken] = values
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
