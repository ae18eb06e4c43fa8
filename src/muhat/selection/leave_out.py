"""Really leaving points out: an eigendecomposition for every set of points left out, whatever the filter."""

from collections.abc import Sequence

import numpy as np

from muhat.arrays import Array, rounding, share_between_cores
from muhat.problem import Components, Problem
from muhat.selection.base import Candidates

CHUNK = 2**22
"""Matrix entries a core holds at once."""

AT_LEAST = 4
"""Chunks, so that every core has something to do."""


def scores_with_folds_left_out(problem: Problem, folds: Array, candidates: Sequence[Candidates]) -> list[Array]:
    """Return Σ over folds F, Σ over i in F, of p_i ‖k(x_i, ·) − μ^(−F)‖², with the same fold left out of all filters.

    In the kernel PCA basis Ĉ is diag(γ), and leaving out F takes away its points' own Σ p_i φ_i φ_iᵀ.

    Parameters
    ----------
    problem : Problem
        The sample.
    folds : array of shape (folds, size)
        The rows of each fold.
    candidates : sequence of Candidates
        The filters with their grids.

    Returns
    -------
    scores : list of arrays of shape (..., parameters)
        For each filter.
    """
    size = len(folds) * problem.components.gamma.size * problem.components.gamma.shape[-1]
    chunks = np.array_split(folds, min(len(folds), max(AT_LEAST, size // CHUNK)))
    parts: list[list[Array]] = [[] for _ in chunks]

    def work(place: int) -> None:
        parts[place] = _one_chunk(problem, chunks[place], candidates)

    share_between_cores(work, range(len(chunks)))
    return [np.sum(each, axis=0) for each in zip(*parts, strict=True)]


def _one_chunk(problem: Problem, folds: Array, candidates: Sequence[Candidates]) -> list[Array]:
    spectrum, whole = problem.spectrum, problem.components
    p = problem.masses[folds]
    left = p.sum(axis=-1)
    rest = (1 - left)[:, None]
    features = (spectrum.U * np.sqrt(whole.gamma)[..., None, :])[..., folds, :]  # √p_i φ_i
    held_out = np.einsum("fi,...fir->...fr", problem.root_masses[folds], features)  # Σ_F p_i φ_i
    covariance = -np.swapaxes(features, -1, -2) @ features
    diagonal = np.arange(covariance.shape[-1])
    covariance[..., diagonal, diagonal] += whole.gamma[..., None, :]
    gamma, V = np.linalg.eigh(covariance / rest[..., None])
    gamma = np.where(gamma <= problem.n * rounding(gamma) * gamma[..., -1:], 0, gamma)

    def turned(vectors: Array) -> Array:
        return np.einsum("...ri,...r->...i", V, vectors)

    mean = turned((whole.mean[..., None, :] - held_out) / rest)
    target = turned(np.broadcast_to(whole.target[..., None, :], held_out.shape))
    towards = turned(held_out)
    own = problem.gram.diagonal()[..., folds].sum(axis=(-1, -2))
    squared_masses = (problem.masses**2).sum() - (p**2).sum(axis=-1, keepdims=True)
    components = Components(gamma, mean, target, rest**2 / squared_masses)

    scores = []
    for each in candidates:
        s = each.filter.on(components, each.grid)
        outside = np.multiply.outer((1 - each.filter.at_zero(each.grid)) ** 2, problem.target_outside)
        estimate = target + s * (mean - target)
        crossed = np.einsum("g...fr,...fr->g...", estimate, towards)
        squared = np.einsum("g...fr,g...fr,f->g...", estimate, estimate, left) + outside * left.sum()
        scores.append(np.moveaxis(own - 2 * crossed + squared, 0, -1))
    return scores
