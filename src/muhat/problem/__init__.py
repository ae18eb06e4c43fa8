"""One sample's estimation problem, as numbers: what every filter and every selection rule works on."""

from muhat.problem.base import Components, LeftOut, Problem, Rows
from muhat.problem.features import FeatureProblem
from muhat.problem.products import ProductProblem
from muhat.problem.sample import SampleProblem, Target

__all__ = ["Components", "FeatureProblem", "LeftOut", "Problem", "ProductProblem", "Rows", "SampleProblem", "Target"]
