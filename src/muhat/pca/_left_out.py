"""Exact leave-one-out for kernel PCA: reconstruction errors and the risk of the covariance.

Without row i, with p its mass, c = 1 − p and d = φ(x_i) − μ, the covariance operator is
(Ĉ − ρ d⊗d)/c. For a fixed centre ρ = p and the row is at d from the centre; the mean of the rows
moves away from it, so that ρ = p/c and the row is at d/c from the mean of the others. One
decomposition of Ĉ is then enough, for every filter: a resolvent of the difference is
dᵀ(z − Ĉ + ρ d⊗d)⁻¹d = a/(1 + ρa) with a(z) = dᵀ(z − Ĉ)⁻¹d (Sherman and Morrison). Truncated SVD,
which is no sum of resolvents, takes the leading eigenvalues of each difference (``_secular``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from muhat._arrays import Array, share_between_cores, slices
from muhat._tolerances import MAX_FIT_ERROR
from muhat.filters import Filter
from muhat.gram._problem import HeldOutBasis
from muhat.pca._secular import leading_pairs
from muhat.selection._leave_one_out import MAX_ROWS_REFIT
from muhat.selection._poles import Interval, Poles, first_accurate_poles, poles_to_try

ROWS_PER_BLOCK = 256
"""Rows that a core works on together."""


@dataclass(frozen=True, eq=False)
class LeftOutErrors:
    """What leaving out each of some rows says of every candidate."""

    errors: Array
    """‖(1 − s(Ĉ_i))(φ(x_i) − μ_i)‖², the reconstruction error: shape (rows, candidates)."""
    gains: Array
    """2⟨e_i, f(Ĉ_i)e_i⟩ − ‖f(Ĉ_i)‖², f(γ) = γ s(γ): shape (rows, candidates).

    Its mean is how much nearer the filtered covariance is to that of left-out rows than zero is,
    in the squared Hilbert–Schmidt norm.
    """


@dataclass(frozen=True, eq=False)
class LeftOutRows:
    """Rows of a sample in the basis of its components, to be left out one by one."""

    gamma: Array
    """The variances of the components, descending: shape (r,)."""
    scores: Array
    """⟨φ(x_i) − μ, v_k⟩: shape (rows, r)."""
    squared_norms: Array
    """‖φ(x_i) − μ‖², of which landmarks may miss a part."""
    masses: Array
    """p_i, below one."""
    is_centred: bool
    """Whether the centre is the mean of the rows, which moves when one is left out."""

    def __len__(self) -> int:
        return len(self.masses)

    def __getitem__(self, some: slice) -> LeftOutRows:
        return LeftOutRows(
            self.gamma,
            self.scores[some],
            self.squared_norms[some],
            self.masses[some],
            self.is_centred,
        )

    @property
    def rest(self) -> Array:
        """c = 1 − p."""
        return 1 - self.masses

    @property
    def removed(self) -> Array:
        """ρ."""
        if self.is_centred:
            return self.masses / self.rest
        return self.masses

    @property
    def stretch(self) -> Array:
        """The row's squared distance from the centre without it, in units of ‖d‖²."""
        if self.is_centred:
            return self.rest**-2
        return np.ones(len(self))

    @property
    def outside(self) -> Array:
        """What landmarks miss of ‖d‖², which no filter brings back."""
        return np.maximum(self.squared_norms - (self.scores**2).sum(axis=1), 0)

    def truncated(self, count: int) -> LeftOutErrors:
        """Return the scores of keeping 0, 1, …, count leading components."""
        pairs = leading_pairs(self.gamma, self.scores**2, self.removed, count)
        start = np.zeros((len(self), 1))
        kept = np.hstack([start, np.cumsum(pairs.squares, axis=1)])
        inside = (self.scores**2).sum(axis=1)
        left = np.maximum(inside[:, None] - kept, 0)
        variances = pairs.values / self.rest[:, None]
        own = (self.rest * self.stretch)[:, None] * pairs.squares
        terms = 2 * variances * own - variances**2
        gains = np.hstack([start, np.cumsum(terms, axis=1)])
        return LeftOutErrors(self.outside[:, None] + self.stretch[:, None] * left, gains)

    def filtered(self, filter: Filter, grid: Array) -> LeftOutErrors:
        """Return the scores of a filter at every parameter of a grid.

        A filter that is not smooth takes an eigendecomposition for each row.
        """
        largest = float(self.gamma[0])
        scales = np.array([self.rest.min(), self.rest.max()])
        poles = None
        if filter.analytic and largest > 0:
            interval = Interval(largest, 1.0, 0.0, scales)
            error = partial(_fit_error, filter=filter, grid=grid, interval=interval)
            tried = poles_to_try(filter, grid, interval)
            poles = first_accurate_poles(tried, error, MAX_FIT_ERROR)

        def score(some: slice) -> LeftOutErrors:
            rows = self[some]
            if poles is None:
                measures = _by_refits(rows)
            else:
                measures = _by_poles(rows, poles)
            return measures.scores(rows, filter, grid)

        size = 1
        if poles is not None:
            size = ROWS_PER_BLOCK
        blocks = share_between_cores(score, slices(0, len(self), size))
        errors = np.concatenate([each.errors for each in blocks])
        return LeftOutErrors(errors, np.concatenate([each.gains for each in blocks]))

    @staticmethod
    def most_rows(filter: Filter, most: int) -> int:
        """Return how many rows may be left out: few where each takes a decomposition."""
        is_cheap = filter.analytic or filter.name == "tsvd"
        if is_cheap:
            return most
        return min(most, MAX_ROWS_REFIT)


