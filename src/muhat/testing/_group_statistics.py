"""Statistics of k groups for every relabeling: all groups, each against the rest, and all pairs.

With the eigenpairs γ, u of the pool's centred Gram matrix and S_tk the sum of u_k over the rows of
group t, T_h = N Σ_k h(γ_k) Σ_t S_tk²/n_t: docs/maths.md, "tests for many groups". A relabeling
changes S only, by sums over units that serve all statistics of a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_matrix

from muhat._arrays import Array, quotient, slices
from muhat._validation import check_semidefinite
from muhat.gram import Approximation
from muhat.kernels import Kernel
from muhat.testing._designs import GroupDesign
from muhat.testing._distances import features_for
from muhat.testing._gram import gram_matrix, is_kept
from muhat.testing._permutations import SHARPNESS, NullMoments
from muhat.testing._statistics import Statistic

MAX_SUMS_HELD = 2**21
"""Sums over groups and components that are held at a time (16 MB)."""


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums over the units of every group, for every relabeling, in blocks of relabelings."""

    order: Array
    """The units of every relabeling, sorted by their group, shape (B + 1, C)."""
    starts: Array
    """Where the units of every group begin in a row of ``order``, shape (T,)."""
    sizes: Array
    """The rows of every unit, shape (C,)."""

    @classmethod
    def from_labels(cls, labels: Array, sizes: Array, n_groups: int) -> GroupSums:
        """Return what sums need from labels of units, shape (B + 1, C)."""
        counts = np.bincount(labels[0], minlength=n_groups)
        starts = np.cumsum(counts) - counts
        return cls(labels.argsort(axis=1, kind="stable").astype(np.int32), starts, sizes)

    @property
    def n_relabelings(self) -> int:
        """B + 1."""
        return len(self.order)

    @cached_property
    def n_rows(self) -> Array:
        """The rows of every group, shape (B + 1, T): they differ if units do."""
        return np.add.reduceat(self.sizes[self.order], self.starts, axis=1)

    def observed(self, Z: Array) -> Array:
        """Return the sums of rows of Z, shape (C, r), over the observed groups, shape (T, r)."""
        return np.add.reduceat(Z[self.order[0]], self.starts, axis=0)

    def blocks(self, Z: Array) -> Iterator[tuple[slice, Array]]:
        """Yield sums of rows of Z, shape (C, r), over groups: relabelings, and (some, T, r)."""
        T, C = len(self.starts), len(self.sizes)
        for some in slices(0, self.n_relabelings, max(1, MAX_SUMS_HELD // (T * Z.shape[1]))):
            indices = self.order[some]
            ends = self.starts + C * np.arange(len(indices))[:, None]
            indptr = np.append(ends.ravel(), indices.size)
            member = csr_matrix(
                (np.ones(indices.size), indices.ravel(), indptr), shape=(len(indices) * T, C)
            )
            yield some, (member @ Z).reshape(len(indices), T, Z.shape[1])


def stratum_centred(values: Array, strata: Array) -> Array:
    """Return rows minus the mean of their stratum, shape (N, r)."""
    if not strata.any():
        return np.asarray(values - values.mean(axis=0))
    member = csr_matrix((np.ones(len(strata)), (strata, np.arange(len(strata)))))
    means = (member @ values) / np.bincount(strata)[:, None]
    return np.asarray(values - means[strata])


@dataclass(frozen=True, eq=False)
class GroupSpectrum:
    """The spectrum of the Gram matrix of all rows, centred within strata, summed over units."""

    gamma: Array
    """Eigenvalues γ, shape (r,)."""
    Z: Array
    """Sums of the eigenvectors over the rows of every unit, shape (C, r)."""
    kappa2: float
    """A bound of k(x, x)."""

    @classmethod
    def from_rows(
        cls, kernel: Kernel, X: Array, gram: str | Approximation, learn: Array, design: GroupDesign
    ) -> GroupSpectrum:
        """Decompose the Gram matrix of the rows, or of features learnt from ``learn``."""
        N, strata = len(X), design.row_strata
        starts = np.searchsorted(design.unit, np.arange(len(design.labels)))
        if isinstance(gram, Approximation):
            phi = features_for(kernel, gram, learn)(X)
            largest = float(np.einsum("ij,ij->i", phi, phi).max())
            phi = stratum_centred(phi, strata)
            gamma, V = eigh(phi.T @ phi / N, driver="evd", check_finite=False)
            kept = is_kept(gamma, N)
            gamma = gamma[kept]
            Z = np.add.reduceat(phi, starts, axis=0) @ (V[:, kept] / np.sqrt(N * gamma))
        else:
            K = gram_matrix(kernel, X)
            largest = float(K.diagonal().max())
            K = stratum_centred(stratum_centred(K, strata).T, strata) / N
            gamma, U = eigh(K, driver="evd", check_finite=False)
            if not kernel.positive_semidefinite:
                check_semidefinite(gamma)
            kept = is_kept(gamma, N, largest)
            gamma, Z = gamma[kept], np.add.reduceat(U[:, kept], starts, axis=0)
        bound = kernel.bound if np.isfinite(kernel.bound) else largest
        return cls(gamma, Z, bound)

    def resolve(self, statistics: list[Statistic]) -> list[Statistic]:
        """Return the statistics with numbers as parameters; none if all rows look alike."""
        found: list[Statistic] = []
        if self.gamma.size:
            for each in statistics:
                found += each.resolve(self.gamma, self.kappa2)
        return found

    def stratum_squares(self, strata: Array) -> Array:
        """Return the sums of Z² over the units of every stratum, shape (strata, r)."""
        starts = np.searchsorted(strata, np.arange(strata[-1] + 1))
        return np.add.reduceat(self.Z**2, starts, axis=0)


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Which groups are compared: each with the rest, and all pairs if they are few."""

    design: GroupDesign
    pairs: Array
    """Two groups in each row, shape (P, 2)."""

    @classmethod
    def choose(cls, design: GroupDesign, max_groups: int) -> Comparisons:
        """Return each group against the rest, and all pairs of at most so many groups."""
        pairs = np.empty((0, 2), dtype=np.int64)
        if design.n_groups <= max_groups:
            pairs = np.column_stack(np.triu_indices(design.n_groups, 1))
        return cls(design, pairs)

    @property
    def size(self) -> int:
        """T comparisons with the rest, and P pairs."""
        return self.design.n_groups + len(self.pairs)

    def values(self, h: Array, S: Array, n: Array) -> Array:
        """Return N Σ_k h_k (uᵀw)²/‖w‖² of every comparison, shape (size, some).

        S are sums over groups, shape (some, T, r), n the rows of groups, shape (some, T). Against
        the rest w is 1/n_t and −1/(N − n_t), for a pair 1/n_t and −1/n_u.
        """
        N = n[0].sum()
        T = self.design.n_groups
        if not len(self.pairs):
            own = np.einsum("btk,btk,k->bt", S, S, h)
            return np.asarray(N * (own * N / (n * (N - n))).T)
        G = (S * h) @ S.transpose(0, 2, 1)
        found = np.empty((self.size, len(S)))
        own = G[:, np.arange(T), np.arange(T)]
        found[:T] = N * (own * N / (n * (N - n))).T
        first, second = self.pairs.T
        a, b = n[:, first], n[:, second]
        squares = own[:, first] / a**2 + own[:, second] / b**2 - 2 * G[:, first, second] / (a * b)
        found[T:] = (N * squares * a * b / (a + b)).T
        return found

    def variances(self, squares: Array, n: Array) -> Array:
        """Return the mean of N (u_kᵀw)²/‖w‖² over relabelings, shape (size, r).

        ``squares`` are those of u_k over the units of each stratum, n the rows of groups, (T,). In
        a stratum of c units with m_t in group t, the sums of u_k over groups t and u have the
        covariance (c 1{t = u} − m_u) m_t q/(c (c − 1)).
        """
        N = n.sum()
        T = self.design.n_groups
        m = self.design.counts.astype(np.float64)
        c = m.sum(axis=1, keepdims=True)
        scale = np.where(c > 1, 1 / np.maximum(c * (c - 1), 1), 0)
        coefficients = np.empty((self.size, len(m)))
        coefficients[:T] = (m * (c - m) * scale).T * (N * N / (n * (N - n)))[:, None]
        first, second = self.pairs.T
        a, b = n[first], n[second]
        own = m[:, first] * (c - m[:, first]) / a**2 + m[:, second] * (c - m[:, second]) / b**2
        both = own + 2 * m[:, first] * m[:, second] / (a * b)
        coefficients[T:] = (both * scale * (N * a * b / (a + b))).T
        return coefficients @ squares


@dataclass(frozen=True, eq=False)
class KernelGroupStatistics:
    """What one kernel finds: statistics of all groups, and of comparisons."""

    statistics: list[Statistic]
    values: Array
    """T_h of every statistic and relabeling, shape (J, B + 1)."""
    null_moments: NullMoments
    log_scores: Array
    """log Σ_j exp(c z_j) of every comparison's normal scores z_j, shape (size, B + 1)."""


def kernel_statistics(
    spectrum: GroupSpectrum, statistics: list[Statistic], sums: GroupSums, compared: Comparisons
) -> KernelGroupStatistics:
    """Return the statistics of one kernel for every relabeling."""
    design = compared.design
    resolved = spectrum.resolve(statistics)
    H = np.array([each.weight(spectrum.gamma) for each in resolved])
    H = H.reshape(len(resolved), len(spectrum.gamma))
    n = sums.n_rows
    N = float(design.sizes.sum())
    variances = compared.variances(spectrum.stratum_squares(design.strata), n[0])
    of_comparisons = [_null_moments(h * variances, 1) for h in H]
    values = np.empty((len(H), sums.n_relabelings))
    log_scores = np.full((compared.size, sums.n_relabelings), -np.inf)
    if not len(H):
        moments = NullMoments(np.empty(0), np.empty(0), np.empty(0))
        return KernelGroupStatistics(resolved, values, moments, log_scores)
    for some, S in sums.blocks(spectrum.Z):
        squares = ((1 / n[some])[:, None, :] @ S**2)[:, 0]  # Σ_t S_tk²/n_t, shape (some, r)
        values[:, some] = N * H @ squares.T
        for h, moments in zip(H, of_comparisons, strict=True):
            scores = moments.scores(compared.values(h, S, n[some]))
            log_scores[:, some] = np.logaddexp(log_scores[:, some], SHARPNESS * scores)
    # Each component of T_h is about χ² with T − 1 degrees of freedom; (N − n_t)/N sums to T − 1.
    degrees = design.n_groups - 1
    shares = (1 - n[0] / N)[:, None]
    of_component = (variances[: design.n_groups] * shares).sum(axis=0) / degrees
    return KernelGroupStatistics(
        resolved, values, _null_moments(H * of_component, degrees), log_scores
    )


def _null_moments(weights: Array, degrees: int) -> NullMoments:
    """Return the moments of Σ_k a_k χ²_k, a in rows, each χ² with some degrees of freedom."""
    unit = weights.max(axis=1, initial=0)
    scaled = quotient(weights, unit[:, None])
    sums = degrees * np.array([(scaled**power).sum(axis=1) for power in (1, 2, 3)])
    return NullMoments.from_squares(sums, unit)


def distances_of(spectrum: GroupSpectrum, sums: GroupSums, compared: Comparisons) -> Array:
    """Return the observed MMD of every comparison, shape (size,)."""
    n = sums.n_rows[0]
    S = sums.observed(spectrum.Z)
    squares = compared.values(spectrum.gamma, S[None], n[None])[:, 0]
    N = n.sum()
    first, second = compared.pairs.T
    # Without the factor 1/‖w‖² that puts statistics on one scale.
    factor = np.concatenate([N / (n * (N - n)), 1 / n[first] + 1 / n[second]])
    return np.sqrt(np.maximum(squares * factor, 0))
