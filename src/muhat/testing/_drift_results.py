"""The result of one batch: whether it differs from the reference, and in which columns."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from muhat._summary import (
    BAD,
    NEUTRAL,
    HtmlReprMixin,
    Summary,
)
from muhat._wording import p_text, rows_text
from muhat.testing._copies import copies_note
from muhat.testing._drift_rows import DrawnRows
from muhat.testing._marginals import FeatureDifference
from muhat.testing._results import LEVEL
from muhat.testing._row_order import RowOrder, row_order_note
from muhat.testing._two_sample_results import TOO_FEW_DISTINCT, TwoSampleResult, change_header
from muhat.testing._wording import change_text, size_text

N_FEATURES_NAMED = 5
"""Features that a result names, the most changed first."""


@dataclass(frozen=True, eq=False)
class DriftResult(HtmlReprMixin):
    """The result of testing one batch.

    Attributes
    ----------
    number : int
        The batch's number, from 1.
    name : str
        What it was called, or its number.
    n : int
        Its number of rows.
    p_value : float
        The p-value of the test against the reference; exact unless blocks are permuted.
    statistic : float
        The combined statistic: the soft maximum of the normal scores of all statistics.
    mmd : float
        The effect size: the distance between the two kernel means, for the kernel of the largest
        statistic.
    level : float
        The share of alpha that was spent on this batch.
    spent : float
        The sum of these shares so far.
    is_alarm : bool
        Whether p_value ≤ level.
    is_exact : bool
        Whether the p-value is exact, as it is unless blocks of rows that depend on each other are
        permuted.
    features : tuple of FeatureDifference
        The most changed features first, five at most; shifts are the batch's mean less the
        reference's.
    digest : str
        A hash of the rows: two batches with the same digest have the same rows.
    is_reachable : bool
        Whether an alarm is possible: with very few rows there are too few permutations for a
        p-value at or below the level.
    test : TwoSampleResult or None
        The full result of the test, where X is the reference and Y the batch; None in the history
        of a detector.
    is_at_floor : bool
        Whether p_value is the smallest value that the permutations can give, and so only a bound.
    n_reference : int
        Rows of the reference that the batch was compared with.
    n_copies, n_shared : int
        Rows that are exact copies of others of the batch or the reference, and rows of the batch
        that are also in the reference.
    too_few_distinct : bool
        Whether ``distinct=True`` left too few rows to compare: p_value is then 1.
    n_dropped : int
        Rows of the batch and of the reference that ``distinct=True`` dropped as exact copies.
    row_order : RowOrder or None
        In which ``column`` rows that follow each other are alike beyond chance, as in a time
        series; None if they are not. Its ``block_length`` counts rows of the sample that was drawn.
    block_length : int or None
        How many consecutive rows were permuted as a block, if the detector was told to.
    notes : tuple of str
        Sentences on what of the batch's file was left out, or is unknown to the reference.
    """

    number: int
    name: str
    n: int
    p_value: float
    statistic: float
    mmd: float
    level: float
    spent: float
    is_alarm: bool
    is_exact: bool
    features: tuple[FeatureDifference, ...]
    digest: str
    is_reachable: bool = True
    test: TwoSampleResult | None = None

    is_at_floor: bool = False
    n_reference: int = 0
    n_copies: int = 0
    n_shared: int = 0
    too_few_distinct: bool = False
    n_dropped: int = 0
    row_order: RowOrder | None = None
    block_length: int | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def from_test(
        cls,
        test: TwoSampleResult,
        number: int,
        name: str,
        drawn: DrawnRows,
        level: float,
        spent: float,
        n_reference: int,
    ) -> DriftResult:
        """Return the result of a batch from its test, with the size of the reference."""
        return cls(
            number=number,
            name=name,
            n=drawn.n,
            p_value=test.p_value,
            statistic=test.statistic,
            mmd=test.mmd,
            level=level,
            spent=spent,
            is_alarm=test.p_value <= level,
            is_exact=test.is_exact,
            features=test.features[:N_FEATURES_NAMED],
            digest=drawn.digest,
            is_reachable=test.least_p_value <= level,
            test=test,
            is_at_floor=test.is_at_floor,
            n_reference=test.n,
            n_copies=test.n_copies,
            n_shared=test.n_shared,
            too_few_distinct=test.too_few_distinct,
            n_dropped=n_reference + len(drawn.rows) - test.n - test.m,
            row_order=test.row_order,
            block_length=test.block_length,
        )

    @property
    def finding(self) -> str:
        """What was found, in a word or two: "drift", "no drift" or "too few rows" for an alarm."""
        if self.is_alarm:
            return "drift"
        if self.too_few_distinct or not self.is_reachable:
            return "too few rows"
        return "no drift"

    def verdict(self) -> str:
        """Return whether the batch has drifted, what changed most, and what was dropped."""
        sentences = [self._finding()]
        if self.n_dropped:
            dropped = f"{self.n_dropped:,} exact copies of rows were"
            if self.n_dropped == 1:
                dropped = "1 exact copy of a row was"
            sentences.append(f"{dropped} dropped before the test.")
        return " ".join([*sentences, *self.notes])

    def _finding(self) -> str:
        """Return whether the batch has drifted, and what changed most."""
        p = p_text(self.p_value, self.is_at_floor)
        if not self.is_exact:
            p = f"approximate {p}"
        rows = rows_text(self.n)
        if self.too_few_distinct:
            return f"No drift detected in {self.name}: {TOO_FEW_DISTINCT} ({rows}, {p})."
        if not self.is_reachable:
            too_few = f"{self.name} has too few rows to raise an alarm, whatever their values"
            return f"{too_few} ({rows}, {p}). {self._needed_text}."
        if not self.is_alarm:
            return f"No drift detected in {self.name} ({rows}, {p}). {self._needed_text}."
        found = f"Drift detected in {self.name} ({rows}, {p}). {self._change_text()}".rstrip()
        n = self.n + self.n_reference
        copies = copies_note(self.n_copies, self.n_shared, n, ("the reference", self.name))
        notes = [copies, self.row_order_note]
        return " ".join(filter(None, [found, *notes]))

    @property
    def row_order_note(self) -> str:
        """That rows are not independent, where that may have caused an alarm; else empty."""
        if not self.is_alarm:
            return ""
        n = min(self.n, self.n_reference)
        return row_order_note(self.row_order, n, self.block_length, "start again with")

    @property
    def most_changed(self) -> str:
        """The column that changed most; empty if no single one did, or none was compared."""
        if not self.features or (self.is_alarm and self.features[0].p_value > LEVEL):
            return ""
        return self.features[0].name

    def _change_text(self, of_batch: str = "") -> str:
        """Return which column changed most, and in which direction; ``of_batch`` is "in NAME"."""
        where = f" {of_batch}".rstrip()
        if not self.most_changed:
            if len(self.features) < 2:
                return ""
            return (
                f"No single column changed significantly{where}: the change is in how columns vary "
                "together, or in small changes of several columns."
            )
        sizes, names = (max(2, self.n_reference), self.n), ("the reference", self.name)
        change = change_text(self.features[0], sizes, names, "than in the reference")
        return f"Largest change{where}: {change}."

    @property
    def _needed_text(self) -> str:
        """The p-value that raises an alarm for this batch, in words."""
        needed = f"An alarm needs p ≤ {self.level:.3g}"
        return f"{needed}, so that false alarms are rare over all batches, also those to come"

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers in JSON's types."""
        found = {}
        for each in fields(self):
            if each.name != "test":
                found[each.name] = getattr(self, each.name)
        found["features"] = [asdict(each) for each in self.features]
        found["row_order"] = None if self.row_order is None else self.row_order.to_dict()
        return {**found, "verdict": self.verdict()}

    def _summary(self) -> Summary:
        rows = []
        for each in self.features:
            rows.append((each.name, size_text(each, LEVEL), f"p = {each.p_value:.2g}"))
        tone = NEUTRAL
        if self.is_alarm:
            tone = BAD
        return Summary(self.verdict(), change_header("the reference", self.name), rows, tone)

    def __repr__(self) -> str:
        return f"DriftResult({self.verdict()})"
