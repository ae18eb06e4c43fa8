"""Selection rules: how a filter's parameter is chosen, and how one filter is chosen among many."""

from muhat._registry import parts_by_name
from muhat.selection import _leave_one_out, _rules
from muhat.selection._base import Choice, Rule
from muhat.selection._leave_one_out import *  # noqa: F403
from muhat.selection._rules import *  # noqa: F403

RULES: dict[str, type[Rule]] = parts_by_name(_leave_one_out, _rules)
"""Selection rules by name, with their default parameters."""


def name_of_rule(rule: Rule) -> str:
    """Return a rule's name, such as 'kfold', or that of its class."""
    return rule.name or type(rule).__name__


__all__ = ["RULES", "Choice", "Rule", "name_of_rule"]
__all__ += _leave_one_out.__all__
__all__ += _rules.__all__
