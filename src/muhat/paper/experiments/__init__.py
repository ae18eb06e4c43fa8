"""The experiments of the paper, one file each: settings, pieces of work, and the tidy table they make."""

from muhat.paper.experiments import (
    appendix,
    figure_1,
    figure_2,
    figure_3a,
    figure_3b,
    figure_3c,
    loss,
    table_2,
    when_it_pays,
)
from muhat.paper.experiments.base import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (loss, figure_1, figure_2, figure_3a, figure_3b, figure_3c, appendix, when_it_pays, table_2)
}
"""The experiments by name, in the order of the paper."""

__all__ = ["EXPERIMENTS", "Experiment"]
