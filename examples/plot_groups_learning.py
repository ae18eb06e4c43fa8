"""
Predict a number for each group
===============================

Each of sixty crates contains twenty bottles of three kinds of wine. We know the share of the first
kind in each crate, but not the kind of any bottle. ``GroupRegressor`` learns the share from the
measurements of all bottles of a crate. It then predicts the share in forty new crates, with
intervals. The crates are made up from real bottles; a bottle can be in several crates.
"""

import numpy as np
from matplotlib import pyplot

from muhat import GroupRegressor, load_dataset

rng = np.random.default_rng(0)
wine = load_dataset("wine")
kinds, codes = np.unique(wine.target, return_inverse=True)
shares = rng.dirichlet(np.ones(3), size=100)
crates = []
for share in shares:
    chances = share[codes] / np.bincount(codes)[codes]
    crates.append(wine.data[rng.choice(len(codes), 20, p=chances)])

model = GroupRegressor().fit(crates[:60], shares[:60, 0])
predicted = model.predict(crates[60:])
low, high = model.predict_interval(crates[60:], confidence=0.9).T
true = shares[60:, 0]
error = float(np.abs(predicted - true).mean())
covered = float(((low <= true) & (true <= high)).mean())

figure, ax = pyplot.subplots(figsize=(6, 5), layout="constrained")
ax.axline((0, 0), slope=1, color="black", linewidth=0.8)
ax.vlines(true, low, high, color="tab:blue", alpha=0.4)
ax.plot(true, predicted, "o", color="tab:blue", markersize=5)
ax.set(
    xlabel="true share of the first kind in a new crate",
    ylabel="predicted share, with intervals of 90 %",
    title=f"Forty new crates: off by {error:.2f}, {covered:.0%} in their intervals",
)
print(f"R² for crates that no choice has seen: {model.nested_score_:.2f}.")
