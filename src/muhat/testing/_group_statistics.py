"""Statistics of k groups for every relabeling: of all groups, and of each against the rest.

With the eigenpairs γ, u of the pool's centred Gram matrix and S_tk the sum of u_k over the rows of
group t, T_h = N Σ_k h(γ_k) Σ_t S_tk²/n_t: docs/maths.md, "tests for many groups". A relabeling
changes S only, by sums over units that serve all statistics of a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_matrix

from muhat._arrays import Array, quotient, slices
from muhat._validation import check_semidefinite
from muhat.gram import Approximation, FeatureMap
from muhat.kernels import Kernel
from muhat.testing._designs import GroupDesign
from muhat.testing._distances import features_for
from muhat.testing._gram import gram_matrix, is_kept
from muhat.testing._permutations import SHARPNESS, NullMoments
from muhat.testing._statistics import Statistic, resolved_statistics

ROWS_PER_CHUNK = 4096
"""Rows whose features are held at a time."""

MAX_PRODUCTS_HELD = 2**21
"""Products of features that are held of every group by itself (16 MB for each kernel)."""

MAX_SUMS_HELD = 2**19
"""Sums over groups and components that are held at a time (4 MB): these stay in the cache."""


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


def sums_centred(sums: Array, sizes: Array, strata: Array) -> Array:
    """Return sums over units, less what the mean row of their stratum gives units of that size.

    The units of a stratum follow each other.
    """
    starts = np.searchsorted(strata, np.arange(strata[-1] + 1))
    means = np.add.reduceat(sums, starts, axis=0) / np.add.reduceat(sizes, starts)[:, None]
    return np.asarray(sums - sizes[:, None] * means[strata])


@dataclass(frozen=True, eq=False)
class UnitFeatures:
    """Features of rows in coordinates around an origin, and what their rows sum up to.

    Groups can be taken out of the sums. If products are held of every group by itself, no row is
    looked at again for it; else only those of these groups are.
    """

    features: FeatureMap
    origin: Array
    """Shape (r,), near the mean row, so that few digits cancel."""
    basis: Array
    """Coordinates are (features − origin) times this, shape (r, s)."""
    sums: Array
    """Of coordinates over units, shape (C, s)."""
    products: Array
    """Of coordinates, over all rows, shape (s, s)."""
    largest: float
    """The largest k(x, x)."""
    of_groups: Array | None = None
    """Products of features less the origin, over the rows of every group, shape (T, r, r)."""

    @classmethod
    def from_rows(cls, features: FeatureMap, X: Array, design: GroupDesign) -> UnitFeatures:
        """Add up features of rows in chunks, of which none is kept."""
        origin = features(X[:ROWS_PER_CHUNK]).mean(axis=0)
        r = len(origin)
        sums = np.zeros((len(design.labels), r))
        T = design.n_groups
        if T * r * r > MAX_PRODUCTS_HELD:
            T = 1
        products = np.zeros((T, r, r))
        largest = 0.0
        for some in slices(0, len(X), ROWS_PER_CHUNK):
            phi = features(X[some])
            largest = max(largest, float(np.einsum("ij,ij->i", phi, phi).max()))
            phi = phi - origin
            unit = design.unit[some]
            if T == 1:
                products[0] += phi.T @ phi
            else:
                _add_products(products, phi, design.labels[unit])
            starts = np.flatnonzero(np.diff(unit, prepend=-1))
            sums[unit[starts]] += np.add.reduceat(phi, starts, axis=0)
        of_groups = None
        if T > 1:
            of_groups = products
        return cls(features, origin, np.eye(r), sums, products.sum(axis=0), largest, of_groups)

    def without(self, X: Array, stays: Array, is_left: Array) -> UnitFeatures:
        """Return the sums of groups and units that are left, given the rows of the others."""
        if self.of_groups is not None:
            of_groups = self.of_groups[stays]
            products = self.basis.T @ of_groups.sum(axis=0) @ self.basis
            return replace(self, sums=self.sums[is_left], products=products, of_groups=of_groups)
        products = self.products.copy()
        for some in slices(0, len(X), ROWS_PER_CHUNK):
            phi = (self.features(X[some]) - self.origin) @ self.basis
            products -= phi.T @ phi
        return replace(self, sums=self.sums[is_left], products=products)

    def spectrum(self, design: GroupDesign, bound: float) -> GroupSpectrum:
        """Decompose the covariance of the rows, centred within strata."""
        n = np.bincount(design.strata, weights=design.sizes)
        starts = np.searchsorted(design.strata, np.arange(len(n)))
        means = np.add.reduceat(self.sums, starts, axis=0) / n[:, None]
        N = n.sum()
        covariance = (self.products - (n[:, None] * means).T @ means) / N
        gamma, V = eigh(covariance, driver="evd", check_finite=False)
        kept = is_kept(gamma, int(N))
        gamma, V = gamma[kept], V[:, kept]
        sums = self.sums @ V
        Z = (sums - design.sizes[:, None] * (means @ V)[design.strata]) / np.sqrt(N * gamma)
        kappa2 = self.largest
        if np.isfinite(bound):
            kappa2 = bound
        # The coordinates of all sums are those of Z, so that they are held once.
        own = replace(
            self, basis=self.basis @ V, sums=np.empty(0), products=V.T @ self.products @ V
        )
        return GroupSpectrum(gamma, Z, kappa2, own, means @ V)


def _add_products(products: Array, phi: Array, group: Array) -> None:
    """Add ΦᵀΦ of the rows of every group to the products, shape (T, r, r)."""
    order = np.argsort(group, kind="stable")
    phi = phi[order]
    ends = np.cumsum(np.bincount(group, minlength=len(products)))
    for t, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
        if end > start:
            products[t] += phi[start:end].T @ phi[start:end]


@dataclass(frozen=True, eq=False)
class GroupSpectrum:
    """The spectrum of the Gram matrix of all rows, centred within strata, summed over units."""

    gamma: Array
    """Eigenvalues γ, shape (r,)."""
    Z: Array
    """Sums of the eigenvectors over the rows of every unit, shape (C, r)."""
    kappa2: float
    """A bound of k(x, x)."""
    units: UnitFeatures | None = None
    """Features of rows along the eigenvectors, without their sums; None for a whole matrix."""
    means: Array | None = None
    """Of these features in every stratum, shape (strata, r)."""

    @classmethod
    def from_rows(
        cls, kernel: Kernel, X: Array, gram: str | Approximation, learn: Array, design: GroupDesign
    ) -> GroupSpectrum:
        """Decompose the Gram matrix of the rows, or of features learnt from ``learn``."""
        if isinstance(gram, Approximation):
            features = features_for(kernel, gram, learn)
            return UnitFeatures.from_rows(features, X, design).spectrum(design, kernel.bound)
        N, strata = len(X), design.row_strata
        K = gram_matrix(kernel, X)
        largest = float(K.diagonal().max())
        K = stratum_centred(stratum_centred(K, strata).T, strata) / N
        gamma, U = eigh(K, driver="evd", check_finite=False)
        if not kernel.positive_semidefinite:
            check_semidefinite(gamma)
        kept = is_kept(gamma, N, largest)
        starts = np.searchsorted(design.unit, np.arange(len(design.labels)))
        gamma, Z = gamma[kept], np.add.reduceat(U[:, kept], starts, axis=0)
        bound = largest
        if np.isfinite(kernel.bound):
            bound = kernel.bound
        return cls(gamma, Z, bound)

    def of_groups(
        self, kernel: Kernel, X: Array, design: GroupDesign, stays: Array
    ) -> GroupSpectrum:
        """Return the spectrum of some groups, given by truth values, with the same features.

        X are the rows of all groups, and ``design`` is theirs.
        """
        is_left = stays[design.labels]
        used = is_left[design.unit]
        left = design.of_groups(stays)
        if self.units is None or self.means is None:
            return GroupSpectrum.from_rows(kernel, X[used], "dense", X, left)
        sums = self.features(design) + design.sizes[:, None] * self.means[design.strata]
        units = replace(self.units, sums=sums).without(X[~used], stays, is_left)
        return units.spectrum(left, kernel.bound)

    def resolve(self, statistics: list[Statistic]) -> list[Statistic]:
        """Return the statistics with numbers as parameters; none if all rows look alike."""
        return resolved_statistics(statistics, self.gamma, self.kappa2)

    def weights(self, statistics: list[Statistic]) -> Array:
        """Return h(γ) of statistics whose parameters are numbers, shape (J, r)."""
        H = np.array([each.weight(self.gamma) for each in statistics])
        return H.reshape(len(statistics), len(self.gamma))

    def features(self, design: GroupDesign) -> Array:
        """Return sums of features over units, whose products are those of the kernel, (C, r)."""
        return np.asarray(self.Z * np.sqrt(design.sizes.sum() * self.gamma))

    def stratum_squares(self, strata: Array) -> Array:
        """Return the sums of Z² over the units of every stratum, shape (strata, r)."""
        starts = np.searchsorted(strata, np.arange(strata[-1] + 1))
        return np.add.reduceat(self.Z**2, starts, axis=0)


@dataclass(frozen=True, eq=False)
class KernelGroupStatistics:
    """What one kernel finds: statistics of all groups, and of each group against the rest."""

    statistics: list[Statistic]
    values: Array
    """T_h of every statistic and relabeling, shape (J, B + 1)."""
    null_moments: NullMoments
    log_scores: Array
    """log Σ_j exp(c z_j) of every group's normal scores z_j against the rest, shape (T, B + 1)."""


