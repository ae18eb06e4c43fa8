"""A sample that is seen once and never held: its features, settled on the first rows, and what they sum up to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from muhat.arrays import Array
from muhat.features import FeatureMap, Folds, Summary
from muhat.messages import refusal
from muhat.selection import KFold, Rule
from muhat.sources import Slices


def folds_for(rule: Rule) -> Folds:
    """Return how rows are to be dealt out so that a rule can choose."""
    return Folds(rule.n_splits, rule.seed) if isinstance(rule, KFold) else Folds()


@dataclass(frozen=True)
class Accumulation:
    """What is kept of the rows so far; two of the same kind add up.

    Parameters
    ----------
    features : FeatureMap
        z, the same for all rows.
    rule : Rule
        The rule that will choose, which says how rows are dealt out to folds.
    summary : Summary, default=None
        What the rows so far sum up to; none before the first.
    """

    features: FeatureMap
    rule: Rule
    summary: Summary | None = None

    def with_rows(self, X: Array, weights: Array | None = None) -> Accumulation:
        """Return the accumulation of these rows too."""
        rows = Slices(X, weights).total(partial(Summary.of, features=self.features, folds=folds_for(self.rule)))
        return replace(self, summary=rows if self.summary is None else self.summary + rows)

    def __add__(self, other: Accumulation) -> Accumulation:
        if self.features != other.features or folds_for(self.rule) != folds_for(other.rule):
            needed = "both estimators must have the same kernel, features and folds"
            advice = "give both the same bandwidth as a number, and the same landmarks as an array"
            raise ValueError(refusal("KernelMean.merge", needed, "others", advice))
        if self.summary is None or other.summary is None:
            return other if self.summary is None else self
        return replace(self, summary=self.summary + other.summary)
