"""A figure for each experiment that reproduces the paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muhat._messages import unknown_name
from muhat.paper.plots.conditions import appendix_figure, when_it_pays_figure
from muhat.paper.plots.dots import loss_figure, table_2_figure
from muhat.paper.plots.figure_3 import figure_3a, figure_3b, figure_3c
from muhat.paper.plots.geometry import figure_1, figure_2
from muhat.paper.reproduction import Results
from muhat.plots._style import PRINT

FIGURES: dict[str, Callable[[Results], Any]] = {
    "loss": loss_figure,
    "figure-1": figure_1,
    "figure-2": figure_2,
    "figure-3a": figure_3a,
    "figure-3b": figure_3b,
    "figure-3c": figure_3c,
    "appendix": appendix_figure,
    "when-it-pays": when_it_pays_figure,
    "table-2": table_2_figure,
}
"""What draws each experiment, by the experiment's name."""


def experiment_figure(name: str, results: Results) -> Any:
    """Return the figure of an experiment, made without a screen.

    Parameters
    ----------
    name : str
        The name of the experiment, such as ``"figure-3c"``.
    results : Results
        What got of it.

    Returns
    -------
    figure : matplotlib Figure
        For :func:`muhat.plots.save`.
    """
    from matplotlib import rc_context

    if name not in FIGURES:
        raise ValueError(unknown_name("experiment_figure", name, FIGURES))
    with rc_context(PRINT):
        return FIGURES[name](results)
