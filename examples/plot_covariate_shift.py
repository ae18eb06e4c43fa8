"""
Reweight a sample to match another
==================================

Kernel mean matching finds weights for patients below 50, so that their weighted distribution is
like that of the patients above 50. The average of y then changes as well.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from muhat import KernelMeanMatching

data = load_diabetes(scaled=False)
X, y = data.data, data.target
covariates = (X[:, 2:5] - X[:, 2:5].mean(axis=0)) / X[:, 2:5].std(axis=0)
young = X[:, 0] < 50
matching = KernelMeanMatching(bound=5.0, tol=1e-4).fit(covariates[young], covariates[~young])

fig, ax = plt.subplots(layout="constrained")
ax.scatter(X[young, 2], X[young, 3], s=12 * matching.weights_ + 1, alpha=0.6)
ax.set(xlabel="body mass index", ylabel="blood pressure (area: weight of a patient below 50)")

plain = y[young].mean()
weighted = np.average(y[young], weights=matching.weights_)
print(
    f"Below 50 y is {plain:.0f} on average, with weights {weighted:.0f}; "
    f"above 50 it is {y[~young].mean():.0f}."
)
