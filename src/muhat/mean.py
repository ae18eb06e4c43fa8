"""KernelMean: the kernel mean of a sample, shrunk, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array
from muhat._in_batches import InBatches
from muhat._targets import as_target
from muhat._validation import checked_gram, checked_masses, checked_sample, is_dask
from muhat.data import ArraySource
from muhat.embedding import Element, Embedding
from muhat.gram import Approximation, BlockGram, DenseGram, ProductProblem, SampleProblem, Target
from muhat.gram._plan import plan
from muhat.kernels import Kernel, Precomputed, as_kernel
from muhat.selection import as_rule


class KernelMean(InBatches, BaseEstimator):
    """The mean of a distribution in a reproducing kernel Hilbert space, estimated better than by the plain average.

    The empirical mean μ̂ = (1/n) Σ k(x_i, ·) is shrunk towards a target f*, component by component of the kernel PCA
    basis: μ_λ = f* + s_λ(Ĉ)(μ̂ − f*), by a filter s_λ whose parameter is chosen from the data.

    Parameters
    ----------
    kernel : str, Kernel, scikit-learn kernel or callable, default='gaussian'
        The kernel; ``'precomputed'`` takes Gram matrices for X. Bandwidths are learnt by the median rule by default.
    filter : str or Shrinker, default='auto'
        ``'kme'``, ``'s-kmse'``, ``'f-kmse'`` (or ``'tikhonov'``), ``'iterated-tikhonov'``, ``'landweber'``,
        ``'nu-method'`` (or ``'accelerated-landweber'``), ``'tsvd'``, ``'componentwise'``, or an object. ``'auto'``
        scores them all on one decomposition and takes the best; beyond 50 points, and with ``gram='blocks'``, it leaves
        out ``'tsvd'`` and ``'componentwise'``, whose exact leave-one-out score takes a decomposition for each point.
    selection : str or Rule, default='loo'
        How the filter's parameter is chosen: ``'loo'`` (exact leave-one-out), ``'gcv'``, ``'kfold'``, ``'lepski'``,
        ``'rate'``, or an object, such as ``Fixed(0.1)`` or ``LeaveOneOut(grid=[0.1, 1])``.
    gram : {'auto', 'dense', 'blocks', 'nystrom', 'random-features'}, Nystrom or RandomFeatures, default='auto'
        How the Gram matrix is held: ``'dense'`` as a matrix; ``'blocks'`` not at all, by exact products with it in
        memory proportional to n; ``Nystrom(m)`` or ``RandomFeatures(m)`` by m features of each row, for any number of
        rows. ``'auto'`` chooses by n, d and the memory at hand, and says why in ``gram_reason_``. With ``'blocks'``,
        ``'loo'`` stands for its nearest relative that products give, told by ``rule_``: itself for ``'kme'`` and
        ``'s-kmse'``, ``'gcv'`` for ``'tsvd'``, ``'kfold'`` for the others.
    target : Embedding or array of shape (n,), default=None
        The target f*, as an element of the RKHS or as weights on the sample; none is f* = 0.

    Attributes
    ----------
    weights_ : array of shape (n,) or (m,)
        β, the weights of the estimate on the sample; on the m landmarks or features where it is held by these.
    embedding_ : Embedding or FeatureEmbedding
        The estimate: a function that can be called, measured, added and compared.
    filter_ : Shrinker
        The filter, the winner if there were several.
    choice_ : Choice
        Its parameter, with the grid it was chosen from and the scores of all.
    choices_ : list of Choice
        The choices of all filters that were tried.
    kernel_ : Kernel
        The kernel, every parameter a number.
    eigenvalues_ : array of shape (n,) or (r,)
        The eigenvalues of K/n, ascending; None where none were needed.
    rule_ : Rule
        The rule that chose: the one asked for, or k-fold where that one would need what is not held.
    gram_, gram_reason_ : str or Approximation, and str
        How the Gram matrix was held, and why.
    features_ : FeatureMap
        The features, where it is held by these; else None.
    approximation_error_ : float
        What their mean misses on 2000 rows: Nyström's in the RKHS, random features' as the root mean square of the
        values; zero where nothing is approximated.
    n_samples_seen_ : int
        The number of rows.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, if X had any.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import KernelMean
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> mu = KernelMean(filter="f-kmse").fit(X)
    >>> mu.weights_.shape
    (100,)
    >>> bool(mu.choice_.score < KernelMean(filter="kme").fit(X).choice_.score)
    True
    """

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        filter: Any = "auto",
        selection: Any = "loo",
        gram: Any = "auto",
        target: Any = None,
    ) -> None:
        self.kernel = kernel
        self.filter = filter
        self.selection = selection
        self.gram = gram
        self.target = target

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Estimate the kernel mean of a sample.

        Parameters
        ----------
        X : array or data frame of shape (n, d), also of dask
            The sample, or its Gram matrix if the kernel is precomputed. That of dask stays on its workers, of which
            only sums reach this process.
        y : None
            Ignored.
        sample_weight : array of shape (n,), default=None
            Masses of the points, not negative; equal by default. A point of mass zero does not take part. The bandwidth
            is that of the points that do, whatever their masses.

        Returns
        -------
        self : KernelMean
            The fitted estimator.
        """
        if is_dask(X):
            return self._fit_dask(X, sample_weight)
        rule = as_rule(self.selection)
        X = checked_sample(self, X, reset=True)
        masses = checked_masses(self, sample_weight, len(X))
        present = masses > 0
        self._check_enough(rule, int(present.sum()))
        planned = plan(self.gram, as_kernel(self.kernel), int(present.sum()), X.shape[1], X.itemsize)
        self.gram_, self.gram_reason_ = planned.gram, planned.reason
        self._accumulated = None
        if isinstance(planned.gram, Approximation):
            rows, masses = (X, masses) if present.all() else (X[present], masses[present])
            return self._fit_source(ArraySource(rows, None if _equal(masses) else masses), planned.gram, rule, X)

        self.kernel_, points = self._kernel_and_points(X, present)
        target = as_target(self.target, self.kernel_, points.shape[1], points)
        problem = self._problem(points, masses, present, target)
        self._choose(problem, rule)
        self.weights_ = np.zeros(len(X), X.dtype)
        self.weights_[present] = self.choice_.weights(problem)
        self.embedding_ = Embedding(self.kernel_, points, self.weights_)
        if target is not None:
            self.embedding_ = self.embedding_ + (1 - self.choice_.shrinkage_at_zero) * target
        self.eigenvalues_ = problem.spectrum.gamma if "spectrum" in vars(problem) else None
        self.features_, self.approximation_error_ = None, 0.0
        return self

    def score_samples(self, X: Any) -> Array:
        """Return the estimate's values μ(x) at new points.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The points; for a precomputed kernel, the matrix k(x, x_i) of shape (m, n) to the sample.

        Returns
        -------
        values : array of shape (m,)
            μ(x).
        """
        check_is_fitted(self, "embedding_")
        return self._values(checked_sample(self, X, reset=False))

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the mean squared distance ‖k(x, ·) − μ‖² of new points to the estimate: the larger, the better.

        Parameters
        ----------
        X : array or data frame of shape (m, d)
            The points; for a precomputed kernel, the matrix k(x, x_i) to the sample. As that does not say what k(x, x)
            is, its mean is then left out: a constant, which no comparison of estimates depends on.
        y : None
            Ignored.

        Returns
        -------
        score : float
            The score.
        """
        check_is_fitted(self, "embedding_")
        X = checked_sample(self, X, reset=False)
        own = 0.0 if isinstance(self.kernel_, Precomputed) else float(self.kernel_.diagonal(X).mean())
        return float(2 * self._values(X).mean() - self.embedding_.squared_norm() - own)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)
        if not hasattr(self, "choice_"):
            return text
        parameter = "" if self.choice_.parameter is None else f" at {self.choice_.parameter:.4g}"
        moved = f"{100 * self.choice_.strength:.3g} % shrunk"
        how = "" if self.features_ is None else f" by {self.features_.size} features"
        return f"{text} fitted to {self.n_samples_seen_} points{how}: {self.filter_!r}{parameter}, {moved}"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)
        return tags

    def _values(self, X: Array) -> Array:
        return X @ self.embedding_.weights if isinstance(self.kernel_, Precomputed) else self.embedding_(X)

    def _kernel_and_points(self, X: Array, present: Array) -> tuple[Kernel, Array]:
        kernel = as_kernel(self.kernel)
        if isinstance(kernel, Precomputed):
            return Precomputed(checked_gram(self, X)), np.arange(len(X))[:, None]
        return kernel.resolve(X[present]), X

    def _problem(self, points: Array, masses: Array, present: Array, target: Element | None) -> SampleProblem:
        points, masses = points[present], masses[present]
        equal = None if _equal(masses) else masses
        aim = None if target is None else Target(target(points), target.squared_norm())
        if self.gram_ == "blocks":
            return ProductProblem(BlockGram.from_sample(self.kernel_, points, equal), aim)
        problem = SampleProblem(DenseGram.from_sample(self.kernel_, points, equal), aim)
        if not self.kernel_.positive_semidefinite:
            problem.spectrum  # noqa: B018 — refuses an indefinite matrix, which no filter is made for
        return problem


def _equal(masses: Array) -> bool:
    return bool(np.all(masses == masses[0]))
