"""Conditional means with exact leave-one-out, and importance weights."""

from muhat.conditional._distribution import ConditionalDistribution
from muhat.conditional._estimator import ConditionalMean
from muhat.conditional._evaluation import (
    MAX_SHIFT_ROWS,
    CovariateShift,
    Evaluation,
    LeftOutFit,
    copies_text,
    listed_columns,
    r2_text,
    training_rows,
)
from muhat.conditional._extrapolation import Extrapolation, ExtrapolationWarning
from muhat.conditional._intervals import INTERVALS, checked_confidence
from muhat.conditional._matching import KernelMeanMatching
from muhat.conditional._prediction import PredictionResult, evaluate

__all__ = ["ConditionalDistribution", "ConditionalMean", "KernelMeanMatching"]
__all__ += ["CovariateShift", "Evaluation", "LeftOutFit", "PredictionResult", "evaluate"]
__all__ += ["Extrapolation", "ExtrapolationWarning"]
__all__ += ["MAX_SHIFT_ROWS", "training_rows"]
__all__ += ["INTERVALS", "checked_confidence", "copies_text", "listed_columns", "r2_text"]
