"""Displays of many groups: a map, the matrix of their distances, a dendrogram, single columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.cluster.hierarchy import dendrogram
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array
from muhat._messages import unknown_name
from muhat._text import all_shortened
from muhat.errors import MuhatError
from muhat.figures import Bars, Plot, dendrogram_plot, different_groups, group_map_plot, groups_bars
from muhat.figures._groups import (
    LEVEL,
    MAX_LABELS,
    group_column_plot,
    group_column_plots,
    order_of_groups,
    tree_of_groups,
)
from muhat.groups import KernelMeans
from muhat.plots._display import Display
from muhat.plots._style import TITLE, require_matplotlib
from muhat.testing import GroupResult
from muhat.testing._group_pictures import ColumnQuantiles, GroupPictures

NAME_LENGTH = 28
"""Characters of a group's name beside the matrix of distances."""

MAX_COLUMNS_DRAWN = 3
"""Columns in a figure of a test of groups."""


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
    different : collection of str, default=()
        Groups that differ from the rest, which are drawn in another colour.

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
    different: Collection[str] = ()

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

    @classmethod
    def from_result(cls, result: GroupResult, level: float = LEVEL) -> Self:
        """Return the map of a test's groups, those that differ from the rest in orange."""
        found = _pictures(result)
        labels = [str(label) for label in found.labels]
        different = different_groups(result, level)
        return cls(labels, found.coordinates, found.errors, found.shares, different)

    def content(self) -> Plot:
        """Return the map as data."""
        return group_map_plot(
            self.labels, self.coordinates, self.errors, self.shares, self.different
        )

    def _draw(self, legend: bool) -> None:
        super()._draw(legend)
        # The longer side of the axes shows more of the plane than the other.
        self.ax_.set_xlim(self.ax_.get_xlim(), auto=True)
        self.ax_.set_ylim(self.ax_.get_ylim(), auto=True)
        self.ax_.set_aspect("equal", adjustable="datalim")


@dataclass(eq=False)
class GroupDistanceDisplay(Display):
    """The distances between groups as a matrix, ordered by the dendrogram above it.

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

    @classmethod
    def from_result(cls, result: GroupResult) -> Self:
        """Return the distances of a test's groups."""
        found = _pictures(result)
        return cls([str(label) for label in found.labels], found.distances)

    @property
    def order(self) -> Array:
        """The order of the groups in the dendrogram, of shape (T,)."""
        return order_of_groups(self.distances)

    def _draw(self, legend: bool) -> None:
        order = self.order
        shown = self.distances[np.ix_(order, order)]
        # With square cells the layout would not know how much room names and dendrogram need.
        image = self.ax_.imshow(shown, cmap="viridis", aspect="auto")
        self.figure_.colorbar(image, ax=self.ax_, label="distance (MMD)")
        if len(self.labels) <= MAX_LABELS:
            names = all_shortened([self.labels[place] for place in order], NAME_LENGTH)
            self.ax_.set_xticks(range(len(names)), names, rotation=90, fontsize="small")
            self.ax_.set_yticks(range(len(names)), names, fontsize="small")
        above = self.ax_.inset_axes([0, 1.02, 1, 0.18])
        dendrogram(
            tree_of_groups(self.distances),
            ax=above,
            no_labels=True,
            color_threshold=0,
            above_threshold_color="0.35",
        )
        above.set_axis_off()


@dataclass(eq=False)
class GroupTreeDisplay(Display):
    """A dendrogram of groups: similar groups are joined at small distances.

    Parameters
    ----------
    labels : sequence of str
        The groups.
    distances : array of shape (T, T)
        The distances (MMD) between their means.
    different : collection of str, default=()
        Groups that differ from the rest, which have a dot before their name.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import GroupTest, GroupTreeDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> X[20:40] += 3
    >>> result = GroupTest(n_permutations=99).test(X, np.repeat(list("abc"), 20))
    >>> GroupTreeDisplay.from_result(result).different  # and .plot() to draw it
    ['b']
    """

    labels: Sequence[str]
    distances: Array
    different: Collection[str] = ()

    @classmethod
    def from_estimator(cls, estimator: KernelMeans) -> Self:
        """Return the dendrogram of fitted groups."""
        check_is_fitted(estimator, "groups_")
        return cls([str(label) for label in estimator.groups_], estimator.distances_)

    @classmethod
    def from_result(cls, result: GroupResult, level: float = LEVEL) -> Self:
        """Return the dendrogram of a test's groups."""
        found = _pictures(result)
        labels = [str(label) for label in found.labels]
        return cls(labels, found.distances, different_groups(result, level))

    def content(self) -> Plot:
        """Return the dendrogram as data."""
        return dendrogram_plot(self.labels, self.distances, self.different)


