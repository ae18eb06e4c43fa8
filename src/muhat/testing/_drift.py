"""Has my data drifted? Batches are tested against a reference; false alarms are bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any, Self
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array
from muhat._bases import BaseEstimator
from muhat._messages import sample_size
from muhat._random_states import checked_seed
from muhat._reportable import Reportable
from muhat._summary import (
    BAD,
    MAX_SUMMARY_ROWS,
    NEUTRAL,
    EstimatorHtmlReprMixin,
    Summary,
)
from muhat._text import agree, count, listed
from muhat._validation import checked_sample, positive, whole_number
from muhat._wording import p_text, rows_text
from muhat.data import DataSet, FileBatches, TransformedSource
from muhat.errors import MuhatError, MuhatTypeError
from muhat.gram import Nystrom
from muhat.kernels import Precomputed
from muhat.testing._base import as_rows, check_flag
from muhat.testing._drift_results import N_FEATURES_NAMED, DriftResult
from muhat.testing._drift_rows import DrawnRows
from muhat.testing._ladder import as_kernels
from muhat.testing._row_order import RowOrder
from muhat.testing._samples import (
    ConstantColumns,
    TestSample,
    as_named_source,
    in_column_order,
)
from muhat.testing._two_sample_results import TwoSampleResult
from muhat.testing._two_samples import TwoSampleTest

MAX_ROWS_DENSE, N_LANDMARKS = 400, 200
"""Of the default test: rows up to which the Gram matrix is whole, landmarks beyond."""

N_BINS = 500
"""Bins of rows that the default test permutes."""

N_EXCEEDING = 20
"""Permutations as large as observed after which the default test stops: p is large then."""

MAX_PERMUTATIONS = 1_000_000
"""Permutations that a batch may take; a level that needs more raises MuhatError."""

PERMUTATIONS_PER_LEVEL = 2
"""Permutations over 1/level, so that p can be as small as the level over this."""

BATCH_OVER_REFERENCE = 4
"""Rows of a batch tested per row of the reference: more would hardly lower the variance."""

N_BATCHES_NAMED = 5
"""Batches that the verdict names, the latest that have drifted."""


class DriftDetector(Reportable, EstimatorHtmlReprMixin, BaseEstimator):
    """Test new batches against a reference, with a bound on the probability of any false alarm.

    A `TwoSampleTest` against the reference gives the exact p-value of each batch. There is an alarm
    if the p-value is at most the level of the batch: its share of ``alpha``, which depends only on
    the number of the batch. All shares sum to ``alpha``. So if nothing has drifted, the probability
    of one or more alarms in all batches together is at most ``alpha``, although p-values depend on
    each other through the common reference.

    Memory does not grow: only random rows of the reference and the latest results are kept. A
    detector can be pickled or saved with ``muhat.save``, and continues where it stopped.

    Parameters
    ----------
    test : TwoSampleTest, default=None
        The test. Its number of permutations is raised as the level needs; ``standardize``,
        ``distinct``, ``block_length`` and the seed are set. The default uses 200 landmarks, 500
        bins and early stopping, and takes about a second.
    alpha : float, default=0.05
        The largest allowed probability of one or more false alarms in all batches together.
    horizon : int, default=100
        Planned number of batches, over which half of alpha is spread evenly: each has the level
        alpha/(2 horizon). The next ``2 * horizon`` batches share half of what remains, and so on.
    n_reference : int, default=5000
        Number of rows of the reference that are kept, at random.
    standardize : bool, default=True
        Whether columns are scaled to mean 0 and variance 1, over reference and batch together.
    distinct : bool, default=False
        Whether each different row is tested only once, as in ``TwoSampleTest``.
    block_length : int, default=None
        If consecutive rows depend on each other: the length of the blocks of rows that are
        permuted. P-values, and the bound on false alarms, are then approximate.
    n_history : int, default=1000
        Number of results that are kept; older ones, and their alarms, are only counted.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the drawn rows and of the permutations.

    Attributes
    ----------
    reference_ : array of shape (rows, d)
        The rows of the reference that are kept.
    n_reference_rows_ : int
        The number of rows that the reference had.
    history_ : tuple of DriftResult
        The latest results, without their tests.
    n_batches_, n_alarms_ : int
        The number of batches, and of alarms.
    first_alarm_ : int or None
        The number of the first batch that has drifted.
    spent_ : float
        The sum of the levels of all batches tested so far.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    TwoSampleTest : One comparison of two samples.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import DriftDetector
    >>> rng = np.random.default_rng(0)
    >>> detector = DriftDetector().fit(rng.normal(size=(300, 2)))
    >>> [detector.update(rng.normal(shift, 1, size=(50, 2))).is_alarm for shift in (0, 0, 2)]
    [False, False, True]
    """

    feature_names_in_: Any

    reference_: Array
    history_: tuple[DriftResult, ...]
    n_batches_: int
    n_alarms_: int
    first_alarm_: int | None
    spent_: float
    n_features_in_: int
    _reference_spacing: float = 1.0
    """Rows of the reference for each one that is kept; 1 in states that version 1.0.0 saved."""

    def __init__(
        self,
        test: TwoSampleTest | None = None,
        *,
        alpha: float = 0.05,
        horizon: int = 100,
        n_reference: int = 5000,
        standardize: bool = True,
        distinct: bool = False,
        block_length: int | None = None,
        n_history: int = 1000,
        random_state: Any = 0,
    ) -> None:
        self.test = test
        self.alpha = alpha
        self.horizon = horizon
        self.n_reference = n_reference
        self.standardize = standardize
        self.distinct = distinct
        self.block_length = block_length
        self.n_history = n_history
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the reference sample and reset the history.

        Parameters
        ----------
        X : array, data frame, dask collection or batches, of shape (n, d)
            The reference, as in ``TwoSampleTest.test``; with ``block_length``, an array or a data
            frame in the order of time.
        y : None
            Ignored.
        """
        self._check()
        self._seed = checked_seed("DriftDetector", self.random_state)
        drawn = self._draw_rows(X, reset=True)
        self._reference_spacing = drawn.spacing
        self.__dict__.update(
            reference_=drawn.rows,
            history_=(),
            n_batches_=0,
            n_alarms_=0,
            first_alarm_=None,
            spent_=0.0,
        )
        return self

    def update(self, X: Any, name: str | None = None) -> DriftResult:
        """Test the next batch, spend its share of alpha, and remember the result.

        Parameters
        ----------
        X : array, data frame, dask collection or batches, of shape (n, d)
            The batch, with the columns of the reference; those of a data frame are found by name,
            in any order. Of more than ``4 * n_reference`` rows, as many are drawn.
        name : str, default=None
            What to call it; by default, its number.

        Returns
        -------
        result : DriftResult
            Its p-value, level and most changed features. If anything fails on the way there,
            nothing is spent.
        """
        check_is_fitted(self)
        number = self.n_batches_ + 1
        level = self.level(number)
        if PERMUTATIONS_PER_LEVEL / level > MAX_PERMUTATIONS:
            least = PERMUTATIONS_PER_LEVEL / MAX_PERMUTATIONS
            needed = f"a level of at least {least:g} is needed"
            advice = f"fit a new detector with a horizon longer than {self.horizon} batches"
            raise MuhatError("DriftDetector", needed, f"{level:.2g} for batch {number}", advice)
        drawn = self._draw_rows(X)
        if name is None:
            name = f"batch {number}"
        else:
            name = str(name)
        n_permutations = ceil(PERMUTATIONS_PER_LEVEL / level) - 1
        test = self._tested(drawn.rows, number, n_permutations, name)
        test = replace(test, row_order=self._row_order(drawn))
        notes: tuple[str, ...] = ()
        if isinstance(X, DataSet | FileBatches):
            notes = X.notes
        spent = self.alpha * spent_share(number, self.horizon)
        result = DriftResult.from_test(
            test, number, name, drawn, level, spent, len(self.reference_)
        )
        result = replace(result, notes=notes)
        self._remember(result)
        return result

    @property
    def n_reference_rows_(self) -> int:
        """How many rows the reference had, of which some are kept."""
        return round(self._reference_spacing * len(self.reference_))

    def _row_order(self, drawn: DrawnRows) -> RowOrder | None:
        """Return in which column neighbouring rows of the batch or the reference are alike."""
        spacings = [1.0, 1.0]  # rows of a block follow each other in the file
        if self.block_length in (None, 1):
            spacings = [self._reference_spacing, drawn.spacing]
        return RowOrder.from_samples([self.reference_, drawn.rows], self._columns, spacings)

    @property
    def _columns(self) -> tuple[str, ...]:
        """The names of the columns, by default by number."""
        numbers = [f"column {place}" for place in range(self.n_features_in_)]
        return tuple(getattr(self, "feature_names_in_", numbers))

    def _remember(self, result: DriftResult) -> None:
        """Count a batch and keep its result, all at once: an error before leaves no trace."""
        first_alarm = self.first_alarm_
        if result.is_alarm and first_alarm is None:
            first_alarm = result.number
        self.__dict__.update(
            n_batches_=result.number,
            n_alarms_=self.n_alarms_ + result.is_alarm,
            first_alarm_=first_alarm,
            spent_=result.spent,
            history_=(*self.history_, replace(result, test=None))[-self.n_history :],
        )

    def score(self, X: Any, y: Any = None) -> float:
        """Return the p-value of a batch outside of the history, without the bound on false alarms.

        Columns must be in the reference's order, as for every ``score`` in scikit-learn.
        """
        check_is_fitted(self)
        return self._tested(self._draw_rows(X, any_order=False).rows, 0, 1).p_value

    def has_seen(self, X: Any) -> bool:
        """Whether a batch was tested before."""
        return self.result_of(X) is not None

    def result_of(self, X: Any) -> DriftResult | None:
        """Return the latest result of a batch that was tested before, or None."""
        check_is_fitted(self)
        digest = self._draw_rows(X).digest
        return next((each for each in reversed(self.history_) if each.digest == digest), None)

    def level(self, number: int) -> float:
        """Return the level at which batch number 1, 2, ... is tested: its share of alpha."""
        return self.alpha * share_of(number, self.horizon)

    def verdict(self) -> str:
        """Return how many batches have drifted and which, or which was closest to an alarm."""
        check_is_fitted(self)
        if not self.n_batches_:
            return "No batch has been tested yet."
        if not self.n_alarms_ and self.n_batches_ == 1:
            return self.history_[0].verdict()
        if not self.n_alarms_ and self._are_all_too_small:
            return self._all_too_small_text()
        many = count(self.n_batches_, "batch")
        left_out = [self._too_few_text(), self._dropped_text()]
        if self.n_alarms_:
            alarms = [each for each in self.history_ if each.is_alarm]
            found = f"Drift detected in {self.n_alarms_:,} of {many}"
            names = _latest([each.name for each in alarms], self.n_alarms_)
            changed = ""
            if alarms:
                changed = alarms[-1]._change_text(f"in {alarms[-1].name}")
            parts = [f"{found}: {names}.", changed, *left_out]
            parts += [self._bound_text(), self._alike_text()]
        else:
            found = f"No drift detected in any of {many}."
            parts = [found, self._closest_text(), *left_out]
        return " ".join(filter(None, [*parts, *self._notes]))

    def _summary(self) -> Summary:
        rows = []
        for each in self.history_[-MAX_SUMMARY_ROWS:]:
            finding = ""
            if each.is_alarm:
                finding = "drift"
            rows.append((each.name, f"{each.p_value:.3g}", f"{each.level:.3g}", finding))
        tone = NEUTRAL
        if self.n_alarms_:
            tone = BAD
        return Summary(self.verdict(), ("batch", "p", "level", ""), rows, tone)

    def _bound_text(self) -> str:
        """Return how probable any alarm is if nothing drifts."""
        most = f"{100 * self.alpha:g} %"
        if self.block_length not in (None, 1):
            most = f"about {most}"
        elif self._alike_text():
            most = f"{most} if rows are independent"
        return f"(The probability of any false alarm, over all batches, is at most {most}.)"

    def _closest_text(self) -> str:
        """Return which batch was closest to its alarm level; empty if none could raise an alarm."""
        able = [each for each in self.history_ if each.is_reachable]
        if not able:
            return ""
        closest = min(able, key=lambda each: each.p_value / each.level)
        of = ""
        if len(self.history_) < self.n_batches_:
            of = f", of the last {count(len(self.history_), 'batch')}"
        p = p_text(closest.p_value, closest.is_at_floor)
        return f"Closest to an alarm{of}: {closest.name}, {p}. {closest._needed_text}."

    @property
    def _are_all_too_small(self) -> bool:
        """Whether no batch at all had enough rows to raise an alarm."""
        if len(self.history_) < self.n_batches_:
            return False
        return not any(each.is_reachable or each.too_few_distinct for each in self.history_)

    def _all_too_small_text(self) -> str:
        """Return that no batch could raise an alarm, with the rows of the latest."""
        latest = self.history_[-N_BATCHES_NAMED:]
        named = [f"{each.name} ({rows_text(each.n)})" for each in latest]
        more = len(self.history_) - len(latest)
        if more:
            names = f"{', '.join(named)} and {more:,} earlier"
        else:
            names = listed(named)
        level = f"p ≤ {self.history_[0].level:.3g}"
        if self.history_[-1].level < self.history_[0].level:
            level += " or less"
        reference = f"With a reference of {rows_text(len(self.reference_))}"
        too_few = f"{reference}, {names} have too few rows for so small a p-value"
        return f"No batch could raise an alarm. An alarm needs {level}. {too_few}."

    def _too_few_text(self) -> str:
        """Return which batches have too few rows to raise an alarm; empty where none has."""
        names = [each.name for each in self.history_ if not each.is_reachable]
        if not names:
            return ""
        has = agree(len(names), "has", "have")
        return f"{_latest(names, len(names))} {has} too few rows to raise an alarm."

    def _alike_text(self) -> str:
        """Return that rows are not independent, and what to do; empty without a caution."""
        batches = [each for each in self.history_ if each.row_order_note]
        if not batches:
            return ""
        return batches[-1].row_order_note

    @property
    def _notes(self) -> list[str]:
        """Sentences on what was left out of the files of the latest batches."""
        found: list[str] = []
        for each in self.history_[-N_BATCHES_NAMED:]:
            found += each.notes
        return list(dict.fromkeys(found))

    def _dropped_text(self) -> str:
        """Return how many exact copies of rows were dropped for each of the latest batches."""
        batches = [each for each in self.history_ if each.n_dropped][-N_BATCHES_NAMED:]
        if not batches:
            return ""
        parts = [f"{each.n_dropped:,} for {each.name}" for each in batches]
        return f"Exact copies of rows were dropped before the tests: {listed(parts, len(parts))}."

    def _tested(
        self, batch: Array, number: int, permutations: int, name: str = "batch"
    ) -> TwoSampleResult:
        """Return the test of a batch against the reference, with ``permutations`` at least."""
        if self.test is None:
            gram: Any = "dense"
            if len(batch) + len(self.reference_) > MAX_ROWS_DENSE:
                gram = Nystrom(N_LANDMARKS)
            test = TwoSampleTest(gram=gram, bins=N_BINS, early_stopping=N_EXCEEDING)
        else:
            test = clone(self.test)
        seed = int(np.random.SeedSequence([self._seed, number]).generate_state(1)[0] >> 1)
        test.set_params(
            n_permutations=max(test.n_permutations, permutations),
            standardize=self.standardize,
            distinct=self.distinct,
            block_length=self.block_length,
            random_state=seed,
        )
        samples = [DataSet("", each, self._columns) for each in (self.reference_, batch)]
        with catch_warnings():
            simplefilter("ignore", ConstantColumns)  # which a monitor would repeat for every batch
            return test.test(*samples, names=("the reference", name))

    def _draw_rows(self, X: Any, reset: bool = False, any_order: bool = True) -> DrawnRows:
        """Return rows of a batch, or of the reference in ``fit``, which defines the columns."""
        name, size = "batch", BATCH_OVER_REFERENCE * self.n_reference
        if reset:
            name, size = "reference", self.n_reference
        length = self.block_length or 1
        found = as_named_source(f"DriftDetector: {name}", X)
        if found is None:
            rows = self._rows_in_memory(X, name, reset, any_order)
            drawn = DrawnRows.from_rows(rows, size, length, self._seed)
        elif length > 1:
            needed = "rows in memory are needed with block_length"
            raise MuhatError("DriftDetector", needed, "batches", "give an array or a data frame")
        else:
            source, columns = found
            order = self._column_order(columns, reset, any_order)
            if order is not None:
                source = TransformedSource(source, partial(in_column_order, order=order))
            sample = TestSample.from_source(source, None, size, self._seed)
            self._check_columns(sample.n_columns, columns, reset)
            rows = sample.drawn.rows
            drawn = DrawnRows.from_draw(rows, sample.n)
        least = 1
        if reset or length > 1:
            least = 2 * length
        if drawn.n < least:
            needed = f"a {name} of at least {least} rows is needed"
            raise MuhatError("DriftDetector", needed, sample_size(drawn.n))
        return drawn

    def _rows_in_memory(self, X: Any, name: str, reset: bool, any_order: bool) -> Array:
        """Return the rows of an array or a data frame, validated, as float64."""
        columns = None
        # An array of one dimension raises below, as scikit-learn's estimators must.
        if not (isinstance(X, np.ndarray) and X.ndim == 1):
            X, columns = as_rows("DriftDetector", name, X)
        order = self._column_order(columns, reset, any_order)
        if order is not None:
            X = _with_columns(X, order)
        # Names that scikit-learn does not see are compared here, not by its validation.
        has_own_names = columns is not None and not hasattr(X, "columns")
        checker = self
        if has_own_names:
            checker = clone(self)
        rows = checked_sample(checker, X, reset=reset or has_own_names, name=name)
        self._check_columns(rows.shape[1], columns, reset)
        return rows.astype(np.float64, copy=False)

    def _check_columns(self, columns: int, names: Sequence[str] | None, reset: bool) -> None:
        """Compare the columns of a batch with the reference's, or remember the reference's."""
        if not reset:
            if columns != self.n_features_in_:
                needed = f"a batch of {self.n_features_in_} columns is needed"
                raise MuhatError("DriftDetector", needed, columns)
            return
        self.n_features_in_ = columns
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array([str(name) for name in names], dtype=object)

    def _column_order(
        self, names: Sequence[str] | None, reset: bool, any_order: bool
    ) -> list[int] | None:
        """Return where the reference's columns are in a batch; None if they are in their places.

        Other columns raise MuhatError, and so does another order where it is not accepted.
        """
        known = getattr(self, "feature_names_in_", None)
        if reset or names is None or known is None:
            return None
        given = list(map(str, names))
        if given == list(known):
            return None
        if any_order and sorted(given) == sorted(known):
            return [given.index(name) for name in known]
        needed, advice = f"a batch with the reference's columns is needed ({_listed(known)})", ""
        if not any_order:
            needed = needed.replace("is needed", "is needed, in their order")
            advice = "select them with batch[detector.feature_names_in_]"
        raise MuhatError("DriftDetector", needed, _listed(names), advice)

    def _check(self) -> None:
        """Raise MuhatError for invalid parameters."""
        positive(self, "alpha", self.alpha)
        if not self.alpha < 1:
            raise MuhatError("DriftDetector", "alpha must be below 1", self.alpha)
        for name, least in (("horizon", 1), ("n_reference", 2), ("n_history", 1)):
            whole_number(self, name, getattr(self, name), least)
        if self.block_length is not None:
            whole_number(self, "block_length", self.block_length)
        check_flag(self, "standardize", self.standardize)
        check_flag(self, "distinct", self.distinct)
        if self.test is not None:
            self._check_test(self.test)

    def _check_test(self, test: Any) -> None:
        """Raise MuhatError unless the test can be used for batches."""
        if not isinstance(test, TwoSampleTest):
            needed = "test must be a TwoSampleTest or None"
            raise MuhatTypeError("DriftDetector", needed, f"a {type(test).__name__}")
        if any(isinstance(each, Precomputed) for each in as_kernels(test.kernel)):
            needed = "test must have a kernel that is computed from rows"
            advice = "give the rows, and a kernel such as 'gaussian'"
            raise MuhatError("DriftDetector", needed, "a precomputed one", advice)
        if test.block_length not in (None, self.block_length):
            needed, advice = (
                "test must not have a block_length",
                "pass block_length to the detector",
            )
            raise MuhatError("DriftDetector", needed, test.block_length, advice)