def kernel_statistics(
    spectrum: GroupSpectrum, statistics: list[Statistic], sums: GroupSums, design: GroupDesign
) -> KernelGroupStatistics:
    """Return the statistics of one kernel for every relabeling.

    Of a group against the rest, w is 1/n_t and −1/(N − n_t), and the statistic
    N Σ_k h_k (uᵀw)²/‖w‖² = N²/(n_t (N − n_t)) Σ_k h_k S_tk².
    """
    resolved = spectrum.resolve(statistics)
    H = spectrum.weights(resolved)
    n = sums.n_rows
    N = float(design.sizes.sum())
    values = np.empty((len(H), sums.n_relabelings))
    log_scores = np.full((design.n_groups, sums.n_relabelings), -np.inf)
    if not len(H):
        moments = NullMoments(np.empty(0), np.empty(0), np.empty(0))
        return KernelGroupStatistics(resolved, values, moments, log_scores)
    expected = design.expected_rows
    variances = variances_against_rest(spectrum, design, expected)
    of_groups = [_null_moments(h * variances, 1) for h in H]
    for some, S in sums.blocks(spectrum.Z):
        S *= S
        squares = S @ H.T  # Σ_k h_jk S_tk², shape (some, T, J)
        rows = n[some][:, :, None]
        values[:, some] = N * (squares / rows).sum(axis=1).T
        squares *= N * N / (rows * (N - rows))
        for j, moments in enumerate(of_groups):
            scores = SHARPNESS * moments.scores(squares[:, :, j].T)
            log_scores[:, some] = np.logaddexp(log_scores[:, some], scores)
    # Each component of T_h is about χ² with T − 1 degrees of freedom; (N − n_t)/N sums to T − 1.
    degrees = design.n_groups - 1
    of_component = (variances * (1 - expected / N)[:, None]).sum(axis=0) / degrees
    return KernelGroupStatistics(
        resolved, values, _null_moments(H * of_component, degrees), log_scores
    )


