"""What a spectral smoother predicts for each row from all others: exact, for every filter, on one eigendecomposition.

With masses p, D = diag(√p) and A = DKD, a filter predicts Σ_i α_i(x) z_i at x, α(x) = D g_λ(A) D k(X, x). Without row i
the masses are p/c, c = 1 − p_i, and A loses row and column i. With G = (z − A)⁻¹, the column of its resolvent that is
needed is G_·i/G_ii (Schur complement), so that the left-out prediction is

    (1/√p_i) (1/2πi) ∮ ĝ(z) (GDZ)_i/G_ii dz,   ĝ(z) = g_λ(z/c)/c = s_λ(z/c)/z,

on a contour around the spectrum. GDZ and the diagonal of G serve all filters and parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander

from muhat._arrays import Array, quotient, rounding, share_between_cores, slices
from muhat._messages import refusal
from muhat.filters import Filter
from muhat.selection._base import Candidates
from muhat.selection._contour import CHECKED, Contour, Interval, Nodes, _ladder
from muhat.selection._leave_one_out import AT_LEAST, CHUNK, HEAVY, REFIT_UP_TO

ACCURATE = 5e-12
"""The error of κ√γ ĝ(γ) on its contour, next to its largest value or 1, up to which the contour is taken."""

SCALES = 16
"""Values of c = 1 − p_i at which a filter is evaluated where masses differ, to be interpolated between."""

ROWS = 1024
"""Rows of which the resolvent is held at once, at all nodes."""


@dataclass(frozen=True, eq=False)
class Regression:
    """Rows in the eigenbasis of A = DKD, with what is to be predicted of each."""

    gamma: Array
    """Eigenvalues of A, none below zero."""
    U: Array
    """Eigenvectors, in columns: all n of them, or those of a matrix of low rank that has no others."""
    masses: Array
    outputs: Array
    """Of shape (n, columns)."""
    has_intercept: bool
    """Whether what the weights α_i(x) lack to one goes to the mean of the outputs."""

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.masses)

    @cached_property
    def mean(self) -> Array:
        """The mean of the outputs, or zero without an intercept."""
        return self.masses @ self.outputs if self.has_intercept else np.zeros(self.outputs.shape[1])

    @cached_property
    def Z(self) -> Array:
        """The outputs, measured from their mean."""
        return self.outputs - self.mean

    @cached_property
    def left_out_means(self) -> Array:
        """The mean of all z_j but one, for each row: as the mean of all is zero, −p_i z_i/(1 − p_i)."""
        share = self.masses / (1 - self.masses) if self.has_intercept else np.zeros(len(self.masses))
        return -share[:, None] * self.Z

    @property
    def root_masses(self) -> Array:
        """The diagonal of D."""
        return np.sqrt(self.masses)

    @cached_property
    def projected(self) -> Array:
        """UᵀDZ, with UᵀD1 as one more column."""
        return self.U.T @ (self.root_masses[:, None] * np.column_stack([self.Z, np.ones(len(self.Z))]))

    @cached_property
    def own(self) -> Array:
        """A_ii = p_i k(x_i, x_i)."""
        return self.U**2 @ self.gamma

    @property
    def largest_value(self) -> float:
        """max k(x_i, x_i)."""
        return float((self.own / self.masses).max())

    @property
    def spread(self) -> float:
        """Σ p_i ‖z_i‖²."""
        return float((self.masses @ self.Z**2).sum())

    def gcv(self, candidates: Candidates) -> Array:
        """Return Σ p_i ‖z_i − ẑ_i‖²/(1 − tr S/n)², ẑ = S z being the fitted values, for every parameter."""
        r = 1 - candidates.filter.path(self.gamma, candidates.grid)
        n, fitted = self.n, self.projected
        beyond = self.spread - float((fitted[:, :-1] ** 2).sum())
        residual = r**2 @ (fitted[:, :-1] ** 2).sum(axis=1) + max(beyond, 0.0)
        freedom = (r.sum(axis=1) + n - len(self.gamma)) / n
        if self.has_intercept:  # S has (1 − α(x)ᵀ1) p beside α(x), whose trace is qᵀ(1 − s(A))q
            freedom -= (r @ fitted[:, -1] ** 2 + max(1 - float(fitted[:, -1] @ fitted[:, -1]), 0.0)) / n
        return np.divide(residual, freedom**2, out=np.full_like(residual, np.inf), where=freedom > rounding(r) * n)


@dataclass(frozen=True)
class Whole:
    """What the rows of a regression sum up to, where they are not in memory."""

    n: int
    mean: Array
    projected: Array
    spread: float
    largest_value: float


@dataclass(frozen=True, eq=False)
class PartOfRegression(Regression):
    """Some rows of a regression whose sums over all rows are known."""

    whole: Whole = field(kw_only=True)

    def __post_init__(self) -> None:
        vars(self).update(mean=self.whole.mean, projected=self.whole.projected)

    @property
    def n(self) -> int:
        """The number of all rows."""
        return self.whole.n

    @property
    def spread(self) -> float:
        """Σ p_i ‖z_i‖² over all rows."""
        return self.whole.spread

    @property
    def largest_value(self) -> float:
        """max k(x_i, x_i) over all rows."""
        return self.whole.largest_value


class LeftOut:
    """The predictions of each row by the smoother that was made without it."""

    def __init__(self, regression: Regression) -> None:
        self.regression = regression
        rest = 1 - regression.masses
        # What is left without a heavy row is a share of its own: these, fifty at most, are left out by refits.
        self.light = np.flatnonzero(rest >= (1 - HEAVY) * rest.max())
        self.heavy = np.flatnonzero(rest < (1 - HEAVY) * rest.max())
        bound = regression.largest_value
        largest = min(float(regression.gamma.max(initial=0.0)), float(rest.max()) * bound)
        scales = np.array([rest[self.light].min(), rest[self.light].max()])
        self.interval = Interval(largest, scales, bound)
        # Eigenvalues below rounding are all the same to a resolvent: together they are what the others do not span.
        self.spanned = slice(int(np.searchsorted(regression.gamma, rounding(regression.gamma) * largest)), None)

    def contour(self, candidates: Candidates, known: Sequence[Contour] = ()) -> Contour | None:
        """Return a cheap contour that is accurate for a filter's whole grid, if there is one; known ones cost least."""
        filter, grid = candidates.filter, candidates.grid
        if not (isinstance(filter, Filter) and filter.analytic and self.interval.largest):
            return None
        reach = min(filter.as_lambda(grid[0]), filter.as_lambda(grid[-1])) / self.interval.largest
        stated = type(filter).as_lambda is not Filter.as_lambda
        shapes = (shape.contour() for shape in _ladder(min(reach, 1.0), only_likely=stated))
        errors = [self._error_on(filter, part) for part in (grid[[0, -1]], grid)]  # ends are the likeliest to fail
        return next((each for each in chain(known, shapes) if all(error(each) <= ACCURATE for error in errors)), None)

    def _error_on(self, filter: Filter, grid: Array) -> Callable[[Contour], float]:
        """Return the largest error of κ√γ ĝ(γ), next to its largest value or 1, over a grid, as a function of contours.

        As ‖A^(−1/2) A_·i‖ ≤ √A_ii, without row i too, κ√γ ĝ(γ) bounds what is predicted from outputs of mean square 1.
        """
        largest, bound, at_zero = self.interval.largest, self.interval.bound, filter.at_zero(grid)[:, None]
        scales = np.unique(np.linspace(self.interval.scales[0], self.interval.scales[1], 5))
        points = [CHECKED[(CHECKED > 0) & (largest * CHECKED <= scale * bound)] for scale in scales]
        exact = [(filter.path(largest * x / c, grid) - at_zero) / x for c, x in zip(scales, points, strict=True)]

        def error(contour: Contour) -> float:
            values, worst = self._values(contour.nodes * largest, filter, grid, at_zero), 0.0
            if values is None:
                return np.inf
            for own, x, true in zip(self._basis(scales), points, exact, strict=True):
                resolvent = contour.steps[:, None] / (contour.nodes[:, None] - x)
                found = 2 * largest * np.real(np.tensordot(own, values, 1) @ resolvent)
                gap, size = (np.abs(each * np.sqrt(x * bound / largest)).max(axis=1) for each in (found - true, true))
                worst = max(worst, float(np.nan_to_num(gap / np.maximum(size, 1), nan=np.inf).max()))
            return worst

        return error

    def _values(self, z: Array, filter: Filter, grid: Array, at_zero: Array) -> Array | None:
        """Return ĝ(z) at the nodes for each of the scales, of shape (scales, parameters, nodes), if it is finite."""
        found = [Contour._path(filter, grid, z / scale) for scale in self._scales]
        if not all(is_finite for _, is_finite in found):
            return None
        return (np.stack([path for path, _ in found]) - at_zero) / z

    @cached_property
    def _scales(self) -> Array:
        """The c at which filters are evaluated."""
        low, high = self.interval.scales
        return np.array([low]) if low == high else low + (high - low) * (1 + chebpts1(SCALES)) / 2

    def _basis(self, scales: Array) -> Array:
        """Return the weights, of shape (len(scales), scales of the nodes), of polynomial interpolation in c."""
        if len(self._scales) == 1:
            return np.ones((len(scales), 1))
        low, high = self.interval.scales
        positions = 2 * (scales - low) / (high - low) - 1
        return chebvander(positions, SCALES - 1) @ np.linalg.inv(chebvander(chebpts1(SCALES), SCALES - 1))

    def scores(self, candidates: Sequence[Candidates], contours: dict[int, Contour] | None = None) -> list[Array]:
        """Return Σ p_i ‖z_i − ẑ_i‖² for every parameter of every filter, ẑ_i being the left-out predictions.

        Contours that were found before, by the filter's place, are not looked for again.
        """
        scores = [np.zeros(len(each.grid)) for each in candidates]
        Z, masses = self.regression.Z, self.regression.masses
        for place, rows, column, predicted in self._predictions(candidates, contours):
            scores[place] += (Z[rows, column] - predicted) ** 2 @ masses[rows]
        return scores

    def predictions(self, filter: Filter, parameter: float, contours: dict[int, Contour] | None = None) -> Array:
        """Return the left-out predictions of one parameter, of shape (n, columns)."""
        predictions = np.empty_like(self.regression.Z)
        for _, rows, column, predicted in self._predictions([Candidates(filter, np.array([parameter]))], contours):
            predictions[rows, column] = predicted[0]
        return predictions + self.regression.mean

    def contours(self, candidates: Sequence[Candidates]) -> dict[int, Contour]:
        """Return an accurate contour for each filter that has one, by its place."""
        contours: dict[int, Contour] = {}
        for place, each in enumerate(candidates):
            contour = self.contour(each, list(contours.values()))
            if contour is not None:
                contours[place] = contour
        return contours

    def _predictions(
        self, candidates: Sequence[Candidates], contours: dict[int, Contour] | None
    ) -> Iterator[tuple[int, Array, int, Array]]:
        """Yield predictions, measured from the mean: the filter's place, rows, a column and (parameters, rows)."""
        contours = self.contours(candidates) if contours is None else contours
        if contours:
            yield from self._on_contours(candidates, contours)
        for place, each in enumerate(candidates):
            for some, refits in self._refits(each, contours.get(place)):
                predicted = refits.predictions(each)
                for column in range(predicted.shape[-1]):
                    yield place, some, column, predicted[..., column]

    def _on_contours(
        self, candidates: Sequence[Candidates], contours: dict[int, Contour]
    ) -> Iterator[tuple[int, Array, int, Array]]:
        """Yield the predictions of all rows that are not heavy; resolvents are shared by filters and parameters."""
        distinct = list(dict.fromkeys(contours.values()))
        nodes = self._nodes(distinct)
        numbers = {place: distinct.index(contour) for place, contour in contours.items()}
        where = {place: slice(*nodes.starts[number : number + 2]) for place, number in numbers.items()}
        steps = {place: self._steps(nodes, some, candidates[place]) for place, some in where.items()}
        means = self.regression.left_out_means
        for chunk in slices(0, len(self.light), ROWS):
            rows = self.light[chunk]
            ratio, basis = self._ratios(nodes, rows), self._basis(1 - self.regression.masses[rows])
            for column in range(self.regression.Z.shape[1]):
                f = ratio(column) / self.regression.root_masses[rows, None]
                for place, some in where.items():
                    predicted = _integrals(steps[place], f[:, some], basis)
                    yield place, rows, column, predicted + means[rows, column]

    def _nodes(self, contours: Sequence[Contour]) -> Nodes:
        gamma = self.regression.gamma[self.spanned]
        return Nodes.from_contours(gamma, self.regression.n, self.interval.largest, contours)

    def _steps(self, nodes: Nodes, where: slice, candidates: Candidates) -> Array:
        """Return ĝ(z) dz/2πi at a contour's nodes for each of the scales."""
        filter, grid = candidates.filter, candidates.grid
        assert isinstance(filter, Filter)
        values = self._values(nodes.z[where], filter, grid, filter.at_zero(grid)[:, None])
        assert values is not None  # the contour was checked
        return values * nodes.steps[where]

    def _ratios(self, nodes: Nodes, rows: Array) -> Callable[[int], Array]:
        """Return (GD(Z − m_i))_i/G_ii of some rows at all nodes, as a function of the column, m_i the left-out mean.

        Where eigenvectors do not span everything, G has (I − UUᵀ)/z beside them.
        """
        regression, everywhere = self.regression, slice(0, len(nodes.z))
        U, q = regression.U[rows, self.spanned], regression.root_masses[rows]
        projected, is_low_rank = regression.projected[self.spanned], U.shape[1] < regression.n

        def resolvent(vectors: Array, coefficients: Array, whole: Array) -> Array:
            values = nodes.sums(vectors, coefficients)(everywhere)
            if is_low_rank:
                values = values + (whole - vectors @ coefficients)[:, None] / nodes.z
            return values

        diagonal = self._diagonal(nodes, rows)
        ones = resolvent(U, projected[:, -1], q) / diagonal if regression.has_intercept else 0.0

        def of(column: int) -> Array:
            ratio = resolvent(U, projected[:, column], q * regression.Z[rows, column]) / diagonal
            return ratio - regression.left_out_means[rows, column, None] * ones

        return of

    def functions(self, filter: Filter, parameter: float) -> Array:
        """Return the smoother made without each row, of shape (columns, components, rows), at one parameter.

        Its prediction at x, measured from the mean, is m_i + (UᵀD k(X, x))ᵀ times column i: with y = Z − m_i,

            (1/2πi) ∮ ĝ(z)/(z − γ_k) [(UᵀDy)_k − U_ik (GDy)_i/G_ii] dz.
        """
        regression, candidates = self.regression, Candidates(filter, np.array([parameter]))
        functions = np.empty((regression.Z.shape[1], len(regression.gamma), len(regression.Z)))
        contour = self.contour(candidates)
        if contour is not None:
            nodes = self._nodes([contour])
            steps = self._steps(nodes, slice(0, len(nodes.z)), candidates)[:, 0]
            resolvent = 1 / (nodes.z - regression.gamma[:, None])
            for chunk in slices(0, len(self.light), ROWS):
                rows = self.light[chunk]
                ratio, basis = self._ratios(nodes, rows), self._basis(1 - regression.masses[rows])
                whole = 2 * np.real(resolvent @ steps.T) @ basis.T
                for column, function in enumerate(functions):
                    f, means = ratio(column), regression.left_out_means[rows, column]
                    left = regression.projected[:, [column]] - means * regression.projected[:, [-1]]
                    found = [
                        2 * np.real((resolvent * each) @ f.T) * own for each, own in zip(steps, basis.T, strict=True)
                    ]
                    function[:, rows] = whole * left - regression.U[rows].T * sum(found)
        for some, refits in self._refits(candidates, contour):
            functions[..., some] = refits.functions(candidates)
        return functions

    def weights(self, filter: Filter, parameter: float) -> Array:
        """Return the weights of all other outputs in each row's left-out prediction, of shape (n, n).

        α_j = √(p_j/p_i) (1/2πi) ∮ ĝ(z) G_ji/G_ii dz; with an intercept, what they lack to one goes to the others' mean.
        """
        regression, candidates = self.regression, Candidates(filter, np.array([parameter]))
        q, weights = regression.root_masses, np.zeros((regression.n, regression.n))
        contour = self.contour(candidates)
        if contour is not None:
            nodes = self._nodes([contour])
            steps = self._steps(nodes, slice(0, len(nodes.z)), candidates)[:, 0]
            U = regression.U[:, self.spanned]
            resolvent = 1 / (nodes.z - regression.gamma[self.spanned, None])
            if U.shape[1] < regression.n:  # G_ji = Σ_k U_jk U_ik (1/(z − γ_k) − 1/z) for j ≠ i
                resolvent = resolvent - 1 / nodes.z
            for chunk in slices(0, len(self.light), ROWS):
                rows = self.light[chunk]
                diagonal = self._diagonal(nodes, rows)
                basis = self._basis(1 - regression.masses[rows])
                factors = 2 * sum(
                    np.real((each / diagonal) @ resolvent.T) * own[:, None]
                    for each, own in zip(steps, basis.T, strict=True)
                )
                weights[rows] = ((U[rows] * factors) @ U.T) * (q / q[rows, None])
        for some, refits in self._refits(candidates, contour):
            weights[some] = refits.weights(candidates)
        np.fill_diagonal(weights, 0)
        if regression.has_intercept:
            others = np.tile(regression.masses, (regression.n, 1))
            np.fill_diagonal(others, 0)
            lacking = (1 - weights.sum(axis=1)) / (1 - regression.masses)
            weights += lacking[:, None] * others
        return weights

    def _diagonal(self, nodes: Nodes, rows: Array) -> Array:
        """Return G_ii of some rows at all nodes."""
        U = self.regression.U[rows, self.spanned]
        diagonal = nodes.sums(U**2, np.ones(U.shape[1]))(slice(0, len(nodes.z)))
        if U.shape[1] < self.regression.n:
            diagonal = diagonal + (1 - (U**2).sum(axis=1))[:, None] / nodes.z
        return diagonal

    def _refits(self, candidates: Candidates, contour: Contour | None) -> Iterator[tuple[Array, Refits]]:
        """Yield rows with an eigendecomposition without each, some at a time: heavy ones, or all without a contour."""
        n = self.regression.n
        rows = np.arange(n) if contour is None else self.heavy
        if contour is None and n > REFIT_UP_TO:
            needed = f"at most {REFIT_UP_TO} rows can be left out by refits, which {candidates.filter!r} takes here"
            advice = "choose another filter, or a grid that is less steep"
            raise ValueError(refusal("leave-one-out", needed, n, advice))
        if not len(rows):
            return
        size = len(rows) * len(self.regression.gamma) ** 2
        chunks = np.array_split(rows, min(len(rows), max(AT_LEAST, size // CHUNK)))
        found: dict[int, Refits] = {}

        def work(place: int) -> None:
            found[place] = Refits(self.regression, chunks[place])

        for some in slices(0, len(chunks), AT_LEAST):
            places = range(some.start, some.stop)
            share_between_cores(work, places)
            for place in places:
                yield chunks[place], found.pop(place)


class Refits:
    """The smoothers made without each of some rows, by an eigendecomposition of the covariance without it.

    In the basis in which Ĉ = diag(γ), row i takes away p_i φ_i φ_iᵀ, and its output from Σ p_i φ_i z_iᵀ.
    """

    def __init__(self, regression: Regression, rows: Array) -> None:
        self.regression, self.rows = regression, rows
        root, rest = np.sqrt(regression.gamma), (1 - regression.masses[rows])[:, None, None]
        own = regression.U[rows] * root  # √p_i φ_i
        covariance = -own[:, :, None] * own[:, None, :]
        diagonal = np.arange(len(root))
        covariance[:, diagonal, diagonal] += regression.gamma
        gamma, V = np.linalg.eigh(covariance / rest)
        self.gamma, self.V = np.maximum(gamma, regression.gamma[-1] * 1e-30), V
        means = regression.left_out_means[rows, None]
        targets = root[:, None] * (regression.projected[:, :-1] - means * regression.projected[:, [-1]])
        targets -= (own * regression.root_masses[rows, None])[:, :, None] * (regression.Z[rows, None] - means)
        self.targets = np.swapaxes(V, 1, 2) @ (targets / rest)
        self.towards = (own[:, None] @ V)[:, 0] / regression.root_masses[rows, None]

    def predictions(self, candidates: Candidates) -> Array:
        """Return the predictions of the left-out rows, measured from the mean: (parameters, rows, columns)."""
        means = self.regression.left_out_means[self.rows]
        return np.stack(
            [
                means + np.einsum("ir,irm->im", self.towards * self._inverse(candidates, parameter), self.targets)
                for parameter in candidates.grid.tolist()
            ]
        )

    def functions(self, candidates: Candidates) -> Array:
        """Return ``LeftOut.functions`` of these rows."""
        [parameter] = candidates.grid.tolist()
        functions = self.V @ (self._inverse(candidates, parameter)[..., None] * self.targets)
        return np.transpose(quotient(functions, np.sqrt(self.regression.gamma)[:, None]), (2, 1, 0))

    def weights(self, candidates: Candidates) -> Array:
        """Return ``LeftOut.weights`` of these rows, without an intercept: α_j = (p_j/c) φ_jᵀ g(Ĉ_i) φ_i."""
        [parameter] = candidates.grid.tolist()
        regression = self.regression
        found = (self.V @ (self.towards * self._inverse(candidates, parameter))[..., None])[..., 0]
        others = (regression.U * np.sqrt(regression.gamma)) * regression.root_masses[:, None]  # p_j φ_j
        return found @ others.T / (1 - regression.masses[self.rows, None])

    def _inverse(self, candidates: Candidates, parameter: float) -> Array:
        filter = candidates.filter
        assert isinstance(filter, Filter)
        return filter.inverse(self.gamma, parameter)


def _integrals(steps: Array, f: Array, basis: Array) -> Array:
    """Return Σ 2 Re(ĝ f dz/2πi) over the nodes, interpolated between scales: shape (parameters, rows)."""
    parts = np.concatenate([f.real, -f.imag], axis=1).T
    found = [np.concatenate([each.real, each.imag], axis=1) @ parts for each in steps]
    return 2 * sum(each * own for each, own in zip(found, basis.T, strict=True))
