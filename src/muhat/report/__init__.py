"""Reports: one HTML file per result, which opens anywhere without a network."""

from muhat._text import number
from muhat.figures import Axis, Bar, Bars, Plot, Series
from muhat.report._data import Context
from muhat.report._document import Cell, Fact, Report, Section, Spark, Table
from muhat.report._page import render
from muhat.report._prediction import intervals_text
from muhat.report._results import report_of, to_html

__all__ = [
    "Axis",
    "Bar",
    "Bars",
    "Cell",
    "Context",
    "Fact",
    "Plot",
    "Report",
    "Section",
    "Series",
    "Spark",
    "Table",
    "intervals_text",
    "number",
    "render",
    "report_of",
    "to_html",
]
