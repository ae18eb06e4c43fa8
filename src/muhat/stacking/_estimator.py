"""StackedMean: many estimates of a kernel mean, weighted by their leave-one-out moments, as one estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array
from muhat._messages import refusal
from muhat._parts import HasKernel, as_kernel
from muhat._shown import ShownEstimator
from muhat._validation import check_scale, check_semidefinite, checked_masses, checked_sample, is_dask, whole_number
from muhat.gram._random_features import frequency_law
from muhat.kernels import Kernel, Precomputed
from muhat.selection._base import LEAST_REST
from muhat.stacking._candidates import Candidate, GaussianFit, InDegree, NuSteps, PlainMean, WardMixtures
from muhat.stacking._measures import Measure
from muhat.stacking._recombined import ClusterJitter, IndependentBlocks
from muhat.stacking._sample import FOLDS, Folds, Sample, Waves, orthogonal_frequencies
from muhat.stacking._span import combination
from muhat.stacking._weights import LeftOutMoments

ONE_BY_ONE_UP_TO = 100
"""Rows up to which each is left out by itself; beyond, random folds are."""

CHECKED = 500
"""Rows whose Gram matrix is checked where a kernel is not known to be positive semi-definite."""

DRAWS_TO_CHOOSE = 200
"""Points drawn from each candidate without each fold, where no random frequencies give the inner products."""


class StackedMean(HasKernel, ShownEstimator, BaseEstimator):
    """The kernel mean as a weighted sum of many estimates, whose risk is mostly below that of each of them.

    Filters of the kernel mean cannot see where the characteristic function of P is nearly zero; smooth fits can. The
    stacked mean is Σ_m w_m μ_m, w ≥ 0 and Σ w ≤ 1, over the plain mean, the ν-method after some numbers of steps,
    weights that favour dense regions, Gaussians, mixtures of Gaussians on clusters, and rows put together from parts of
    others. The weights minimise wᵀBw − 2aᵀw + 0.4 R̂ ‖w − 1/M‖² − 0.1 R̂ Σ w, where B_mm' and a_m are the mean inner
    products ⟨μ_m, μ_m'⟩ and ⟨k(x_i, ·), μ_m⟩ of the estimates without x_i, and R̂ = B_00 − a_0 is the plain mean's risk
    as the sample tells it.

    In a sample drawn with replacement from a finite population some rows are the same, and that says nothing new: where
    the sample tells so, all estimates are made from its distinct rows. Weights that are given keep all rows.

    Parameters
    ----------
    kernel : str, Kernel, scikit-learn kernel or callable, default='gaussian'
        The kernel, not a precomputed one. Bandwidths are learnt by the median rule by default.
    candidates : list of Candidate, default=None
        What is stacked; None is ``muhat.stacking.default_candidates()``. The plain mean always takes part.
    n_frequencies : int or None, default=128
        The random frequencies that stand for inner products in B and a; the estimate itself has none. None takes
        the inner products in the RKHS and refits every candidate without each point, which is slow. So are kernels
        treated whose frequencies have no known law.
    random_state : int, RandomState or None, default=0
        For frequencies, folds and draws.

    Attributes
    ----------
    weights_ : array of shape (M,)
        w, the weights of the candidates.
    names_ : list of str
        Their names.
    moments_ : LeftOutMoments
        B, a and R̂, as ``inner``, ``cross`` and ``risk``.
    gains_ : array of shape (M,)
        How much lower each candidate's risk is than that of the first, the plain mean, as a share of it, as the sample
        tells.
    gain_, gain_error_ : float
        The same of the stacked mean, optimistic as w was chosen on the same rows; and its standard error.
        The estimate may be above one, the gain is not.
    embedding_ : Embedding or MixedEmbedding
        The estimate: a function that can be called, measured, added and compared. Where the kernel mean of a Gaussian
        has no closed form, as for the Laplacian, Gaussians are points that were drawn from them.
    kernel_ : Kernel
        The kernel, every parameter a number.
    n_samples_seen_, n_features_in_ : int
        The number of rows and of features.
    feature_names_in_ : array of shape (n_features_in_,)
        The features' names, if X had any.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import StackedMean
    >>> X = np.random.default_rng(0).normal(size=(50, 5))
    >>> mu = StackedMean().fit(X)
    >>> bool(mu.weights_.min() >= 0), bool(mu.weights_.sum() <= 1 + 1e-9)
    (True, True)
    >>> mu.score_samples(X).shape
    (50,)
    """

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        candidates: Sequence[Candidate] | None = None,
        n_frequencies: int | None = 128,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.candidates = candidates
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
            Masses of the points, not negative; equal by default. A point of mass zero does not take part.

        Returns
        -------
        self : StackedMean
            The fitted estimator.
        """
        kernel = self._checked_kernel()
        candidates = self._checked_candidates()
        if self.n_frequencies is not None:
            whole_number(self, "n_frequencies", self.n_frequencies)
        if is_dask(X):
            advice = "draw a sample of it, or use KernelMean"
            raise TypeError(refusal("StackedMean", "rows in memory are needed", "one of dask's collections", advice))
        rows = checked_sample(self, X, reset=True)
        masses = checked_masses("StackedMean", sample_weight, len(rows))
        present = masses > 0
        rows, masses = rows[present].astype(np.float64), masses[present]
        kernel = kernel.resolve(rows)
        check_scale(type(kernel).__name__, float(np.max(kernel.diagonal(rows))), np.float64, rows)
        if not kernel.positive_semidefinite:
            check_semidefinite(np.linalg.eigvalsh(kernel(rows[:CHECKED])))
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        equal = sample_weight is None and len(rows) > 1
        sample = Sample.from_rows(kernel, rows) if equal else Sample(kernel, rows, masses, len(rows))
        kept = [each for each in candidates if each.names(sample)] if len(rows) > 1 else candidates[:1]

        measures = [measure for each in kept for measure in each.checked_fit(sample)]
        self.moments_ = self._moments(kept, measures, sample, rng)
        self.weights_ = self.moments_.best_weights()
        self.gains_ = np.array([self.moments_.gain(w)[0] for w in np.eye(len(self.weights_))])
        self.gain_, self.gain_error_ = self.moments_.gain(self.weights_)
        self.names_ = [name for each in kept for name in each.names(sample)]
        self.embedding_ = combination(sample, measures, self.weights_, rng)
        self.kernel_ = kernel
        self.n_samples_seen_ = len(rows)
        return self

    def _moments(
        self, candidates: list[Candidate], measures: list[Measure], sample: Sample, rng: np.random.Generator
    ) -> LeftOutMoments:
        """Return the moments: from random frequencies, or else from refits."""
        if sample.n == 1:
            own = sample.kernel(sample.X)
            return LeftOutMoments(own[None], own, np.ones(1))
        in_folds = sample.n > ONE_BY_ONE_UP_TO or not has_law(sample.kernel)
        folds = Folds.from_sample(sample, min(FOLDS, sample.n) if in_folds else None, rng)
        rest = 1 - float(folds.shares.max())
        if rest < LEAST_REST:
            needed = f"at least {100 * LEAST_REST:g} % of the mass must be left when rows are left out"
            raise ValueError(refusal("StackedMean", needed, f"{100 * rest:.2g} %", "drop the heaviest rows"))
        if self.n_frequencies is None or not has_law(sample.kernel):
            return LeftOutMoments.from_refits(candidates, sample, folds, DRAWS_TO_CHOOSE, rng)
        frequencies = orthogonal_frequencies(sample.kernel, self.n_frequencies, sample.X.shape[1], rng)
        with np.errstate(over="ignore", invalid="ignore"):
            moments = LeftOutMoments.from_waves(candidates, sample, folds, Waves(sample, frequencies), measures)
        if not np.isfinite(moments.inner).all():
            needed, got = "rows whose squares are finite, in units of the bandwidth, are needed", "larger ones"
            raise ValueError(refusal("StackedMean", needed, got, "rescale X or take another bandwidth"))
        return moments

    def score_samples(self, X: Any) -> Array:
        """Return the estimate's values μ(x) at new points, of shape (m,)."""
        check_is_fitted(self, "embedding_")
        return self.embedding_(checked_sample(self, X, reset=False).astype(np.float64))

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the mean squared distance ‖k(x, ·) − μ‖² of new points to the estimate: the larger, the better.

        Comparable between estimates with one kernel, never between kernels or bandwidths.
        """
        check_is_fitted(self, "embedding_")
        X = checked_sample(self, X, reset=False).astype(np.float64)
        own = float(self.kernel_.diagonal(X).mean())
        return float(2 * self.embedding_(X).mean() - self.embedding_.squared_norm() - own)

    def verdict(self, best: float) -> str:
        """Return one sentence on its gain beside that of the best filter, in percent of the plain mean's risk."""
        gain, error, than = 100 * self.gain_, 100 * self.gain_error_, f"that of {self.names_[0]}"
        found = f"The stacked mean's leave-one-out score is lower than {than} by {gain:.3g} ± {error:.2g} % of its risk"
        if gain <= error:
            return f"{found}: no difference can be told."
        if self.names_[0] != "KME":
            return f"{found}; rows that were drawn again count once."
        return f"{found}, {'more than' if gain > best else 'no more than'} the best filter's."

    def to_dict(self) -> dict[str, Any]:
        """Return the gain and its standard error, in percent of the plain mean's risk, and the weights by name."""
        gains = {"improvement": 100 * self.gain_, "standard_error": 100 * self.gain_error_}
        return {**gains, "weights": dict(zip(self.names_, self.weights_.tolist(), strict=True))}

    def _checked_kernel(self) -> Kernel:
        kernel = as_kernel(self.kernel)
        if isinstance(kernel, Precomputed):
            advice = "give the rows and a kernel of them, or use KernelMean"
            raise ValueError(refusal("StackedMean", "a kernel of rows is needed", "a precomputed one", advice))
        return kernel

    def _checked_candidates(self) -> list[Candidate]:
        given = default_candidates() if self.candidates is None else self.candidates
        for each in given if isinstance(given, list | tuple) else [given]:
            if not isinstance(each, Candidate):
                needed, advice = "candidates must be a list of Candidate objects", "as in [GaussianFit(), NuSteps()]"
                raise TypeError(refusal("StackedMean", needed, repr(each), advice))
        if not isinstance(given, list | tuple):
            raise TypeError(refusal("StackedMean", "candidates must be a list", repr(given)))
        return [PlainMean(), *(each for each in given if not isinstance(each, PlainMean))]


def default_candidates() -> list[Candidate]:
    """Return the candidates that are stacked by default."""
    clusters = [WardMixtures(), WardMixtures(whiten=True), IndependentBlocks(), ClusterJitter()]
    return [PlainMean(), NuSteps(), InDegree(), GaussianFit(), *clusters]


def has_law(kernel: Kernel) -> bool:
    """Whether random frequencies can stand for the kernel."""
    try:
        frequency_law(kernel)
    except ValueError:
        return False
    return True
