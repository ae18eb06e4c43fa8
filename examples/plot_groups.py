"""
Fifteen speakers on a map
=========================

Fifteen speakers say eleven vowels, six times each: 66 rows of ten measurements for each speaker.
Their kernel means are estimated together. The map shows two coordinates of each mean, with ellipses
of two standard errors. The matrix shows all distances.
"""

import numpy as np

from muhat import GroupDistanceDisplay, GroupMapDisplay, KernelMeans, load_dataset

NAMES = [f"m{t}" for t in range(1, 5)] + [f"f{t}" for t in range(1, 5)]
NAMES += [f"m{t}" for t in range(5, 9)] + [f"f{t}" for t in range(5, 8)]

vowel = load_dataset("vowel")  # rows come speaker by speaker, men (m) and women (f)
means = KernelMeans().fit(vowel.data, np.repeat(NAMES, 66))

GroupMapDisplay.from_estimator(means).plot()
GroupDistanceDisplay.from_estimator(means).plot()

are_women = np.char.startswith(means.groups_, "f")
women, men = means.coordinates_[are_women, 0], means.coordinates_[~are_women, 0]
is_separated = women.max() < men.min() or men.max() < women.min()
finding = "separates" if is_separated else "does not separate"
print(f"The first axis {finding} women from men. {means.verdict()}")
