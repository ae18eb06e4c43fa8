"""What a spectral smoother predicts for each row from all others.

Exact, for every filter, on one eigendecomposition.

With masses p, D = diag(√p) and A = DKD, a filter predicts Σ_i α_i(x) z_i at x, α(x) = D g_λ(A) D
k(X, x). Without row i the masses are p/c, c = 1 − p_i, and A loses row and column i. With G = (z −
A)⁻¹, the column of its resolvent that is needed is G_·i/G_ii (Schur complement), so that the
left-out prediction is

    (1/√p_i) Re Σ_j c_j [(G(z_j)DZ)_i/G_ii(z_j) − (DZ)_i]

where ĝ(γ) = g_λ(γ/c)/c = s_λ(γ/c)/γ is Re Σ_j c_j/(z_j − γ) on the interval of the eigenvalues. GDZ
and the diagonal of G at the poles z_j serve all filters and parameters.

``_poles.resolvent_terms`` is the same removal for a mean, with G_ii written as t/z: docs/maths.md,
"Any right-hand side", has the digits that each of the two loses where the other is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander

from muhat._arrays import Array, Found, quotient, rounding, share_between_cores, slices
from muhat._tolerances import MAX_SMOOTHER_FIT_ERROR, TINY_SHARE
from muhat.errors import MuhatError
from muhat.filters import Filter
from muhat.gram._problem import HeldOutBasis
from muhat.selection._base import Candidates
from muhat.selection._leave_one_out import MAX_ROWS_REFIT, MIN_CHUNKS, is_heavy, refit_chunks
from muhat.selection._poles import Interval, Nodes, Poles, first_accurate_poles, poles_to_try
from muhat.selection._regression import Regression

N_SCALES = 16
"""Values of c = 1 − p_i at which a filter is evaluated if masses differ.

Between them it is interpolated.
"""

ROWS_PER_BLOCK = 512
"""Rows that a core works on together, at all poles."""


Prediction: TypeAlias = tuple[int, Array | slice, int, Array]
"""Left-out predictions, measured from the mean.

