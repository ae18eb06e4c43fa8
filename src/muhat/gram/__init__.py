"""How the Gram matrix is held: dense, blocks, a low-rank factor, landmarks, random features.

And the plan that chooses.
"""

from muhat.gram._factor import FactorGram, FactorProblem
from muhat.gram._feature_problem import Accumulation, FeatureProblem, FeatureSums, Folds
from muhat.gram._features import Approximation, FeatureMap
from muhat.gram._in_memory import BlockGram, BlockProblem, DenseGram, DenseProblem
from muhat.gram._nystrom import Nystrom, NystromFeatures
from muhat.gram._pivoted_cholesky import LowRankFactor, PivotedCholesky, pivoted_cholesky
from muhat.gram._plan import APPROXIMATIONS, GRAMS, MAX_ROWS_DENSE
from muhat.gram._problem import (
    Access,
    Components,
    ConstantFilterScores,
    EigenbasisRows,
    Gram,
    Problem,
    SpectralProblem,
    Spectrum,
    Target,
)
from muhat.gram._random_features import FeatureEmbedding, FourierFeatures, RandomFeatures

__all__ = [
    "APPROXIMATIONS",
    "GRAMS",
    "Approximation",
    "Nystrom",
    "PivotedCholesky",
    "RandomFeatures",
]
__all__ += ["FactorGram", "FactorProblem", "LowRankFactor", "pivoted_cholesky"]
__all__ += ["FeatureEmbedding", "FeatureMap", "FourierFeatures", "NystromFeatures"]
__all__ += [
    "Access",
    "BlockGram",
    "Components",
    "ConstantFilterScores",
    "DenseGram",
    "EigenbasisRows",
    "Gram",
    "Spectrum",
    "Target",
]
__all__ += ["BlockProblem", "DenseProblem", "FeatureProblem", "Problem", "SpectralProblem"]
__all__ += ["Accumulation", "FeatureSums", "Folds"]
__all__ += ["MAX_ROWS_DENSE"]
