"""The display of kernel PCA: the error of left-out rows against components or λ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from muhat.figures import Plot, components_plot
from muhat.pca import KernelPCA
from muhat.plots._display import Display


@dataclass(eq=False)
class ComponentsDisplay(Display):
    """The reconstruction error of left-out rows against the number of components, or λ.

    The band is one standard error, the dot the number that the estimator has.

    Parameters
    ----------
    curve : Plot
        The candidates, their mean errors and the standard errors of these.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import KernelPCA
    >>> pca = KernelPCA(3).fit(np.random.default_rng(0).normal(size=(30, 2)))
    >>> display = ComponentsDisplay.from_estimator(pca)  # and display.plot() to draw it
    >>> display.curve.x.label
    'number of components'
    """

    curve: Plot

    @classmethod
    def from_estimator(cls, estimator: KernelPCA) -> Self:
        """Return the display of a fitted ``KernelPCA``."""
        return cls(components_plot(estimator.leave_one_out()))

    def content(self) -> Plot:
        """Return the curve."""
        return self.curve
