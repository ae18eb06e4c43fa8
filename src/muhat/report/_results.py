"""Which page a result has."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from sklearn.pipeline import Pipeline

from muhat.comparison import Comparison
from muhat.conditional import ConditionalMean, PredictionResult
from muhat.errors import MuhatTypeError
from muhat.report._comparison import comparison_report
from muhat.report._conditional import conditional_report, pipeline_report
from muhat.report._data import Context
from muhat.report._document import Report
from muhat.report._drift import drift_report
from muhat.report._prediction import prediction_report
from muhat.report._testing import independence_report, two_samples_report
from muhat.testing import DriftDetector, IndependenceResult, TwoSampleResult


@singledispatch
def report_of(result: Any, context: Context) -> Report:
    """Return the page of a result: a comparison, what a test or a drift detector says, or a conditional mean.

    Parameters
    ----------
    result : Comparison, TwoSampleResult, IndependenceResult, DriftDetector, ConditionalMean, \
PredictionResult or Pipeline
        The result; a pipeline is one that ends in a conditional mean.
    context : Context
        What the page says beside it.
    """
    raise MuhatTypeError("report_of", "a result that has a page is needed", type(result).__name__)


report_of.register(Comparison)(comparison_report)
report_of.register(TwoSampleResult)(two_samples_report)
report_of.register(IndependenceResult)(independence_report)
report_of.register(DriftDetector)(drift_report)
report_of.register(ConditionalMean)(conditional_report)
report_of.register(PredictionResult)(prediction_report)
report_of.register(Pipeline, pipeline_report)
