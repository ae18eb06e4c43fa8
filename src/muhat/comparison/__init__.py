"""All estimators on one sample, side by side: which is better here, and by how much of KME's risk."""

from muhat.comparison._result import HARDLY, Comparison, Row
from muhat.comparison._run import compare
from muhat.comparison._tuning import EXACT_UP_TO, passes

__all__ = ["EXACT_UP_TO", "HARDLY", "Comparison", "Row", "compare", "passes"]
