"""
Which groups differ?
====================

Eleven vowels, 90 rows of ten measurements each, by fifteen speakers. Every speaker says every
vowel, so labels are permuted within speakers. All vowels differ; which of them differ by more than
a tolerance?
"""

import numpy as np
import pandas as pd

from muhat import GroupTest, load_dataset
from muhat.plots import figure_of_groups

WORDS = ["heed", "hid", "head", "had", "hard", "hud", "hod", "hoard", "hood", "who'd", "heard"]

vowel = load_dataset("vowel")  # rows come speaker by speaker, six times through the vowels
frame = pd.DataFrame(vowel.data, columns=[f"measurement {k}" for k in range(1, 11)])
speakers = np.repeat(np.arange(15), 66)
words = np.tile(WORDS, 90)

test = GroupTest(tolerance=0.3, n_permutations=199)
result = test.test(frame, words, strata=speakers)
figure = figure_of_groups(result)
print(result.verdict())
