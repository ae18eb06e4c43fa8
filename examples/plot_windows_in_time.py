"""
MMD over time
=============

The distance between two kernel means is the maximum mean discrepancy (MMD). Here the mean of each
block of 66 vowels is compared with the mean of the first four blocks, in the order of the file.
"""

import matplotlib.pyplot as plt
import numpy as np

from muhat import KernelMean, load_dataset

X = load_dataset("vowel").data
before = KernelMean(filter="f-kmse").fit(X[:264])
blocks = np.split(X, len(X) // 66)
distances = [
    KernelMean(kernel=before.kernel_, filter="f-kmse")
    .fit(rows)
    .embedding_.distance(before.embedding_)
    for rows in blocks
]

fig, ax = plt.subplots(layout="constrained")
ax.bar(np.arange(len(blocks)), distances, color=["0.6"] * 4 + ["tab:blue"] * (len(blocks) - 4))
ax.set(
    xlabel="block of 66 rows (grey: those of the beginning)",
    ylabel="distance to the mean of the beginning (MMD)",
)

later = np.argmax(distances[4:]) + 4
ratio = distances[later] / np.mean(distances[:4])
print(
    f"Block {later} is furthest from the beginning: {ratio:.1f} times as far "
    "as the first four blocks themselves."
)
