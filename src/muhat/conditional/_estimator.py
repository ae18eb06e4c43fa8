"""ConditionalMean: E[f(Y) | X = x] for every f at once, as a scikit-learn regressor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Any, Self

import numpy as np
from scipy.linalg.lapack import dpstrf
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array, rounding, slices
from muhat._messages import refusal
from muhat._parts import Parts, as_kernel
from muhat._reportable import Reportable
from muhat._shown import ShownEstimator
from muhat._validation import (
    as_frame,
    check_scale,
    check_semidefinite,
    checked_gram,
    checked_masses,
    checked_sample,
)
from muhat.conditional._distribution import ConditionalDistribution, checked_levels
from muhat.conditional._left_out import LeftOut, Regression
from muhat.embedding import Embedding
from muhat.filters import Filter, Iteration
from muhat.filters._base import GRID_SIZE, Formula
from muhat.gram import Approximation, DenseGram
from muhat.gram._plan import Plan, plan_in_memory
from muhat.kernels import Kernel, Linear, Precomputed
from muhat.selection import GCV, Given, LeaveOneOut, Rule
from muhat.selection._base import Candidates, check_rest, checked_grid

AUTO = ("f-kmse", "iterated-tikhonov", "landweber", "nu-method")
"""What ``filter="auto"`` chooses from: filters with a cheap exact leave-one-out score."""

LEAST = 1e-9
"""The least λ of a grid, in units of γ_max: below it, rounding of the eigenvalues shows in predictions."""

STEPS = 128
"""The most iterations of a grid for filters that are computed step by step."""

LADDER = 2.0 ** np.arange(-3, 4)
"""Multiples of the kernel's own bandwidth that ``bandwidth="loo"`` chooses from."""

CHUNK = 1024
"""New points whose kernel values to the sample are held at once."""

FACTORED = 1e-14
"""The share of the largest l(y, y) that a factor of the Gram matrix of y leaves out."""


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalChoice:
    """A filter's parameter for a conditional mean, and what it was chosen from.

    Attributes
    ----------
    rule, filter : Rule and Filter
        The rule that chose, and for what.
    parameter, score, index : float or int, float, and int
        λ or the number of iterations t, its score and its place in the grid.
    grid, scores : arrays of shape (parameters,)
        The candidates and the score of each: by leave-one-out, the weighted mean of ‖y_i − ŷ_i‖² in the space of y; NaN
        where the parameter was given.
    at_edge : bool
        Whether it is the first or last of several candidates.
    """

    rule: Rule
    filter: Filter
    grid: Array
    scores: Array

    @property
    def index(self) -> int:
        """The place of the least score."""
        return 0 if np.isnan(self.scores).all() else int(np.nanargmin(self.scores))

    @property
    def parameter(self) -> Any:
        """The chosen λ or t."""
        return self.grid[self.index].item()

    @property
    def score(self) -> float:
        """Its score."""
        return float(self.scores[self.index])

    @property
    def at_edge(self) -> bool:
        """Whether it is the first or last of several."""
        return len(self.grid) > 1 and self.index in (0, len(self.grid) - 1)

    def __repr__(self) -> str:
        edge = ", at_edge=True" if self.at_edge else ""
        return f"ConditionalChoice({self.filter!r}, parameter={self.parameter!r}, score={self.score:.6g}{edge})"


