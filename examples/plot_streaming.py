"""
A kernel mean of a stream
=========================

``partial_fit`` adds rows to a kernel mean without keeping them. 1797 digits arrive in batches of
100. The picture shows the distance between the mean so far and the mean of all rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from muhat import Gaussian, KernelMean, Nystrom

X = np.random.default_rng(0).permutation(load_digits().data)
parts = {
    "kernel": Gaussian(30.0),
    "filter": "kme",
    "gram": Nystrom(landmarks=X[:200], n_components=200),
}
whole = KernelMean(**parts).fit(X).embedding_
mu, seen, distances = KernelMean(**parts), [], []
for batch in np.array_split(X, 18):
    mu.partial_fit(batch)
    seen.append(mu.n_samples_seen_)
    distances.append(mu.embedding_.distance(whole))

fig, ax = plt.subplots(layout="constrained")
ax.loglog(seen[:-1], distances[:-1], "o-")
ax.set(xlabel="rows so far", ylabel="distance to the mean of all rows (MMD)")

print(
    f"After {seen[8]} rows, half of them, the mean is {distances[8]:.3f} from that of all; "
    f"after the last, {distances[-1]:.0e}."
)
