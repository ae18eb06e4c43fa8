"""A conditional distribution.

The outputs of the sample, with weights that make it a true distribution at each x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._arrays import Array, as_array
from muhat._random_states import as_random_state
from muhat._validation import whole_number
from muhat.errors import MuhatError


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalDistribution:
    """The distribution of y given each of several x: probabilities on the outputs of the sample.

    Attributes
    ----------
    outputs : array of shape (n, n_outputs)
        The outputs y_i of the sample.
    probabilities : array of shape (m, n)
        Those of each y_i at each x: not negative, with sum one.
    moved : array of shape (m,)
        How much probability was moved to make weights of any sign these: half of Σ_i |probability_i
        − weight_i|, which is the distance in total variation where the weights are probabilities.
    """

    outputs: Array
    probabilities: Array
    moved: Array

    @classmethod
    def from_weights(cls, outputs: Array, weights: Array) -> ConditionalDistribution:
        """Return the distributions with the probabilities nearest to the weights, shape (m, n).

        Nearest is by Euclidean distance.
        """
        probabilities = nearest_probabilities(weights)
        return cls(outputs, probabilities, np.abs(probabilities - weights).sum(axis=1) / 2)

    def __repr__(self) -> str:
        m, n = self.probabilities.shape
        return (
            f"ConditionalDistribution({m} on {n} outputs, {self.moved.mean():.3g} of the "
            "probability moved)"
        )

    def mean(self) -> Array:
        """Return the mean of y at each x, of shape (m, n_outputs)."""
        return self.probabilities @ self.outputs

    def quantiles(self, q: Any) -> Array:
        """Return the smallest y_i for which y ≤ y_i has probability at least q.

        The result has the shape (m, n_outputs, quantiles).

        Each output has quantiles of its own. As long as there is no tie, q is between zero and one.
        """
        levels = checked_levels("quantiles", q)
        found = np.empty((len(self.probabilities), self.outputs.shape[1], len(levels)))
        for column, values in enumerate(self.outputs.T):
            order = np.argsort(values, kind="stable")
            cumulated = np.cumsum(self.probabilities[:, order], axis=1)
            cumulated /= cumulated[:, -1:]
            for place, level in enumerate(levels):
                found[:, column, place] = values[order[(cumulated >= level).argmax(axis=1)]]
        return found

    def crps(self, y: Any) -> Array:
        """Return the continuous ranked probability score of each distribution at the observed y.

        The result has the shape (m, n_outputs).

        It is E|Y − y| − E|Y − Y'|/2, in the unit of y and the less the better; of a single value,
        the absolute error.

        Parameters
        ----------
        y : array of shape (m,) or (m, n_outputs)
            What was observed at each x.
        """
        observed = np.asarray(y, dtype=np.float64).reshape(len(self.probabilities), -1)
        if observed.shape[1] != self.outputs.shape[1]:
            needed = f"y must have {self.outputs.shape[1]} outputs"
            raise MuhatError("ConditionalDistribution.crps", needed, observed.shape[1])
        scores = np.empty_like(observed)
        for column, values in enumerate(self.outputs.T):
            order = np.argsort(values, kind="stable")
            below = np.cumsum(self.probabilities[:, order], axis=1)[:, :-1]
            between = (below * (1 - below)) @ np.diff(values[order])  # E|Y − Y'|/2 = ∫ F(1 − F)
            gaps = np.abs(values - observed[:, column, None])
            scores[:, column] = np.einsum("mn,mn->m", self.probabilities, gaps) - between
        return scores

    def sample(self, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Return independent draws of y at each x, of shape (m, n_samples, n_outputs)."""
        count = whole_number("sample", "n_samples", n_samples)
        cumulated = np.cumsum(self.probabilities, axis=1)
        draws = (
            as_random_state("sample", random_state).random_sample((len(cumulated), count))
            * cumulated[:, -1:]
        )
        rows = np.stack(
            [
                np.searchsorted(each, some, side="right")
                for each, some in zip(cumulated, draws, strict=True)
            ]
        )
        return self.outputs[np.minimum(rows, len(self.outputs) - 1)]


def nearest_probabilities(weights: Array) -> Array:
    """Return, for each row, the probabilities nearest to its weights.

    These are max(w_i − θ, 0), with the θ that makes their sum one.

    Near is meant by the Euclidean distance of weights.

    Examples
    --------
    >>> import numpy as np
    >>> nearest_probabilities(np.array([[0.8, 0.6, -0.4]])).round(3)
    array([[0.6, 0.4, 0. ]])
    """
    falling = -np.sort(-weights, axis=1)
    thresholds = (np.cumsum(falling, axis=1) - 1) / np.arange(1, weights.shape[1] + 1)
    kept = (falling > thresholds).sum(
        axis=1
    ) - 1  # a threshold holds for as many weights as lie above it
    theta = np.take_along_axis(thresholds, kept[:, None], axis=1)
    return np.maximum(weights - theta, 0)


def checked_levels(who: str, q: Any) -> Array:
    """Return quantile levels as an array; raise MuhatError unless they are between 0 and 1."""
    levels = as_array(q)
    if (
        levels.ndim > 1
        or not levels.size
        or levels.dtype.kind not in "fiu"
        or not ((levels > 0) & (levels < 1)).all()
    ):
        needed = "q must be a number between 0 and 1, or a list of them, both ends excluded"
        raise MuhatError(who, needed, repr(q))
    return np.atleast_1d(levels).astype(np.float64)