@dataclass(frozen=True, eq=False)
class _Fit:
    """A regression on one kernel, with each filter's choice."""

    kernel: Kernel
    regression: Regression
    coordinates: Callable[[Array], Array]
    """UᵀD k(X, x) of new points, in rows."""
    choices: list[ConditionalChoice]

    @cached_property
    def choice(self) -> ConditionalChoice:
        """The choice with the least score."""
        return min(self.choices, key=lambda choice: choice.score) if len(self.choices) > 1 else self.choices[0]

    @cached_property
    def inverse(self) -> Array:
        """g_λ(γ) of every component."""
        return self.choice.filter.inverse(self.regression.gamma, self.choice.parameter)

    @cached_property
    def coefficients(self) -> Array:
        """What coordinates are multiplied with to predict, measured from the mean."""
        return self.inverse[:, None] * self.regression.projected[:, :-1]

    @cached_property
    def left_out_predictions(self) -> Array:
        """What is predicted for each row by the smoother made without it."""
        return LeftOut(self.regression).predictions(self.choice.filter, self.choice.parameter)

    @cached_property
    def left_out_functions(self) -> Array:
        """The smoothers made without each row."""
        return LeftOut(self.regression).functions(self.choice.filter, self.choice.parameter)

    def weights(self, coordinates: Array) -> Array:
        """Return the weights of the outputs at new points: shape (m, n)."""
        regression = self.regression
        weights = (coordinates * self.inverse) @ (regression.U.T * regression.root_masses)
        if regression.has_intercept:
            weights += (1 - weights.sum(axis=1, keepdims=True)) * regression.masses
        return weights

    def left_out_values(self, coordinates: Array) -> Array:
        """Return what each left-out smoother predicts at new points: shape (columns, m, n)."""
        means = self.regression.mean + self.regression.left_out_means
        return coordinates @ self.left_out_functions + means.T[:, None]