The filter's place, rows, a column of the outputs and an array of shape (parameters, rows).
"""


@dataclass(frozen=True, eq=False)
class AtPoles:
    """The resolvents that filters share, and each filter as a sum of some, by its place."""

    nodes: Nodes
    where: dict[int, slice]
    """Which of the poles a filter has."""
    c: dict[int, Array]
    """Its coefficients: shape (scales, parameters, poles)."""


class LeaveOneOutSmoother:
    """The predictions of each row by the smoother that was made without it."""

    def __init__(self, regression: Regression) -> None:
        self.regression = regression
        rest = 1 - regression.masses
        # What is left without a heavy row is a share of its own: these, fifty at most, are left
        # out by refits.
        heavy = is_heavy(regression.masses, float(regression.masses.min()))
        self.light, self.heavy = np.flatnonzero(~heavy), np.flatnonzero(heavy)
        of_light = float(rest[self.light].min()), float(rest[self.light].max())
        self.interval = Interval.from_spectrum(regression.gamma, of_light, regression.largest_value)
        # Eigenvalues below rounding are all the same to a resolvent: together they are what the
        # others do not span.
        floor = rounding(regression.gamma) * self.interval.largest
        self.spanned = slice(int(np.searchsorted(regression.gamma, floor)), None)

    def poles_of(self, candidates: Candidates, known: Sequence[Poles] = ()) -> Poles | None:
        """Return poles that are accurate for a filter's whole grid, if there are any.

        Known ones cost least.
        """
        filter, grid = candidates.filter, candidates.grid
        if not (isinstance(filter, Filter) and filter.analytic and self.interval.largest):
            return None
        tried = chain(known, poles_to_try(filter, grid, self.interval, power=0.5))
        error = partial(self._error, filter=filter, grid=grid)
        return first_accurate_poles(tried, error, MAX_SMOOTHER_FIT_ERROR)

    def _error(self, poles: Poles, filter: Filter, grid: Array) -> float:
        """Return the largest error of κ√γ ĝ(γ), next to its largest value or 1, over a grid.

        As ‖A^(−1/2) A_·i‖ ≤ √A_ii, without row i too, κ√γ ĝ(γ) bounds what is predicted from
        outputs of mean square 1.
        """
        values, worst = self._values(poles.points, filter, grid, self._scales), 0.0
        scales = np.unique(np.linspace(self.interval.scales[0], self.interval.scales[1], 5))
        unit = np.sqrt(self.regression.largest_value / self.interval.largest)
        for own, true in zip(
            self._basis(scales), self._values(poles.checks, filter, grid, scales), strict=True
        ):
            size = unit * np.abs(true * np.sqrt(poles.checks)).max(axis=1)
            found = unit * poles.errors(np.tensordot(own, values, 1), true) / np.maximum(size, 1)
            worst = max(worst, float(np.nan_to_num(found, nan=np.inf).max()))
        return worst

    def _values(self, x: Array, filter: Filter, grid: Array, scales: Array) -> Array:
        """Return γ_max ĝ(γ) at γ = γ_max x for each of the scales.

        Shape (scales, parameters, points).
        """
        at_zero, largest = filter.at_zero(grid)[:, None], self.interval.largest
        with np.errstate(all="ignore"):
            return np.stack(
                [quotient(filter.path(largest * x / scale, grid) - at_zero, x) for scale in scales]
            )

    @cached_property
    def _scales(self) -> Array:
        """The c at which filters are evaluated."""
        low, high = self.interval.scales
        if low == high:
            return np.array([low])
        return low + (high - low) * (1 + chebpts1(N_SCALES)) / 2

    def _basis(self, scales: Array) -> Array:
        """Return the weights of polynomial interpolation in c: shape (len(scales), nodes)."""
        if len(self._scales) == 1:
            return np.ones((len(scales), 1))
        low, high = self.interval.scales
        positions = 2 * (scales - low) / (high - low) - 1
        return chebvander(positions, N_SCALES - 1) @ np.linalg.inv(
            chebvander(chebpts1(N_SCALES), N_SCALES - 1)
        )

    def scores(
        self, candidates: Sequence[Candidates], poles: dict[int, Poles] | None = None
    ) -> list[Array]:
        """Return Σ p_i ‖z_i − ẑ_i‖² for every parameter of every filter.

        ẑ_i are the left-out predictions.

        Poles that were found before, by the filter's place, are not looked for again.
        """
        Z, masses = self.regression.Z, self.regression.masses

        def summed(predictions: Iterable[Prediction]) -> list[Array]:
            scores = [np.zeros(len(each.grid)) for each in candidates]
            for place, rows, column, predicted in predictions:
                scores[place] += (Z[rows, column] - predicted) ** 2 @ masses[rows]
            return scores

        by_chunk = self._for_chunks(summed, candidates, poles)
        return [np.sum(own, axis=0) for own in zip(*by_chunk, strict=True)]

    def predictions(
        self, filter: Filter, parameter: float, poles: dict[int, Poles] | None = None
    ) -> Array:
        """Return the left-out predictions of one parameter, of shape (n, columns)."""
        found = np.empty_like(self.regression.Z)

        def keep(predictions: Iterable[Prediction]) -> None:
            for _, rows, column, predicted in predictions:
                found[rows, column] = predicted[0]

        self._for_chunks(keep, [Candidates(filter, np.array([parameter]))], poles)
        return found + self.regression.mean

    def poles(self, candidates: Sequence[Candidates]) -> dict[int, Poles]:
        """Return accurate poles for each filter that has some, by its place."""
        found: dict[int, Poles] = {}
        for place, each in enumerate(candidates):
            poles = self.poles_of(each, list(dict.fromkeys(found.values())))
            if poles is not None:
                found[place] = poles
        return found

    def _for_chunks(
        self,
        work: Callable[[Iterable[Prediction]], Found],
        candidates: Sequence[Candidates],
        poles: dict[int, Poles] | None,
    ) -> list[Found]:
        """Return ``work`` of the predictions of each chunk of rows, chunks shared between cores."""
        if poles is None:
            poles = self.poles(candidates)
        found = []
        if poles:
            shared = self._shared(candidates, poles)
            found = share_between_cores(
                lambda rows: work(self._at_poles(shared, rows)), self._chunks()
            )
        return [*found, work(self._by_refits(candidates, poles))]

    def _chunks(self) -> Iterator[Array | slice]:
        """Yield the rows that are not heavy, some at a time; consecutive ones need no copy."""
        for chunk in slices(0, len(self.light), ROWS_PER_BLOCK):
            rows = self.light[chunk]
            if rows[-1] - rows[0] < len(rows):
                yield slice(int(rows[0]), int(rows[-1]) + 1)
            else:
                yield rows

    def _by_refits(
        self, candidates: Sequence[Candidates], poles: dict[int, Poles]
    ) -> Iterator[Prediction]:
        """Yield the predictions of heavy rows, and of all rows for filters without poles."""
        for place, each in enumerate(candidates):
            for some, refits in self._refits(each, poles.get(place)):
                predicted = refits.predictions(each)
                for column in range(predicted.shape[-1]):
                    yield place, some, column, predicted[..., column]

    def _shared(self, candidates: Sequence[Candidates], poles: dict[int, Poles]) -> AtPoles:
        """Return what the rows of all chunks are predicted from."""
        distinct = list(dict.fromkeys(poles.values()))
        nodes = self._nodes(distinct)
        where, c = {}, {}
        for place, own in poles.items():
            number = distinct.index(own)
            where[place] = slice(*nodes.starts[number : number + 2])
            c[place] = self._coefficients(own, candidates[place])
        return AtPoles(nodes, where, c)

    def _at_poles(self, shared: AtPoles, rows: Array | slice) -> Iterator[Prediction]:
        """Yield the predictions of some rows; filters and parameters share the resolvents."""
        Z, means = self.regression.Z[rows], self.regression.left_out_means[rows]
        ratio = self._ratios(shared.nodes, rows)
        basis = self._basis(1 - self.regression.masses[rows])
        for column in range(Z.shape[1]):
            # what remains of the ratio far from the spectrum
            own = Z[:, column] - means[:, column]
            f = ratio(column) / self.regression.root_masses[rows, None] - own[:, None]
            for place, some in shared.where.items():
                predicted = _summed(shared.c[place], f[:, some], basis)
                yield place, rows, column, predicted + means[:, column]

    def _nodes(self, chosen: Sequence[Poles]) -> Nodes:
        gamma = self.regression.gamma[self.spanned]
        return Nodes.from_poles(gamma, self.regression.n, self.interval.largest, chosen)

    def _coefficients(self, poles: Poles, candidates: Candidates) -> Array:
        """Return c of ĝ for each of the scales: shape (scales, parameters, poles)."""
        filter, grid = candidates.filter, candidates.grid
        assert isinstance(filter, Filter)
        values = self._values(poles.points, filter, grid, self._scales)
        real, imaginary = np.split(np.stack([poles.fit(each).T for each in values]), 2, axis=-1)
        return real + 1j * imaginary

    def _ratios(self, nodes: Nodes, rows: Array | slice) -> Callable[[int], Array]:
        """Return (GD(Z − m_i))_i/G_ii of some rows at all poles, as a function of the column.

        m_i is the left-out mean.
        """
        regression, U = self.regression, self.regression.U[rows, self.spanned]
        projected, q = regression.projected[self.spanned], regression.root_masses[rows]
        Z, means = regression.Z[rows], regression.left_out_means[rows]
        diagonal = self._diagonal(nodes, rows)

        def of(column: int) -> Array:
            terms = np.multiply.outer(-means[:, column], projected[:, -1])
            terms += projected[:, column]
            terms *= U
            return self._resolvent(nodes, terms, q * (Z[:, column] - means[:, column])) / diagonal

        return of

    def _resolvent(self, nodes: Nodes, terms: Array, whole: Array) -> Array:
        """Return Σ_k terms_ik/(z − γ_k) of each row i at all poles.

        Where eigenvectors do not span everything, G has (I − UUᵀ)/z beside them: what the terms of
        a row lack to the whole.
        """
        values = nodes.sums(terms, np.ones(terms.shape[1]))(slice(0, len(nodes.z)))
        if terms.shape[1] < self.regression.n:
            values = values + (whole - terms.sum(axis=1))[:, None] / nodes.z
        return values

    def functions(self, filter: Filter, parameter: float) -> Array:
        """Return the smoothers made without each row: shape (columns, components, rows).

        They are for one parameter.

        Its prediction at x, measured from the mean, is m_i + (UᵀD k(X, x))ᵀ times column i: with y
        = Z − m_i,

            Re Σ_j c_j/(z_j − γ_k) [(UᵀDy)_k − U_ik (GDy)_i/G_ii].
        """
        regression, candidates = self.regression, Candidates(filter, np.array([parameter]))
        functions = np.empty((regression.Z.shape[1], len(regression.gamma), len(regression.Z)))
        poles = self.poles_of(candidates)
        if poles is not None:
            nodes, c = self._nodes([poles]), self._coefficients(poles, candidates)[:, 0]
            resolvent = 1 / (nodes.z - regression.gamma[:, None])
            for rows in self._chunks():
                ratio, basis = self._ratios(nodes, rows), self._basis(1 - regression.masses[rows])
                whole = np.real(resolvent @ c.T) @ basis.T
                for column, function in enumerate(functions):
                    f, means = ratio(column), regression.left_out_means[rows, column]
                    left = regression.projected[:, [column]] - means * regression.projected[:, [-1]]
                    found = np.zeros_like(whole)
                    for each, own in zip(c, basis.T, strict=True):
                        found += np.real((resolvent * each) @ f.T) * own
                    function[:, rows] = whole * left - regression.U[rows].T * found
        for some, refits in self._refits(candidates, poles):
            functions[..., some] = refits.functions(candidates)
        return functions

    def weights(self, filter: Filter, parameter: float) -> Array:
        """Return the weights of the other outputs in each row's left-out prediction: (n, n).

        α_j = √(p_j/p_i) Re Σ_k c_k G_ji/G_ii at z_k; with an intercept, what they lack to one goes
        to the others' mean.
        """
        regression, candidates = self.regression, Candidates(filter, np.array([parameter]))
        q, weights = regression.root_masses, np.zeros((regression.n, regression.n))
        poles = self.poles_of(candidates)
        if poles is not None:
            nodes, c = self._nodes([poles]), self._coefficients(poles, candidates)[:, 0]
            U = regression.U[:, self.spanned]
            resolvent = 1 / (nodes.z - regression.gamma[self.spanned, None])
            if U.shape[1] < regression.n:  # G_ji = Σ_k U_jk U_ik (1/(z − γ_k) − 1/z) for j ≠ i
                resolvent = resolvent - 1 / nodes.z
            for rows in self._chunks():
                diagonal = self._diagonal(nodes, rows)
                basis = self._basis(1 - regression.masses[rows])
                factors = np.zeros((len(diagonal), len(resolvent)))
                for each, own in zip(c, basis.T, strict=True):
                    factors += np.real((each / diagonal) @ resolvent.T) * own[:, None]
                weights[rows] = ((U[rows] * factors) @ U.T) * (q / q[rows, None])
        for some, refits in self._refits(candidates, poles):
            weights[some] = refits.weights(candidates)
        np.fill_diagonal(weights, 0)
        if regression.has_intercept:
            others = np.tile(regression.masses, (regression.n, 1))
            np.fill_diagonal(others, 0)
            lacking = (1 - weights.sum(axis=1)) / (1 - regression.masses)
            weights += lacking[:, None] * others
        return weights

    def _diagonal(self, nodes: Nodes, rows: Array | slice) -> Array:
        """Return G_ii of some rows at all poles."""
        squares = self.regression.U[rows, self.spanned] ** 2
        return self._resolvent(nodes, squares, np.ones(len(squares)))

    def _refits(
        self, candidates: Candidates, poles: Poles | None
    ) -> Iterator[tuple[Array, HeldOutSmoothers]]:
        """Yield rows with an eigendecomposition without each, some at a time.

        Heavy ones, or all without poles.
        """
        n = self.regression.n
        rows = self.heavy
        if poles is None:
            rows = np.arange(n)
        if poles is None and n > MAX_ROWS_REFIT:
            needed = (
                f"at most {MAX_ROWS_REFIT} rows can be left out by refits, which "
                f"{candidates.filter!r} takes here"
            )
            advice = "choose another filter, or a grid that is less steep"
            raise MuhatError("leave-one-out", needed, n, advice)
        if not len(rows):
            return
        chunks = refit_chunks(rows, len(self.regression.gamma) ** 2)
        for some in slices(0, len(chunks), MIN_CHUNKS):
            found = share_between_cores(partial(HeldOutSmoothers, self.regression), chunks[some])
            yield from zip(chunks[some], found, strict=True)


class HeldOutSmoothers:
    """The smoothers made without each of some rows, by one eigendecomposition each.

    In the basis in which Ĉ = diag(γ), row i takes away p_i φ_i φ_iᵀ, and its output from Σ p_i φ_i
    z_iᵀ.
    """

    def __init__(self, regression: Regression, rows: Array) -> None:
        self.regression, self.rows = regression, rows
        root, rest = np.sqrt(regression.gamma), (1 - regression.masses[rows])[:, None, None]
        own = (regression.U[rows] * root)[..., None]  # √p_i φ_i
        self.basis = HeldOutBasis.from_covariance(
            regression.gamma, own @ np.swapaxes(own, 1, 2), rest
        )
        self.gamma = np.maximum(self.basis.gamma, regression.gamma[-1] * TINY_SHARE)
        means = regression.left_out_means[rows, None]
        whole = root[:, None] * (
            regression.projected[:, :-1] - means * regression.projected[:, [-1]]
        )
        root_masses = regression.root_masses[rows, None, None]
        without = (whole - root_masses * own * (regression.Z[rows, None] - means)) / rest
        columns = self.basis.turned(np.concatenate([without, own / root_masses], axis=-1))
        self.targets, self.towards = columns[..., :-1], columns[..., -1]

    def predictions(self, candidates: Candidates) -> Array:
        """Return the predictions of the left-out rows, measured from the mean.

        (parameters, rows, columns).
        """
        means = self.regression.left_out_means[self.rows]
        predictions = []
        for parameter in candidates.grid.tolist():
            towards = self.towards * self._inverse(candidates, parameter)
            predictions.append(means + np.einsum("ir,irm->im", towards, self.targets))
        return np.stack(predictions)

    def functions(self, candidates: Candidates) -> Array:
        """Return ``LeaveOneOutSmoother.functions`` of these rows."""
        [parameter] = candidates.grid.tolist()
        functions = self.basis.V @ (self._inverse(candidates, parameter)[..., None] * self.targets)
        return np.transpose(quotient(functions, np.sqrt(self.regression.gamma)[:, None]), (2, 1, 0))

    def weights(self, candidates: Candidates) -> Array:
        """Return ``LeaveOneOutSmoother.weights`` of these rows, without an intercept.

        α_j = (p_j/c) φ_jᵀ g(Ĉ_i) φ_i.
        """
        [parameter] = candidates.grid.tolist()
        regression = self.regression
        found = (self.basis.V @ (self.towards * self._inverse(candidates, parameter))[..., None])[
            ..., 0
        ]
        others = (regression.U * np.sqrt(regression.gamma)) * regression.root_masses[
            :, None
        ]  # p_j φ_j
        return found @ others.T / (1 - regression.masses[self.rows, None])

    def _inverse(self, candidates: Candidates, parameter: float) -> Array:
        filter = candidates.filter
        assert isinstance(filter, Filter)
        return filter.inverse(self.gamma, parameter)


def _summed(c: Array, f: Array, basis: Array) -> Array:
    """Return Re Σ_j c_j f_j over the poles, interpolated between scales.

    Shape (parameters, rows).
    """
    total: Array = np.zeros((c.shape[1], len(f)))
    for each, own in zip(c, basis.T, strict=True):
        # as one real product: Re(c f) = Re c̄ Re f + Im c̄ Im f
        total += each.conj().view(np.float64) @ f.view(np.float64).T * own
    return total
