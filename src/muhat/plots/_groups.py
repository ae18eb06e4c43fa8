"""Displays of many groups: a map of their means, and the matrix of their distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.cluster.hierarchy import dendrogram, leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array
from muhat.groups import KernelMeans
from muhat.plots._display import Display
from muhat.plots._style import without_frame

MAX_LABELS = 40
"""Groups up to which each is labelled."""

N_ERRORS = 2.0
"""Standard errors that the ellipses of a map reach to."""


@dataclass(eq=False)
class GroupMapDisplay(Display):
    """A map of groups: two coordinates of their means, with ellipses of two standard errors.

    Parameters
    ----------
    labels : sequence of str
        The groups.
    coordinates : array of shape (T, 2)
        Their means along the first two principal axes.
    errors : array of shape (T, 2)
        The standard errors of the coordinates.
    shares : array of shape (2,)
        The share of the squared distances between groups that each axis shows.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import GroupMapDisplay, KernelMeans
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> display = GroupMapDisplay.from_estimator(KernelMeans().fit(X, np.repeat(list("abc"), 20)))
    >>> display.coordinates.shape  # and display.plot() to draw it
    (3, 2)
    """

    labels: Sequence[str]
    coordinates: Array
    errors: Array
    shares: Array

    @classmethod
    def from_estimator(cls, estimator: KernelMeans) -> Self:
        """Return the map of fitted groups."""
        check_is_fitted(estimator, "groups_")
        everything = estimator.coordinates_
        coordinates = np.zeros((len(everything), 2))
        errors = np.zeros_like(coordinates)
        k = min(2, everything.shape[1])
        coordinates[:, :k] = everything[:, :k]
        errors[:, :k] = estimator.coordinate_errors_[:, :k]
        total = float((everything**2).sum())
        shares = (coordinates**2).sum(axis=0) / (total or 1.0)
        return cls([str(label) for label in estimator.groups_], coordinates, errors, shares)

    def _draw(self, legend: bool) -> None:
        for place, error in zip(self.coordinates, self.errors, strict=True):
            self._draw_ellipse(place, error)
        self.ax_.scatter(*self.coordinates.T, s=18, color="tab:blue", zorder=3)
        if len(self.labels) <= MAX_LABELS:
            for label, place in zip(self.labels, self.coordinates, strict=True):
                self.ax_.annotate(
                    label, place, (3, 3), textcoords="offset points", fontsize="small"
                )
        self.ax_.set_xlabel(f"first axis ({100 * self.shares[0]:.0f} % of squared distances)")
        self.ax_.set_ylabel(f"second axis ({100 * self.shares[1]:.0f} %)")
        self.ax_.set_aspect("equal", adjustable="datalim")
        without_frame(self.ax_)

    def _draw_ellipse(self, place: Array, error: Array) -> None:
        """Draw what is within two standard errors of a group's coordinates, if they are known."""
        from matplotlib.patches import Ellipse

        if not np.isfinite(error).all():
            return
        width, height = 2 * N_ERRORS * error
        ellipse = Ellipse(tuple(place), width, height, color="tab:blue", alpha=0.15, linewidth=0)
        self.ax_.add_patch(ellipse)


@dataclass(eq=False)
class GroupDistanceDisplay(Display):
    """The distances between groups as a matrix, in the order of a dendrogram that is drawn above.

    Parameters
    ----------
    labels : sequence of str
        The groups.
    distances : array of shape (T, T)
        The distances (MMD) between their means.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import GroupDistanceDisplay, KernelMeans
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> X[20:40] += 3
    >>> means = KernelMeans().fit(X, np.repeat(list("abc"), 20))
    >>> display = GroupDistanceDisplay.from_estimator(means)  # and display.plot() to draw it
    >>> display.labels[display.order[0]]
    'b'
    """

    labels: Sequence[str]
    distances: Array

    @classmethod
    def from_estimator(cls, estimator: KernelMeans) -> Self:
        """Return the distances of fitted groups."""
        check_is_fitted(estimator, "groups_")
        return cls([str(label) for label in estimator.groups_], estimator.distances_)

    @property
    def order(self) -> Array:
        """The order of the groups in the dendrogram, of shape (T,)."""
        return np.asarray(leaves_list(self._tree))

    @property
    def _tree(self) -> Array:
        """The groups joined one by one, by the average distance of their members."""
        return np.asarray(linkage(squareform(self.distances, checks=False), method="average"))

    def _draw(self, legend: bool) -> None:
        order = self.order
        shown = self.distances[np.ix_(order, order)]
        image = self.ax_.imshow(shown, cmap="viridis")
        self.figure_.colorbar(image, ax=self.ax_, label="distance (MMD)")
        if len(self.labels) <= MAX_LABELS:
            names = [self.labels[place] for place in order]
            self.ax_.set_xticks(range(len(names)), names, rotation=90, fontsize="small")
            self.ax_.set_yticks(range(len(names)), names, fontsize="small")
        above = self.ax_.inset_axes([0, 1.02, 1, 0.18])
        dendrogram(self._tree, ax=above, no_labels=True, color_threshold=0)
        above.set_axis_off()