def _latest(names: Sequence[str], n: int) -> str:
    """Return the latest of n names, of which some may be forgotten, and how many are earlier."""
    latest = names[-N_BATCHES_NAMED:]
    more = n - len(latest)
    return ", ".join(latest) + f" and {more:,} earlier" * (more > 0)


def _with_columns(X: Any, order: list[int]) -> Any:
    """Return the columns of an array or a data frame at these places."""
    if hasattr(X, "iloc"):
        return X.iloc[:, order]
    return X[:, order]


def share_of(number: int, horizon: int) -> float:
    """Return the share of alpha of a batch: 1/(2^(2k+1) horizon) in the k-th period.

    Period k has 2^k horizon batches.
    """
    period = ((number - 1) // horizon + 1).bit_length() - 1
    return float(1 / (2 ** (2 * period + 1) * horizon))


def spent_share(number: int, horizon: int) -> float:
    """Return the share of alpha of all batches up to a number: 1 − 2^(−k) for k whole periods."""
    period = ((number - 1) // horizon + 1).bit_length() - 1
    return 1 - 2.0**-period + (number - horizon * (2**period - 1)) * share_of(number, horizon)


def _listed(names: Sequence[Any]) -> str:
    """Return the first names in quotes."""
    listed = ", ".join(repr(each) for each in list(names)[:N_FEATURES_NAMED])
    if len(names) > N_FEATURES_NAMED:
        return listed + ", …"
    return listed
