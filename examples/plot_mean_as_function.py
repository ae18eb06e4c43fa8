"""
The kernel mean is a function
=============================

A kernel turns every row into a function. The kernel mean is the average of these functions; it is
large where rows are dense. The data are two measurements of 178 wines.
"""

from sklearn.datasets import load_wine

from muhat import MeanDisplay, StackedMean

wine = load_wine()
X = wine.data[:, [0, 6]]
mu = StackedMean().fit(X)
display = MeanDisplay.from_estimator(mu, X).plot()
display.ax_.set(xlabel="alcohol", ylabel="flavanoids")

typical = mu.score_samples(X)
print(
    f"Wine {typical.argmax()} is the most typical of these 178, wine {typical.argmin()} the least."
)
