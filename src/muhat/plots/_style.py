"""What all pictures share: a colour, a marker and a name for each estimator, sizes for print, axes and legends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from string import ascii_lowercase
from typing import Any

COLOURS = {
    "kme": "#000000",
    "s-kmse": "#E69F00",
    "f-kmse": "#0072B2",
    "iterated-tikhonov": "#56B4E9",
    "landweber": "#D55E00",
    "nu-method": "#CC79A7",
    "tsvd": "#009E73",
    "componentwise": "#F0E442",
    "auto": "#5D5D5D",
    "maximum likelihood": "#808080",
    "k-means": "#B3B3B3",
}
"""A colour for each estimator, the same in every picture (Okabe and Ito's, which the colour-blind can tell apart, and
greys for what is not one filter)."""

MARKERS = {
    "kme": "o",
    "s-kmse": "s",
    "f-kmse": "o",
    "iterated-tikhonov": "D",
    "landweber": "^",
    "nu-method": "v",
    "tsvd": "P",
    "componentwise": "h",
    "auto": "X",
    "maximum likelihood": "d",
    "k-means": "p",
}
"""A marker for each, for those who print in black and white."""

NAMES = {
    "kme": "KME",
    "s-kmse": "S-KMSE",
    "f-kmse": "F-KMSE",
    "landweber": "Landweber",
    "nu-method": "ν-method",
    "iterated-tikhonov": "iterated Tikhonov",
    "tsvd": "truncated SVD",
    "componentwise": "component-wise",
    "auto": "auto",
    "maximum likelihood": "maximum likelihood",
    "k-means": "k-means",
}
"""What the pictures of the paper's experiments call each, in the order of their legends."""

OTHER_COLOUR, OTHER_MARKER = "#999999", "*"
"""For a filter of the user's own."""

WIDTH = 7.0
"""Inches: a page's text, so that a font is printed in the size it has here."""

PRINT: Any = {
    "font.size": 9.0,
    "axes.labelsize": 9.0,
    "axes.titlesize": 9.0,
    "legend.fontsize": 8.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "axes.linewidth": 0.7,
    "mathtext.fontset": "dejavusans",
}
"""Settings of matplotlib for a figure in print."""


def style_of(estimator: str) -> dict[str, Any]:
    """Return an estimator's own colour and marker, as keywords of matplotlib."""
    return {
        "color": COLOURS.get(estimator, OTHER_COLOUR),
        "marker": MARKERS.get(estimator, OTHER_MARKER),
        "markeredgecolor": "black",
        "markeredgewidth": 0.6,
    }


def name_of(estimator: str) -> str:
    """Return what a picture calls an estimator."""
    return NAMES.get(estimator, estimator)


def blank(height: float, width: float = WIDTH) -> Any:
    """Return an empty figure of so many inches, made without a screen."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.05))


def axes_or_new(ax: Any) -> Any:
    """Return the axes given, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained", figsize=(7.5, 4.2))[1]


def plain(ax: Any) -> None:
    """Take away the lines that say nothing."""
    ax.spines[["top", "right"]].set_visible(False)


def lettered(axes: Iterable[Any], titles: Sequence[str]) -> None:
    """Give panels their letters and short titles."""
    for letter, ax, title in zip(ascii_lowercase, axes, titles, strict=False):
        ax.set_title(f"({letter}) {title}", loc="left")


def logarithmic(axis: Any) -> None:
    """Make an axis logarithmic, labelled at powers of ten alone."""
    from matplotlib.ticker import NullFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_minor_formatter(NullFormatter())


def percents(ax: Any) -> None:
    """Make the vertical axis linear up to one percent and logarithmic beyond, labelled with plain numbers."""
    from matplotlib.ticker import FuncFormatter

    ax.set_yscale("symlog", linthresh=1.0)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))


def zero_is_kme(ax: Any, named: bool = True) -> None:
    """Draw KME as the line at zero, named at its right end."""
    ax.axhline(0, color=COLOURS["kme"], linewidth=1, zorder=1)
    if named:
        ax.annotate("KME", (1, 0), (4, 0), xycoords=("axes fraction", "data"), textcoords="offset points", va="center")


def legend_below(figure: Any, entries: dict[str, Any], columns: int = 4) -> None:
    """Put a legend under all panels, where it covers nothing."""
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        handlelength=2.6,
    )
