"""Refitting without some points: an eigendecomposition for every set that is left out, whatever the filter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muhat._arrays import Array, rounding, share_between_cores
from muhat.gram import Components, Rows, SpectralProblem
from muhat.gram._problem import HeldOut, summed
from muhat.selection._base import Candidates

CHUNK = 2**22
"""Matrix entries a core holds at once."""

AT_LEAST = 4
"""Chunks, so that every core has something to do."""


def scores_with_folds_left_out(
    problem: SpectralProblem, rows: Rows, candidates: Sequence[Candidates], folds: Array | None = None
) -> list[Array]:
    """Return Σ over folds F, Σ over i in F, of p_i ‖k(x_i, ·) − μ^(−F)‖², with the same fold left out of all filters.

    The folds, of shape (folds, size), number the rows; by default each row is one. The scores of each filter have the
    shape (..., parameters).
    """
    folds = np.arange(len(rows.masses))[:, None] if folds is None else folds
    size = len(folds) * problem.components.gamma.size * problem.components.gamma.shape[-1]
    chunks = np.array_split(folds, min(len(folds), max(AT_LEAST, size // CHUNK)))
    parts: list[list[Array]] = [[] for _ in chunks]

    def work(place: int) -> None:
        parts[place] = scores_without(problem, HeldOut.from_rows(problem, rows, chunks[place]), candidates)

    share_between_cores(work, range(len(chunks)))
    return summed(parts)


def scores_without(problem: SpectralProblem, held_out: HeldOut, candidates: Sequence[Candidates]) -> list[Array]:
    """Return the scores with each set left out in turn: Ĉ is diag(γ), and F takes away its Σ p_i φ_i φ_iᵀ."""
    whole, rest = problem.components, (1 - held_out.mass)[:, None]
    covariance = -held_out.covariance
    diagonal = np.arange(covariance.shape[-1])
    covariance[..., diagonal, diagonal] += whole.gamma[..., None, :]
    gamma, V = np.linalg.eigh(covariance / rest[..., None])
    gamma = np.where(gamma <= problem.n * rounding(gamma) * gamma[..., -1:], 0, gamma)

    def turned(vectors: Array) -> Array:
        return np.einsum("...ri,...r->...i", V, vectors)

    mean = turned((whole.mean[..., None, :] - held_out.mean) / rest)
    target = turned(np.broadcast_to(whole.target[..., None, :], held_out.mean.shape))
    towards = turned(held_out.mean)
    squared_masses = 1 / problem.spectrum.effective_size - held_out.squared_masses[:, None]
    components = Components(gamma, mean, target, rest**2 / squared_masses)

    scores = []
    for each in candidates:
        s = each.filter.on(components, each.grid)
        outside = np.multiply.outer((1 - each.filter.at_zero(each.grid)) ** 2, problem.target_outside)
        estimate = target + s * (mean - target)
        crossed = np.einsum("g...fr,...fr->g...", estimate, towards)
        squared = np.einsum("g...fr,g...fr,f->g...", estimate, estimate, held_out.mass)
        squared += outside * held_out.mass.sum()
        scores.append(np.moveaxis(held_out.own - 2 * crossed + squared, 0, -1))
    return scores
