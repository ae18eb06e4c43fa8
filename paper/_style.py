"""What all figures share: how a marker looks, axes, and the line of the plain average."""

from typing import Any


def style(colour: str = "#999999", marker: str = "*") -> dict[str, Any]:
    """Return a colour and a marker as keywords of matplotlib."""
    return {"color": colour, "marker": marker, "markeredgecolor": "black", "markeredgewidth": 0.6}


def without_frame(ax: Any) -> None:
    """Remove the upper and the right line around the axes."""
    ax.spines[["top", "right"]].set_visible(False)


def logarithmic(axis: Any) -> None:
    """Make an axis logarithmic, labelled at powers of ten alone."""
    from matplotlib.ticker import NullFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_minor_formatter(NullFormatter())


def zero_is_kme(ax: Any, named: bool = True) -> None:
    """Draw KME as the line at zero, named at its right end."""
    ax.axhline(0, color="#000000", linewidth=1, zorder=1)
    if named:
        ax.annotate(
            "KME",
            (1, 0),
            (4, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
        )