def variances_against_rest(spectrum: GroupSpectrum, design: GroupDesign, n: Array) -> Array:
    """Return the mean of N (u_kᵀw)²/‖w‖² of every group over relabelings, shape (T, r).

    In a stratum of c units with m_t in group t, the sum of u_k over group t has the variance
    m_t (c − m_t)/(c (c − 1)) Σ u_k². n are the rows of groups, shape (T,): expected ones, as
    p-values are exact only if nothing here depends on labels.
    """
    N = n.sum()
    m = design.counts.astype(np.float64)
    c = m.sum(axis=1, keepdims=True)
    scale = np.where(c > 1, 1 / np.maximum(c * (c - 1), 1), 0)
    coefficients = (m * (c - m) * scale).T * (N * N / (n * (N - n)))[:, None]
    return np.asarray(coefficients @ spectrum.stratum_squares(design.strata))


def sums_of_weighted_chi_squares(matrices: Array) -> NullMoments:
    """Return the moments of Σ_i λ_i χ²_i, λ the eigenvalues of each matrix, shape (J, c, c)."""
    unit = np.abs(matrices).max(axis=(1, 2), initial=0)
    scaled = quotient(matrices, unit[:, None, None])
    squared = scaled @ scaled
    first = scaled.trace(axis1=1, axis2=2)
    second = squared.trace(axis1=1, axis2=2)
    third = np.einsum("jab,jba->j", squared, scaled)
    return NullMoments.from_squares(np.array([first, second, third]), unit)


