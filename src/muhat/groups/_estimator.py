"""KernelMeans: the kernel means of many groups, estimated together."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array
from muhat._bases import BaseEstimator
from muhat._parts import HasKernel, as_gram, as_kernel
from muhat._random_states import checked_seed
from muhat._validation import (
    KERNEL_OF_ROWS_NEEDED,
    check_finite,
    check_range,
    check_scale,
    check_semidefinite,
    checked_sample,
    checked_weights,
    is_dask,
    whole_number,
)
from muhat.data import ColumnMoments, SampleBatch
from muhat.embedding import Element
from muhat.errors import MuhatError
from muhat.gram import Approximation, Nystrom
from muhat.groups._batches import LabelledSource, labelled_batches, labelled_on_cluster
from muhat.groups._candidates import NAMES
from muhat.groups._cells import CellRows
from muhat.groups._dimension import effective_dimension
from muhat.groups._folds import dealt_to_folds
from muhat.groups._joint import JointMeans
from muhat.groups._rows import (
    LabelledRows,
    check_groups,
    check_sizes,
    checked_samples,
    labelled_rows,
    weighted,
)
from muhat.groups._spaces import FeatureSpace, MeanSpace, PointSpace
from muhat.groups._streams import StreamedGroups, drawn_rows, first_pass, with_weights
from muhat.groups._translation import allowance
from muhat.kernels import Kernel, Precomputed

MAX_ROWS_EXACT = 20_000
"""Rows up to which ``gram="auto"`` computes the kernel of all pairs: some seconds."""

MAX_GROUPS_EXACT = 1000
"""Groups up to which it does, since their T × T matrices are decomposed once for each fold."""

MAX_PRINTED_GAIN = 0.99
"""The largest gain that a verdict states: its estimate may be above one, the truth is not."""

N_CHECKED_ROWS = 500
"""Rows whose Gram matrix is checked where a kernel is not known to be positive semi-definite."""


class KernelMeans(HasKernel, BaseEstimator):
    """The kernel means of many groups of rows, estimated together.

    Groups such as patients, shops or days are often similar: they come in a few kinds, lie on a
    curve, or have a common centre. The mean of each group is therefore estimated as a weighted mean
    of the plain means of all groups, μ_t = Σ_u W_tu μ̂_u. There are fifteen candidates for W: the
    plain means, the mean of all rows, kernel smoothers over groups, and spectral filters on the
    Gram matrix of the groups. Candidates are weighted by their error on left-out rows. An estimate
    can be worse than the plain mean of its group only by the noise D_t of that mean:
    ‖μ_t − μ*‖ ≤ ‖μ̂_t − μ*‖ + √(κ D_t), whatever the other groups are.

    Parameters
    ----------
    kernel : str, Kernel, scikit-learn kernel or callable, default='gaussian'
        The kernel, not a precomputed one. Bandwidths are learnt from all rows by the median rule by
        default.
    gram : {'auto', 'dense', 'blocks', 'nystrom', 'random-features'}, Nystrom or RandomFeatures, \
