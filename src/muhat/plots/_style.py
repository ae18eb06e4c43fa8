"""What all figures of matplotlib share: colours, axes, and reproducible files."""

from __future__ import annotations

from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

from muhat._files import atomic_write
from muhat.errors import message
from muhat.filters import FILTERS

COLOURS = {name: kind.colour for name, kind in FILTERS.items()}
"""The colour of each filter, the same in every picture.

They are Okabe and Ito's, and Tol's wine, which colour-blind readers can distinguish."""

TITLE = {"loc": "left", "fontsize": 10}
"""How titles of panels are set."""

DPI = 200

METADATA_WITHOUT_DATE: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Nothing about when and with which version a file was written."""


def require_matplotlib(who: str = "muhat.plots") -> None:
    """Raise ImportError if matplotlib, an extra, is not installed."""
    if find_spec("matplotlib") is None:
        needed, advice = "drawing needs matplotlib", "run pip install 'muhat[plot]'"
        raise ImportError(message(who, needed, "no matplotlib", advice), name="matplotlib")


def save(figure: Any, path: str | PathLike[str]) -> None:
    """Write a matplotlib figure in one atomic step, as .png, .svg or .pdf by the path's ending.

    The same figure makes the same file, byte for byte. A PNG has the labels of its legends as its
    description, so that a test can see what a stored picture shows. A path that cannot be written
    raises FileError.
    """
    require_matplotlib()
    from matplotlib import rc_context

    form = Path(path).suffix.lower().removeprefix(".")
    metadata = dict(METADATA_WITHOUT_DATE.get(form, {}))
    labels = legend_labels(figure)
    if form == "png" and labels:
        metadata["Description"] = "; ".join(labels)
    with rc_context({"svg.hashsalt": "muhat"}):
        atomic_write(
            path, lambda file: figure.savefig(file, format=form, dpi=DPI, metadata=metadata)
        )


def legend_labels(figure: Any) -> list[str]:
    """Return the labels of all legends of a figure, each once."""
    labels: dict[str, None] = {}  # in their order, each once
    for legend in [*figure.legends, *(ax.get_legend() for ax in figure.axes)]:
        if legend is not None:
            labels |= {text.get_text(): None for text in legend.texts}
    return list(labels)


def axes_or_new(ax: Any) -> Any:
    """Return the axes given, or those of a new figure."""
    if ax is not None:
        return ax
    require_matplotlib()
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained", figsize=(7.5, 4.2))[1]


def without_frame(ax: Any) -> None:
    """Remove the upper and the right line around the axes."""
    ax.spines[["top", "right"]].set_visible(False)


def logarithmic(axis: Any) -> None:
    """Make an axis logarithmic, labelled at powers of ten alone."""
    from matplotlib.ticker import NullFormatter

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_minor_formatter(NullFormatter())