def _null_moments(weights: Array, degrees: int) -> NullMoments:
    """Return the moments of Σ_k a_k χ²_k, a in rows, each χ² with some degrees of freedom."""
    unit = weights.max(axis=1, initial=0)
    scaled = quotient(weights, unit[:, None])
    sums = degrees * np.array([(scaled**power).sum(axis=1) for power in (1, 2, 3)])
    return NullMoments.from_squares(sums, unit)


def by_step(
    design: GroupDesign, steps: Array, compute: Callable[[GroupDesign, Array], Array]
) -> Array:
    """Return what is computed of every group among those that are left at its step.

    Parameters
    ----------
    design : GroupDesign
        Of all groups.
    steps : array of int of shape (T,)
        The step at which each group is taken out of the rest; the last for those that never are.
    compute : callable
        Returns something of every group, given the design of those left and which units are theirs.
    """
    found: Any = None
    for step in np.unique(steps):
        left = steps >= step
        values = compute(design.of_groups(left), left[design.labels])
        if found is None:
            found = np.empty((len(steps), *values.shape[1:]))
        found[steps == step] = values[steps[left] == step]
    return np.asarray(found)


def differences_from_rest(
    features: Array, design: GroupDesign, steps: Array | None = None
) -> Array:
    """Return the mean of every group minus that of the rest, within strata, shape (T, r).

    With steps, the rest of a group are the other groups left at its step.
    """
    if steps is not None:
        return by_step(
            design, steps, lambda left, units: differences_from_rest(features[units], left)
        )
    n = design.row_counts
    own = np.zeros((design.n_groups, features.shape[1]))
    np.add.at(own, design.labels, features)
    of_strata = np.zeros((len(n), features.shape[1]))
    np.add.at(of_strata, design.strata, features)
    own -= (n / n.sum(axis=1, keepdims=True)).T @ of_strata
    return np.asarray(quotient(own, effective_rows(n)[:, None]))


def effective_rows(n: Array) -> Array:
    """Return Σ_s n_ts (N_s − n_ts)/N_s of groups, from the rows of strata and groups."""
    N = n.sum(axis=1, keepdims=True)
    return np.asarray((n * (N - n) / N).sum(axis=0))


@dataclass(frozen=True, eq=False)
class GroupDistances:
    """The observed MMD of each group from the rest, shape (T,), and of pairs, shape (T, T).

    With strata both are averages of the differences within strata. A pair that no stratum has both
    groups of has no distance: nan.
    """

    from_rest: Array
    between: Array

    @classmethod
    def from_features(
        cls, features: Array, design: GroupDesign, steps: Array | None = None
    ) -> GroupDistances:
        """Return the distances of observed groups from features of units, shape (C, r)."""
        from_rest = np.linalg.norm(differences_from_rest(features, design, steps), axis=1)
        if len(design.counts) > 1:
            return cls(from_rest, _distances_within_strata(features, design))
        sums = np.zeros((design.n_groups, features.shape[1]))
        np.add.at(sums, design.labels, features)
        means = sums / design.row_counts.T
        G = means @ means.T
        own = G.diagonal()
        return cls(from_rest, np.sqrt(np.maximum(own[:, None] + own - 2 * G, 0)))


def _distances_within_strata(features: Array, design: GroupDesign) -> Array:
    """Return the lengths of the mean differences of pairs within strata, shape (T, T)."""
    n = design.row_counts
    between = np.zeros((design.n_groups, design.n_groups))
    for t, u in combinations(range(design.n_groups), 2):
        both = n[:, t] + n[:, u]
        rows = quotient(n[:, t] * n[:, u], both).sum()
        if not rows:
            between[t, u] = between[u, t] = np.nan
            continue
        share = quotient(n[:, t], both)[design.strata]
        coefficients = np.where(design.labels == t, 1 - share, 0.0)
        coefficients -= np.where(design.labels == u, share, 0.0)
        between[t, u] = between[u, t] = np.linalg.norm(coefficients @ features) / rows
    return between
