"""muhat (μ̂) compares distributions with kernels: tests, regression, kernel PCA, kernel means."""

# Nothing is imported here: the command catches Ctrl-C only after this file has run.
TYPE_CHECKING = False  # as in typing
if TYPE_CHECKING:
    from typing import Any

__version__ = "1.0.0"

_PUBLIC = {
    "mean": "KernelMean",
    "stacking": "StackedMean",
    "groups": "KernelMeans GroupRegressor GroupClassifier",
    "comparison": "compare Comparison",
    "kernels": (
        "Gaussian Laplacian Matern RationalQuadratic InverseMultiquadric Linear Polynomial "
        "Function Precomputed Kernel Mixture"
    ),
    "filters": (
        "KME SimpleShrinkage Tikhonov IteratedTikhonov Landweber NuMethod Showalter "
        "TruncatedSVD Componentwise Filter"
    ),
    "selection": "LeaveOneOut GCV KFold Rate Fixed Choice",
    "gram": "Nystrom RandomFeatures",
    "embedding": "Embedding",
    "density": "MatchedMixture",
    "testing": (
        "TwoSampleTest GroupTest IndependenceTest DriftDetector "
        "MMD Spectral ShrunkMeans ShrunkCovariance mmd"
    ),
    "conditional": "ConditionalMean KernelMeanMatching",
    "pca": "KernelPCA",
    "persistence": "save load",
    "plots": (
        "MeanDisplay LeaveOneOutDisplay FilterDisplay StackDisplay FeatureDifferenceDisplay "
        "PermutationDisplay "
        "WitnessDisplay WitnessAlongDisplay PValueMapDisplay PairDisplay DriftDisplay "
        "LeftOutDisplay QuantileDisplay "
        "GroupMapDisplay GroupDistanceDisplay GroupTreeDisplay GroupBarsDisplay GroupColumnDisplay "
        "ComponentsDisplay ComponentMapDisplay"
    ),
    "data": "read_table open_batches",
    "datasets": "load_dataset SyntheticFamily",
}
"""The public names of each module, in the order in which data flows. `make docs` writes
``__init__.pyi`` from it, which type checkers read."""

_PROVIDERS = {"page": "report.to_html"}
"""Who does what a lower module asks for by its role: a result asks for its page."""

_MODULE_OF = {}
for _module, _names in _PUBLIC.items():
    for _name in _names.split():
        _MODULE_OF[_name] = _module

__all__ = [*_MODULE_OF, "__version__"]


def __getattr__(name: str) -> "Any":
    """Import what is asked for: a public name from its module, or a public module."""
    from importlib import import_module

    if name in _MODULE_OF:
        return getattr(import_module(f"muhat.{_MODULE_OF[name]}"), name)
    if name in _modules():
        return import_module(f"muhat.{name}")
    raise AttributeError(f"module 'muhat' has no attribute {name!r}")


def _provider(role: str) -> "Any":
    """Import the function that fills a role of ``_PROVIDERS``."""
    from importlib import import_module

    module, function = _PROVIDERS[role].split(".")
    return getattr(import_module(f"muhat.{module}"), function)


def __dir__() -> list[str]:
    return [*__all__, *_modules()]


def _modules() -> list[str]:
    """Return the names of the public modules."""
    from pkgutil import iter_modules

    return [module.name for module in iter_modules(__path__) if not module.name.startswith("_")]
