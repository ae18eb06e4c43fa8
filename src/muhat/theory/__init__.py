"""The paper's theorems as functions of your n, kernel and filter, and the exact loss."""

from muhat.theory._consistency import (
    Definition1,
    Rates,
    SmoothOperator,
    Theorem3,
    check_definition_1,
    rates,
    theorem_3,
)
from muhat.theory._constants import Constants
from muhat.theory._losses import ExactLosses
from muhat.theory._shrinkage import (
    CharacteristicBound,
    Theorem1,
    Theorem2,
    admissible_fraction,
    characteristic_bound,
    shrink_components,
    theorem_1,
    theorem_2,
    whitening,
)

__all__ = [
    "CharacteristicBound",
    "Constants",
    "Definition1",
    "ExactLosses",
    "Rates",
    "SmoothOperator",
    "Theorem1",
    "Theorem2",
    "Theorem3",
    "admissible_fraction",
    "characteristic_bound",
    "check_definition_1",
    "rates",
    "shrink_components",
    "theorem_1",
    "theorem_2",
    "theorem_3",
    "whitening",
]
