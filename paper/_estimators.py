"""The estimators that are compared, the rules that choose their parameters, and their losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muhat.filters import FILTERS, Shrinker
from muhat.gram import Components, Problem
from muhat.mean import KernelMean
from muhat.selection import GCV, LeaveOneOut
from muhat.theory import ExactLosses
from paper._arrays import Array

PAPER = ("kme", "s-kmse", "f-kmse", "landweber", "nu-method", "iterated-tikhonov", "tsvd")
"""The seven estimators of the paper, in the order of its Table 2."""

BY_GCV = ("tsvd",)
"""Those whose parameter the paper chooses by generalised cross-validation."""

BY_LOO = tuple(name for name in PAPER if name not in BY_GCV)
"""Those whose parameter the paper chooses by leave-one-out."""

SMOOTH = ("kme", "s-kmse", "f-kmse", "iterated-tikhonov", "landweber", "nu-method")
"""Those with a cheap exact leave-one-out score, of which the best in hindsight is taken."""

LEFT_OUT = ("tsvd", "componentwise")
"""Those whose exact leave-one-out score takes n decompositions."""

MAX_ROWS_LEFT_OUT = 50
"""The sample size up to which they are scored so."""

NAMES = {
    **{name: FILTERS[name].label for name in PAPER},
    **{name: kind.label for name, kind in FILTERS.items()},
    "auto": "largest leave-one-out gain",
    "default": "default",
    "best": "best filter in hindsight",
    "stacked": "stacked mean",
    "maximum likelihood": "maximum likelihood",
    "k-means": "k-means",
}
"""What figures and claims call each estimator, in the order of legends."""


KAPPA2 = 1.0
"""k(x, x) of the Gaussian kernel and of all others with a bandwidth."""


def display_name(estimator: str) -> str:
    """Return what figures and claims call an estimator."""
    return NAMES.get(estimator, estimator)


def filter_named(name: str, kappa2: float = KAPPA2) -> Shrinker:
    """Return an estimator's filter, for a kernel with k(x, x) ≤ κ²."""
    return FILTERS[name]().bounded_by(kappa2)


class LeadingComponents(Shrinker):
    """Truncated SVD by the number of components that it keeps."""

    def on(self, components: Components, grid: Array) -> Array:
        """s = 1 for the leading components, 0 for the others."""
        n = components.gamma.shape[-1]
        ranks = np.broadcast_to(np.arange(n, 0, -1), components.gamma.shape)  # eigenvalues ascend
        return np.greater_equal.outer(grid, ranks).astype(np.float64)

    def at_zero(self, grid: Array) -> Array:
        """s(0) = 0."""
        return np.zeros(len(grid))

    def grid(self, problem: Problem) -> Array:
        """Return every number of components from 1 to n."""
        return np.arange(1, problem.n + 1)


@dataclass(frozen=True)
class EstimatorLosses:
    """The losses of one estimator with one rule.

    Attributes
    ----------
    estimator : str
        Its name, "auto" for the filter with the largest leave-one-out gain, or "default" for
        ``KernelMean()``.
    rule : str
        "paper", "loo" (our exact leave-one-out where the paper has none), or "oracle", which knows
        the loss.
    losses : array of shape (m,)
        ‖μ_λ − μ_P‖² of each sample.
    """

    estimator: str
    rule: str
    losses: Array


def losses_by_rule(exact: ExactLosses, kappa2: float = KAPPA2) -> list[EstimatorLosses]:
    """Return the losses of the estimators with the paper's rules, with ours, and with the oracle's.

    Truncated SVD is chosen by the number of components, which is the same as a threshold between a
    sample's own eigenvalues. "auto" has the largest leave-one-out gain of those in ``BY_LOO`` and,
    up to ``MAX_ROWS_LEFT_OUT`` points, in ``LEFT_OUT``; "default" is what ``KernelMean()`` makes of
    the same Gram matrix.
    """
    ours: tuple[str, ...] = ()
    if exact.problem.n <= MAX_ROWS_LEFT_OUT:
        ours = LEFT_OUT
    chosen, auto = _by_leave_one_out(exact, (*BY_LOO, *ours), kappa2)
    truncated = exact.of_choice(GCV().choose(exact.problem, LeadingComponents()))
    return [
        *(EstimatorLosses(name, "paper", chosen[name]) for name in BY_LOO),
        EstimatorLosses("tsvd", "paper", truncated),
        *(EstimatorLosses(name, "loo", chosen[name]) for name in ours),
        auto,
        losses_of_default(exact),
        *_oracles(exact, chosen, kappa2),
    ]


def losses_of_auto(exact: ExactLosses) -> list[EstimatorLosses]:
    """Return the losses of every smooth filter by leave-one-out, and of "auto"."""
    chosen, auto = _by_leave_one_out(exact, SMOOTH, KAPPA2)
    return [*(EstimatorLosses(name, "loo", losses) for name, losses in chosen.items()), auto]


def losses_of_default(exact: ExactLosses) -> EstimatorLosses:
    """Return the losses of ``KernelMean()``, whatever its default filter and rule are."""
    losses = []
    for matrix, cross, squared_norm in zip(
        exact.matrices, exact.cross, exact.squared_norms, strict=True
    ):
        gram = len(matrix) * matrix
        weights = KernelMean(kernel="precomputed").fit(gram).weights_
        losses.append(
            max(float(weights @ gram @ weights - 2 * weights @ cross + squared_norm), 0.0)
        )
    return EstimatorLosses("default", "loo", np.array(losses))


def _by_leave_one_out(
    exact: ExactLosses, names: Sequence[str], kappa2: float
) -> tuple[dict[str, Array], EstimatorLosses]:
    """Return the losses of filters by name, and of the one with the largest gain on each sample.

    The samples are looked at one by one, as ``KernelMean`` does, so that each has grids of its own,
    refined.
    """
    filters = []
    for name in names:
        filters.append(filter_named(name, kappa2))
    choices = []
    for problem in exact.problems:
        choices.append(LeaveOneOut().choices(problem, filters))
    kept = []
    for each, problem in zip(choices, exact.problems, strict=True):
        kept.append([choice.shrinkage(problem) for choice in each])
    losses = exact.of_shrinkage(np.stack(kept, axis=1))
    best = np.argmax([[choice.gain for choice in each] for each in choices], axis=1)
    auto = EstimatorLosses("auto", "loo", losses[np.arange(len(best)), best])
    return dict(zip(names, losses.T, strict=True)), auto


def _oracles(exact: ExactLosses, chosen: dict[str, Array], kappa2: float) -> list[EstimatorLosses]:
    """Return the least losses that any rule could reach: over all λ, t, s or truncations."""
    filters = {}
    for name in BY_LOO:
        filters[name] = filter_named(name, kappa2)
    least = {}
    for name, filter in filters.items():
        if not filter.constant:
            least[name] = np.minimum(
                exact.of_path(filter, filter.grid(exact.problem)).min(axis=-1), chosen[name]
            )
    truncations = exact.of_path(LeadingComponents(), np.arange(exact.problem.n + 1))
    least |= {"s-kmse": exact.of_best_multiple(), "tsvd": truncations.min(axis=-1)}
    found = []
    for name, losses in least.items():
        found.append(EstimatorLosses(name, "oracle", losses))
    return found
