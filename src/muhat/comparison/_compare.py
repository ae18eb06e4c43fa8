"""Every filter on one sample, side by side: which is better here, and by how much of KME's risk."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from muhat._parts import as_filters
from muhat._validation import checked_masses
from muhat.comparison._arguments import checked_parts, checked_rows, with_kme
from muhat.comparison._result import Comparison
from muhat.data import ArraySource, ColumnMoments, Source, TransformedSource
from muhat.filters import FILTERS
from muhat.gram import Approximation
from muhat.mean import solve, solve_source
from muhat.stacking import StackedMean


def compare(
    X: Any,
    kernel: Any = "gaussian",
    filters: Any = None,
    selection: Any = "loo",
    standardize: bool = True,
    gram: Any = "auto",
) -> Comparison:
    """Compare all filters on a sample: which has the lowest leave-one-out error?

    Each filter has the parameter that ``KernelMean(filter=...)`` would choose. If all filters are
    compared and rows are in memory, the comparison also has the stacked mean, ``StackedMean``.

    Parameters
    ----------
    X : array or data frame of shape (n, d), also of dask, or batches of them
        The sample, of at least 2 rows; an array of one dimension is one column. Batches must be
        readable again, as a list or ``muhat.open_batches("big.parquet")``. They are read up to four
        times: to standardize, to draw landmarks and bandwidth, to sum, and to leave rows out.
    kernel, selection : as in ``KernelMean``, default='gaussian' and 'loo'
        The kernel, and how parameters are chosen. If a rule cannot choose for a filter, another is
        used, and a note says which.
    filters : sequence of str or Shrinker, default=None
        The filters; by default, or for ``'auto'``, all of ``muhat.filters.FILTERS``. KME, the plain
        average, is always included.
    standardize : bool, default=True
        Whether columns are scaled to mean 0 and variance 1, as in the paper; constant columns
        become 0. For kernels that are not a function of x − y, columns are scaled but not centred,
        because centring would make their mean zero.
    gram : str, Nystrom or RandomFeatures, default='auto'
        How the Gram matrix is stored: 'dense', 'nystrom' or 'random-features'. 'auto' is 'dense' up
        to 5000 rows, and an approximation beyond. Scores are then the exact leave-one-out scores of
        the approximated kernel.

    Returns
    -------
    comparison : Comparison
        A row for each filter, with its leave-one-out score.

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
    parts = checked_parts(kernel, filters, selection, gram)
    rows = checked_rows(parts, X)
    if standardize:
        moments = _as_source(rows).total(ColumnMoments.from_batch)
        transform = partial(moments.standardized, center=parts.kernel.translation_invariant)
        if isinstance(parts.gram, Approximation):
            example = np.zeros((1, len(moments.mean)))
            parts = replace(parts, gram=parts.gram.transformed(transform, example))
        if isinstance(rows, Source):
            rows = TransformedSource(rows, transform)
        else:
            rows = transform(rows)
    if isinstance(rows, Source):
        comparison = Comparison.from_solution(solve_source(parts, rows), parts)
        return replace(comparison, standardize=standardize)
    solution = solve(parts, rows, checked_masses("compare", None, len(rows)))
    comparison = replace(Comparison.from_solution(solution, parts), standardize=standardize)
    if filters is not None or solution.accumulated is not None:
        return comparison
    return replace(comparison, stacked=StackedMean(kernel=solution.kernel).fit(rows))


def _as_source(rows: Any) -> Source:
    if isinstance(rows, Source):
        return rows
    return ArraySource(rows)


def passes(filters: Any = None, standardize: bool = True) -> tuple[str, ...]:
    """Return what ``compare`` passes over batches for, in order, beyond 300 points."""
    shrinkers = as_filters(with_kme(filters), tuple(FILTERS))
    left_out = any(filter.analytic and not filter.constant for filter in shrinkers)
    return (
        ("standardizing",) * standardize + ("drawing", "summing up") + ("leaving out",) * left_out
    )
