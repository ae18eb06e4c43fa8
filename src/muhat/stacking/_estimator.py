"""StackedMean: many estimates of a kernel mean, weighted by their leave-one-out moments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array
from muhat._bases import BaseEstimator
from muhat._parts import HasKernel, as_kernel
from muhat._random_states import checked_seed
from muhat._summary import EstimatorHtmlReprMixin, Summary
from muhat._tolerances import MIN_REMAINING_MASS
from muhat._unsaved_caches import UnsavedCaches
from muhat._validation import (
    check_scale,
    check_semidefinite,
    checked_masses,
    checked_sample,
    checked_weights,
    is_dask,
    whole_number,
)
from muhat._wording import gain_parts, gain_text
from muhat.embedding import Element, Embedding
from muhat.errors import MuhatError, MuhatTypeError
from muhat.kernels import Kernel, Precomputed
from muhat.kernels._base import terms
from muhat.stacking._candidates import Candidate, GaussianFit, NuSteps, PlainMean, WardMixtures
from muhat.stacking._embedding import MixedEmbedding
from muhat.stacking._recombined import ClusterJitter, IndependentBlocks
from muhat.stacking._sample import StackSample
from muhat.stacking._span import combination
from muhat.stacking._stack import HeldOutGain, Stack, held_out_gain
from muhat.stacking._weights import LeftOutMoments

N_ROWS_CHECKED = 500
"""Rows whose Gram matrix is checked where a kernel is not known to be positive semi-definite."""

MAX_ROWS_COUNTED = 20_000
"""Rows up to which weights that are whole numbers are counts, and rows are repeated."""

MIN_BANDWIDTH = 1e-150
"""Smallest bandwidth whose frequencies can be squared."""

CLEAR_GAIN_ERRORS = 2.0
"""Number of standard errors beyond which a gain is reported as clear."""

NEARLY_ALL = 99.5
"""Estimated gain in percent from which the verdict names no number, which would be rounded up."""

FEW_ROWS = 20
"""Rows below which a standard error is itself uncertain, and the verdict says so."""


class StackedMean(UnsavedCaches, HasKernel, EstimatorHtmlReprMixin, BaseEstimator):
    """The kernel mean as a weighted average of several estimates, weighted by leave-one-out.

    The stacked mean is Σ_m w_m μ_m with weights w ≥ 0. The candidates μ_m are the plain mean, the
    ν-method after several numbers of steps, Gaussians, mixtures of Gaussians on clusters, and
    features recombined in blocks. Smooth candidates help where the characteristic function of P is
    nearly zero, which filters of the kernel mean cannot exploit.

    The weights minimise wᵀBw − 2aᵀw + 0.2 R̂ ‖w − 1/M‖², an estimate of the squared distance
    ‖μ − μ_P‖² in the RKHS with a penalty. B_mm' and a_m are the means over i of ⟨μ_m, μ_m'⟩ and
    ⟨k(x_i, ·), μ_m⟩, for estimates without x_i. R̂ = B_00 − a_0 estimates the risk of the plain
    mean.

    Repeated rows count as often as they occur. If nearly all rows repeat a few values, the stacked
    mean is the plain mean, because counts of values are hard to improve on.

    Parameters
    ----------
    kernel : str, Kernel, scikit-learn kernel or callable, default='gaussian'
        The kernel, not a precomputed one. Bandwidths are learnt by the median rule by default.
    candidates : list of Candidate, default=None
        The estimates to combine. None is ``muhat.stacking.default_candidates(kernel)``. The plain
        mean is always included.
    unit_mass : bool, default=True
        Whether the weights of the estimate sum to one, as for a distribution. If False, the risk in
        the RKHS is a little lower, but the values μ(x) are too small on average.
    n_frequencies : int or None, default=128
        The number of random frequencies used to approximate the inner products in B and a; the
        estimate itself does not use them. None computes exact inner products and refits every
        candidate without each row, which is slow. Kernels without known random frequencies are
        always treated so.
    random_state : int, RandomState, Generator or None, default=0
        Seed of frequencies, folds and random rows.

    Attributes
    ----------
    candidate_weights_ : array of shape (M,)
        w, the weights of the candidates.
    names_ : list of str
        Their names.
    moments_ : LeftOutMoments
        B, a and R̂, as ``inner``, ``cross`` and ``risk``.
    gains_ : array of shape (M,)
        The gain of each candidate: how much lower its risk is than that of the plain mean, the
        first candidate, as a share of the latter. Estimated by leave-one-out.
    gain_, gain_error_ : float
        The gain of the stacked mean, estimated by five folds that were used neither for estimates
        nor for weights; and a bound on its standard error, as an estimate of the expected gain of
        samples of this size. Both are computed when first used, in about four times the time of
        ``fit``.
    embedding_ : Embedding or MixedEmbedding
        The estimate: a function that can be evaluated, added, and compared by its distance. If the
        kernel mean of a Gaussian has no closed form, as for the Laplacian kernel, the Gaussian is
        replaced by points drawn from it.
    kernel_ : Kernel
        The kernel, with its bandwidth as a number.
    n_samples_seen_, n_features_in_ : int
        The number of rows, repeated ones counted, and of features.
    feature_names_in_ : array of shape (n_features_in_,)
        The features' names, if X had any.

    See Also
    --------
    KernelMean : One filter, chosen by leave-one-out.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import StackedMean
    >>> X = np.random.default_rng(0).normal(size=(50, 5))
    >>> mu = StackedMean().fit(X)
    >>> bool(mu.candidate_weights_.min() >= 0), round(float(mu.embedding_.weights.sum()), 9)
    (True, 1.0)
    >>> mu.score_samples(X).shape
    (50,)
    """

    moments_: LeftOutMoments
    candidate_weights_: Array
    gains_: Array
    names_: list[str]
    embedding_: Element
    n_samples_seen_: int

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        candidates: Sequence[Candidate] | None = None,
        unit_mass: bool = True,
        n_frequencies: int | None = 128,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.candidates = candidates
        self.unit_mass = unit_mass
        self.n_frequencies = n_frequencies
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Estimate the kernel mean of a sample.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            The sample, in memory.
        y : None
            Ignored.
        sample_weight : array of shape (n,), default=None
            Weights of the rows, not negative; equal by default. Whole numbers that sum to at most
            20,000 are counts: the result is the same as with repeated rows. For other weights only
            the ratios matter, and a row is left out with all of its weight. Rows of weight zero
            are ignored.

        Returns
        -------
        self : StackedMean
            The fitted estimator.
        """
        kernel = self._checked_kernel()
        candidates = self._checked_candidates(kernel)
        self._check_parameters()
        if is_dask(X):
            advice = "use a random sample of the rows, or KernelMean"
            raise MuhatTypeError(
                "StackedMean", "rows in memory are needed", "a dask array or data frame", advice
            )
        rows, masses = _counted(checked_sample(self, X, reset=True), sample_weight)
        _check_squares(rows)
        kernel = kernel.resolve(rows)
        _check_bandwidth(kernel)
        check_scale(type(kernel).__name__, float(np.max(kernel.diagonal(rows))), np.float64, rows)
        if not kernel.positive_semidefinite:
            check_semidefinite(np.linalg.eigvalsh(kernel(rows[:N_ROWS_CHECKED])))
        _check_heaviest(masses)
        rng = np.random.default_rng(checked_seed("StackedMean", self.random_state))
        sample = StackSample(kernel, rows, masses, len(rows))

        stack = Stack.from_sample(candidates, sample, self.n_frequencies, self.unit_mass, rng)
        self.moments_ = stack.moments
        self.candidate_weights_ = stack.weights
        self.gains_ = np.array([stack.moments.gain(w) for w in np.eye(len(stack.weights))])
        self.names_ = stack.names
        self.embedding_ = combination(sample, stack.measures, stack.weights, rng)
        self.kernel_ = kernel
        self.n_samples_seen_ = len(rows)
        self._masses = masses
        self.__dict__.pop("_held_out", None)  # of an earlier fit
        return self

    @property
    def gain_(self) -> float:
        """The gain over the plain mean, as a share of its risk, estimated on held-out rows."""
        return self._held_out.gain

    @property
    def gain_error_(self) -> float:
        """A bound on the standard error of ``gain_``, as an estimate of the expected gain."""
        return self._held_out.error

    @cached_property
    def _held_out(self) -> HeldOutGain:
        check_is_fitted(self, "embedding_")
        element = self.embedding_
        atoms = element
        if isinstance(element, MixedEmbedding):
            atoms = element.atoms
        assert isinstance(atoms, Embedding)
        sample = StackSample(
            self.kernel_, atoms.points[: self.n_samples_seen_], self._masses, self.n_samples_seen_
        )
        candidates = self._checked_candidates(self.kernel_)
        return held_out_gain(candidates, sample, self.n_frequencies, self.unit_mass)

    def score_samples(self, X: Any) -> Array:
        """Return the estimate's values μ(x) at new points, of shape (m,)."""
        check_is_fitted(self, "embedding_")
        return self.embedding_(checked_sample(self, X, reset=False).astype(np.float64))

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the mean squared distance ‖k(x, ·) − μ‖² of new points to the estimate.

        Larger is better. Scores can be compared between estimates with the same kernel, not between
        kernels or bandwidths.
        """
        check_is_fitted(self, "embedding_")
        X = checked_sample(self, X, reset=False).astype(np.float64)
        own = float(self.kernel_.diagonal(X).mean())
        return float(2 * self.embedding_(X).mean() - self.embedding_.squared_norm() - own)

    def verdict(self, best: float, best_error: float) -> str:
        """Return a sentence that compares the gain with that of the best filter.

        ``best`` and ``best_error`` are in percent of KME's risk.
        """
        gain, error = 100 * self.gain_, 100 * self.gain_error_
        if not np.isfinite(error):
            return "Too few rows to tell whether the stacked mean is better than the plain average."
        change, spread = gain_parts(gain, error)
        numbers = ", ".join(filter(None, [change, spread]))
        what, than = "the expected squared error", "compared with the plain average"
        if not abs(gain) > CLEAR_GAIN_ERRORS * error:
            unclear = f"It is not clear whether the stacked mean lowers {what} {than}"
            return f"{unclear}: the estimate is {numbers}."
        if gain < 0:
            return f"The stacked mean raises {what} {than} ({numbers})."
        lowers = f"lower {what} by {change.removesuffix(' lower')} {than}"
        if gain >= NEARLY_ALL:
            lowers = f"remove nearly all of {what} of the plain average"
        single = ", ".join(filter(None, gain_parts(best, best_error)))
        known = "; ".join(filter(None, [spread, f"with the best single filter it is {single}"]))
        caution = ""
        if self.n_samples_seen_ < FEW_ROWS:
            caution = f" With only {self.n_samples_seen_} rows this is a rough estimate."
        return f"The stacked mean is estimated to {lowers} ({known}).{caution}"

    def to_dict(self) -> dict[str, Any]:
        """Return the gain and its standard error in percent of KME's risk, and the weights."""
        gains = {"improvement": 100 * self.gain_, "standard_error": 100 * self.gain_error_}
        return {
            **gains,
            "weights": dict(zip(self.names_, self.candidate_weights_.tolist(), strict=True)),
        }

    def _summary(self) -> Summary:
        gain = gain_text(100 * self.gain_, 100 * self.gain_error_)
        sentence = (
            f"Stacked mean of {self.n_samples_seen_:,} rows: on held-out rows, its expected "
            f"squared error is estimated to be {gain} % below that of the plain average."
        )
        rows = []
        for place in np.argsort(-self.candidate_weights_, kind="stable"):
            alone = f"{100 * self.gains_[place]:.3g} %"
            rows.append((self.names_[place], f"{self.candidate_weights_[place]:.3f}", alone))
        return Summary(sentence, ("candidate", "weight", "alone"), rows)

    def _checked_kernel(self) -> Kernel:
        kernel = as_kernel(self.kernel)
        if isinstance(kernel, Precomputed):
            advice = "pass the rows and a kernel of rows, or use KernelMean"
            raise MuhatError(
                "StackedMean", "a kernel of rows is needed", "a precomputed one", advice
            )
        return kernel

    def _check_parameters(self) -> None:
        if self.n_frequencies is not None:
            whole_number(self, "n_frequencies", self.n_frequencies)
        if not isinstance(self.unit_mass, bool | np.bool_):
            raise MuhatError("StackedMean", "unit_mass must be True or False", repr(self.unit_mass))

    def _checked_candidates(self, kernel: Kernel) -> list[Candidate]:
        if self.candidates is None:
            return default_candidates(kernel)
        given: Any = self.candidates
        if isinstance(given, Candidate):
            raise MuhatTypeError("StackedMean", "candidates must be a list", repr(given))
        if not isinstance(given, list | tuple):
            given = [given]
        checked: list[Candidate] = [PlainMean()]
        for each in given:
            if not isinstance(each, Candidate):
                needed = "candidates must be a list of Candidate objects"
                advice = "as in [GaussianFit(), NuSteps()]"
                raise MuhatTypeError("StackedMean", needed, repr(each), advice)
            if not isinstance(each, PlainMean):
                checked.append(each)
        return checked


