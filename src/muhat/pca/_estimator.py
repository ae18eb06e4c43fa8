"""KernelPCA: kernel principal components, denoising and novelty, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from numbers import Integral
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array, quotient
from muhat._bases import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from muhat._messages import sample_size
from muhat._parts import HasKernel, Parts, as_gram, as_kernel
from muhat._summary import EstimatorHtmlReprMixin, Summary, four_digits
from muhat._unsaved_caches import UnsavedCaches
from muhat._validation import as_frame, checked_sample, checked_weights, is_dask
from muhat.data import DaskSource, StreamSource, checked_batch, is_empty
from muhat.errors import MuhatError
from muhat.filters import Filter, TruncatedSVD
from muhat.gram._plan import check_batches, plan_one_pass
from muhat.gram._problem import kappa2_of
from muhat.kernels import Kernel, Precomputed
from muhat.pca._center import Center
from muhat.pca._choice import ComponentChoice, ComponentPath, default_grid
from muhat.pca._decomposition import (
    Directions,
    PointDirections,
    PrincipalComponents,
    decompose_points,
)
from muhat.pca._fitting import (
    MAX_ROWS_KEPT,
    FittedSample,
    KeptRows,
    Stream,
    check_gram,
    fit_rows,
    fit_source,
    left_out_rows,
    some_of,
)
from muhat.pca._left_out import LeftOutRows
from muhat.pca._noise import MAX_ROWS_USED, ProbedRows
from muhat.pca._preimage import PreImage, check_squares, denoising_lambda
from muhat.selection import LeaveOneOut, ParameterRule

LEAST_ROWS_LEFT_OUT = 2
"""Rows that leave-one-out takes."""


def _takes_batches(estimator: Any) -> bool:
    """Whether an estimator's rows may come in batches; raise MuhatError that says why not."""
    check_batches(as_gram(estimator.gram), as_kernel(estimator.kernel), type(estimator).__name__)
    return True


