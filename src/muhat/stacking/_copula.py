"""The candidate whose columns keep their own distributions and depend as normal ones do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array
from muhat.stacking._candidates import Candidate, wave_of_measure
from muhat.stacking._measures import Copula, Measure
from muhat.stacking._sample import Folds, RandomFourierMoments, StackSample

MAX_COLUMNS = 100
"""Columns up to which the time that their dependence takes is small."""

PRIOR_SIZE = 1.0
"""Rows of independent columns that each correlation borrows: R is then positive definite."""

MIN_SCORE_SPREAD = 0.5
"""What the spread of normal scores is raised to: nine equal values in ten have more.

So a column that is constant but for noise has correlations near zero, and not those of the noise.
"""


@dataclass
class GaussianCopula(Candidate):
    """The features' own distributions, and the dependence of a normal vector.

    The features are x_j = Q_j(Φ(z_j)) with z ~ N(0, R): Q_j is the quantile function of the
    feature, a little smoothed, and R has n/(n + 1) of the correlations of n rows' normal scores.
    """

    def names(self, sample: StackSample) -> list[str]:
        """Return one name, if there are 2 to 100 features."""
        if not 1 < sample.X.shape[1] <= MAX_COLUMNS:
            return []
        return ["Gaussian copula"]

    def fit(self, sample: StackSample) -> list[Measure]:
        """Return the distribution."""
        return [self.of_scores(sample, sample.normal_scores)]

    def of_scores(self, sample: StackSample, scores: Array) -> Copula:
        """Return the distribution whose R is that of some scores of the rows."""
        products = (sample.masses * scores.T) @ scores
        spread = np.maximum(np.sqrt(np.diagonal(products)), MIN_SCORE_SPREAD)
        size = 1 / (sample.masses**2).sum()
        correlation = size / (size + PRIOR_SIZE) * products / (spread[:, None] * spread)
        np.fill_diagonal(correlation, 1)
        return Copula(sample.X, sample.masses, correlation)

    def left_out(
        self, sample: StackSample, folds: Folds, waves: RandomFourierMoments
    ) -> list[Array]:
        """Return the waves without each fold, in which the rows that are left keep their scores."""
        found = []
        for rows in folds:
            left = self.of_scores(sample.without(rows), sample.normal_scores[~rows])
            found.append(wave_of_measure(left, waves, ~rows))
        return [np.concatenate(found)]
