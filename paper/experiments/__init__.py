"""The experiments, one file each, and the pages that show them.

To add one, write a file with an ``EXPERIMENT`` and name it in the list of a page below.
"""

from types import ModuleType

from paper._experiment import Experiment
from paper._page import Page
from paper.experiments import (
    alternatives_of_tests,
    appendix,
    conditional_accuracy,
    conditional_saturation,
    default_rule,
    differences_of_tests,
    figure_1,
    figure_2,
    figure_3a,
    figure_3b,
    figure_3c,
    finite_populations,
    group_gains,
    group_learning,
    group_means,
    levels_of_groups,
    levels_of_tests,
    loss,
    many_rows_of_tests,
    odd_groups,
    pca_components,
    pca_denoising,
    pca_novelty,
    power_of_tests,
    radius_coverage,
    table_2,
    times_of_tests,
    when_it_pays,
)

__all__ = ["EXPERIMENTS", "PAGES"]


def _by_name(*modules: ModuleType) -> dict[str, Experiment]:
    found = {}
    for module in modules:
        found[module.EXPERIMENT.name] = module.EXPERIMENT
    return found


EXPERIMENTS: dict[str, Experiment] = _by_name(
    loss,
    figure_1,
    figure_2,
    figure_3a,
    figure_3b,
    figure_3c,
    appendix,
    when_it_pays,
    table_2,
)
"""The experiments of the paper by name, in its order."""

PAGES: dict[str, Page] = {
    "evidence": Page(EXPERIMENTS),
    "stacking-evidence": Page(
        _by_name(finite_populations, default_rule),
        title="The stacked mean: the evidence",
        preface=(
            "What `StackedMean` and the default `KernelMean()` gain over the plain average on real "
            "data, on mixtures fitted to them and on hard laws, by `python -m paper stacking`. "
            "Results are as they came out."
        ),
    ),
    "conditional-evidence": Page(
        _by_name(conditional_accuracy, conditional_saturation, radius_coverage),
        title="Conditional means and the radius: the evidence",
        preface=(
            "`ConditionalMean` and `KernelMean.radius`, measured by `python -m paper conditional`."
        ),
    ),
    "groups-evidence": Page(
        _by_name(group_means, group_gains, group_learning),
        title="Many groups: the evidence",
        preface=(
            "`KernelMeans`, the gain that it reports, and `GroupRegressor` and `GroupClassifier`, "
            "measured by `python -m paper groups`. Results are as they came out."
        ),
    ),
    "pca-evidence": Page(
        _by_name(pca_components, pca_denoising, pca_novelty),
        title="Kernel PCA: the evidence",
        preface=(
            "The number of components, denoising and novelty by `KernelPCA`, measured by "
            "`python -m paper pca`. Results are as they came out."
        ),
    ),
    "tests-evidence": Page(
        _by_name(
            levels_of_tests,
            alternatives_of_tests,
            differences_of_tests,
            many_rows_of_tests,
            power_of_tests,
            times_of_tests,
        ),
        title="Tests of two samples, of independence and of drift: the evidence",
        preface="Levels, power and times of the tests, measured by `python -m paper tests`.",
    ),
    "group-tests-evidence": Page(
        _by_name(levels_of_groups, odd_groups),
        title="Tests of many groups: the evidence",
        preface=(
            "Levels of `GroupTest` under designs, with the designs ignored, and with a tolerance; "
            "odd groups, found and falsely found. Measured by `python -m paper group-tests`."
        ),
    ),
}
"""The pages of results, by the names of their files; only the first is on the paper itself."""
