"""The figure of new rows: predictions against true values, or with their intervals."""

from __future__ import annotations

import numpy as np

from muhat._wording import rows_text
from muhat.conditional import PredictionResult, r2_text
from muhat.errors import MuhatError
from muhat.figures._conditional import intervals_plot, predictions_plot
from muhat.figures._plot import Plot


def new_rows_plot(result: PredictionResult) -> Plot:
    """Return new rows against their true values.

    Where these are not known, predictions with their intervals, along the feature with the largest
    effect.

    Parameters
    ----------
    result : PredictionResult
        Predictions of new rows.
    """
    if result.new_rows is None:
        needed = "predictions of new rows are needed"
        raise MuhatError("new_rows_plot", needed, "predictions of left-out training rows")
    name, target, n = result.name, result.target, rows_text(len(result.predicted))
    if result.true is None:
        column = int(np.argmax(result.importance))
        title = f"{target}: predictions of {name}"
        note = f"{n}, {100 * result.confidence:g} % intervals"
        x = result.new_rows[:, column]
        return intervals_plot(
            target, x, result.predicted, result.ends, result.columns[column], title, note
        )
    note = n
    if result.r2 is not None:
        note += f", R² {r2_text(result.r2)}"
    return predictions_plot(
        target,
        result.true,
        result.predicted,
        f"{target}: predictions of {name} against true values",
        f"Each dot is a row of {name}, predicted by the model fitted to the training rows.",
        note,
    )
