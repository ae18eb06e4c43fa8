"""The estimators that are compared, each with the rules that choose its parameter, and their losses on many samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array
from muhat.embedding import Element
from muhat.filters import AUTO, FILTERS, Shrinker
from muhat.gram import Components, Problem
from muhat.kernels import Kernel
from muhat.paper.theory import ExactLosses
from muhat.selection import GCV, Choice, LeaveOneOut
from muhat.stacking import StackedMean

PAPER = ("kme", "s-kmse", "f-kmse", "landweber", "nu-method", "iterated-tikhonov", "tsvd")
"""The seven estimators of the paper, in the order of its Table 2."""

BY_GCV = ("tsvd",)
"""Those whose parameter the paper chooses by generalised cross-validation."""

BY_LOO = tuple(name for name in PAPER if name not in BY_GCV)
"""Those whose parameter the paper chooses by leave-one-out."""

LEFT_OUT = ("tsvd", "componentwise")
"""Those whose exact leave-one-out score takes n decompositions."""

LEFT_OUT_UP_TO = 50
"""The sample size up to which they are scored so."""

NAMES = {
    "kme": "KME",
    "s-kmse": "S-KMSE",
    "f-kmse": "F-KMSE",
    "landweber": "Landweber",
    "nu-method": "ν-method",
    "iterated-tikhonov": "iterated Tikhonov",
    "tsvd": "truncated SVD",
    "componentwise": "component-wise",
    "auto": "auto",
    "stacked": "stacked mean",
    "maximum likelihood": "maximum likelihood",
    "k-means": "k-means",
}
"""What figures and claims call each estimator, in the order of legends."""

FREQUENCIES = StackedMean().n_frequencies
"""Random frequencies by which the stacked mean chooses its weights: its default."""

KAPPA2 = 1.0
"""k(x, x) of the Gaussian kernel and of all others with a bandwidth."""


def display_name(estimator: str) -> str:
    """Return what figures and claims call an estimator."""
    return NAMES.get(estimator, estimator)


def filter_named(name: str, kappa2: float = KAPPA2) -> Shrinker:
    """Return an estimator's filter, for a kernel with k(x, x) ≤ κ²."""
    return FILTERS[name]().bounded_by(kappa2)


class LeadingComponents(Shrinker):
    """Truncated SVD by the number of components it keeps, which suits samples with different eigenvalues."""

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
        Its name, "auto" for the best of all filters, or "stacked" for the stacked mean.
    rule : str
        "paper", "loo" (our exact leave-one-out where the paper has none), or "oracle", which knows the loss.
    losses : array of shape (m,)
        ‖μ_λ − μ_P‖² of each sample.
    """

    estimator: str
    rule: str
    losses: Array


def losses_by_rule(exact: ExactLosses, kappa2: float = KAPPA2) -> list[EstimatorLosses]:
    """Return the losses of the estimators with the paper's rules, with ours, and with the oracle's.

    Samples that are scored together have one grid of λ; truncated SVD is chosen by the number of components, which is
    the same as a threshold between a sample's own eigenvalues. "auto" is the least leave-one-out score of those in
    ``BY_LOO`` and, up to ``LEFT_OUT_UP_TO`` points, in ``LEFT_OUT``, whatever ``KernelMean(filter="auto")`` tries.
    """
    choices = LeaveOneOut().choices(exact.problem, [filter_named(name, kappa2) for name in BY_LOO])
    chosen = [exact.of_choice(choice) for choice in choices]
    gains = [np.asarray(choice.gain) for choice in choices]
    found = [EstimatorLosses(name, "paper", losses) for name, losses in zip(BY_LOO, chosen, strict=True)]
    truncated = GCV().choose(exact.problem, LeadingComponents())
    found.append(EstimatorLosses("tsvd", "paper", exact.of_choice(truncated)))
    if exact.problem.n <= LEFT_OUT_UP_TO:
        for name in LEFT_OUT:
            singles = [LeaveOneOut().choose(problem, filter_named(name, kappa2)) for problem in exact.problems]
            s = [choice.shrinkage(problem) for choice, problem in zip(singles, exact.problems, strict=True)]
            chosen.append(exact.of_shrinkage(np.stack(s)[None])[:, 0])
            gains.append(np.array([choice.gain for choice in singles]))
            found.append(EstimatorLosses(name, "loo", chosen[-1]))
    found.append(_best(gains, chosen))
    return found + _oracles(exact, dict(zip(BY_LOO, choices, strict=True)))


def losses_of_auto(exact: ExactLosses) -> list[EstimatorLosses]:
    """Return the losses of every filter that ``KernelMean(filter="auto")`` tries, by leave-one-out, and of "auto"."""
    choices = LeaveOneOut().choices(exact.problem, [filter_named(name) for name in AUTO])
    chosen = [exact.of_choice(choice) for choice in choices]
    found = [EstimatorLosses(name, "loo", losses) for name, losses in zip(AUTO, chosen, strict=True)]
    return [*found, _best([np.asarray(choice.gain) for choice in choices], chosen)]


def _best(gains: list[Array], losses: list[Array]) -> EstimatorLosses:
    """Return the losses of the estimator with the largest leave-one-out gain on each sample."""
    best = np.stack(gains).argmax(axis=0)
    return EstimatorLosses("auto", "loo", np.stack(losses)[best, np.arange(len(best))])


def stacked_means(
    samples: Iterable[Array], kernels: Iterable[Kernel], places: Iterable[int], frequencies: int | None
) -> Iterator[Element]:
    """Yield the stacked mean of each sample, whose number is its random state."""
    for X, kernel, place in zip(samples, kernels, places, strict=True):
        yield StackedMean(kernel=kernel, n_frequencies=frequencies, random_state=place).fit(X).embedding_


def _oracles(exact: ExactLosses, choices: dict[str, Choice]) -> list[EstimatorLosses]:
    """Return the least losses that any rule could reach: on the grid of λ or t, or over all s and truncations."""
    least = {
        name: exact.of_path(choice.filter, choice.grid).min(axis=-1)
        for name, choice in choices.items()
        if not choice.filter.constant
    }
    truncations = exact.of_path(LeadingComponents(), np.arange(exact.problem.n + 1))
    least |= {"s-kmse": exact.of_best_multiple(), "tsvd": truncations.min(axis=-1)}
    return [EstimatorLosses(name, "oracle", losses) for name, losses in least.items()]
