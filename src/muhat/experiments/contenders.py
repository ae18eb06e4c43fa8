"""The estimators that are compared, each with the rules that choose its parameter, on many samples at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat

import numpy as np

from muhat.arrays import Array
from muhat.datasets import Draw
from muhat.filters import FILTERS, Shrinker
from muhat.gram import DenseGram
from muhat.kernels import Gaussian
from muhat.problem import Problem
from muhat.selection import GCV, LEAVE_OUT_UP_TO, Choice, LeaveOneOut

PAPER = ("kme", "s-kmse", "f-kmse", "landweber", "nu-method", "iterated-tikhonov", "tsvd")
"""The seven estimators of the paper, in the order of its Table 2."""

BY_GCV = ("tsvd",)
"""Those whose parameter the paper chooses by generalised cross-validation; all others by leave-one-out."""

LEFT_OUT = ("tsvd", "componentwise")
"""Those whose exact leave-one-out score takes n decompositions."""

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


@dataclass(frozen=True)
class Batch:
    """Samples of one size, with what is known of their distributions.

    Attributes
    ----------
    problem : Problem
        Their Gram matrices, of shape (m, n, n).
    cross : array of shape (m, n)
        μ_P(x_i).
    squared_norms : array of shape (m,)
        ‖μ_P‖².
    """

    problem: Problem
    cross: Array
    squared_norms: Array

    @classmethod
    def of(cls, draws: Iterable[Draw], factor: float = 1.0, bandwidths: Iterable[float] | None = None) -> Batch:
        """Return the batch under Gaussian kernels, each bandwidth given or a multiple of the median rule's."""
        matrices, cross, squared_norms = [], [], []
        for draw, given in zip(draws, repeat(None) if bandwidths is None else bandwidths, strict=False):
            kernel = Gaussian(factor * median_bandwidth(draw.X) if given is None else float(given))
            matrices.append(DenseGram.of(kernel, draw.X).matrix)
            cross.append(draw.distribution.mean(kernel, draw.X))
            squared_norms.append(draw.distribution.inner(kernel, draw.distribution))
        n = len(matrices[0])
        gram = DenseGram(np.stack(matrices), np.full(n, 1 / n))
        return cls(Problem(gram), np.stack(cross), np.array(squared_norms))

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
        squared = (self.problem.root_masses * self.problem.mean_values).sum(axis=-1)  # ‖μ̂‖²
        cross = self.cross @ self.problem.masses  # ⟨μ̂, μ_P⟩
        losses = np.multiply.outer(squared, s**2) - 2 * np.multiply.outer(cross, s) + self.squared_norms[:, None]
        return np.maximum(losses, 0)

    def results(self) -> list[Result]:
        """Return the losses of the estimators with the paper's rules, with ours, and with the oracle's."""
        by_loo = [name for name in PAPER if name not in BY_GCV]
        if self.problem.n <= LEAVE_OUT_UP_TO:
            by_loo.extend(LEFT_OUT)
        choices = LeaveOneOut().choices(self.problem, [filter_named(name) for name in by_loo])
        results = [self._result(*each) for each in zip(by_loo, choices, strict=True)]
        best = np.stack([choice.score for choice in choices]).argmin(axis=0)
        automatic = np.stack([result.losses for result in results])[best, np.arange(len(best))]
        by_gcv = [GCV().choose(self.problem, filter_named(name)) for name in BY_GCV]
        results += [Result(name, "paper", self._chosen(choice)) for name, choice in zip(BY_GCV, by_gcv, strict=True)]
        tuned = dict(zip([*by_loo, *BY_GCV], [*choices, *by_gcv], strict=True))
        oracles = [
            Result(name, "oracle", self.path(choice.filter, choice.grid).min(axis=-1))
            for name, choice in tuned.items()
            if not choice.filter.parameterless
        ]
        return [*results, Result("auto", "loo", automatic), *oracles]

    def _result(self, name: str, choice: Choice) -> Result:
        return Result(name, "loo" if name in LEFT_OUT else "paper", self._chosen(choice))

    def _chosen(self, choice: Choice) -> Array:
        """Return the losses of a choice."""
        return self.losses(choice.shrinkage(self.problem)[None])[:, 0]
