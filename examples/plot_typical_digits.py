"""
Typical and untypical digits
============================

The value of a kernel mean at a row says how typical the row is. The data are the 182 images of the
digit 1 in scikit-learn's digits.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from muhat import KernelMean

digits = load_digits()
ones = digits.data[digits.target == 1]
typical = KernelMean().fit(ones).score_samples(ones)
order = typical.argsort()[::-1]

fig, axes = plt.subplots(2, 6, figsize=(7.5, 3), layout="constrained")
for ax, row in zip(axes.flat, [*order[:6], *order[-6:]], strict=True):
    ax.imshow(ones[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"μ(x) = {typical[row]:.2f}", fontsize="small")
    ax.axis("off")

ratio = typical.max() / typical.min()
print(
    f"The most typical one (first row) has {ratio:.1f} times the value of the least typical "
    "(end of the second row)."
)
