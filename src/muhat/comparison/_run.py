"""All estimators on one sample, side by side."""

from __future__ import annotations

from typing import Any

from muhat._messages import refusal
from muhat.comparison._held import Wish
from muhat.comparison._result import Comparison
from muhat.comparison._tuning import name_of_rule, shrinkers_of, tune
from muhat.kernels import Precomputed, as_kernel
from muhat.selection import as_rule


def compare(
    X: Any,
    kernel: Any = "gaussian",
    filters: Any = None,
    selection: Any = "loo",
    standardize: bool = True,
    gram: Any = "auto",
) -> Comparison:
    """Compare estimators of a sample's kernel mean, all on one decomposition.

    Parameters
    ----------
    X : array or data frame of shape (n, d), or batches of them
        The sample, of at least 2 points. Batches must be such that can be iterated anew, as a list or
        ``muhat.data.open_batches("big.parquet")``: they are passed over up to four times (to standardize, to draw
        landmarks and bandwidth, to sum up and to leave points out), and never held at once.
    kernel : str, Kernel, scikit-learn kernel or callable, default='gaussian'
        The kernel.
    filters : sequence of str or Shrinker, default=None
        The estimators; by default, or for ``'auto'``, all of ``muhat.filters.FILTERS``. KME, which all are measured
        against, always takes part.
    selection : str or Rule, default='loo'
        How their parameters are chosen. Where a rule cannot choose for a filter another one does: leave-one-out for
        simple shrinkage, which generalised cross-validation cannot tell apart; generalised cross-validation for
        truncated SVD beyond 300 points, where leave-one-out takes too many eigendecompositions.
    standardize : bool, default=True
        Whether every feature is brought to mean 0 and variance 1, as in the paper; constant features become 0.
    gram : {'auto', 'dense', 'nystrom', 'random-features'}, Nystrom or RandomFeatures, default='auto'
        How the Gram matrix is held: as it is, up to 5000 points by default, or approximated by features, which takes
        any number. The scores are then the exact leave-one-out scores of the approximated kernel.

    Returns
    -------
    comparison : Comparison
        A row for each estimator, with its leave-one-out score, whatever rule chose the parameter.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(30, 5))
    >>> comparison = compare(X, filters=["s-kmse", "landweber"])
    >>> [row.name for row in comparison.rows]
    ['kme', 's-kmse', 'landweber']
    >>> comparison["kme"].improvement
    0.0
    """
    rule, shrinkers, kernel = as_rule(selection), shrinkers_of(filters), as_kernel(kernel)
    if isinstance(kernel, Precomputed):
        needed, advice = "a kernel of points is needed", "pass the points and the kernel's name"
        raise ValueError(refusal("compare", needed, "'precomputed'", advice))
    held = Wish(kernel, rule, gram, standardize).of(X)
    kappa2 = held.problem.kappa2(held.kernel.bound)
    tuned = tune(held.problem, rule, [filter.bounded_by(kappa2) for filter in shrinkers])
    return Comparison.of(held, tuned, name_of_rule(rule))
