"""
How many landmarks are enough?
==============================

Nyström's method represents a large sample by few landmarks. The error of this approximation should
be small compared with the standard error of the mean itself. The data are 1797 digits.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from muhat import KernelMean, Nystrom

X = load_digits().data
sizes = [25, 50, 100, 200, 400]
errors = [
    KernelMean(filter="kme", gram=Nystrom(size)).fit(X).approximation_error_ for size in sizes
]
exact = KernelMean(filter="kme", gram="dense").fit(X)
standard_error = ((1 - exact.embedding_.squared_norm()) / len(X)) ** 0.5

fig, ax = plt.subplots(layout="constrained")
ax.loglog(sizes, errors, "o-", label="what the landmarks miss")
ax.axhline(standard_error, color="black", linewidth=1, label="standard error of the mean")
ax.set(xlabel="landmarks", ylabel="in the norm of the RKHS")
ax.legend(frameon=False)

print(
    f"400 landmarks miss {100 * errors[-1] / standard_error:.0f} % of the standard error "
    f"of 1797 rows, 25 miss {errors[0] / standard_error:.1f} times it."
)
