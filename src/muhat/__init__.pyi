"""The public names for type checkers, written by docs/stub.py."""
# ruff: noqa: I001, RUF022

from typing import Any

from . import cli as cli
from . import comparison as comparison
from . import conditional as conditional
from . import data as data
from . import datasets as datasets
from . import density as density
from . import embedding as embedding
from . import errors as errors
from . import figures as figures
from . import filters as filters
from . import gram as gram
from . import groups as groups
from . import kernels as kernels
from . import mean as mean
from . import notebook as notebook
from . import pca as pca
from . import persistence as persistence
from . import plots as plots
from . import report as report
from . import selection as selection
from . import stacking as stacking
from . import testing as testing
from . import theory as theory
from .selection import Choice as Choice
from .comparison import Comparison as Comparison
from .plots import ComponentMapDisplay as ComponentMapDisplay
from .plots import ComponentsDisplay as ComponentsDisplay
from .filters import Componentwise as Componentwise
from .conditional import ConditionalMean as ConditionalMean
from .testing import DriftDetector as DriftDetector
from .plots import DriftDisplay as DriftDisplay
from .embedding import Embedding as Embedding
from .plots import FeatureDifferenceDisplay as FeatureDifferenceDisplay
from .filters import Filter as Filter
from .plots import FilterDisplay as FilterDisplay
from .selection import Fixed as Fixed
from .kernels import Function as Function
from .selection import GCV as GCV
from .kernels import Gaussian as Gaussian
from .plots import GroupBarsDisplay as GroupBarsDisplay
from .groups import GroupClassifier as GroupClassifier
from .plots import GroupColumnDisplay as GroupColumnDisplay
from .plots import GroupDistanceDisplay as GroupDistanceDisplay
from .plots import GroupMapDisplay as GroupMapDisplay
from .groups import GroupRegressor as GroupRegressor
from .testing import GroupTest as GroupTest
from .plots import GroupTreeDisplay as GroupTreeDisplay
from .testing import IndependenceTest as IndependenceTest
from .kernels import InverseMultiquadric as InverseMultiquadric
from .filters import IteratedTikhonov as IteratedTikhonov
from .selection import KFold as KFold
from .filters import KME as KME
from .kernels import Kernel as Kernel
from .mean import KernelMean as KernelMean
from .conditional import KernelMeanMatching as KernelMeanMatching
from .groups import KernelMeans as KernelMeans
from .pca import KernelPCA as KernelPCA
from .filters import Landweber as Landweber
from .kernels import Laplacian as Laplacian
from .selection import LeaveOneOut as LeaveOneOut
from .plots import LeaveOneOutDisplay as LeaveOneOutDisplay
from .plots import LeftOutDisplay as LeftOutDisplay
from .kernels import Linear as Linear
from .testing import MMD as MMD
from .density import MatchedMixture as MatchedMixture
from .kernels import Matern as Matern
from .plots import MeanDisplay as MeanDisplay
from .kernels import Mixture as Mixture
from .filters import NuMethod as NuMethod
from .gram import Nystrom as Nystrom
from .plots import PValueMapDisplay as PValueMapDisplay
from .plots import PairDisplay as PairDisplay
from .plots import PermutationDisplay as PermutationDisplay
from .kernels import Polynomial as Polynomial
from .kernels import Precomputed as Precomputed
from .plots import QuantileDisplay as QuantileDisplay
from .gram import RandomFeatures as RandomFeatures
from .selection import Rate as Rate
from .kernels import RationalQuadratic as RationalQuadratic
from .filters import Showalter as Showalter
from .testing import ShrunkCovariance as ShrunkCovariance
from .testing import ShrunkMeans as ShrunkMeans
from .filters import SimpleShrinkage as SimpleShrinkage
from .testing import Spectral as Spectral
from .plots import StackDisplay as StackDisplay
from .stacking import StackedMean as StackedMean
from .datasets import SyntheticFamily as SyntheticFamily
from .filters import Tikhonov as Tikhonov
from .filters import TruncatedSVD as TruncatedSVD
from .testing import TwoSampleTest as TwoSampleTest
from .plots import WitnessAlongDisplay as WitnessAlongDisplay
from .plots import WitnessDisplay as WitnessDisplay
from .comparison import compare as compare
from .persistence import load as load
from .datasets import load_dataset as load_dataset
from .testing import mmd as mmd
from .data import open_batches as open_batches
from .data import read_table as read_table
from .persistence import save as save

__version__: str

def _provider(role: str) -> Any: ...

__all__ = [
    "KernelMean",
    "StackedMean",
    "KernelMeans",
    "GroupRegressor",
    "GroupClassifier",
    "compare",
    "Comparison",
    "Gaussian",
    "Laplacian",
    "Matern",
    "RationalQuadratic",
    "InverseMultiquadric",
    "Linear",
    "Polynomial",
    "Function",
    "Precomputed",
    "Kernel",
    "Mixture",
    "KME",
    "SimpleShrinkage",
    "Tikhonov",
    "IteratedTikhonov",
    "Landweber",
    "NuMethod",
    "Showalter",
    "TruncatedSVD",
    "Componentwise",
    "Filter",
    "LeaveOneOut",
    "GCV",
    "KFold",
    "Rate",
    "Fixed",
    "Choice",
    "Nystrom",
    "RandomFeatures",
    "Embedding",
    "MatchedMixture",
    "TwoSampleTest",
    "GroupTest",
    "IndependenceTest",
    "DriftDetector",
    "MMD",
    "Spectral",
    "ShrunkMeans",
    "ShrunkCovariance",
    "mmd",
    "ConditionalMean",
    "KernelMeanMatching",
    "KernelPCA",
    "save",
    "load",
    "MeanDisplay",
    "LeaveOneOutDisplay",
    "FilterDisplay",
    "StackDisplay",
    "FeatureDifferenceDisplay",
    "PermutationDisplay",
    "WitnessDisplay",
    "WitnessAlongDisplay",
    "PValueMapDisplay",
    "PairDisplay",
    "DriftDisplay",
    "LeftOutDisplay",
    "QuantileDisplay",
    "GroupMapDisplay",
    "GroupDistanceDisplay",
    "GroupTreeDisplay",
    "GroupBarsDisplay",
    "GroupColumnDisplay",
    "ComponentsDisplay",
    "ComponentMapDisplay",
    "read_table",
    "open_batches",
    "load_dataset",
    "SyntheticFamily",
    "__version__",
]
