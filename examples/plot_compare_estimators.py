"""
Which kernel mean estimator is best?
====================================

The data are sixty tumours with 30 measurements each: few rows, many columns. ``compare`` scores
every filter by exact leave-one-out, and tests whether any filter is better than the plain average.
"""

from sklearn.datasets import load_breast_cancer

from muhat import LeaveOneOutDisplay, compare

comparison = compare(load_breast_cancer().data[:60], standardize=True)
LeaveOneOutDisplay.from_comparison(comparison).plot()

print(comparison.verdict())
