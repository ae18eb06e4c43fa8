"""Figures of the paper's experiments."""

from muhat.paper.plots.experiments import experiment_figure

__all__ = ["experiment_figure"]
