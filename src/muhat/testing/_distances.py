"""The distance kernel: its MMD² is half the energy distance, its HSIC distance covariance / 4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtri

from muhat._arrays import Array
from muhat._validation import as_points, as_two_samples
from muhat.errors import MuhatError
from muhat.gram import Approximation, FeatureMap, Nystrom, RandomFeatures
from muhat.kernels import Kernel


@dataclass(eq=False, repr=False)
class Distance(Kernel):
    """k(x, y) = (‖x − o‖ + ‖y − o‖ − ‖x − y‖)/2 from an origin o, in units of the largest distance.

    Centring takes the origin out: HKH is −HDH/2 of the distances D (Sejdinovic et al. 2013). The
    origin makes the kernel positive semi-definite on every point, so that landmarks can replace
    it.

    Parameters
    ----------
    ranks : bool, default=False
        Whether points are replaced by their ranks in every column, among the rows that the kernel
        was resolved with: the kernel then depends on the order of values alone, and no outlier
        rules it.
    """

    ranks: bool = False
    positive_semidefinite: ClassVar[bool] = True

    def resolve(self, X: Array) -> _ResolvedDistance:
        """Return the kernel with its origin, unit and ranks learnt from X."""
        X = as_points(X).astype(np.float64, copy=False)
        reference = None
        if self.ranks:
            reference = np.sort(X, axis=0)
        points = X
        if reference is not None:
            points = ranks_among(reference, X)
        largest = (
            float(np.abs(points).max()) or 1.0
        )  # so that no sum is beyond the range of numbers
        origin = largest * (points / largest).mean(axis=0)
        unit = float(np.abs(points - origin).max()) or 1.0
        return _ResolvedDistance(self.ranks, origin, unit, reference)

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        raise MuhatError(
            "Distance",
            "the kernel must be fitted to rows before it is called",
            "a kernel that is not fitted",
            "call kernel.resolve(X) and use what it returns",
        )

    def __repr__(self) -> str:
        return f"Distance({'ranks' if self.ranks else ''})"


@dataclass(eq=False, repr=False)
class _ResolvedDistance(Distance):
    """The same with everything learnt."""

    origin: Any = None
    unit: float = 1.0
    reference: Any = None
    """Sorted columns, to rank points among; None where points are taken as they are."""

    def resolve(self, X: Array) -> _ResolvedDistance:
        """Return it as it is."""
        return self

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        X, other = (self._moved(each) for each in as_two_samples(X, Y))
        K = np.linalg.norm(X, axis=1)[:, None] + np.linalg.norm(other, axis=1) - cdist(X, other)
        K /= 2
        return K

    def diagonal(self, X: Array) -> Array:
        """Return ‖x − o‖."""
        return np.linalg.norm(self._moved(as_points(X)), axis=1)

    def _moved(self, X: Array) -> Array:
        """Return points, or their ranks, seen from the origin."""
        X = X.astype(np.float64, copy=False)
        points = X
        if self.reference is not None:
            points = ranks_among(self.reference, X)
        return (points - self.origin) / self.unit


@dataclass(eq=False, repr=False)
class LargestRankDifference(Distance):
    """Stands for the column in which ranks differ most, in a list of statistics.

    Parameters
    ----------
    spread : bool, default=False
        Whether ranks are compared by how far from the middle they are, instead of by their mean.
    """

    spread: bool = False

    def scores(self, shares: Array) -> Array:
        """Return the scores of ranks of which means are compared; ranks are shares of all rows.

        For spread these are squared normal scores (Klotz 1962).
        """
        if self.spread:
            return np.asarray(ndtri(shares) ** 2)
        return shares

    def resolve(self, X: Array) -> NoReturn:
        """Raise MuhatError: a maximum over columns has no kernel."""
        raise MuhatError("LargestRankDifference", "a kernel is needed", "a maximum over columns")

    def __repr__(self) -> str:
        if self.spread:
            return "Linear(squared normal scores, largest of columns)"
        return "Linear(ranks, largest of columns)"


def ranks_among(reference: Array, X: Array) -> Array:
    """Return the rank of every value among the sorted values of its column; the mean of ties."""
    columns = [
        np.searchsorted(known, values, side="left") + np.searchsorted(known, values, side="right")
        for known, values in zip(reference.T, X.T, strict=True)
    ]
    return np.array(columns, dtype=np.float64).T / 2


def features_for(kernel: Kernel, gram: Approximation, X: Array) -> FeatureMap:
    """Return features that approximate a kernel, learnt from rows; for distances, landmarks.

    Where others have random features, there are as many landmarks as these, or as rows.
    """
    if isinstance(kernel, Distance) and isinstance(gram, RandomFeatures):
        size = gram.n_components
        gram = Nystrom(None if size is None else min(size, len(X)), random_state=gram.random_state)
    return gram.resolve(kernel, X)
