"""Figures as data, which displays draw with matplotlib and pages as SVG: one function for each."""

from muhat.figures._comparison import (
    filters_plot,
    leave_one_out_plot,
    smooth,
    spectrum_plot,
    stacked_bars,
    weights_bars,
)
from muhat.figures._conditional import (
    bandwidths_plot,
    errors_plot,
    fan_plot,
    filter_scores_plot,
    intervals_plot,
    predictions_plot,
    quantiles_plot,
)
from muhat.figures._drift import changes_bars, distances_plot, p_values_plot
from muhat.figures._groups import (
    dendrogram_plot,
    different_groups,
    distances_matrix,
    group_column_plots,
    group_map_plot,
    groups_bars,
)
from muhat.figures._mean import mean_plot
from muhat.figures._p_values import PValueMap
from muhat.figures._pair import Pair
from muhat.figures._pca import (
    components_plot,
    loadings_bars,
    noise_plot,
    scores_plot,
    variance_bars,
)
from muhat.figures._plot import PALETTE, Axis, Bar, Bars, Matrix, Plot, Series
from muhat.figures._prediction import new_rows_plot
from muhat.figures._testing import (
    differences_bars,
    permutations_plot,
    witness_along_plot,
    witness_plot,
)

__all__ = [
    "PALETTE",
    "Axis",
    "Bar",
    "Bars",
    "Matrix",
    "PValueMap",
    "Pair",
    "Plot",
    "Series",
    "bandwidths_plot",
    "changes_bars",
    "components_plot",
    "dendrogram_plot",
    "differences_bars",
    "different_groups",
    "distances_matrix",
    "distances_plot",
    "errors_plot",
    "fan_plot",
    "filter_scores_plot",
    "filters_plot",
    "group_column_plots",
    "group_map_plot",
    "groups_bars",
    "intervals_plot",
    "leave_one_out_plot",
    "loadings_bars",
    "mean_plot",
    "new_rows_plot",
    "noise_plot",
    "p_values_plot",
    "permutations_plot",
    "predictions_plot",
    "quantiles_plot",
    "scores_plot",
    "smooth",
    "spectrum_plot",
    "stacked_bars",
    "variance_bars",
    "weights_bars",
    "witness_along_plot",
    "witness_plot",
]