class KernelPCA(
    UnsavedCaches,
    HasKernel,
    EstimatorHtmlReprMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Kernel PCA of any number of rows, with denoising and novelty p-values.

    The covariance operator Ĉ = Σ p_i (φ(x_i) − μ)⊗(φ(x_i) − μ), with φ(x) = k(x, ·), has components
    v_k with variances γ_k. The scores of a row are ⟨φ(x) − μ, v_k⟩. A filter s_λ reconstructs the
    row as μ + s_λ(Ĉ)(φ(x) − μ); for truncated SVD this is the projection onto the leading
    components. All computations are in double precision.

    Parameters
    ----------
    n_components : int, 'loo' or None, default=None
        The number of components. None takes all with a variance above rounding. ``'loo'`` takes the
        fewest, from 1 to 100, that separate signal from noise in left-out rows, or explain 95 % of
        the variance of all columns there (``choose_components``). With another filter than
        truncated SVD, it only limits the number of scores, and ``'loo'`` means None.
    kernel : str, Kernel, scikit-learn kernel or callable, default='gaussian'
        The kernel, as for ``KernelMean``; ``'precomputed'`` takes Gram matrices for X.
    filter : str or Filter, default='tsvd'
        ``'tsvd'`` projects onto the components. Others, such as ``'tikhonov'``, shrink them:
        ``transform`` multiplies score k by s_λ(γ_k).
    center : 'mean', False, Embedding or fitted KernelMean, default='mean'
        μ: the mean of the rows, the origin, or any element of the kernel's RKHS.
    gram : str, Nystrom or RandomFeatures, default='auto'
        One of 'auto', 'dense', 'nystrom', 'random-features'. ``'auto'`` is dense up to 5000 rows
        and 500 landmarks beyond.
    selection : 'loo', LeaveOneOut or Fixed, default='loo'
        How λ of a filter other than truncated SVD is chosen: by leave-one-out, or fixed.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components_,)
        The eigenvalues of the centred Gram matrix, descending, as scikit-learn's; weights count
        rows.
    explained_variance_ : array of shape (n_components_,)
        γ_k, the variance of each score: the eigenvalues over the number of rows.
    explained_variance_ratio_ : array of shape (n_components_,)
        γ_k over the kernel's variance, the trace of the centred Gram matrix over n.
    n_components_ : int
        The number of scores.
    shrinkage_ : array of shape (n_components_,)
        The factors s_λ(γ_k) of the scores; ones for truncated SVD.
    filter_, parameter_ : Filter, and int or float
        The filter, and its number of components, λ or number of iterations t.
    kernel_ : Kernel
        The kernel, with its bandwidth as a number.
    center_ : Embedding or None
        μ; None for the origin.
    gram_, gram_reason_ : str or Approximation, and str
        How the Gram matrix was stored, and why.
    missed_variance_ratio_ : float
        The share of the kernel's variance that landmarks miss; zero without landmarks.
    n_samples_seen_, n_features_in_ : int
        The number of rows and of features.
    feature_names_in_ : array of shape (n_features_in_,)
        The names of the features, if X had any.

    See Also
    --------
    KernelMean : The mean that components are centred at.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import KernelPCA
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> pca = KernelPCA(2).fit(X)
    >>> pca.transform(X[:3]).shape
    (3, 2)
    >>> float(pca.novelty_p_values(X[:1] + 10.0)[0]) < 0.05
    True
    """

    n_components_: int
    eigenvalues_: Array
    explained_variance_: Array
    explained_variance_ratio_: Array
    shrinkage_: Array
    filter_: Filter
    parameter_: Any
    kernel_: Kernel
    center_: Any
    gram_: Any
    gram_reason_: str
    missed_variance_ratio_: float
    n_samples_seen_: int
    _directions: Directions
    _kept: KeptRows
    _path: ComponentPath | None
    _choice: ComponentChoice | None
    _inverse: PreImage | None
    _denoiser: PreImage | None
    _stream: Stream | None

    def __init__(
        self,
        n_components: Any = None,
        *,
        kernel: Any = "gaussian",
        filter: Any = "tsvd",
        center: Any = "mean",
        gram: Any = "auto",
        selection: Any = "loo",
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.filter = filter
        self.center = center
        self.gram = gram
        self.selection = selection

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components of a sample; y is ignored.

        Parameters
        ----------
        X : array or data frame of shape (n, d), also of dask
            The sample, or its Gram matrix if the kernel is precomputed. Dask rows stay on the
            workers.
        sample_weight : array of shape (n,), default=None
            Weights of the rows, not negative. A weight of two is the same as two equal rows. Rows
            of weight zero are ignored.

        Returns
        -------
        self : KernelPCA
            The fitted estimator.
        """
        parts, center = self._parts(), Center.from_argument(self.center)
        self._stream = None
        if is_dask(X):
            check_batches(parts.gram, parts.kernel, parts.who)
            if sample_weight is not None:
                needed = "weights are not supported for dask data"
                advice = "repeat rows, or load the rows and fit with weights in memory"
                raise MuhatError(parts.who, needed, "sample_weight", advice)
            source = DaskSource.from_collection(X)
            checked_sample(self, source.example, reset=True)  # learns the names of the features
            return self._keep(fit_source(parts, center, source), center)
        rows = checked_sample(self, X, reset=True)
        weights = np.ones(len(rows))
        if sample_weight is not None:
            weights = checked_weights(parts.who, sample_weight, len(rows))
        self._check_count(int((weights > 0).sum()), "rows")
        return self._keep(fit_rows(parts, center, rows, weights), center)

    def fit_batches(self, batches: Iterable[Any]) -> Self:
        """Find the components of any number of rows, read in batches.

        Parameters
        ----------
        batches : iterable of arrays, data frames or pyarrow tables of shape (rows, d)
            A list, or ``muhat.open_batches("big.parquet")``, is read twice: to draw the rows for
            landmarks and bandwidth, and to sum. An iterator is read once, as by ``partial_fit``.

        Returns
        -------
        self : KernelPCA
            The fitted estimator.
        """
        parts, center = self._parts(), Center.from_argument(self.center)
        check_batches(parts.gram, parts.kernel, parts.who)
        is_one = hasattr(batches, "shape") or isinstance(batches, str | PathLike)
        if is_one or not isinstance(batches, Iterable):
            needed = "batches must be an iterable of arrays or data frames"
            advice = "use fit for an array, and muhat.open_batches for a path"
            raise MuhatError("KernelPCA.fit_batches", needed, f"a {type(batches).__name__}", advice)
        self._stream = None
        if isinstance(batches, Iterator):
            for batch in batches:
                self.partial_fit(batch)
            if self._stream is None:
                raise MuhatError("batches", "at least one batch is needed", "none")
            return self
        first = next((each for each in map(as_frame, batches) if not is_empty(each)), None)
        if first is None:
            raise MuhatError("batches", "at least one batch is needed", "none")
        checked_batch(first, 0)
        checked_sample(self, first, reset=True)
        return self._keep(fit_source(parts, center, StreamSource(batches)), center)

    @available_if(_takes_batches)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the sample; only sums of features and 2000 rows are kept.

        The first call after a ``fit``, which is forgotten, learns kernel and landmarks from its
        rows: give the bandwidth as a number, and the landmarks as an array, where these should not
        depend on which rows come first.

        Parameters
        ----------
        X : array or data frame of shape (rows, d)
            More rows.
        sample_weight : array of shape (rows,), default=None
            Their weights, not negative; one each by default.

        Returns
        -------
        self : KernelPCA
            The estimator, fitted to all rows so far.
        """
        stream: Stream | None = getattr(self, "_stream", None)
        if stream is None:
            parts, center = self._parts(), Center.from_argument(self.center)
            stream = Stream(parts, center, plan_one_pass(parts.gram))
            X = checked_sample(self, X, reset=True)
        else:
            X = checked_sample(self, X, reset=False)
        weights = np.ones(len(X))
        if sample_weight is not None:
            weights = checked_weights("KernelPCA", sample_weight, len(X))
            X, weights = X[weights > 0], weights[weights > 0]
        stream = stream.add(X, weights)
        self._keep(stream.fitted(), stream.center)
        self._stream = stream
        return self

    def transform(self, X: Any) -> Array:
        """Return the scores of rows.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The rows; for a precomputed kernel, the matrix k(x, x_i) of shape (m, n).

        Returns
        -------
        scores : array of shape (m, n_components_)
            s_λ(γ_k) ⟨φ(x) − μ, v_k⟩, in the type of X.
        """
        check_is_fitted(self, "eigenvalues_")
        X = checked_sample(self, X, reset=False)
        return self._scores(X).astype(X.dtype)

    def inverse_transform(self, scores: Any) -> Array:
        """Return rows x for given scores: the conditional mean of x given the scores.

        When first used, a ``ConditionalMean`` is fitted to at most 2000 rows of the sample, with λ
        chosen by leave-one-out. It reproduces x together with the part of its noise that is in the
        scores; ``denoise`` removes more noise.

        Parameters
        ----------
        scores : array of shape (m, n_components_)
            Scores, as ``transform`` returns them.

        Returns
        -------
        X : array of shape (m, d)
            The rows.
        """
        check_is_fitted(self, "eigenvalues_")
        self._check_numbers("KernelPCA.inverse_transform", "pre-images need rows of numbers")
        values = np.asarray(scores)
        if values.ndim != 2 or values.shape[1] != self.n_components_:
            needed = f"scores of {self.n_components_} components are needed, points in rows"
            raise MuhatError("KernelPCA.inverse_transform", needed, f"shape {values.shape}")
        check_squares("KernelPCA.inverse_transform", self._kept.X)
        if self._inverse is None:
            kept = some_of(self._kept, MAX_ROWS_KEPT)
            self._inverse = PreImage.learn(self._scores(kept.X), kept.X, kept.masses)
        return self._inverse(values).astype(self._kept.X.dtype)

    def denoise(self, X: Any) -> Array:
        """Return rows without noise that is independent between columns and of one variance.

        The result is the conditional mean of x given the scores, as in ``inverse_transform``, but
        with the λ that leaves the least noise in left-out rows. If rows are only noise, it is the
        mean of the rows. Scale columns to comparable units first.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The rows.

        Returns
        -------
        X : array of shape (m, d)
            The denoised rows.
        """
        check_is_fitted(self, "eigenvalues_")
        self._check_numbers("KernelPCA.denoise", "denoising needs rows of numbers")
        X = checked_sample(self, X, reset=False)
        check_squares("KernelPCA.denoise", self._kept.X)
        if self._denoiser is None:
            rows = self._probed_rows(MAX_ROWS_USED)
            some = self._scores(rows.X)
            lam = denoising_lambda(rows, self.shrinkage_, some)
            kept = some_of(self._kept, MAX_ROWS_KEPT)
            self._denoiser = PreImage.learn(self._scores(kept.X), kept.X, kept.masses, lam)
        # Not by ``transform``, whose output ``set_output`` may have made a data frame.
        return self._denoiser(self._scores(X)).astype(X.dtype)

    def reconstruction_error(self, X: Any) -> Array:
        """Return ‖(1 − s_λ(Ĉ))(φ(x) − μ)‖² of rows, of shape (m,): large for unusual rows."""
        check_is_fitted(self, "eigenvalues_")
        needed = "k(x, x) of new rows must be known"
        self._check_numbers("KernelPCA.reconstruction_error", needed)
        projection = self._directions.project(checked_sample(self, X, reset=False))
        kept = (1 - (1 - self._all_shrinkage) ** 2) * projection.scores**2
        return np.maximum(projection.squared_norms - kept.sum(axis=1), 0)

    def novelty_p_values(self, X: Any) -> Array:
        """Return a p-value for each row: the share of left-out training rows with larger error.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The rows.

        Returns
        -------
        p_values : array of shape (m,)
            (1 + #{i : e_i ≥ e(x)})/(n + 1), e_i being the error of row i left out: conformal ranks,
            never 0.
        """
        errors = self.reconstruction_error(X)
        known = np.sort(self.leave_one_out().row_errors)
        at_least = len(known) - np.searchsorted(known, errors, side="left")
        return (1 + at_least) / (len(known) + 1)

    def leave_one_out(self) -> ComponentPath:
        """Return the errors of left-out rows for every number of components, or every λ.

        They are computed when first used: exactly, for all rows or for 2000 random rows.
        """
        check_is_fitted(self, "eigenvalues_")
        if self._path is None:
            if self.n_samples_seen_ < LEAST_ROWS_LEFT_OUT:
                needed = f"leave-one-out needs at least {LEAST_ROWS_LEFT_OUT} rows"
                raise MuhatError("KernelPCA", needed, sample_size(self.n_samples_seen_))
            found = self._all_components
            rows = self._rows_to_leave_out(found, self._kept, self.filter_)
            grid = default_grid(self.filter_, found.gamma, self.parameter_)
            given = min(self.parameter_, grid[-1])
            is_chosen = False
            if self._choice is not None and self.n_components == "loo":
                is_chosen = self._choice.best > 0
            self._path = ComponentPath.from_rows(rows, self.filter_, grid, given, is_chosen)
        return self._path

    def choose_components(self) -> ComponentChoice:
        """Return how well each number of components separates signal from noise.

        Noise is assumed to be independent between columns, with the same variance in all of them,
        so scale columns to comparable units first. The noise is estimated on at most 2000 rows, in
        five folds whose rows are used neither for the centre nor for the components.
        ``n_components='loo'`` uses the number that is found.
        """
        check_is_fitted(self, "eigenvalues_")
        self._check_numbers("KernelPCA.choose_components", "rows of numbers are needed")
        if self._choice is None:
            self._choice = ComponentChoice.from_rows(self._probed_rows(MAX_ROWS_KEPT))
        return self._choice

    def _check_numbers(self, who: str, needed: str) -> None:
        if isinstance(self.kernel_, Precomputed):
            raise MuhatError(who, needed, "a precomputed kernel")

    def _probed_rows(self, most: int) -> ProbedRows:
        """Return some rows with their components and how these change with each row's noise."""
        kept = some_of(self._kept, most)
        centred = self._center.is_estimated
        return ProbedRows.from_rows(self._all_components, kept.X, kept.masses, centred)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _parts(self) -> Parts:
        """Resolve and check every argument."""
        count = self.n_components
        is_whole = isinstance(count, Integral) and not isinstance(count, bool)
        is_number = is_whole and int(count) >= 1
        if not (count is None or is_number or (isinstance(count, str) and count == "loo")):
            needed = "n_components must be a whole number of at least 1, 'loo' or None"
            raise MuhatError("KernelPCA", needed, repr(count))
        parts = Parts.from_arguments(
            "KernelPCA",
            kernel=self.kernel,
            filter=self.filter,
            selection=self.selection,
            gram=self.gram,
        )
        check_gram(parts.gram)
        filter = parts.filters[0]
        if len(parts.filters) > 1 or not isinstance(filter, Filter) or filter.constant:
            needed = "filter must be one function of the eigenvalues, such as 'tsvd' or 'tikhonov'"
            raise MuhatError("KernelPCA", needed, repr(self.filter))
        if not isinstance(parts.rule, LeaveOneOut | ParameterRule):
            needed = "selection must be 'loo', LeaveOneOut(...) or Fixed(...)"
            raise MuhatError("KernelPCA", needed, repr(self.selection))
        return parts

    def _check_count(self, most: int, what: str) -> None:
        """Raise MuhatError for more components than rows or features."""
        if isinstance(self.n_components, Integral) and int(self.n_components) > most:
            needed = f"n_components must be at most the number of {what}, {most}"
            raise MuhatError("KernelPCA", needed, self.n_components)

    def _keep(self, fitted: FittedSample, center: Center) -> Self:
        """Choose the parameter and keep what transforms rows."""
        what = "features"
        if fitted.most_components == fitted.n:
            what = "rows"
        self._check_count(fitted.most_components, what)
        found = fitted.decomposition
        parts = self._parts()
        rest = max(1 - fitted.largest_mass, np.finfo(float).eps)
        bound = kappa2_of(fitted.kernel.bound, fitted.largest_value)
        filter = parts.filters[0].bounded_by(max(bound, float(found.gamma[0]) / rest))
        assert isinstance(filter, Filter)
        self._kept = fitted.kept
        self._center = center
        self._inverse = self._denoiser = None
        self.__dict__.pop("_all_components", None)  # of an earlier fit
        self._choice = None
        self.kernel_, self.center_ = fitted.kernel, found.center
        self.gram_, self.gram_reason_ = fitted.plan.gram, fitted.plan.reason
        self.n_samples_seen_ = fitted.n
        self.filter_ = filter
        self._path = self._component_path(parts, fitted, filter)
        self.parameter_ = self._given(parts, fitted, filter)
        if self._path is not None:
            self.parameter_ = self._path.parameter
        elif self._choice is not None:
            self.parameter_ = self._choice.n_components
        self._keep_components(fitted)
        return self

    def _given(self, parts: Parts, fitted: FittedSample, filter: Filter) -> Any:
        """Return the parameter that was given: a number of components or λ; None to choose it."""
        if isinstance(filter, TruncatedSVD):
            if self.n_components is None:
                return len(fitted.decomposition.gamma)
            if self.n_components == "loo":
                return None
            return int(self.n_components)
        if isinstance(parts.rule, ParameterRule):
            return parts.rule.parameter(filter, fitted.n)[0].item()
        return None

    def _component_path(
        self, parts: Parts, fitted: FittedSample, filter: Filter
    ) -> ComponentPath | None:
        """Return the candidates and the choice; None where the parameter was given."""
        if self._given(parts, fitted, filter) is not None:
            return None
        if fitted.n < LEAST_ROWS_LEFT_OUT:
            needed = f"leave-one-out needs at least {LEAST_ROWS_LEFT_OUT} rows"
            raise MuhatError("KernelPCA", needed, sample_size(fitted.n), "give n_components")
        if isinstance(filter, TruncatedSVD) and not isinstance(fitted.kernel, Precomputed):
            kept, centred = some_of(fitted.kept, MAX_ROWS_KEPT), self._center.is_estimated
            rows = ProbedRows.from_rows(fitted.decomposition, kept.X, kept.masses, centred)
            self._choice = ComponentChoice.from_rows(rows)
            return None
        grid = default_grid(filter, fitted.decomposition.gamma)
        own = getattr(parts.rule, "grid", None)
        if own is not None and not isinstance(filter, TruncatedSVD):
            grid = np.unique(filter.check(own))
        left_out = self._rows_to_leave_out(fitted.decomposition, fitted.kept, filter)
        return ComponentPath.from_rows(left_out, filter, grid)

    def _rows_to_leave_out(
        self, decomposition: PrincipalComponents, kept: KeptRows, filter: Filter
    ) -> LeftOutRows:
        most = LeftOutRows.most_rows(filter, MAX_ROWS_KEPT)
        return left_out_rows(decomposition, kept, most, self._center.is_estimated)

    def _keep_components(self, fitted: FittedSample) -> None:
        """Keep the components that scores and errors are made of."""
        found, filter = fitted.decomposition, self.filter_
        count = len(found.gamma)
        shrinkage = np.ones(count)
        self._decomposition: PrincipalComponents | None = found
        if isinstance(filter, TruncatedSVD):
            count = min(count, self.parameter_)
            if fitted.all_masses is not None:  # components of all rows take much memory
                self._decomposition = None
        else:
            shrinkage = filter.path(found.gamma, np.array([self.parameter_]))[0]
        self._all_masses = fitted.all_masses
        self._directions = found.directions.leading(count)
        self._all_shrinkage = shrinkage[:count]
        self.n_components_ = count
        if isinstance(self.n_components, Integral):
            self.n_components_ = int(self.n_components)
        # Components beyond the rank of the sample have no variance, and scores of zero.
        kept = min(count, self.n_components_)
        padding = (0, self.n_components_ - kept)
        gamma = np.pad(found.gamma[:kept], padding)
        self.shrinkage_ = np.pad(shrinkage[:kept], padding)
        self.explained_variance_ = gamma
        self.eigenvalues_ = fitted.total_weight * gamma
        self.explained_variance_ratio_ = quotient(gamma, np.asarray(found.total_variance))
        missed = 0.0
        if fitted.all_masses is None and found.total_variance > 0:
            missed = max(1 - float(found.gamma.sum()) / found.total_variance, 0.0)
        self.missed_variance_ratio_ = missed

    @cached_property
    def _all_components(self) -> PrincipalComponents:
        """All components, decomposed once more where only the leading ones were kept.

        They are held then, for leave-one-out, the choice and denoising, but not saved.
        """
        if self._decomposition is not None:
            return self._decomposition
        directions = self._directions
        assert isinstance(directions, PointDirections)
        assert self._all_masses is not None
        return decompose_points(self.kernel_, directions.points, self._all_masses, self._center)

    def _scores(self, X: Array) -> Array:
        """Return the scores of validated rows."""
        directions = self._directions.leading(self.n_components_)
        scores = directions.project(X).scores
        missing = self.n_components_ - scores.shape[1]
        return np.pad(scores, ((0, 0), (0, missing))) * self.shrinkage_

    def _summary(self) -> Summary:
        kernel = four_digits(repr(self.kernel_))
        share = float(self.explained_variance_ratio_.sum())
        sentence = (
            f"{self.n_components_} components of {self.n_samples_seen_:,} rows with {kernel} have "
            f"{100 * share:.3g} % of the kernel's variance; {self.gram_reason_}."
        )
        rows = []
        for number, ratio in enumerate(self.explained_variance_ratio_):
            variance = four_digits(float(self.explained_variance_[number]))
            rows.append((str(number), variance, f"{100 * ratio:.3g} %"))
        return Summary(sentence, ("component", "variance", "share"), rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed" or isinstance(
            self.kernel, Precomputed
        )
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
