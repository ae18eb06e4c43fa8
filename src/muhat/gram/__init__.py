"""How the Gram matrix is held: dense, matrix-free blocks, Nyström or random features; and the plan that chooses."""

from muhat.gram._base import Gram
from muhat.gram._blocks import BlockGram
from muhat.gram._dense import DenseGram
from muhat.gram._feature_problem import FeatureProblem
from muhat.gram._features import Approximation, FeatureEmbedding, FeatureMap
from muhat.gram._nystrom import Nystrom, NystromFeatures
from muhat.gram._plan import GRAMS_BY_NAME
from muhat.gram._problem import Components, LeftOut, Problem, Rows
from muhat.gram._product_problem import ProductProblem
from muhat.gram._random_features import FourierFeatures, RandomFeatures
from muhat.gram._sample_problem import SampleProblem, Target
from muhat.gram._summary import Folds, Summary

__all__ = [
    "GRAMS_BY_NAME",
    "Approximation",
    "BlockGram",
    "Components",
    "DenseGram",
    "FeatureEmbedding",
    "FeatureMap",
    "FeatureProblem",
    "Folds",
    "FourierFeatures",
    "Gram",
    "LeftOut",
    "Nystrom",
    "NystromFeatures",
    "Problem",
    "ProductProblem",
    "RandomFeatures",
    "Rows",
    "SampleProblem",
    "Summary",
    "Target",
]
