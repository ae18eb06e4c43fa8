"""
Which columns differ?
=====================

A test of two samples also gives a p-value for each column, corrected for the number of columns. The
data are ten measurements of 60 benign and 60 malignant tumours.
"""

import pandas as pd
from sklearn.datasets import load_breast_cancer

from muhat import FeatureDifferenceDisplay, TwoSampleTest

data = load_breast_cancer()
frame = pd.DataFrame(data.data[:, :10], columns=data.feature_names[:10])
frame /= frame.std()
benign, malignant = frame[data.target == 1][:60], frame[data.target == 0][:60]
names = ("benign", "malignant")
result = TwoSampleTest(n_permutations=199, random_state=0).test(benign, malignant, names=names)
FeatureDifferenceDisplay.from_result(result, names).plot()

different = sum(each.p_value <= 0.05 for each in result.features)
most = result.features[0].name
print(f"{different} of 10 columns differ at the level 0.05, {most} most.")
