"""scikit-learn's base classes, with the types that scikit-learn does not declare.

Type checkers know nothing of classes that derive from a class without types.
"""

from typing import TYPE_CHECKING, Any

__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "DensityMixin",
    "MultiOutputMixin",
    "RegressorMixin",
    "TransformerMixin",
]

if TYPE_CHECKING:
    from typing import Self

    class BaseEstimator:
        """What type checkers see of ``sklearn.base.BaseEstimator``."""

        n_features_in_: int
        feature_names_in_: Any

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def __getstate__(self) -> dict[str, Any]: ...
        def __setstate__(self, state: dict[str, Any]) -> None: ...

    class ClassifierMixin:
        """What type checkers see of ``sklearn.base.ClassifierMixin``."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class DensityMixin:
        """What type checkers see of ``sklearn.base.DensityMixin``."""

    class MultiOutputMixin:
        """What type checkers see of ``sklearn.base.MultiOutputMixin``."""

    class RegressorMixin:
        """What type checkers see of ``sklearn.base.RegressorMixin``."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class TransformerMixin:
        """What type checkers see of ``sklearn.base.TransformerMixin``."""

        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...

    class ClassNamePrefixFeaturesOutMixin:
        """What type checkers see of ``sklearn.base.ClassNamePrefixFeaturesOutMixin``."""

        def get_feature_names_out(self, input_features: Any = None) -> Any: ...
else:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        DensityMixin,
        MultiOutputMixin,
        RegressorMixin,
        TransformerMixin,
    )