@dataclass(frozen=True, eq=False)
class _Measures:
    """Sums over the spectrum of c Ĉ_i that give dᵀh(c Ĉ_i)d and tr h(c Ĉ_i) for every h."""

    points: Array
    """Where h is evaluated: shape (q,), or (rows, q)."""
    own: Array
    """The weights of dᵀh d: shape (rows, q)."""
    trace: Array
    """The weights of tr h: shape (rows, q)."""
    shared: Array | None = None
    """Eigenvalues whose h is added to every trace: those of Ĉ, from which the traces differ."""

    def scores(self, rows: LeftOutRows, filter: Filter, grid: Array) -> LeftOutErrors:
        errors = np.empty((len(rows), len(grid)))
        gains = np.empty((len(rows), len(grid)))
        for c in np.unique(rows.rest):
            some = rows.rest == c
            stretch = rows.stretch[some][0]
            if self.points.ndim == 1:
                gamma = self.points / c
            else:
                gamma = self.points[some] / c
            s = filter.path(gamma, grid)
            left = _summed((1 - s) ** 2, self.own[some])
            own = _summed(gamma * s, self.own[some])
            trace = _summed((gamma * s) ** 2, self.trace[some])
            if self.shared is not None:
                whole = self.shared / c
                trace += ((whole * filter.path(whole, grid)) ** 2).sum(axis=1)
            errors[some] = rows.outside[some][:, None] + stretch * np.maximum(left, 0)
            gains[some] = 2 * c * stretch * own - trace
        return LeftOutErrors(errors, gains)


def _summed(values: Array, weights: Array) -> Array:
    """Return Σ_x weights(row, x) values(parameter, …, x): shape (rows, parameters)."""
    if values.ndim == 2:
        return weights @ values.T
    return np.einsum("gmx,mx->mg", values, weights)


def _by_poles(rows: LeftOutRows, poles: Poles) -> _Measures:
    """Return the measures from resolvents of Ĉ at poles around its spectrum."""
    largest = float(rows.gamma[0])
    z = largest * poles.z
    resolvent = 1 / (z - rows.gamma[:, None])
    squares = rows.scores**2
    rho = rows.removed[:, None]
    a = squares @ resolvent
    slope = -(squares @ resolvent**2)
    own = poles.weights(largest * a / (1 + rho * a))
    trace = poles.weights(largest * rho * slope / (1 + rho * a))
    return _Measures(largest * poles.points, own, trace, shared=rows.gamma)


def _by_refits(rows: LeftOutRows) -> _Measures:
    """Return the measures from all eigenpairs without each row."""
    removed = rows.removed[:, None, None] * (rows.scores[:, :, None] * rows.scores[:, None, :])
    basis = HeldOutBasis.from_covariance(rows.gamma, removed, np.ones((len(rows), 1, 1)))
    own = basis.turned(rows.scores[:, :, None])[..., 0] ** 2
    return _Measures(np.maximum(basis.gamma, 0), own, np.ones_like(own))


def _fit_error(poles: Poles, filter: Filter, grid: Array, interval: Interval) -> float:
    """Return the largest error of (1 − s)², γ s and (γ s)² as sums of resolvents, on a grid."""
    worst = 0.0
    for scale in np.unique(interval.scales):
        both = []
        for x in (poles.points, poles.checks):
            with np.errstate(all="ignore"):
                s = filter.path(x * (interval.largest / scale), grid)
            if not np.isfinite(s).all():
                return np.inf
            both.append(np.concatenate([(1 - s) ** 2, x * s, (x * s) ** 2]))
        worst = max(worst, float(poles.errors(*both).max()))
    return worst
