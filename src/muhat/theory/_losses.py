"""The exact loss ‖μ_λ − μ_P‖² of estimates on many samples at once, for known P."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from muhat._arrays import Array
from muhat.errors import MuhatError
from muhat.filters import Shrinker
from muhat.gram import DenseGram, DenseProblem
from muhat.kernels import Kernel, Mixture
from muhat.selection import Choice


@dataclass(frozen=True)
class ExactLosses:
    """The exact losses of every filter and parameter on m samples from known mixtures.

    All samples are decomposed together; after that a loss costs O(n), with no simulation and no
    integral.

    Parameters
    ----------
    matrices : array of shape (m, n, n)
        The Gram matrices A = K/n of the samples.
    cross : array of shape (m, n)
        μ_P(x_i), the true kernel mean at the points of each sample.
    squared_norms : array of shape (m,)
        ‖μ_P‖².

    Examples
    --------
    >>> import numpy as np
    >>> from muhat.filters import Tikhonov
    >>> from muhat.kernels import Gaussian, Mixture
    >>> P = Mixture.isotropic([1.0], [[0.0, 0.0]], [1.0])
    >>> samples = [P.sample(20, seed) for seed in range(3)]
    >>> exact = ExactLosses.from_samples(samples, [P] * 3, [Gaussian(1.0)] * 3)
    >>> plain = exact.of_multiples(np.ones(1))
    >>> shrunk = exact.of_path(Tikhonov(), np.array([0.01, 0.1]))
    >>> plain.shape, shrunk.shape
    ((3, 1), (3, 2))
    >>> bool((exact.of_best_multiple() <= plain[:, 0]).all())
    True
    """

    matrices: Array
    cross: Array
    squared_norms: Array

    @classmethod
    def from_samples(
        cls, samples: Iterable[Array], distributions: Iterable[Mixture], kernels: Iterable[Kernel]
    ) -> ExactLosses:
        """Return the exact losses on samples of one size, with distributions and kernels."""
        samples, distributions, kernels = list(samples), list(distributions), list(kernels)
        if not len(samples) == len(distributions) == len(kernels) > 0:
            needed = "one distribution and one kernel for each sample are needed"
            got = (
                f"{len(samples)} samples, {len(distributions)} distributions and {len(kernels)} "
                "kernels"
            )
            raise MuhatError("ExactLosses", needed, got)
        if len({np.shape(X) for X in samples}) > 1:
            got = ", ".join(sorted({str(np.shape(X)) for X in samples}))
            raise MuhatError("ExactLosses", "all samples must have the same shape", got)
        known = list(zip(samples, distributions, kernels, strict=True))
        return cls(
            np.stack([DenseGram.from_sample(kernel, X).matrix for X, _, kernel in known]),
            np.stack([P.mean(kernel, X) for X, P, kernel in known]),
            np.array([P.inner(kernel, P) for _, P, kernel in known]),
        )

    @cached_property
    def problem(self) -> DenseProblem:
        """All samples as one problem, for selection rules, with the leading dimension m."""
        return DenseProblem(DenseGram(self.matrices, self._masses))

    @cached_property
    def problems(self) -> list[DenseProblem]:
        """The samples one by one, for filters that no rule can score on a batch."""
        return [DenseProblem(DenseGram(matrix, self._masses)) for matrix in self.matrices]

    def of_shrinkage(self, s: Array) -> Array:
        """Return ‖s(Ĉ)μ̂ − μ_P‖², of shape (m, parameters).

        It is Σ_i s_i²⟨μ̂, v_i⟩² − 2 s_i ⟨μ̂, v_i⟩⟨v_i, μ_P⟩ + ‖μ_P‖².

        ``s``, of shape (parameters, m, n), is what is kept of each component of each sample.
        """
        moved = (s**2 * self._own - 2 * s * self._with_truth).sum(axis=-1)
        return np.maximum(moved.T + self.squared_norms[:, None], 0)

    def of_path(self, filter: Shrinker, grid: Array) -> Array:
        """Return the losses of a filter at every parameter of a grid: shape (m, parameters)."""
        return self.of_shrinkage(filter.on(self.problem.components, grid))

    def of_choice(self, choice: Choice) -> Array:
        """Return the losses of what a rule chose for each sample, of shape (m,)."""
        return self.of_shrinkage(choice.shrinkage(self.problem)[None])[:, 0]

    def of_multiples(self, s: Array) -> Array:
        """Return ‖sμ̂ − μ_P‖² = s²‖μ̂‖² − 2s⟨μ̂, μ_P⟩ + ‖μ_P‖², of shape (m, parameters).

        ``s`` has the shape (parameters,), or (m, parameters) where it differs between samples.
        """
        squared, cross, norms = self._mean_squared, self._mean_with_truth, self.squared_norms
        return np.maximum(squared[:, None] * s**2 - 2 * cross[:, None] * s + norms[:, None], 0)

    def of_best_multiple(self) -> Array:
        """Return the losses of sμ̂ for the best s in [0, 1] of each sample, of shape (m,)."""
        return self.of_multiples(
            np.clip(self._mean_with_truth / self._mean_squared, 0, 1)[:, None]
        )[:, 0]

    @property
    def _masses(self) -> Array:
        n = self.matrices.shape[-1]
        return np.full(n, 1 / n)

    @cached_property
    def _own(self) -> Array:
        """⟨μ̂, v_i⟩² for the eigenfunctions v_i."""
        return self.problem.components.mean**2

    @cached_property
    def _with_truth(self) -> Array:
        """⟨μ̂, v_i⟩⟨v_i, μ_P⟩."""
        spectrum = self.problem.spectrum
        return spectrum.coordinates * spectrum.project(self.problem.root_masses * self.cross)

    @cached_property
    def _mean_squared(self) -> Array:
        """‖μ̂‖²."""
        return (self.problem.root_masses * self.problem.mean_values).sum(axis=-1)

    @property
    def _mean_with_truth(self) -> Array:
        """⟨μ̂, μ_P⟩."""
        return self.cross @ self.problem.masses
