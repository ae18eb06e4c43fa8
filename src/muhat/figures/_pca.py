"""The figure of kernel PCA: the error of left-out rows against components or λ."""

from __future__ import annotations

import numpy as np

from muhat._text import number
from muhat._wording import setting_text
from muhat.figures._plot import BLUE, Axis, Plot, Reading, Series
from muhat.filters import TruncatedSVD
from muhat.pca import ComponentPath


def components_plot(path: ComponentPath) -> Plot:
    """Return the reconstruction error of left-out rows, with its standard error.

    It is drawn against the number of components, or against λ or t of another filter.
    """
    x = np.asarray(path.grid, float)
    errors = path.errors
    spread = np.nan_to_num(path.standard_errors)
    lower, upper = np.maximum(errors - spread, 0), errors + spread
    chosen = (float(x[path.index]), float(errors[path.index]))
    taken = "given"
    if path.is_chosen:
        taken = "chosen"
    setting = _setting(path, path.index)
    readings = _readings(path)
    curve = Series("mean error", "line", x, errors, colour=BLUE, chosen=chosen, readings=readings)
    return Plot(
        "Error of left-out rows",
        "How far left-out rows are from what the components make of them, and one standard error. "
        f"The dot is what was {taken}. This error is smallest where most is kept: read where the "
        "curve becomes flat.",
        f"A curve of the error of {path.n_rows:,} left-out rows; at {setting} it is "
        f"{number(chosen[1])} ± {number(spread[path.index])}.",
        _parameter_axis(path),
        Axis("squared error in the RKHS", 0.0, 1.05 * float(upper.max()) or 1.0),
        [Series("± one standard error", "band", x, lower, upper, colour=BLUE), curve],
        note=f"marked: {setting}, {taken}",
    )


def _parameter_axis(path: ComponentPath) -> Axis:
    """Return the axis of the candidates: linear for components, logarithmic for λ and t."""
    least, most = float(path.grid[0]), float(path.grid[-1])
    if isinstance(path.filter, TruncatedSVD):
        return Axis("number of components", least, max(most, 1.0))
    return Axis(path.filter.symbol, least, max(most, 1.01 * least), is_log=True)


def _setting(path: ComponentPath, index: int) -> str:
    """Return a candidate as text."""
    value = path.grid[index]
    if not isinstance(path.filter, TruncatedSVD):
        return setting_text(path.filter.symbol, float(value))
    if value == 1:
        return "1 component"
    return f"{int(value)} components"


def _readings(path: ComponentPath) -> list[Reading]:
    """Return the error and its standard error at every candidate, as text."""
    readings = []
    for index, error in enumerate(path.errors):
        spread = number(path.standard_errors[index])
        text = f"{number(error)} ± {spread} at {_setting(path, index)}"
        readings.append((float(path.grid[index]), float(error), text))
    return readings