@dataclass(eq=False)
class GroupBarsDisplay(Display):
    """The distance of each group from the rest, as bars, with corrected p-values.

    Parameters
    ----------
    result : GroupResult
        What a test of groups found.
    level : float, default=0.05
        Groups with a larger corrected p-value are drawn in grey.
    """

    result: GroupResult
    level: float = LEVEL

    @classmethod
    def from_result(cls, result: GroupResult, level: float = LEVEL) -> Self:
        """Return the display of a test's result."""
        return cls(result, level)

    def content(self) -> Bars:
        """Return the bars as data."""
        return groups_bars(self.result, self.level)


@dataclass(eq=False)
class GroupColumnDisplay(Display):
    """The distribution of one column in every group: median, 25 to 75 %, 5 to 95 %.

    Parameters
    ----------
    column : str
        The name of the column.
    quantiles : array of shape (T, 5)
        At 5, 25, 50, 75 and 95 %.
    labels : sequence of str
        The groups.
    n_rows : array of shape (T,)
        Their rows.
    different : collection of str, default=()
        Groups that differ from the rest, which are drawn in another colour.
    """

    column: str
    quantiles: Array
    labels: Sequence[str]
    n_rows: Array
    different: Collection[str] = ()

    @classmethod
    def from_result(
        cls, result: GroupResult, column: str | None = None, level: float = LEVEL
    ) -> Self:
        """Return one of the columns that differ most; the first, unless it is named."""
        found = _pictures(result)
        columns = {each.name: each for each in found.columns}
        if column is None:
            column = next(iter(columns))
        if column not in columns:
            raise MuhatError(unknown_name("GroupColumnDisplay, column", column, columns))
        labels = [str(label) for label in found.labels]
        different = different_groups(result, level)
        return cls(column, columns[column].quantiles, labels, found.n_rows, different)

    def content(self) -> Plot:
        """Return the quantiles as data."""
        column = ColumnQuantiles(self.column, self.quantiles)
        return group_column_plot(column, self.labels, self.n_rows, self.different)


def figure_of_groups(result: GroupResult, level: float = LEVEL) -> Any:
    """Return a figure of a test of groups; ``figure.savefig(...)`` writes it.

    It has the bars, the map and the distances of all pairs, and the columns that differ most.

    Parameters
    ----------
    result : GroupResult
        What the test found.
    level : float, default=0.05
        Groups and columns with a larger corrected p-value are not marked.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    from muhat.plots._draw import draw

    columns = group_column_plots(result, level)[:MAX_COLUMNS_DRAWN]
    figure = Figure(figsize=(15, 9.5 if columns else 5), layout="constrained")
    rows = figure.subfigures(1 + bool(columns), 1, squeeze=False)[:, 0]
    bars, places, distances = rows[0].subplots(1, 3)
    GroupBarsDisplay.from_result(result, level).plot(bars)
    GroupMapDisplay.from_result(result, level).plot(places)
    GroupDistanceDisplay.from_result(result).plot(distances)
    if columns:
        axes = np.atleast_1d(rows[1].subplots(1, len(columns)))
        for ax, plot in zip(axes, columns, strict=True):
            draw(plot, ax)
            ax.set_title(plot.title, **TITLE)
    # The room for the dendrogram depends on the height of the matrix: a second layout is closer.
    figure.draw_without_rendering()
    return figure


def _pictures(result: GroupResult) -> GroupPictures:
    """Return what a result has for pictures."""
    assert result.pictures is not None
    return result.pictures
