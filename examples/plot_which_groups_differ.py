"""
Which groups differ?
====================

Fifteen speakers say eleven vowels: 90 rows of ten measurements for each vowel. Every speaker says
every vowel, so vowels are permuted within speakers. All vowels differ. The example asks which of
them differ by more than a tolerance.
"""

import numpy as np
import pandas as pd

from muhat import (
    GroupBarsDisplay,
    GroupColumnDisplay,
    GroupMapDisplay,
    GroupTest,
    GroupTreeDisplay,
    load_dataset,
)

WORDS = ["heed", "hid", "head", "had", "hard", "hud", "hod", "hoard", "hood", "who'd", "heard"]

vowel = load_dataset("vowel")  # rows come speaker by speaker, six times through the vowels
frame = pd.DataFrame(vowel.data, columns=[f"measurement {k}" for k in range(1, 11)])
speakers = np.repeat(np.arange(15), 66)
words = np.tile(WORDS, 90)

test = GroupTest(tolerance=0.3, n_permutations=199)
result = test.test(frame, words, strata=speakers)

GroupBarsDisplay.from_result(result).plot()
GroupMapDisplay.from_result(result).plot()
GroupTreeDisplay.from_result(result).plot()
GroupColumnDisplay.from_result(result).plot()
print(result.verdict())
