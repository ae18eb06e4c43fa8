"""
Save a model, send a report
===========================

A fitted model is saved to a file that contains no code. A result is written as one HTML page that
works offline. The data are wines of two growers.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import muhat

wine = load_wine()
X = wine.data[wine.target == 1][:, [0, 2]]
mu = muhat.KernelMean().fit(X)
with tempfile.TemporaryDirectory() as folder:
    muhat.save(mu, Path(folder, "mean.muhat"))
    loaded = muhat.load(Path(folder, "mean.muhat"))
    page = muhat.compare(X, filters="f-kmse").to_html(Path(folder, "report.html"))

others = wine.data[wine.target == 2][:, [0, 2]]
fig, ax = plt.subplots(layout="constrained")
bins = np.linspace(0, mu.score_samples(X).max(), 30)
ax.hist(loaded.score_samples(X), bins, alpha=0.6, density=True, label="the grower's own wines")
ax.hist(loaded.score_samples(others), bins, alpha=0.6, density=True, label="another grower's")
ax.set(xlabel="μ(x) of the model that was loaded", ylabel="density")
ax.legend(frameon=False)

same = bool((loaded.score_samples(others) == mu.score_samples(others)).all())
print(
    f"Loaded, the model gives the same values to the last bit: {same}; the report is one page of "
    f"{len(page) // 1000} kB."
)
