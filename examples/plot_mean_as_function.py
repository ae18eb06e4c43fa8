"""
The mean of a sample is a function
==================================

A kernel turns every row into a function, and a sample into the mean of these functions: high
where rows are dense. Two measurements of 178 wines, and their stacked mean.
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
