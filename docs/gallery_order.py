"""The order of the gallery: questions that most people have first, the inside of it last."""

from pathlib import Path

ORDER = [
    "two_samples",
    "which_columns_differ",
    "independence",
    "drift",
    "which_groups_differ",
    "groups",
    "groups_learning",
    "quantiles_given_x",
    "left_out_predictions",
    "kernel_pca",
    "covariate_shift",
    "report_and_keep",
    "typical_digits",
    "mean_as_function",
    "compare_estimators",
    "when_it_pays",
    "stacked_mean",
    "mixture_density",
    "herding",
    "windows_in_time",
    "streaming",
    "landmarks",
    "filters_on_spectrum",
    "own_filter",
]


class ByTask:
    """Sorts examples by their place in ``ORDER``; those that are not in it come last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        """Return what an example is sorted by."""
        short = Path(name).stem.removeprefix("plot_")
        place = len(ORDER)
        if short in ORDER:
            place = ORDER.index(short)
        return place, short

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
