"""Which page a result has, and the page as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from os import PathLike
from typing import Any

from sklearn.pipeline import Pipeline

from muhat._files import atomic_write, check_writable
from muhat.comparison import Comparison
from muhat.conditional import ConditionalMean, PredictionResult
from muhat.errors import MuhatTypeError
from muhat.pca import ComponentsResult
from muhat.report._comparison import comparison_report
from muhat.report._conditional import conditional_report, pipeline_report
from muhat.report._data import LEVEL, Context
from muhat.report._document import Report
from muhat.report._drift import drift_report
from muhat.report._groups import groups_report
from muhat.report._page import render
from muhat.report._pca import components_report
from muhat.report._prediction import prediction_report
from muhat.report._testing import independence_report, two_samples_report
from muhat.testing import DriftDetector, GroupResult, IndependenceResult, TwoSampleResult


@singledispatch
def report_of(result: Any, context: Context) -> Report:
    """Return the page of a result as data.

    Parameters
    ----------
    result : Comparison, TwoSampleResult, IndependenceResult, GroupResult, DriftDetector, \
ConditionalMean, PredictionResult, ComponentsResult or Pipeline
        The result; a pipeline is one that ends in a conditional mean.
    context : Context
        What the page says beside it.
    """
    needed = "the result of a test, a comparison or a fitted model that has a report is needed"
    raise MuhatTypeError("report_of", needed, type(result).__name__)


def to_html(
    result: Any,
    path: str | PathLike[str] | None = None,
    *,
    data: Any = None,
    code: str = "",
    settings: Mapping[str, Any] | None = None,
    warnings: Sequence[str] | None = None,
    level: float = LEVEL,
) -> str:
    """Return a result as one HTML page that needs no network, and write it to a file.

    Parameters
    ----------
    result : Comparison, result of a test, DriftDetector, ConditionalMean or Pipeline
        The result; a pipeline has to end in a conditional mean.
    path, data, code, settings, warnings, level
        As of the method ``to_html`` that every result has.

    Returns
    -------
    html : str
        The page.
    """
    if path is not None:
        check_writable(path)
    page = render(report_of(result, Context(data, code, settings or {}, warnings, level)))
    if path is not None:
        atomic_write(path, page.encode())
    return page


report_of.register(Comparison)(comparison_report)
report_of.register(TwoSampleResult)(two_samples_report)
report_of.register(IndependenceResult)(independence_report)
report_of.register(DriftDetector)(drift_report)
report_of.register(GroupResult)(groups_report)
report_of.register(ComponentsResult)(components_report)
report_of.register(ConditionalMean)(conditional_report)
report_of.register(PredictionResult)(prediction_report)
report_of.register(Pipeline, pipeline_report)
