"""The estimators that are compared, each with the rules that choose its parameter, on many samples at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muhat._arrays import Array
from muhat.datasets import Draw
from muhat.filters import FILTERS, Shrinker
from muhat.gram import Components, DenseGram, DenseProblem, Problem
from muhat.kernels import Gaussian
from muhat.selection import GCV, Choice, LeaveOneOut

PAPER = ("kme", "s-kmse", "f-kmse", "landweber", "nu-method", "iterated-tikhonov", "tsvd")
"""The seven estimators of the paper, in the order of its Table 2."""

BY_GCV = ("tsvd",)
"""Those whose parameter the paper chooses by generalised cross-validation; all others by leave-one-out."""

LEFT_OUT = ("tsvd", "componentwise")
"""Those whose exact leave-one-out score takes n decompositions."""

LEAVE_OUT_UP_TO = 50
"""Points up to which those are scored."""

KAPPA2 = 1.0
"""k(x, x) of the Gaussian kernel."""


def filter_named(name: str) -> Shrinker:
    """Return an estimator's filter, for the Gaussian kernel."""
    return FILTERS[name]().bounded_by(KAPPA2)


def median_bandwidth(X: Array) -> float:
    """Return the Gaussian kernel's σ by the median rule."""
    return float(Gaussian().resolve(X).bandwidth)


