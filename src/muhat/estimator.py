"""KernelMean: the kernel mean of a sample, shrunk, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from muhat.arrays import Array
from muhat.embedding import Embedding
from muhat.filters import Shrinker, as_filter
from muhat.gram import DenseGram
from muhat.kernels import Kernel, Precomputed, as_kernel
from muhat.messages import refusal, unknown_name
from muhat.problem import Problem, Target
from muhat.selection import Rule, as_rule, every_filter
from muhat.validation import checked_gram, checked_masses, checked_sample

GRAMS = ("auto", "dense")


class KernelMean(BaseEstimator):
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
        scores them all on one decomposition and takes the best; beyond 50 points it leaves out ``'tsvd'`` and
        ``'componentwise'``, whose exact leave-one-out score takes a decomposition for each point.
    selection : str or Rule, default='loo'
        How the filter's parameter is chosen: ``'loo'`` (exact leave-one-out), ``'gcv'``, ``'kfold'``, ``'lepski'``,
        ``'rate'``, or an object, such as ``Fixed(0.1)`` or ``LeaveOneOut(grid=[0.1, 1])``.
    gram : {'auto', 'dense'}, default='auto'
        How the Gram matrix is held.
    target : Embedding or array of shape (n,), default=None
        The target f*, as an element of the RKHS or as weights on the sample; none is f* = 0.

    Attributes
    ----------
    weights_ : array of shape (n,)
        β, the weights of the estimate on the sample.
    embedding_ : Embedding
        The estimate: a function that can be called, measured, added and compared.
    filter_ : Shrinker
        The filter, the winner if there were several.
    choice_ : Choice
        Its parameter, with the grid it was chosen from and the scores of all.
    choices_ : list of Choice
        The choices of all filters that were tried.
    kernel_ : Kernel
        The kernel, every parameter a number.
    eigenvalues_ : array of shape (n,)
        The eigenvalues of K/n, ascending; None where none were needed.
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
        gram: str = "auto",
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
        X : array or data frame of shape (n, d)
            The sample, or its Gram matrix if the kernel is precomputed.
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
        X = checked_sample(self, X, reset=True)
        masses = checked_masses(self, sample_weight, len(X))
        present = masses > 0
        rule = as_rule(self.selection)
        self._check_enough(rule, int(present.sum()))

        self.kernel_, points = self._kernel_and_points(X, present)
        target = self._target(points)
        problem = self._problem(points, masses, present, target)
        self.choices_ = rule.choices(problem, self._filters(rule, problem))
        self.choice_ = rule.best(problem, self.choices_)
        self.filter_ = self.choice_.filter

        self.weights_ = np.zeros(len(X), X.dtype)
        self.weights_[present] = self.choice_.weights(problem)
        self.embedding_ = Embedding(self.kernel_, points, self.weights_)
        if target is not None:
            self.embedding_ += (1 - self.choice_.shrinkage_at_zero) * target
        self.eigenvalues_ = problem.spectrum.gamma if "spectrum" in vars(problem) else None
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
        check_is_fitted(self)
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
        check_is_fitted(self)
        X = checked_sample(self, X, reset=False)
        own = 0.0 if isinstance(self.kernel_, Precomputed) else float(self.kernel_.diagonal(X).mean())
        return float(2 * self._values(X).mean() - self.embedding_.squared_norm() - own)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)
        if not hasattr(self, "choice_"):
            return text
        parameter = "" if self.choice_.parameter is None else f" at {self.choice_.parameter:.4g}"
        moved = f"{100 * self.choice_.strength:.3g} % shrunk"
        return f"{text} fitted to {len(self.weights_)} points: {self.filter_!r}{parameter}, {moved}"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)
        return tags

    def _values(self, X: Array) -> Array:
        return X @ self.embedding_.weights if isinstance(self.kernel_, Precomputed) else self.embedding_(X)

    def _check_enough(self, rule: Rule, n: int) -> None:
        if n < rule.least_points:
            needed = f"selection by {type(rule).__name__} needs at least {rule.least_points} rows"
            advice = "give more rows; for a filter with a parameter, selection=Fixed(...) needs one row only"
            raise ValueError(refusal(type(self).__name__, needed, f"n_samples = {n}", advice))

    def _kernel_and_points(self, X: Array, present: Array) -> tuple[Kernel, Array]:
        kernel = as_kernel(self.kernel)
        if isinstance(kernel, Precomputed):
            return Precomputed(checked_gram(self, X)), np.arange(len(X))[:, None]
        return kernel.resolve(X[present]), X

    def _problem(self, points: Array, masses: Array, present: Array, target: Embedding | None) -> Problem:
        if self.gram not in GRAMS:
            raise ValueError(unknown_name("gram", self.gram, GRAMS))
        equal = np.all(masses == masses[0])
        gram = DenseGram.of(self.kernel_, points[present], None if equal else masses[present])
        if target is None:
            return Problem(gram)
        return Problem(gram, Target(target(points[present]), target.squared_norm()))

    def _filters(self, rule: Rule, problem: Problem) -> list[Shrinker]:
        if not self.kernel_.positive_semidefinite:
            problem.spectrum  # noqa: B018 — refuses an indefinite matrix, which no filter is made for
        automatic = isinstance(self.filter, str) and self.filter == "auto"
        filters = every_filter(problem.n, rule) if automatic else [as_filter(self.filter)]
        return [filter.bounded_by(problem.kappa2(self.kernel_.bound)) for filter in filters]

    def _target(self, points: Array) -> Embedding | None:
        """Return the target f* as an element of the RKHS, or refuse it."""
        who = f"{type(self).__name__}(target=…)"
        if self.target is None:
            return None
        if isinstance(self.target, Embedding):
            if self.target.kernel != self.kernel_:
                needed, advice = f"the target must have the kernel {self.kernel_!r}", "pass kernel=target.kernel"
                raise ValueError(refusal(who, needed, repr(self.target.kernel), advice))
            if self.target.points.shape[1] != points.shape[1]:
                needed = f"the target's points must have {points.shape[1]} features, as X has"
                raise ValueError(refusal(who, needed, self.target.points.shape[1]))
            return self.target
        weights = np.asarray(self.target)
        if weights.shape != (len(points),) or weights.dtype.kind not in "fiu" or not np.isfinite(weights).all():
            needed = f"an Embedding or {len(points)} finite weights on the sample are needed"
            raise ValueError(refusal(who, needed, f"{type(self.target).__name__} of shape {weights.shape}"))
        return Embedding(self.kernel_, points, weights.astype(np.result_type(points.dtype, np.float32)))
