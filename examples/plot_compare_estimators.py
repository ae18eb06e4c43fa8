"""
Which estimator of the mean is best here?
=========================================

Sixty tumours of 30 measurements each: few rows, many columns. ``compare`` scores every filter by
exact leave-one-out, on one eigendecomposition, and says how sure it is.
"""

from sklearn.datasets import load_breast_cancer

from muhat import LeaveOneOutDisplay, compare

comparison = compare(load_breast_cancer().data[:60], standardize=True)
LeaveOneOutDisplay.from_comparison(comparison).plot()

print(comparison.verdict())