@dataclass(frozen=True)
class Result:
    """The losses of one estimator with one rule.

    Attributes
    ----------
    estimator : str
        Its name, or "auto" for the best of all.
    rule : str
        "paper", "loo" (our exact leave-one-out where the paper has none), or "oracle", which knows the loss.
    losses : array of shape (m,)
        ‖μ_λ − μ_P‖² of each sample.
    """

    estimator: str
    rule: str
    losses: Array


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
class Batch:
    """Samples of one size, with what is known of their distributions.

    Attributes
    ----------
    matrices : array of shape (m, n, n)
        Their Gram matrices A = K/n.
    cross : array of shape (m, n)
        μ_P(x_i).
    squared_norms : array of shape (m,)
        ‖μ_P‖².
    """

    matrices: Array
    cross: Array
    squared_norms: Array

    @classmethod
    def of(cls, draws: Iterable[Draw], factor: float = 1.0, bandwidths: Iterable[float] | None = None) -> Batch:
        """Return the batch under Gaussian kernels, each bandwidth given or a multiple of the median rule's."""
        draws = list(draws)
        if bandwidths is None:
            bandwidths = [factor * median_bandwidth(draw.X) for draw in draws]
        matrices, cross, squared_norms = [], [], []
        for draw, bandwidth in zip(draws, bandwidths, strict=True):
            kernel = Gaussian(float(bandwidth))
            matrices.append(DenseGram.from_sample(kernel, draw.X).matrix)
            cross.append(draw.distribution.mean(kernel, draw.X))
            squared_norms.append(draw.distribution.inner(kernel, draw.distribution))
        return cls(np.stack(matrices), np.stack(cross), np.array(squared_norms))

    @cached_property
    def problem(self) -> DenseProblem:
        """All of them as one problem."""
        n = self.matrices.shape[-1]
        return DenseProblem(DenseGram(self.matrices, np.full(n, 1 / n)))

    @cached_property
    def _own(self) -> Array:
        """⟨μ̂, v_i⟩² for the eigenfunctions v_i."""
        return self.problem.components.mean**2

    @cached_property
    def _with_truth(self) -> Array:
        """⟨μ̂, v_i⟩⟨v_i, μ_P⟩."""
        spectrum = self.problem.spectrum
        return spectrum.coordinates * spectrum.project(self.problem.root_masses * self.cross)

    def losses(self, s: Array) -> Array:
        """Return ‖s(Ĉ)μ̂ − μ_P‖² = Σ_i s_i²⟨μ̂, v_i⟩² − 2 s_i ⟨μ̂, v_i⟩⟨v_i, μ_P⟩ + ‖μ_P‖².

        s has the shape (parameters, m, n), the result (m, parameters).
        """
        moved = (s**2 * self._own - 2 * s * self._with_truth).sum(axis=-1)
        return np.maximum(moved.T + self.squared_norms[:, None], 0)

    def path(self, filter: Shrinker, grid: Array) -> Array:
        """Return the losses of every parameter, of shape (m, parameters)."""
        return self.losses(filter.on(self.problem.components, grid))

    def constant(self, s: Array) -> Array:
        """Return the losses of sμ̂ for every s, of shape (m, parameters), without a decomposition."""
        return self._of_multiples(np.broadcast_to(s, (len(self.cross), len(s))))

    def best_constant(self) -> Array:
        """Return the losses of sμ̂ for the best s in [0, 1] of each sample."""
        return self._of_multiples(np.clip(self._mean_with_truth / self._mean_squared, 0, 1)[:, None])[:, 0]

    def _of_multiples(self, s: Array) -> Array:
        """Return ‖sμ̂ − μ_P‖² = s²‖μ̂‖² − 2s⟨μ̂, μ_P⟩ + ‖μ_P‖² for s of shape (m, parameters)."""
        squared, cross, norms = (
            each[:, None] for each in (self._mean_squared, self._mean_with_truth, self.squared_norms)
        )
        return np.maximum(squared * s**2 - 2 * cross * s + norms, 0)

    @cached_property
    def _mean_squared(self) -> Array:
        """‖μ̂‖²."""
        return (self.problem.root_masses * self.problem.mean_values).sum(axis=-1)

    @property
    def _mean_with_truth(self) -> Array:
        """⟨μ̂, μ_P⟩."""
        return self.cross @ self.problem.masses

    def results(self) -> list[Result]:
        """Return the losses of the estimators with the paper's rules, with ours, and with the oracle's.

        A batch has one grid of λ for all its samples; truncated SVD is chosen by the number of components, which is the
        same as a threshold between a sample's own eigenvalues.
        """
        names = [name for name in PAPER if name not in BY_GCV]
        choices = LeaveOneOut().choices(self.problem, [filter_named(name) for name in names])
        chosen = [self._chosen(choice) for choice in choices]
        scores = [np.asarray(choice.score) for choice in choices]
        results = [Result(name, "paper", losses) for name, losses in zip(names, chosen, strict=True)]
        truncated = GCV().choose(self.problem, LeadingComponents())
        results.append(Result("tsvd", "paper", self._chosen(truncated)))
        if self.problem.n <= LEAVE_OUT_UP_TO:
            for name in LEFT_OUT:
                singles = [LeaveOneOut().choose(problem, filter_named(name)) for problem in self._singles]
                s = [choice.shrinkage(problem) for choice, problem in zip(singles, self._singles, strict=True)]
                chosen.append(self.losses(np.stack(s)[None])[:, 0])
                scores.append(np.array([choice.score for choice in singles]))
                results.append(Result(name, "loo", chosen[-1]))
        best = np.stack(scores).argmin(axis=0)
        results.append(Result("auto", "loo", np.stack(chosen)[best, np.arange(len(best))]))
        return results + self._oracles(dict(zip(names, choices, strict=True)))

    def _oracles(self, choices: dict[str, Choice]) -> list[Result]:
        """Return the least losses that any rule could reach: on the grid of λ or t, or over all s and truncations."""
        least = {
            name: self.path(choice.filter, choice.grid).min(axis=-1)
            for name, choice in choices.items()
            if not choice.filter.constant
        }
        truncations = self.path(LeadingComponents(), np.arange(self.problem.n + 1))
        least |= {"s-kmse": self.best_constant(), "tsvd": truncations.min(axis=-1)}
        return [Result(name, "oracle", losses) for name, losses in least.items()]

    def _chosen(self, choice: Choice) -> Array:
        """Return the losses of a choice."""
        return self.losses(choice.shrinkage(self.problem)[None])[:, 0]

    @cached_property
    def _singles(self) -> list[DenseProblem]:
        """The samples one by one, for filters that have no score on a batch."""
        return [DenseProblem(DenseGram(matrix, self.problem.masses)) for matrix in self.matrices]
