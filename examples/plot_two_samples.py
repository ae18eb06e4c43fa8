"""
Do two samples come from one distribution?
==========================================

One exact p-value for many kernels, bandwidths and statistics, and the witness function: large at
rows of the first sample that the second lacks. Wines of two growers.
"""

from sklearn.datasets import load_wine

from muhat import TwoSampleTest, WitnessDisplay

wine = load_wine()
first, second = (wine.data[wine.target == grower][:, [0, 1, 2]] for grower in (1, 2))
result = TwoSampleTest(n_permutations=199, random_state=0).test(first, second)
WitnessDisplay.from_result(result).plot()

print(result.verdict())
