"""Every filter on one sample, side by side: which is better here, and by how much of KME's risk."""

from muhat.comparison._best import fit_best
from muhat.comparison._compare import compare, passes
from muhat.comparison._result import Comparison
from muhat.comparison._row import Row

__all__ = ["Comparison", "Row", "compare", "fit_best", "passes"]