def default_candidates(kernel: Kernel | None = None) -> list[Candidate]:
    """Return the candidates that are stacked by default.

    ``ClusterJitter`` is for kernels that lack the kernel mean of a Gaussian in closed form.
    """
    found: list[Candidate] = [
        PlainMean(),
        NuSteps(),
        GaussianFit(),
        WardMixtures(),
        WardMixtures(whiten=True),
        IndependentBlocks(),
    ]
    if kernel is not None and not kernel.has_gaussian_means:
        found.append(ClusterJitter())
    return found


def _counted(rows: Array, sample_weight: Any) -> tuple[Array, Array]:
    """Return float64 rows, repeated if weights are counts, and their positive masses."""
    rows = rows.astype(np.float64)
    if sample_weight is None:
        return rows, np.full(len(rows), 1 / len(rows))
    weights = checked_weights("StackedMean", sample_weight, len(rows))
    are_counts = np.array_equal(weights, np.floor(weights))
    if are_counts and weights.sum() <= max(MAX_ROWS_COUNTED, len(rows)):
        rows = np.repeat(rows, weights.astype(np.intp), axis=0)
        return rows, np.full(len(rows), 1 / len(rows))
    masses = checked_masses("StackedMean", weights, len(rows))
    return rows[masses > 0], masses[masses > 0]


