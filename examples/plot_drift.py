"""
New speakers: a drift detector
==============================

Do new data still have the distribution of the reference? The reference is 330 vowels of eight
speakers. Three batches are other vowels of the same eight speakers. Seven batches are vowels of one
new speaker each. The probability of any false alarm, over all batches, is at most 5 %.
"""

import numpy as np

from muhat import DriftDetector, DriftDisplay, load_dataset

ROWS = 66  # of each speaker, in the order of the file
X = load_dataset("vowel").data
known = np.random.default_rng(0).permutation(X[: 8 * ROWS])
reference, *quiet = np.split(known, [5 * ROWS, 6 * ROWS, 7 * ROWS])
unknown = np.split(X[8 * ROWS :], 7)

detector = DriftDetector(horizon=10, random_state=0).fit(reference)
for number, batch in enumerate([*quiet, *unknown]):
    detector.update(batch, "known speakers" if number < 3 else f"new speaker {number - 2}")

DriftDisplay.from_detector(detector).plot()

alarms = [each.is_alarm for each in detector.history_]
known, new = sum(alarms[:3]), sum(alarms[3:])
print(f"There are {known} alarms in 3 batches of known speakers, and {new} in 7 of new ones.")
