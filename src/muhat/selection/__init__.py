"""Selection rules: how a filter's parameter is chosen, and how one filter is chosen among many."""

from muhat.selection._base import Choice, Rule
from muhat.selection._leave_one_out import MAX_ROWS_REFIT, LeaveOneOut
from muhat.selection._rules import GCV, Fixed, KFold, ParameterRule, Rate

RULES: dict[str, type[Rule]] = {"loo": LeaveOneOut, "gcv": GCV, "kfold": KFold, "rate": Rate}
"""Selection rules by name, with their default parameters."""


def name_of_rule(rule: Rule) -> str:
    """Return a rule's name, such as 'kfold', or its class's own."""
    return next((name for name, kind in RULES.items() if type(rule) is kind), type(rule).__name__)


__all__ = ["MAX_ROWS_REFIT", "RULES", "Choice", "Rule", "name_of_rule"]
__all__ += ["GCV", "Fixed", "KFold", "LeaveOneOut", "ParameterRule", "Rate"]
