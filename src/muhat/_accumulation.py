"""A sample that is never held: its features, settled on some of its rows, and what they sum up to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._messages import refusal
from muhat.data import ArraySource, ReservoirSample, Source
from muhat.gram import Approximation, FeatureMap, FeatureProblem, Folds, Summary
from muhat.kernels import Kernel
from muhat.selection import KFold, Rule

LOOKED_AT = 2000
"""Rows on which the error of an approximation is measured."""


def drawn_for(approximation: Approximation, source: Source) -> ReservoirSample:
    """Return as many rows of a source, drawn in one pass, as features are learnt from."""
    return source.total(partial(ReservoirSample.from_batch, size=approximation.rows_to_learn_from))


def folds_for(rule: Rule) -> Folds:
    """Return how rows are to be dealt out so that a rule can choose."""
    if not isinstance(rule, KFold):
        return Folds()
    rule.check_settings()
    return Folds(rule.n_splits, rule.seed)


@dataclass(frozen=True)
class Accumulation:
    """What is kept of the rows so far; two of the same kind add up.

    Parameters
    ----------
    features : FeatureMap
        z, the same for all rows.
    rule : Rule
        The rule that will choose, which says how rows are dealt out to folds.
    error : float, default=0.0
        What the features' mean misses on some rows.
    summary : Summary, default=None
        What the rows so far sum up to; none before the first.
    """

    features: FeatureMap
    rule: Rule
    error: float = 0.0
    summary: Summary | None = None

    @classmethod
    def begun(cls, kernel: Kernel, approximation: Approximation, rule: Rule, rows: Array) -> Accumulation:
        """Return an accumulation without rows: kernel and features are settled on these, and looked at for an error."""
        features = approximation.resolve(kernel.resolve(rows), rows)
        with np.errstate(over="ignore", invalid="ignore"):  # values that overflow are refused as rows are summed up
            return cls(features, rule, features.error(rows[:: -(-len(rows) // LOOKED_AT)]))

    def with_rows(self, X: Array, weights: Array | None = None) -> Accumulation:
        """Return the accumulation of these rows too."""
        return self.with_source(ArraySource(X, weights))

    def with_source(self, source: Source, drawn: ReservoirSample | None = None) -> Accumulation:
        """Return the accumulation of a source's rows too, in one pass over them; as many as were drawn from before."""
        rows = source.total(partial(Summary.from_batch, features=self.features, folds=folds_for(self.rule)))
        if drawn is not None and drawn.count != rows.n:
            needed, got = "the same rows must come in every pass", f"{drawn.count} and then {rows.n}"
            raise ValueError(refusal("batches", needed, got, "give a list, or an iterator, which is passed over once"))
        return replace(self, summary=rows if self.summary is None else self.summary + rows)

    def problem(self, source: Source | None = None, target: Any = None) -> FeatureProblem:
        """Return the problem of the rows, with their source where they can be passed over again."""
        assert self.summary is not None, "there are rows in it"
        return FeatureProblem.of(self.features, self.summary, source, target)

    def __add__(self, other: Accumulation) -> Accumulation:
        if self.features.dtype != other.features.dtype:
            got = f"{self.features.dtype} and {other.features.dtype}"
            raise ValueError(refusal("KernelMean.merge", "both estimators must have seen rows of one type", got))
        if self.features != other.features:
            needed = "both estimators must have the same kernel and features"
            advice = "give both the same bandwidth as a number, and the same landmarks as an array"
            raise ValueError(refusal("KernelMean.merge", needed, "others", advice))
        if folds_for(self.rule) != folds_for(other.rule):
            got = f"{self.rule!r} and {other.rule!r}"
            raise ValueError(refusal("KernelMean.merge", "both estimators must have dealt out the same folds", got))
        if self.summary is None or other.summary is None:
            return other if self.summary is None else self
        return replace(self, summary=self.summary + other.summary)
