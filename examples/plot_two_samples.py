"""
Do two samples come from one distribution?
==========================================

The test gives one exact p-value for many kernels, bandwidths and statistics. The witness function
is positive where the first sample is denser. The data are wines of two growers.
"""

from sklearn.datasets import load_wine

from muhat import TwoSampleTest, WitnessDisplay

wine = load_wine()
first, second = (wine.data[wine.target == grower][:, [0, 1, 2]] for grower in (1, 2))
names = ("grower 1", "grower 2")
result = TwoSampleTest(n_permutations=199, random_state=0).test(first, second, names=names)
WitnessDisplay.from_result(result).plot()

print(result.verdict())
