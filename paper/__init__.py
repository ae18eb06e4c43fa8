"""The paper's experiments, one file each, with their runner and the pages of evidence.

The theorems are functions of ``muhat.theory``, the samples are in ``muhat.datasets``. To add an
experiment, write a file with an ``EXPERIMENT`` and name it in the list below. Nothing else in muhat
imports this package.
"""

from paper import (
    alternatives_of_tests,
    appendix,
    conditional_accuracy,
    conditional_saturation,
    default_rule,
    figure_1,
    figure_2,
    figure_3a,
    figure_3b,
    figure_3c,
    finite_populations,
    levels_of_tests,
    loss,
    power_of_tests,
    radius_coverage,
    table_2,
    times_of_tests,
    when_it_pays,
)
from paper._claims import Claim, Finding
from paper._experiment import Experiment, Results
from paper._figures import draw
from paper._files import ResultsError
from paper._page import Page, evidence_page
from paper._results import read_finished, read_results
from paper._run import reproduce
from paper._workers import TaskError

TESTS = (levels_of_tests, alternatives_of_tests, power_of_tests, times_of_tests)

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        *(loss, figure_1, figure_2, figure_3a, figure_3b, figure_3c, appendix),
        *(when_it_pays, table_2),
    )
}
"""The experiments by name, in the order of the paper."""

PAGES: dict[str, Page] = {
    "evidence": Page(EXPERIMENTS),
    "stacking-evidence": Page(
        {
            module.EXPERIMENT.name: module.EXPERIMENT
            for module in (finite_populations, default_rule)
        },
        title="The stacked mean: the evidence",
        preface=(
            "What `StackedMean` and the default `KernelMean()` gain over the plain average on real "
            "data, on mixtures fitted to them and on hard laws, by `python -m paper stacking`. "
            "Results are as they came out."
        ),
    ),
    "conditional-evidence": Page(
        {
            module.EXPERIMENT.name: module.EXPERIMENT
            for module in (conditional_accuracy, conditional_saturation, radius_coverage)
        },
        title="Conditional means and the radius: the evidence",
        preface=(
            "`ConditionalMean` and `KernelMean.radius`, measured by `python -m paper conditional`."
        ),
    ),
    "tests-evidence": Page(
        {module.EXPERIMENT.name: module.EXPERIMENT for module in TESTS},
        title="Tests of two samples, of independence and of drift: the evidence",
        preface="Levels, power and times of the tests, measured by `python -m paper tests`.",
    ),
}
"""The pages of results, by the names of their files; only the first is on the paper itself."""

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
