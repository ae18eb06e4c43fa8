"""
Kernel herding: a small representative sample
=============================================

Kernel herding picks rows one by one, so that their kernel mean stays close to the kernel mean of
the whole sample. It needs fewer rows than a random choice. The data are 150 irises.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from muhat import Embedding, KernelMean

X = load_iris().data
mu = KernelMean().fit(X)
K, values = mu.kernel_(X), mu.score_samples(X)
picked = []
for step in range(40):
    repelled = K[:, picked].sum(axis=1) / (step + 1)
    picked.append(int(np.argmax(values - repelled)))


def distance(rows):
    """Return how far the mean of some rows is from that of the sample."""
    return Embedding(mu.kernel_, X[rows], np.full(len(rows), 1 / len(rows))).distance(mu.embedding_)


rng = np.random.default_rng(0)
sizes = np.arange(2, 41)
herded = [distance(picked[:size]) for size in sizes]
random = [
    np.mean([distance(rng.choice(len(X), size, replace=False)) for _ in range(20)])
    for size in sizes
]

fig, ax = plt.subplots(layout="constrained")
ax.loglog(sizes, random, label="random rows, mean of 20")
ax.loglog(sizes, herded, label="herded rows")
ax.set(xlabel="rows", ylabel="distance to the mean of all 150 (MMD)")
ax.legend(frameon=False)

needed = sizes[next(i for i, value in enumerate(herded) if value < random[-1])]
print(f"{needed} herded rows are as near to the mean of all as 40 random ones.")
