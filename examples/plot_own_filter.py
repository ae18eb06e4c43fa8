"""
Write your own filter
=====================

A filter needs one method, s(γ): which share is kept of a component with eigenvalue γ. Exact
leave-one-out scores are then computed automatically. This filter is Tikhonov's with squared
eigenvalues. It keeps more of large components and less of small ones. The data are 60 wines.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_wine

from muhat import Filter, FilterDisplay, compare


@dataclass
class Squared(Filter):
    """s_λ(γ) = γ²/(γ² + λ²)."""

    def shrinkage(self, gamma, parameter):
        """Return what is kept."""
        return np.square(gamma) / (np.square(gamma) + parameter**2)


comparison = compare(load_wine().data[::3], filters=["f-kmse", "tsvd", Squared()], standardize=True)
FilterDisplay.from_comparison(comparison).plot()

own, tikhonov = comparison.rows[-1], comparison["f-kmse"]
print(f"Ours gains {own.gain_text} % of KME's risk on 60 wines, Tikhonov's {tikhonov.gain_text} %.")
