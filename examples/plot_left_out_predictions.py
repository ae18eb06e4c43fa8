"""
Leave-one-out predictions without refits
========================================

Each row is predicted from all other rows. One eigendecomposition gives all these predictions
exactly, without refits. y is the progression of diabetes, x ten measurements of 442 patients.
"""

from sklearn.datasets import load_diabetes

from muhat import ConditionalMean, LeftOutDisplay

data = load_diabetes()
model = ConditionalMean().fit(data.data, data.target)
LeftOutDisplay.from_estimator(model).plot()

tried = sum(len(choice.grid) for choice in model.choices_)
print(
    f"{model.filter_} was best of {tried} candidates: "
    f"it predicts {100 * model.loo_score_:.0f} % of the variance of patients left out."
)
