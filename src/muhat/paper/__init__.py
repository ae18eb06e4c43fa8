"""The paper's experiments, one file each, with their runner and the page that sets them beside the paper's claims.

The theorems are functions of ``muhat.paper.theory``, the samples are in ``muhat.paper.datasets``. To add an experiment,
write a file with an ``EXPERIMENT`` and name it in the list below. Nothing else in muhat imports this package.
"""

from muhat.paper import (
    appendix,
    figure_1,
    figure_2,
    figure_3a,
    figure_3b,
    figure_3c,
    finite_populations,
    loss,
    table_2,
    when_it_pays,
)
from muhat.paper._claims import Claim
from muhat.paper._experiment import Experiment, Results
from muhat.paper._figures import draw
from muhat.paper._page import evidence_page
from muhat.paper._results import read_finished, read_results
from muhat.paper._run import reproduce
from muhat.paper._workers import TaskError

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        *(loss, figure_1, figure_2, figure_3a, figure_3b, figure_3c, appendix),
        *(when_it_pays, finite_populations, table_2),
    )
}
"""The experiments by name, in the order of the paper."""

__all__ = [
    "EXPERIMENTS",
    "Claim",
    "Experiment",
    "Results",
    "TaskError",
    "draw",
    "evidence_page",
    "read_finished",
    "read_results",
    "reproduce",
]
