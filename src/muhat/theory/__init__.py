"""What the paper's theorems say about your n, kernel and filter."""

from muhat.theory._admissibility import (
    CharacteristicBound,
    Theorem1,
    admissible_fraction,
    characteristic_bound,
    theorem_1,
)
from muhat.theory._components import Theorem2, shrink_components, theorem_2, whitening
from muhat.theory._consistency import Rates, SmoothOperator, Theorem3, rates, theorem_3
from muhat.theory._definition import Constants, Definition1, check_definition_1
from muhat.theory._losses import ExactLosses

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