def _check_squares(rows: Array) -> None:
    """Raise MuhatError for rows whose covariances are not finite."""
    with np.errstate(over="ignore"):
        spread = float(np.ptp(rows.astype(np.float64), axis=0).max())
    if spread > (np.finfo(np.float64).max / rows.size) ** 0.5:
        needed = "rows whose squared distances are finite are needed"
        raise MuhatError("StackedMean", needed, f"a column that spans {spread:.3g}", "rescale X")


def _check_bandwidth(kernel: Kernel) -> None:
    """Raise MuhatError for bandwidths whose inverse squares are not finite."""
    for _, part in terms(kernel):
        bandwidth = getattr(part, "bandwidth", 1.0)
        if isinstance(bandwidth, Real) and float(bandwidth) < MIN_BANDWIDTH:
            needed = f"a bandwidth of at least {MIN_BANDWIDTH:g} is needed to square frequencies"
            raise MuhatError("StackedMean", needed, f"{float(bandwidth):.3g}", "rescale X")


def _check_heaviest(masses: Array) -> None:
    """Raise MuhatError if almost no mass is left without the heaviest row."""
    rest = 1 - float(masses.max())
    if len(masses) > 1 and rest < MIN_REMAINING_MASS:
        least = f"{100 * MIN_REMAINING_MASS:g} %"
        needed = f"at least {least} of the mass must be left when rows are left out"
        raise MuhatError(
            "StackedMean", needed, f"{100 * rest:.2g} %", "drop the rows of largest weight"
        )
