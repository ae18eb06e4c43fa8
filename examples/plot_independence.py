"""
Are x and y independent?
========================

The test finds any kind of dependence, not only a linear one. x is the body mass index and blood
pressure of 150 patients, y the progression of diabetes a year later.
"""

from sklearn.datasets import load_diabetes

from muhat import IndependenceTest, PairDisplay, PermutationDisplay

data = load_diabetes()
x, y = data.data[:150, [2, 3]], data.target[:150, None]
result = IndependenceTest(n_permutations=199, random_state=0).test(x, y)
names = ["body mass index", "blood pressure"], "progression"
PairDisplay.from_samples(x, y, names).plot()  # the pair of columns that depend most
PermutationDisplay.from_result(result).plot()

print(result.verdict())
