"""Figures of a kernel mean itself: a function of x, along a line or over a plane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muhat._arrays import Array
from muhat._text import number
from muhat.figures._plot import BLACK, BLUE, Axis, Plot, Series


def mean_plot(rows: Array, axes: Sequence[Array], values: Array, names: Sequence[str]) -> Plot:
    """Return the values of a kernel mean of one or two features, and the rows.

    Parameters
    ----------
    rows : array of shape (n, 1) or (n, 2)
        The sample.
    axes : sequence of one or two arrays of shape (points,)
        Evenly spaced places along each feature.
    values : array of shape (points,) or (points, points)
        The function there; the first axis is that of the first feature.
    names : sequence of str
        The features.
    """
    x = axes[0]
    low, high = float(values.min()), float(values.max())
    ends = f"from {number(low)} to {number(high)}"
    horizontal = Axis(names[0], float(x[0]), float(x[-1]))
    if len(axes) == 1:
        return Plot(
            "The kernel mean",
            "The values of the function; ticks: the sample.",
            f"A curve {ends}.",
            horizontal,
            Axis("μ(x)", min(0.0, low), 1.05 * high),
            [
                Series("mean", "line", x, values, colour=BLUE),
                Series("rows", "rug", rows[:, 0], np.array([])),
            ],
            has_legend=False,
        )
    y = axes[1]
    return Plot(
        "The kernel mean",
        "Dark: large values of the function. Dots: the sample.",
        f"Shades of a function {ends}, and {len(rows):,} dots.",
        horizontal,
        Axis(names[1], float(y[0]), float(y[-1])),
        [
            Series("mean", "cells", x, y, values.T, colour=BLUE),
            Series("rows", "points", rows[:, 0], rows[:, 1], colour=BLACK),
        ],
        by_point=True,
        has_legend=False,
    )
