"""
Are x and y independent?
========================

A test of independence finds any kind of dependence, not only a linear one. Body mass index and
blood pressure against the progress of diabetes a year later, 150 patients.
"""

from sklearn.datasets import load_diabetes

from muhat import IndependenceTest, PermutationDisplay

data = load_diabetes()
x, y = data.data[:150, [2, 3]], data.target[:150, None]
result = IndependenceTest(n_permutations=199, random_state=0).test(x, y)
PermutationDisplay.from_result(result).plot()

print(result.verdict())
