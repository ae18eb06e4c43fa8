"""
What is y given x, and how sure?
================================

``ConditionalMean`` predicts quantiles of y for each x, without assuming a shape of the noise. y is
the progression of diabetes, x the body mass index and blood pressure.
"""

from sklearn.datasets import load_diabetes

from muhat import ConditionalMean, QuantileDisplay

data = load_diabetes()
x, y = data.data[:, [2, 3]], data.target
model = ConditionalMean().fit(x, y)
NAMES = ("body mass index (standardized)", "progression")
display = QuantileDisplay.from_estimator(model, x, y, names=NAMES).plot()

low, high = (display.quantiles[:, -1] - display.quantiles[:, 0])[[20, 60]]
print(
    f"Between the 5 % and the 95 % quantile lie {low:.0f} units of y where the index is low, "
    f"{high:.0f} where it is high."
)
