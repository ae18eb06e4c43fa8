"""
Average many estimates: the stacked mean
========================================

The stacked mean is a weighted average of many estimates: filters, fitted Gaussians and clusters.
Leave-one-out chooses the weights. The data are 60 radar returns of the ionosphere with 34 columns.
"""

import numpy as np
from sklearn.preprocessing import StandardScaler

from muhat import StackDisplay, StackedMean, load_dataset

rows = np.random.default_rng(0).permutation(load_dataset("ionosphere").data)[:60]
X = StandardScaler().fit_transform(rows)
mu = StackedMean().fit(X)
StackDisplay.from_estimator(mu).plot()

best = mu.gains_.argmax()
gain = f"{100 * mu.gain_:.0f} ± {100 * mu.gain_error_:.0f} %"
print(f"On held-out rows the stacked mean's risk is {gain} below that of the plain mean.")
print(f"By leave-one-out, {mu.names_[best]} alone is {100 * mu.gains_[best]:.0f} % below.")
