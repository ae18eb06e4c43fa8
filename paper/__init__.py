"""The paper's experiments, one file each, with their runner and the pages of evidence.

``python -m paper`` runs them, from a clone. ``paper.experiments`` has a file for each experiment,
``paper/_experiment.py`` says what one is, ``paper/_run.py`` runs them, ``paper/_page.py`` writes
the pages. All of it uses public names of muhat only, and nothing in muhat imports it.
"""

from paper._claims import Claim, Finding
from paper._experiment import Experiment, Results
from paper._figures import draw
from paper._files import ResultsError
from paper._page import Page, evidence_page
from paper._results import read_finished, read_results
from paper._run import reproduce
from paper._workers import TaskError
from paper.experiments import EXPERIMENTS, PAGES

__all__ = [
    "EXPERIMENTS",
    "PAGES",
    "Claim",
    "Experiment",
    "Finding",
    "Page",
    "Results",
    "ResultsError",
    "TaskError",
    "draw",
    "evidence_page",
    "read_finished",
    "read_results",
    "reproduce",
]
