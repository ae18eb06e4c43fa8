"""Regression of y on the means of groups: each group is one point, fitted by `ConditionalMean`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat.conditional import ConditionalMean, ExtrapolationWarning
from muhat.groups._estimator import KernelMeans
from muhat.groups._joint import limited_means
from muhat.kernels import Gaussian

MEANS = ("plain", "filtered", "joint")
"""The estimates of the means that can be learnt from, alone or averaged."""

MIN_SPREAD_SHARE = 1e-6
"""Variance of the means around their centre, as a share of their mean squared norm, from which they
are learnt from. Filtered means of groups that do not differ are all but one point: what is left is
rounding, and a new group is infinitely far away on its scale."""


@dataclass(frozen=True, eq=False)
class MeansRegression:
    """Regression of y on one estimate of the groups' means.

    Attributes
    ----------
    model : ConditionalMean or None
        The regression, with means as rows. None if the means have collapsed to one point, or y is
        constant.
    scale : float
        The root mean square distance of the means from their centre, one in the units of the model.
        They are not centred: a group that is left out would have taken part in the centre, and be
        minus the sum of the others, which ridge regression without a penalty makes use of.
    intercept : array of shape (outputs,)
        The mean of y, which is predicted without a model.
    unit : float
        The largest difference of y from it, which is one in the units of the model.
    left_out : array of shape (T, outputs)
        The prediction for each group by the fit without its y.
    """

    model: ConditionalMean | None
    scale: float
    intercept: Array
    unit: float
    left_out: Array

    @classmethod
    def fit(cls, means: Array, y: Array, filter: Any) -> MeansRegression:
        """Choose between the linear kernel and Gaussian ones by exact leave-one-out.

        Parameters
        ----------
        means : array of shape (T, r)
            The means of the groups.
        y : array of shape (T, outputs)
            What is learnt.
        filter : str, Filter or list of these
            As of `ConditionalMean`.
        """
        T = len(means)
        scale = float(np.sqrt(((means - means.mean(axis=0)) ** 2).sum() / T))
        intercept = y.mean(axis=0)
        unit = float(np.abs(y - intercept).max())
        has_collapsed = scale**2 * T <= MIN_SPREAD_SHARE * (means**2).sum()
        if has_collapsed or not unit > 0:
            mean_of_others = intercept + (intercept - y) / (T - 1)
            return cls(None, 1.0, intercept, 1.0, mean_of_others)
        rows = np.column_stack([means, np.zeros(T)]) / scale
        fits = []
        for kernel, bandwidth in (("linear", None), (Gaussian(), "loo")):
            model = ConditionalMean(
                kernel=kernel, bandwidth=bandwidth, filter=filter, standardize=False
            )
            fits.append(model.fit(rows, (y - intercept) / unit))
        best = min(fits, key=lambda model: model.choice_.score)
        left_out = intercept + unit * best.loo_predictions_
        return cls(best, scale, intercept, unit, left_out)

    def rows(self, means: Array) -> Array:
        """Return means as the model sees them, of shape (m, r + 1).

        The last coordinate is the length outside of the fitted means, which may be left out.
        """
        if self.model is not None and means.shape[1] < self.model.n_features_in_:
            means = np.column_stack([means, np.zeros(len(means))])
        return means / self.scale

    def predict(self, means: Array) -> Array:
        """Return the predictions for new means, of shape (m, outputs)."""
        if self.model is None:
            return np.tile(self.intercept, (len(means), 1))
        return self.intercept + self.unit * self.model.predict(self.rows(means))

    def interval(self, means: Array, confidence: float, method: str) -> Array | None:
        """Return intervals for new means as `ConditionalMean` has them, of shape (m, outputs, 2).

        None without a model.
        """
        if self.model is None:
            return None
        # Coordinates of means have no ranges that a new group could be said to leave.
        with warnings.catch_warnings(action="ignore", category=ExtrapolationWarning):
            found = self.model.predict_interval(self.rows(means), confidence, method)
        return self.intercept[:, None] + self.unit * found


@dataclass(frozen=True, eq=False)
class GroupRegressions:
    """Regressions on one or several estimates of the means, whose predictions are averaged.

    Attributes
    ----------
    by_means : mapping of str to MeansRegression
        The regressions by the name of the means.
    """

    by_means: Mapping[str, MeansRegression]

    @classmethod
    def fit(cls, means: Mapping[str, Array], y: Array, filter: Any) -> GroupRegressions:
        """Fit a regression to each of the estimates."""
        fits = {}
        for name, vectors in means.items():
            fits[name] = MeansRegression.fit(vectors, y, filter)
        return cls(fits)

    @property
    def left_out(self) -> Array:
        """The prediction for each group by the fits without its y, of shape (T, outputs)."""
        return np.mean([each.left_out for each in self.by_means.values()], axis=0)

    @property
    def single(self) -> MeansRegression | None:
        """The regression, if there is only one."""
        if len(self.by_means) > 1:
            return None
        return next(iter(self.by_means.values()))

    def of(self, names: Sequence[str]) -> GroupRegressions:
        """Return the regressions on some of the estimates."""
        return GroupRegressions({name: self.by_means[name] for name in names})

    def predict(self, means: Mapping[str, Array]) -> Array:
        """Return the predictions for new means, of shape (m, outputs)."""
        found = []
        for name, regression in self.by_means.items():
            found.append(regression.predict(means[name]))
        return np.mean(found, axis=0)


def fitted_vectors(means: KernelMeans, names: Sequence[str]) -> dict[str, Array]:
    """Return estimates of the means of the fitted groups, each of shape (T, r)."""
    joint = means._joint
    found = {"plain": joint.vectors.Z, "joint": joint.means}
    if "filtered" in names:
        found["filtered"] = limited_means(joint.vectors, joint.filter_weights, joint.kappa).means
    return {name: found[name] for name in names}


def new_vectors(
    means: KernelMeans, samples: Sequence[Array], names: Sequence[str]
) -> dict[str, Array]:
    """Return the same of new groups beside the fitted ones, each of shape (m, r + 1)."""
    joint = means._joint
    weights = {"filtered": joint.filter_weights, "joint": joint.candidate_weights}
    found: dict[str, list[Array]] = {name: [] for name in names}
    for sample in samples:
        new = means._space.new_group(means._scaled(sample), joint.vectors)
        for name in names:
            vector = new.vector
            if name != "plain":
                vector = joint.mean_of_new(vector, new.n, new.own, weights[name])
            found[name].append(vector)
    return {name: np.array(vectors) for name, vectors in found.items()}