default='auto'
        How inner products are computed: ``'dense'`` and ``'blocks'`` from all pairs of rows, in
        blocks; ``Nystrom(500)`` or ``RandomFeatures(1000)`` from features of each row, so that
        a group is a vector. ``'auto'`` takes all pairs up to 20,000 rows and 1000 groups, and 500
        landmarks beyond.
    standardize : bool, default=True
        Whether columns are scaled to mean 0 and variance 1 over all rows.
    n_splits : int, default=5
        The number of folds in which rows are left out.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds.

    Attributes
    ----------
    groups_ : array of shape (T,)
        The labels of the groups, sorted.
    n_rows_ : array of int of shape (T,)
        The number of rows of each group.
    weights_ : array of shape (T, T)
        W: row t has the weights of the estimate of group t on the plain means; they sum to one.
    gram_ : array of shape (T, T)
        The inner products of the estimated means.
    distances_ : array of shape (T, T)
        The distances of the estimated means, their maximum mean discrepancies (MMD).
    coordinates_ : array of shape (T, k)
        The estimated means from their centre along their principal axes, k < T; the distances
        between its rows are ``distances_``.
    coordinate_errors_ : array of shape (T, k)
        The standard errors of ``coordinates_``, from the noise of the plain means. They do not
        include bias.
    gain_, gain_error_ : float or None
        How much lower the risk is than that of the plain means, as a share of the latter, and the
        standard error of this estimate. It is estimated on left-out rows, and corrected to the full
        number of rows, so noise can bring it above one. Each group counts by its number of rows;
        groups of one row are ignored. None for fewer than 6 groups.
    candidates_ : dict of str to float
        The candidates and their weights, before these are adapted to the size of each group.
    candidate_weights_ : array of shape (T, 15)
        The weights of the candidates for each group.
    bounds_ : array of shape (T,)
        √(κ D_t): how much further from the true mean an estimate can be than the plain mean.
    kernel_ : Kernel
        The kernel, with its bandwidth as a number.
    scaling_ : ColumnMoments or None
        The means and variances that columns are scaled by.
    n_features_in_ : int
        The number of columns.

    See Also
    --------
    KernelMean : The mean of one sample.
    GroupTest : Do the groups differ?

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import KernelMeans
    >>> rng = np.random.default_rng(0)
    >>> shops = np.repeat(["a", "b", "c", "d", "e", "f", "g", "h"], 20)
    >>> X = rng.normal(size=(160, 2)) + 3 * (shops == "h")[:, None]
    >>> means = KernelMeans().fit(X, shops)
    >>> int(means.distances_.sum(axis=0).argmax())
    7
    >>> bool(means.gain_ > 0.3)
    True
    >>> means.embedding_of("h")(X[:5]).shape
    (5,)
    """

    groups_: Array
    n_rows_: Array
    gain_: float | None
    gain_error_: float | None
    candidates_: dict[str, Any]
    candidate_weights_: Array
    bounds_: Array
    scaling_: ColumnMoments | None

    _space: MeanSpace
    _joint: JointMeans
    _weights: Array | None
    """W, once it was asked for."""

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        gram: Any = "auto",
        standardize: bool = True,
        n_splits: int = 5,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.gram = gram
        self.standardize = standardize
        self.n_splits = n_splits
        self.random_state = random_state

    def fit(
        self, X: Any, groups: Any = None, sample_weight: Any = None, *, clusters: Any = None
    ) -> Self:
        """Estimate the kernel mean of every group.

        Parameters
        ----------
        X : array or data frame of shape (n, d), list of samples, or mapping of labels to samples
            The rows of all groups, also of dask; or one sample of shape (n_t, d) for each group.
        groups : array of shape (n,), str, or array of shape (T,), default=None
            The label of each row; the name of the column of a data frame that has them; for a list
            of samples, the label of each, by default 0, 1, ….
        sample_weight : array of shape (n,), default=None
            Weights of the rows, not negative; equal by default. Whole numbers that sum to at most
            20,000 are counts: the result is the same as with repeated rows. For other weights only
            the ratios matter. Rows of weight zero are ignored.
        clusters : array of shape (n,), default=None
            Rows with the same value are left out together. Use it if a row, or a unit such as a
            patient, is in several groups: without it the gain is overestimated.

        Returns
        -------
        self : KernelMeans
            The fitted estimator.
        """
        self._check_parameters()
        if is_dask(X):
            if clusters is not None:
                raise MuhatError(self, "clusters are not supported for dask data", "clusters")
            return self._fit_source(labelled_on_cluster(self, X, groups, sample_weight))
        return self._fit_rows(labelled_rows(self, X, groups, sample_weight, clusters))

    def fit_batches(self, batches: Any, groups: Any = None) -> Self:
        """Estimate the kernel mean of every group, with rows read in batches.

        Batches are read three times: to find the labels, to draw the rows for landmarks and
        bandwidth, and to sum. Up to 20,000 rows the result is that of ``fit``. Beyond, twelve to
        twenty bytes of each row are kept, to assign the rows of every group to folds.

        Parameters
        ----------
        batches : iterable of pairs (rows, labels), of triples (rows, labels, weights), or of tables
            They must be readable several times, as a list or ``muhat.open_batches("sales.parquet",
            drop=["shop"])`` is. The rows of a group can be in any batches.
        groups : str, default=None
            The column of the tables, or of the file, that has the labels. Labels of a file are
            text.

        Returns
        -------
        self : KernelMeans
            The fitted estimator.
        """
        self._check_parameters()
        return self._fit_source(labelled_batches(self, batches, groups))

    def _fit_rows(self, rows: LabelledRows) -> Self:
        """Fit to rows in memory."""
        cell_rows = self._scaled_cells(rows, checked_seed(self, self.random_state))
        self._space = _space(self._checked_kernel(), as_gram(self.gram), cell_rows)
        self._joint = self._space.estimate(cell_rows)
        return self._keep_results(rows.labels, rows.counts)

    def _fit_source(self, rows: LabelledSource) -> Self:
        """Fit to rows that can be read several times."""
        who, F = type(self).__name__, int(self.n_splits)
        seed = checked_seed(self, self.random_state)
        gram = as_gram(self.gram)
        size = MAX_ROWS_EXACT
        if isinstance(gram, Approximation):
            size = max(size, gram.rows_to_learn_from)
        found = first_pass(rows, size, seed)
        keys = found.all_keys
        checked_weights(who, keys.weights, len(keys.weights))
        drawn, weights = drawn_rows(rows, found)
        check_range(who, drawn.X)
        if found.drawn.count <= MAX_ROWS_EXACT:
            if np.ptp(weights) or weights[0] != 1:
                drawn = weighted(drawn, weights)
            check_groups(who, drawn)
            return self._fit_rows(drawn)
        if gram == "auto":
            gram = Nystrom()
        if not isinstance(gram, Approximation):
            needed = f"gram must be an approximation for more than {MAX_ROWS_EXACT} rows in batches"
            raise MuhatError(self, needed, repr(self.gram), "use gram=Nystrom(500)")
        streamed = StreamedGroups.from_keys(keys, len(rows.labels), F)
        check_sizes(who, rows.labels, streamed.counts)
        self.scaling_ = None
        if self.standardize:
            self.scaling_ = found.moments
        drawn = with_weights(drawn, weights)
        folds = np.zeros(len(drawn.codes), np.int64)
        probe = CellRows.from_rows(drawn, folds, F)
        probe = probe.with_rows(self._scaled(probe.X))
        space = _space(self._checked_kernel(), gram, probe)
        assert isinstance(space, FeatureSpace)
        self._space = space
        cells = streamed.sums(rows, space.features, self._scaled, F)
        kappa = allowance(effective_dimension(space.gram, probe))
        self._joint = JointMeans.from_cells(cells, kappa)
        return self._keep_results(rows.labels, streamed.counts)

    @property
    def weights_(self) -> Array:
        """The weights of the plain means in each estimate, of shape (T, T)."""
        check_is_fitted(self, "groups_")
        if self._weights is None:
            self._weights = self._joint.weights()
        return self._weights

    @property
    def gram_(self) -> Array:
        """The inner products of the estimated means, of shape (T, T)."""
        check_is_fitted(self, "groups_")
        return self._joint.means @ self._joint.means.T

    @property
    def distances_(self) -> Array:
        """The distances (MMD) between the estimated means, of shape (T, T)."""
        check_is_fitted(self, "groups_")
        return pairwise_distances(self._joint.means)

    @property
    def coordinates_(self) -> Array:
        """The estimated means along their principal axes, of shape (T, k)."""
        check_is_fitted(self, "groups_")
        return self._joint.axes.coordinates(self._joint.means)

    @property
    def coordinate_errors_(self) -> Array:
        """The standard errors of ``coordinates_``, without their bias, of shape (T, k)."""
        check_is_fitted(self, "groups_")
        per_row = self._joint.noise_factors()
        return np.sqrt(np.outer(per_row, self._joint.axes.variances))

    def embedding_of(self, label: Any) -> Element:
        """Return the estimated mean of a group, a function of scaled rows.

        With ``standardize=True`` it is a function of standardized rows, while ``score_samples``
        expects rows in the original units.

        Parameters
        ----------
        label : object
            The group's label, one of ``groups_``.

        Returns
        -------
        mean : Embedding or FeatureEmbedding
            The estimate, which can be called, measured, added and compared.
        """
        t = self._place_of(label)
        return self._space.embedding(self._joint, t, lambda: self.weights_)

    def score_samples(self, X: Any) -> Array:
        """Return the values μ_t(x) of all estimated means at new rows, of shape (m, T)."""
        check_is_fitted(self, "groups_")
        rows = self._scaled(checked_sample(self, X, reset=False))
        return self._space.values(rows, self._joint, lambda: self.weights_)

    def transform(self, samples: Any) -> Array:
        """Return the coordinates of new groups along the axes of ``coordinates_``.

        The mean of each new group is estimated together with the fitted groups, whose estimates do
        not change. The weights of the candidates are those of the fitted group nearest in size.

        Parameters
        ----------
        samples : list of arrays of shape (n_t, d)
            One sample for each new group.

        Returns
        -------
        coordinates : array of shape (len(samples), k)
            The new means from the centre of the fitted ones, along their principal axes.
        """
        check_is_fitted(self, "groups_")
        checked = checked_samples(self, samples, reset=False)
        means = np.empty((len(checked), self._joint.means.shape[1]))
        for place, sample in enumerate(checked):
            new = self._space.new_group(self._scaled(sample), self._joint.vectors)
            weights = self._joint.candidate_weights
            means[place] = self._joint.mean_of_new(new.vector, new.n, new.own, weights)[:-1]
        return self._joint.axes.coordinates(means)

    def verdict(self) -> str:
        """Return one sentence on how much estimating the means together gains."""
        check_is_fitted(self, "groups_")
        T = len(self.groups_)
        if self.gain_ is None or self.gain_error_ is None:
            return (
                f"Means of {T} groups: the gain over plain averages could not be estimated. There "
                "are too few groups or rows, or rows do not vary within groups."
            )
        if not self.gain_ and not self.gain_error_:
            return (
                f"Means of {T} groups: plain averages are used, because no other estimate has a "
                "smaller error."
            )
        size = f"{100 * min(abs(self.gain_), MAX_PRINTED_GAIN):.0f} %"
        error = f"standard error {100 * self.gain_error_:.0f} %"
        start = f"Estimating the means of {T} groups together"
        what, than = "their expected squared error", "compared with plain averages"
        if abs(self.gain_) <= 2 * self.gain_error_:
            side = "higher"
            if self.gain_ > 0:
                side = "lower"
            return f"{start} does not detectably lower {what} {than} ({size} {side}, {error})."
        changes = "raises"
        if self.gain_ > 0:
            changes = "lowers"
        return f"{start} {changes} {what} by {size} ({error}) {than}."

    def _keep_results(self, labels: Array, counts: Array) -> Self:
        """Set the fitted attributes."""
        joint = self._joint
        self.groups_ = labels
        self.n_rows_ = counts
        self.gain_ = self.gain_error_ = None
        if joint.gain is not None:
            self.gain_, self.gain_error_ = joint.gain.value, joint.gain.error
        self.candidates_ = dict(zip(NAMES, joint.common_weights.tolist(), strict=True))
        self.candidate_weights_ = joint.candidate_weights
        self.bounds_ = np.sqrt(joint.kappa * joint.vectors.noise)
        self._weights = None
        return self

    def _scaled_cells(self, rows: LabelledRows, seed: int) -> CellRows:
        """Return the rows as the kernel sees them, by group and fold."""
        F = int(self.n_splits)
        cells = CellRows.from_rows(rows, dealt_to_folds(rows, F, seed), F)
        self.scaling_ = None
        if self.standardize:
            equal = cells.masses.min() == cells.masses.max()
            batch = SampleBatch(cells.X, 0, None if equal else cells.masses)
            self.scaling_ = ColumnMoments.from_batch(batch)
        return cells.with_rows(self._scaled(cells.X))

    def _scaled(self, X: Array) -> Array:
        """Return rows as the kernel sees them."""
        if self.scaling_ is None:
            return X
        return self.scaling_.standardized(X)

    @property
    def kernel_(self) -> Kernel:
        """The kernel, with its bandwidth as a number."""
        check_is_fitted(self, "groups_")
        return self._space.kernel

    def _place_of(self, label: Any) -> int:
        check_is_fitted(self, "groups_")
        labels = self.groups_.tolist()
        if label not in labels:
            shown = ", ".join(map(str, labels[:8]))
            needed = f"the label of a group is needed, such as {shown}"
            raise MuhatError(f"{type(self).__name__}.embedding_of", needed, label)
        return labels.index(label)

    def _checked_kernel(self) -> Kernel:
        kernel = as_kernel(self.kernel)
        if isinstance(kernel, Precomputed):
            advice = "pass the rows and a kernel such as 'gaussian'"
            raise MuhatError(self, KERNEL_OF_ROWS_NEEDED, "a precomputed one", advice)
        return kernel

    def _check_parameters(self) -> None:
        """Raise MuhatError for invalid parameters, before the first row is read."""
        self._checked_kernel()
        as_gram(self.gram)
        checked_seed(self, self.random_state)
        whole_number(self, "n_splits", self.n_splits, 2)
        if not isinstance(self.standardize, bool | np.bool_):
            raise MuhatError(self, "standardize must be True or False", repr(self.standardize))


def _space(kernel: Kernel, gram: str | Approximation, rows: CellRows) -> MeanSpace:
    """Return the space that means are computed in: of the rows themselves, or of features."""
    if isinstance(gram, Approximation):
        gram.check(kernel)
    kernel = kernel.resolve(rows.X)
    largest = float(np.max(kernel.diagonal(rows.X)))
    check_finite(largest, kernel)
    check_scale(type(kernel).__name__, largest, rows.X.dtype, rows.X)
    if not kernel.positive_semidefinite:
        step = -(-len(rows.X) // N_CHECKED_ROWS)
        check_semidefinite(np.linalg.eigvalsh(kernel(rows.X[::step])))
    is_small = len(rows.X) <= MAX_ROWS_EXACT and rows.T <= MAX_GROUPS_EXACT
    if gram == "auto" and not is_small:
        gram = Nystrom()
    if isinstance(gram, Approximation):
        return FeatureSpace(gram.resolve(kernel, rows.X))
    return PointSpace.from_rows(kernel, rows)


def pairwise_distances(means: Array) -> Array:
    """Return the Euclidean distances between the rows, zero on the diagonal, of shape (T, T)."""
    centred = means - means.mean(axis=0)
    squares = (centred**2).sum(axis=1)
    squared = squares[:, None] + squares - 2 * centred @ centred.T
    np.fill_diagonal(squared, 0)
    return np.sqrt(np.maximum(squared, 0))