class ConditionalMean(ShownEstimator, Reportable, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """The mean of y given x, of any function of y, and its distribution: the conditional mean embedding.

    μ_{Y|x} = Σ_i α_i(x) l(y_i, ·) with α(x) = g_λ(K/n) k(X, x)/n, for every filter g_λ. With the linear kernel on y
    this is regression, of several outputs; Tikhonov's filter is then kernel ridge regression with the ridge nλ, and
    others do not saturate where it does. Filter and parameter are chosen by exact leave-one-out, from one
    eigendecomposition. Everything is computed in double precision.

    Parameters
    ----------
    kernel : str, Kernel, scikit-learn kernel or callable, default='gaussian'
        The kernel on x, as for ``KernelMean``.
    kernel_y : str, Kernel, scikit-learn kernel or callable, default='linear'
        The kernel on y, in whose RKHS leave-one-out measures errors. ``'gaussian'`` chooses for the whole distribution
        of y rather than for its mean; ``predict`` is then not available.
    filter : str, Filter or list of these, default='auto'
        ``'tikhonov'`` (or ``'f-kmse'``), ``'iterated-tikhonov'``, ``'landweber'``, ``'nu-method'``, ``'tsvd'``, or an
        object. Of a list, the best is taken; ``'auto'`` is the list of all but truncated SVD.
    selection : {'loo', 'gcv'}, LeaveOneOut, GCV, Fixed or Rate, default='loo'
        How the parameter is chosen. For truncated SVD, and filters that jump, a point is left out by a refit, up to
        300 points; beyond, generalised cross-validation stands in.
    gram : {'auto', 'dense', 'nystrom', 'random-features'}, Nystrom or RandomFeatures, default='auto'
        How the Gram matrix is held: dense up to 5,000 rows, and by Nyström's features beyond.
    fit_intercept : bool, default=True
        Whether what the weights α_i(x) lack to one goes to the mean of y, so that predictions move along with y and
        far from all data are its mean. Without, they shrink towards zero, as scikit-learn's ``KernelRidge``.
    bandwidth : None or 'loo', default=None
        None takes the kernel's own bandwidth, by default of the median rule; 'loo' also tries an eighth to eight times
        that and takes the one with the least leave-one-out score, an eigendecomposition each.

    Attributes
    ----------
    choice_, choices_ : ConditionalChoice and list of ConditionalChoice
        The choice that was taken, and those of every filter, with all scores.
    filter_, kernel_, kernel_y_ : Filter, Kernel and Kernel
        The filter that was taken, and the kernels with every parameter a number.
    bandwidths_, bandwidth_scores_ : arrays
        With ``bandwidth="loo"``, the bandwidths that were tried and the least score of each; else None.
    loo_predictions_, loo_residuals_ : arrays of the shape of y
        What is predicted for each row without it, and y minus that; for the linear kernel on y.
    loo_score_ : float
        The share of the variance of y, in its RKHS, that is predicted without each row: R² by leave-one-out.
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

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        kernel_y: Any = "linear",
        filter: Any = "auto",
        selection: Any = "loo",
        gram: Any = "auto",
        fit_intercept: bool = True,
        bandwidth: str | None = None,
    ) -> None:
        self.kernel = kernel
        self.kernel_y = kernel_y
        self.filter = filter
        self.selection = selection
        self.gram = gram
        self.fit_intercept = fit_intercept
        self.bandwidth = bandwidth

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to rows of x and y.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            The x_i, or their Gram matrix if the kernel is precomputed.
        y : array of shape (n,) or (n, n_outputs)
            The y_i.
        sample_weight : array of shape (n,), default=None
            Masses of the rows, not negative; equal by default. A row of mass zero does not take part.

        Returns
        -------
        self : ConditionalMean
            The fitted estimator.
        """
        parts, kernel_y = self._parts(), self._kernel_y()
        X = checked_sample(self, X, reset=True).astype(np.float64, copy=False)
        y = _checked_outputs(y, len(X))
        masses = checked_masses("ConditionalMean", sample_weight, len(X))
        taken = masses > 0
        X, masses = _rows(parts.kernel, X, taken), masses[taken]
        outputs = y.reshape(len(y), -1)[taken]
        _check_variation(outputs)
        kernel_y = kernel_y.resolve(outputs)
        sample = _Sample(parts, X, masses, _factor(kernel_y, outputs), bool(self.fit_intercept))
        rules = sample.rules()
        fits = [sample.fit(kernel, rules) for kernel in self._ladder(sample.kernel)]

        best = min(fits, key=lambda fit: fit.choice.score) if len(fits) > 1 else fits[0]
        has_ladder = self.bandwidth == "loo"
        self.bandwidths_ = np.array([fit.kernel.bandwidth for fit in fits]) if has_ladder else None
        self.bandwidth_scores_ = np.array([fit.choice.score for fit in fits]) if has_ladder else None
        self.kernel_, self.kernel_y_ = best.kernel, kernel_y
        self.choice_, self.choices_, self.filter_ = best.choice, best.choices, best.choice.filter
        self._fit, self._outputs, self._taken, self._is_flat = best, outputs, taken, y.ndim == 1
        return self

    def predict(self, X: Any) -> Array:
        """Return the mean of y at new points, of shape (m,) or (m, n_outputs): for the linear kernel on y.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The points; for a precomputed kernel, the matrix k(x, x_i) to the sample.
        """
        self._check_linear("predict")
        fit = self._fit
        return self._shaped(self._by_chunks(X, lambda some: some @ fit.coefficients + fit.regression.mean))

    def predict_interval(self, X: Any, confidence: float = 0.9) -> Array:
        """Return intervals for y at new points by the jackknife+, of shape (m, 2) or (m, n_outputs, 2).

        From all left-out predictions ŷ_(−i)(x) at the new point and all left-out residuals R_i, the interval goes from
        the ⌊(1 − confidence)(n + 1)⌋-th smallest ŷ_(−i)(x) − |R_i| to the ⌈confidence (n + 1)⌉-th smallest
        ŷ_(−i)(x) + |R_i|. For exchangeable rows of one weight it holds y with probability at least 2·confidence − 1,
        whatever their distribution (Barber, Candès, Ramdas and Tibshirani 2021), and in practice about ``confidence``.
        The theorem is for a filter, parameter and bandwidth that are given; chosen from the same rows, they cost a
        percent or so of coverage where rows are few. Each output has intervals of its own.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The points.
        confidence : float, default=0.9
            The share of new y that the intervals are made to hold, between 0 and 1.
        """
        self._check_linear("predict_interval")
        [level], n = checked_levels("ConditionalMean.predict_interval: confidence", confidence), len(self._outputs)
        upper = ceil(round(level * (n + 1), 9))
        if upper > n:
            needed = f"confidence {level:g} takes at least {ceil(round(level / (1 - level), 9))} rows"
            raise ValueError(refusal("ConditionalMean.predict_interval", needed, n, "lower it"))
        residuals = np.abs(self._outputs - self._fit.left_out_predictions).T[:, None]

        def interval(some: Array) -> Array:
            values = self._fit.left_out_values(some)
            low = np.partition(values - residuals, n - upper, axis=-1)[..., n - upper]
            high = np.partition(values + residuals, upper - 1, axis=-1)[..., upper - 1]
            return np.moveaxis(np.stack([low, high], axis=-1), 0, 1)

        return self._shaped(self._by_chunks(X, interval))

    def predict_quantiles(self, X: Any, q: Any) -> Array:
        """Return quantiles of y at new points, of shape (m, quantiles) or (m, n_outputs, quantiles).

        They are those of ``distribution_at(X)``.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The points.
        q : float or list of floats
            The levels, between 0 and 1, such as ``[0.05, 0.5, 0.95]``.
        """
        levels = checked_levels("ConditionalMean.predict_quantiles", q)

        def quantiles(some: Array) -> Array:
            return ConditionalDistribution.from_weights(self._outputs, self._fit.weights(some)).quantiles(levels)

        return self._shaped(self._by_chunks(X, quantiles))

    def sample(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Array:
        """Return draws of y from ``distribution_at(X)``, of shape (m, n_samples) or (m, n_samples, n_outputs).

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The points.
        n_samples : int, default=1
            How many draws at each.
        random_state : int, RandomState or None, default=None
            The generator's seed.
        """
        drawn = self.distribution_at(X).sample(n_samples, random_state)
        return drawn[..., 0] if self._is_flat else drawn

    def distribution_at(self, X: Any) -> ConditionalDistribution:
        """Return the distribution of y at new points: the probabilities nearest to ``weights_at(X)``.

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
        found = self._by_chunks(X, lambda some: self._fit.weights(some))
        weights = np.zeros((len(found), len(self._taken)))
        weights[:, self._taken] = found
        return weights

    def expect(self, function: Callable[[Array], Any], X: Any) -> Array:
        """Return the mean of a function of y at new points: Σ_i α_i(x) f(y_i).

        Parameters
        ----------
        function : callable
            Takes the sample's outputs, as an array of the shape that y had in ``fit``, and returns a number or a row
            for each.
        X : array or data frame of shape (m, d)
            The points.
        """
        check_is_fitted(self, "choice_")
        outputs = self._outputs
        values = np.asarray(function(outputs[:, 0] if self._is_flat else outputs), dtype=np.float64)
        if values.ndim not in (1, 2) or len(values) != len(outputs):
            needed = f"the function must return a number or a row for each of {len(outputs)} outputs"
            raise ValueError(refusal("ConditionalMean.expect", needed, f"shape {values.shape}"))
        return self.weights_at(X)[:, self._taken] @ values

    def embedding_at(self, x: Any) -> Embedding:
        """Return μ_{Y|x} at one new point, of shape (d,) or (1, d), as an element of the RKHS of y."""
        weights = self.weights_at(np.atleast_2d(x) if not hasattr(x, "columns") else x)
        if len(weights) != 1:
            needed, advice = "one point is needed", "take the rows one by one"
            raise ValueError(refusal("ConditionalMean.embedding_at", needed, len(weights), advice))
        return Embedding(self.kernel_y_, self._outputs, weights[0, self._taken])

    @property
    def loo_predictions_(self) -> Array:
        """What is predicted for each row without it; NaN for rows of mass zero."""
        self._check_linear("loo_predictions_")
        predictions = np.full((len(self._taken), self._outputs.shape[1]), np.nan)
        predictions[self._taken] = self._fit.left_out_predictions
        return self._shaped(predictions)

    @property
    def loo_residuals_(self) -> Array:
        """Each y_i minus what is predicted for it without row i; NaN for rows of mass zero."""
        predictions = self.loo_predictions_
        outputs = np.full((len(self._taken), self._outputs.shape[1]), np.nan)
        outputs[self._taken] = self._outputs
        return self._shaped(outputs) - predictions

    @property
    def loo_score_(self) -> float:
        """The share of the variance of y, in its RKHS, that is predicted without each row."""
        check_is_fitted(self, "choice_")
        regression, fit = self._fit.regression, self._fit
        gaps = regression.outputs - fit.left_out_predictions
        spread = regression.outputs - regression.masses @ regression.outputs
        return 1 - float((regression.masses @ gaps**2).sum() / (regression.masses @ spread**2).sum())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)
        return tags

    def _parts(self) -> Parts:
        """Resolve and check every argument but the kernel on y."""
        arguments = {name: getattr(self, name) for name in ("kernel", "filter", "selection", "gram")}
        parts = Parts.from_arguments("ConditionalMean", **arguments, auto=AUTO)
        for filter in parts.filters:
            if not isinstance(filter, Filter) or filter.constant:
                needed, name = "a filter that inverts, γ g_λ(γ) → 1, is needed", type(filter).__name__
                raise ValueError(refusal("ConditionalMean", needed, name, "use 'tikhonov', 'landweber' or 'auto'"))
        if not isinstance(parts.rule, LeaveOneOut | GCV | Given):
            needed = "selection must be 'loo', 'gcv', LeaveOneOut, GCV, Fixed or Rate"
            raise ValueError(refusal("ConditionalMean", needed, repr(parts.rule)))
        if parts.gram == "blocks":
            advice = "use 'nystrom' for many rows"
            raise ValueError(refusal("ConditionalMean", "gram must have all eigenpairs", "'blocks'", advice))
        if self.bandwidth not in (None, "loo"):
            raise ValueError(refusal("ConditionalMean", "bandwidth must be None or 'loo'", repr(self.bandwidth)))
        if self.bandwidth == "loo" and (not hasattr(parts.kernel, "bandwidth") or isinstance(parts.rule, Given)):
            needed = "bandwidth='loo' takes a kernel with a bandwidth and a rule with scores"
            raise ValueError(refusal("ConditionalMean", needed, f"{parts.kernel!r} and {parts.rule!r}"))
        return parts

    def _kernel_y(self) -> Kernel:
        kernel = as_kernel(self.kernel_y)
        if isinstance(kernel, Precomputed):
            needed, advice = "kernel_y must be a kernel of points", "pass the outputs and a kernel"
            raise ValueError(refusal("ConditionalMean", needed, "'precomputed'", advice))
        return kernel

    def _ladder(self, kernel: Kernel) -> Sequence[Kernel]:
        if self.bandwidth is None:
            return [kernel]
        return [replace(kernel, bandwidth=factor * kernel.bandwidth) for factor in LADDER]

    def _coordinates(self, X: Any) -> Array:
        return self._by_chunks(X, lambda some: some)

    def _by_chunks(self, X: Any, function: Callable[[Array], Array]) -> Array:
        """Return a function of the coordinates of new points, of so many at a time that their pairs fit in memory."""
        check_is_fitted(self, "choice_")
        X = checked_sample(self, X, reset=False).astype(np.float64, copy=False)
        X = X[:, self._taken] if isinstance(self.kernel_, Precomputed) else X
        return np.concatenate([function(self._fit.coordinates(X[some])) for some in slices(0, len(X), CHUNK)])

    def _check_linear(self, method: str) -> None:
        check_is_fitted(self, "choice_")
        if not isinstance(self.kernel_y_, Linear):
            needed, advice = "kernel_y must be 'linear' for the mean of y", "use expect, predict_quantiles or sample"
            raise ValueError(refusal(f"ConditionalMean.{method}", needed, repr(self.kernel_y_), advice))

    def _shaped(self, values: Array) -> Array:
        return values[:, 0] if self._is_flat else values


@dataclass(frozen=True, eq=False)
class _Sample:
    """Rows that take part, with their outputs, before a kernel on x is chosen."""

    parts: Parts
    X: Array
    masses: Array
    outputs: Array
    has_intercept: bool

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel on x, its bandwidth a number."""
        if isinstance(self.parts.kernel, Precomputed):
            return Precomputed(checked_gram("ConditionalMean", self.X))
        return self.parts.kernel.resolve(self.X)

    @cached_property
    def plan(self) -> Plan:
        """How the Gram matrix is to be held."""
        return plan_in_memory(self.parts.gram, self.parts.kernel, len(self.X), self.X.itemsize)

    def rules(self) -> list[Rule]:
        """Return the rule that chooses for each filter, or refuse too few rows."""
        rules = self.parts.rules(self.plan.access, len(self.X))
        self.parts.check_enough(rules, len(self.X))
        return rules

    def fit(self, kernel: Kernel, rules: Sequence[Rule]) -> _Fit:
        """Decompose the Gram matrix of a kernel, and choose each filter's parameter."""
        if isinstance(self.plan.gram, Approximation):
            regression, coordinates = self._on_features(kernel, self.plan.gram)
        else:
            regression, coordinates = self._dense(kernel)
        check_scale(type(kernel).__name__, regression.largest_value, np.dtype(np.float64), self.X)
        kappa2 = kernel.bound if np.isfinite(kernel.bound) else regression.largest_value or 1.0
        filters = [filter.bounded_by(kappa2) for filter in self.parts.filters]
        return _Fit(kernel, regression, coordinates, _choices(regression, rules, filters))

    def _dense(self, kernel: Kernel) -> tuple[Regression, Callable[[Array], Array]]:
        points = np.arange(len(self.X))[:, None] if isinstance(kernel, Precomputed) else self.X
        gram = DenseGram.from_sample(kernel, points, self.masses)
        gamma, U = np.linalg.eigh(gram.matrix)
        check_semidefinite(gamma)
        # Kept, though rounded: g_λ is smooth at zero, and new points have more of small components than the sample has.
        gamma = np.maximum(gamma, gamma[-1] * 1e-30)
        basis = np.sqrt(self.masses)[:, None] * U
        regression = Regression(gamma, U, self.masses, self.outputs, self.has_intercept)
        return regression, _Coordinates(None if isinstance(kernel, Precomputed) else kernel, points, basis)

    def _on_features(self, kernel: Kernel, approximation: Approximation) -> tuple[Regression, Callable[[Array], Array]]:
        """K ≈ FFᵀ: with DF = U Γ^(1/2) Vᵀ, the coordinates UᵀD k(X, x) are Γ^(1/2) Vᵀ z(x)."""
        features = approximation.resolve(kernel, self.X)
        F = features(self.X) * np.sqrt(self.masses)[:, None]
        gamma, V = np.linalg.eigh(F.T @ F)
        kept = gamma > len(F) * rounding(gamma) * gamma[-1]
        root, V = np.sqrt(gamma[kept]), V[:, kept]
        regression = Regression(gamma[kept], F @ V / root, self.masses, self.outputs, self.has_intercept)
        return regression, _Coordinates(features, None, V * root)


@dataclass(frozen=True, eq=False)
class _Coordinates:
    """x ↦ UᵀD k(X, x): kernel values, or features, times a basis."""

    values: Any
    """A kernel, a feature map, or None where the values themselves are given."""
    points: Array | None
    basis: Array

    def __call__(self, X: Array) -> Array:
        if self.values is None:
            return X @ self.basis
        if self.points is None:
            return self.values(X) @ self.basis
        return self.values(X, self.points) @ self.basis


def _choices(regression: Regression, rules: Sequence[Rule], filters: Sequence[Any]) -> list[ConditionalChoice]:
    """Return each filter's choice by its rule; what filters have in common by leave-one-out is computed once."""
    candidates = [_candidates(regression, *each) for each in zip(rules, filters, strict=True)]
    scores = [np.full(len(each.grid), np.nan) for each in candidates]
    left_out = [place for place, rule in enumerate(rules) if isinstance(rule, LeaveOneOut)]
    if left_out:
        check_rest(rules[left_out[0]], 1 - float(regression.masses.max()))
        found = LeftOut(regression).scores([candidates[place] for place in left_out])
        for place, each in zip(left_out, found, strict=True):
            scores[place] = each
    for place, rule in enumerate(rules):
        if isinstance(rule, GCV):
            scores[place] = regression.gcv(candidates[place])
    return [
        ConditionalChoice(rule, each.filter, each.grid, own)
        for rule, each, own in zip(rules, candidates, scores, strict=True)
    ]


def _candidates(regression: Regression, rule: Rule, filter: Filter) -> Candidates:
    """Return a filter with the parameters to choose from: those given, or from hardly any regularisation to all."""
    if isinstance(rule, Given):
        return Candidates(filter, rule.parameter(filter, len(regression.masses)))
    if rule.grid is not None:
        return Candidates(filter, checked_grid(rule, filter, rule.grid))
    largest = float(regression.gamma.max(initial=0.0)) or 1.0
    if isinstance(filter, Iteration):
        last = filter.from_lambda(LEAST * largest)
        last = last if isinstance(filter, Formula) else min(last, STEPS)
        return Candidates(filter, np.unique(np.geomspace(1, last, GRID_SIZE).round().astype(np.int64)))
    return Candidates(filter, np.geomspace(LEAST * largest, 10 * largest, GRID_SIZE))


def _factor(kernel: Kernel, outputs: Array) -> Array:
    """Return Z with ZZᵀ the Gram matrix of the outputs: these themselves, or a pivoted Cholesky factor."""
    if isinstance(kernel, Linear):
        return outputs
    L = kernel(outputs)
    factor, pivots, rank, _ = dpstrf(L, tol=FACTORED * float(np.diagonal(L).max()), lower=1)
    Z = np.empty((len(L), rank))
    Z[pivots - 1] = np.tril(factor)[:, :rank]
    return Z


def _rows(kernel: Kernel, X: Array, taken: Array) -> Array:
    """Return the rows that take part; of a Gram matrix, their columns too."""
    if taken.all():
        return X
    return X[np.ix_(taken, taken)] if isinstance(kernel, Precomputed) else X[taken]


def _checked_outputs(y: Any, n: int) -> Array:
    """Return y as an array of floats of one or two dimensions, or refuse it in one sentence."""
    who = "ConditionalMean"
    if y is None:
        needed = "y must be given: this estimator requires y to be passed, but the target y is None"
        raise ValueError(refusal(who, needed, "None", "call fit(X, y)"))
    try:
        values = np.asarray(as_frame(y))
        values = values if values.dtype.kind in "fiub" else values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(refusal(who, "y must be real numbers", "text or objects", "encode it first")) from None
    if values.ndim not in (1, 2) or not values.size:
        raise ValueError(refusal(who, "y must be of shape (n,) or (n, n_outputs)", f"shape {values.shape}"))
    if len(values) != n:
        got = f"{n} rows of X and {len(values)} of y: inconsistent numbers of samples"
        raise ValueError(refusal(who, "X and y must have as many rows", got))
    values = values.astype(np.float64)
    for kind, found in (("NaN", np.isnan(values)), ("infinity (inf)", np.isinf(values))):
        rows = np.flatnonzero(found.reshape(n, -1).any(axis=1))
        if rows.size:
            got = f"Input y contains {kind} in {rows.size} row{'s' if rows.size > 1 else ''} (first: row {rows[0]})"
            raise ValueError(refusal(who, "y must be finite", got, "drop these rows first"))
    return values


def _check_variation(outputs: Array) -> None:
    """Refuse outputs that are all the same: there is nothing to predict."""
    if len(outputs) > 1 and (outputs == outputs[0]).all():
        got = f"{outputs[0, 0]:g} in every row" if outputs.shape[1] == 1 else "the same row everywhere"
        raise ValueError(refusal("ConditionalMean", "y must vary", got))
