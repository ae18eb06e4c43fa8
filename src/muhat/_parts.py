"""Every argument of an estimator, resolved and checked before the first row is read.

Names become objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, cast

import numpy as np

from muhat._arrays import Array, as_array
from muhat._messages import sample_size, unknown_name
from muhat._validation import checked_gram
from muhat.embedding import Element, Embedding
from muhat.errors import MuhatError, MuhatTypeError
from muhat.filters import ALIASES, AUTO, FILTERS, KME, Shrinker
from muhat.gram import APPROXIMATIONS, GRAMS, Access, Approximation, Problem
from muhat.gram._plan import access_of, check_batches
from muhat.kernels import (
    KERNELS,
    Function,
    Kernel,
    Precomputed,
    SklearnKernel,
    names_known_to_sklearn,
)
from muhat.selection import GCV, RULES, Choice, KFold, LeaveOneOut, Rule, name_of_rule
from muhat.selection._base import Scored

ANY_N = 10**9
"""A sample size beyond every refit limit, to check combinations before n is known."""

PROBE_POINTS = np.array([[0.0], [1.0]])
"""Two points on which a kernel is evaluated once, to validate its parameters."""


def as_kernel(kernel: Any, who: str = "kernel") -> Kernel:
    """Return the kernel that a name, a kernel object or a function stands for.

    Kernel objects may be scikit-learn's.
    """
    if isinstance(kernel, str) and kernel not in KERNELS:
        if kernel in names_known_to_sklearn():
            return Function(kernel)
        raise MuhatError(
            unknown_name(who, kernel, dict.fromkeys([*KERNELS, *names_known_to_sklearn()]))
        )
    if callable(kernel) and not isinstance(kernel, Kernel | type):
        if hasattr(kernel, "diag"):
            return SklearnKernel(kernel)
        return Function(kernel)
    needed = "a name, a kernel object or a function is needed"
    advice = ""
    if hasattr(kernel, "shape"):
        advice = "pass the matrix as X, with kernel='precomputed'"
    return cast(Kernel, _as_part(who, kernel, Kernel, KERNELS, needed, advice))


class HasKernel:
    """An estimator with ``kernel__…`` parameters that can be set if the kernel is a name too."""

    kernel: Any

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator, or of its parts: ``kernel__bandwidth=2.0``."""
        kernel = params.get("kernel", self.kernel)
        if isinstance(kernel, str) and any(name.startswith("kernel__") for name in params):
            params["kernel"] = as_kernel(kernel)
        return super().set_params(**params)  # type: ignore[misc]


def _as_part(
    who: str, given: Any, kind: type, known: Mapping[str, Any], needed: str, advice: str = ""
) -> Any:
    """Return the part that a name or an object stands for."""
    if isinstance(given, kind):
        return given
    if isinstance(given, str):
        if given in known:
            return known[given]()
        names = list(known)
        if who == "filter":
            names = ["auto", *names]
        raise MuhatError(unknown_name(who, given, names))
    if isinstance(given, type):
        raise MuhatTypeError(
            who,
            "an object is needed",
            f"the class {given.__name__}",
            "create an object by calling the class",
        )
    raise MuhatTypeError(who, needed, f"{type(given).__name__} {given!r}", advice)


def as_filter(filter: Any) -> Shrinker:
    """Return the filter that a name or a filter object stands for."""
    known = {**FILTERS, **{alias: FILTERS[name] for alias, name in ALIASES.items()}}
    needed = "a name, a filter object or a list of these is needed"
    return cast(Shrinker, _as_part("filter", filter, Shrinker, known, needed))


def as_filters(filter: Any, auto: Sequence[str] = AUTO) -> list[Shrinker]:
    """Return the filters that a name, an object, a list or ``"auto"`` stands for, each once."""
    given = [filter]
    if isinstance(filter, list | tuple):
        given = list(filter)
    if not given:
        raise MuhatError("filter", "at least one filter is needed", "an empty list")
    filters: list[Shrinker] = []
    for each in given:
        for one in map(as_filter, auto if isinstance(each, str) and each == "auto" else [each]):
            if one not in filters:
                filters.append(one)
    return filters


def as_rule(selection: Any) -> Rule:
    """Return the rule that a name or a rule object stands for."""
    needed, advice = (
        "a name or a rule object is needed",
        "use Fixed(0.1) to fix the parameter at 0.1",
    )
    return cast(Rule, _as_part("selection", selection, Rule, RULES, needed, advice))


def rule_of_auto(rule: Rule) -> Rule:
    """Return the rule that ``filter="auto"`` chooses by.

    One that scores left-out rows counts bias more often.
    """
    if isinstance(rule, LeaveOneOut | KFold) and rule.bias_factor is None:
        return replace(rule, bias_factor="auto")
    return rule


def as_gram(gram: Any) -> str | Approximation:
    """Return the way to hold the Gram operator that a name or an object stands for."""
    known = {name: APPROXIMATIONS.get(name, partial(str, name)) for name in GRAMS}
    needed = "a name, Nystrom(500) or RandomFeatures(1000) is needed"
    return cast("str | Approximation", _as_part("gram", gram, Approximation, known, needed))


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of an estimator, each an object that fits the others."""

    who: str
    """Who asks, for sentences."""
    kernel: Kernel
    """The kernel, its bandwidth perhaps to be learnt."""
    filters: tuple[Shrinker, ...]
    rule: Rule
    gram: str | Approximation
    target: Any = None
    """f*, an element of the RKHS or weights on the sample."""
    best_of: bool = True
    """Whether the best of several filters is taken, so that one rule must compare them."""

    @classmethod
    def from_arguments(
        cls,
        who: str,
        *,
        kernel: Any,
        filter: Any,
        selection: Any,
        gram: Any,
        target: Any = None,
        auto: Sequence[str] = AUTO,
        best_of: bool = True,
    ) -> Parts:
        """Return the parts; raise MuhatError for invalid ones, or ones that do not fit together.

        ``auto`` names the filters that ``filter="auto"`` stands for.
        """
        rule, way, k = as_rule(selection), as_gram(gram), as_kernel(kernel)
        filters = as_filters(filter, auto)
        if isinstance(filter, str) and filter == "auto" and tuple(auto) == AUTO:
            rule = rule_of_auto(rule)
        if best_of and len(filters) > 1:
            _check_comparable(rule)
            if isinstance(filter, str):
                filters = [each for each in filters if rule.can_choose(each, 1)]
        # A kernel of ours validates its parameters when it is evaluated, on any points.
        if k.positive_semidefinite:
            with np.errstate(all="ignore"):
                k.resolve(PROBE_POINTS)(PROBE_POINTS)
        if np.isfinite(k.bound):
            filters = [each.bounded_by(k.bound) for each in filters]
        for each in filters:
            with np.errstate(all="ignore"):
                each.at_zero(np.ones(1, np.int64))
            if len(filters) == 1 or not each.parameterless:
                rule.check(each)
        if isinstance(way, Approximation):
            way.check(k)
        parts = cls(who, k, tuple(filters), rule, way, target, best_of)
        parts._check_target()
        return parts

    def rules(self, access: Access, n: int = ANY_N) -> list[Rule]:
        """Return the rule that chooses for each filter.

        It depends on what the Gram operator gives and on the number of rows. Raise MuhatError if
        the best of several filters is to be taken and no one rule can score them all.
        """
        rules = rules_for(self.rule, self.filters, access, n)
        usual = rules[0]
        for rule in rules:
            if type(rule) is type(self.rule):
                usual = rule
                break
        odd = []
        for filter, rule in zip(self.filters, rules, strict=True):
            if rule is not usual:
                odd.append(type(filter).__name__)
        if self.best_of and odd:
            needed = (
                f"all filters of a list must be scored by the same rule; {', '.join(odd)} can only "
                "be scored by a different rule here"
            )
            advice = (
                "use selection='kfold', use only one filter, or use muhat.compare for all filters"
            )
            raise MuhatError(self.who, needed, f"selection={name_of_rule(self.rule)!r}", advice)
        return rules

    def check_batches(self, rows_again: bool) -> None:
        """Raise MuhatError for parts that do not work with rows in batches."""
        check_batches(self.gram, self.kernel, self.who)
        if self.target is not None and not isinstance(self.target, Element):
            needed = "an Embedding is needed if rows are read in batches"
            raise MuhatError(f"{self.who}(target=…)", needed, type(self.target).__name__)
        self.rules(access_of("nystrom", rows_again))

    @property
    def has_choice(self) -> bool:
        """Whether there is something to choose: a parameter, or one of several filters."""
        return len(self.filters) > 1 or not self.filters[0].parameterless

    @property
    def shrinks(self) -> bool:
        """Whether the mean is to be shrunk, if only where that helps."""
        return any(not isinstance(each, KME) for each in self.filters)

    def check_enough(self, rules: Sequence[Rule], n: int) -> None:
        """Raise MuhatError for fewer rows than the rules need to choose."""
        rule = max(rules, key=lambda each: each.least_points)
        if self.has_choice and n < rule.least_points:
            needed = f"selection by {type(rule).__name__} needs at least {rule.least_points} rows"
            advice = "give more rows, or the parameter, as in selection=Fixed(0.1)"
            raise MuhatError(self.who, needed, sample_size(n), advice)

    def resolve_kernel(self, X: Array, present: Array) -> tuple[Kernel, Array]:
        """Return the kernel with every parameter set, and the points it is a function of.

        For a matrix that was computed before, X is the matrix and points are numbers of rows.
        """
        if isinstance(self.kernel, Precomputed):
            return Precomputed(checked_gram(self.who, X)), np.arange(len(X))[:, None]
        return self.kernel.resolve(X[present]), X

    def target_on(self, kernel: Kernel, columns: int, points: Array | None) -> Element | None:
        """Return the target f* as an element of the RKHS.

        Raise MuhatError unless it has that kernel and that number of columns.

        The points are the sample; none where it is not held, so that there is nothing for weights
        to be on.
        """
        target = self.target
        if target is None:
            return None
        who = f"{self.who}(target=…)"
        if isinstance(target, Element):
            if target.kernel != kernel:
                needed = f"the target must have the kernel {kernel!r}"
                advice = "pass kernel=target.kernel"
                raise MuhatError(who, needed, repr(target.kernel), advice)
            if isinstance(target, Embedding) and target.points.shape[1] != columns:
                needed = f"the target's points must have {columns} features, as X has"
                raise MuhatError(who, needed, target.points.shape[1])
            if isinstance(kernel, Precomputed) and points is not None:  # its points are row numbers
                weights = np.zeros(len(points), target.weights.dtype)
                np.add.at(weights, cast(Embedding, target).points[:, 0], target.weights)
                return Embedding(kernel, points, weights)
            return target
        assert points is not None  # else `check_batches` has raised
        weights = np.asarray(target)
        if weights.shape != (len(points),):
            needed = f"an Embedding or {len(points)} finite weights on the sample are needed"
            raise MuhatError(who, needed, f"{type(target).__name__} of shape {weights.shape}")
        return Embedding(kernel, points, weights.astype(np.result_type(points.dtype, np.float32)))

    def _check_target(self) -> None:
        """Raise MuhatError for a target that is wrong for every sample."""
        target, who = self.target, f"{self.who}(target=…)"
        if target is None:
            return
        if isinstance(target, Element):
            if type(target.kernel) is not type(self.kernel) and not isinstance(
                self.kernel, Precomputed
            ):
                needed = f"the target must have the kernel {self.kernel!r}"
                advice = "pass kernel=target.kernel"
                raise MuhatError(who, needed, repr(target.kernel), advice)
            return
        weights = as_array(target)
        if weights.ndim != 1 or weights.dtype.kind not in "fiu" or not np.isfinite(weights).all():
            needed = "an Embedding or finite weights, one for each row of the sample, are needed"
            raise MuhatError(who, needed, f"{type(target).__name__} of shape {weights.shape}")


def rules_for(rule: Rule, filters: Sequence[Shrinker], access: Access, n: int) -> list[Rule]:
    """Return the rule that chooses for each filter: the one asked for, or its stand-in.

    Stand-ins are the same everywhere (docs/selection.md):

    - GCV for leave-one-out that would take a refit for each of many points;
    - k-fold for leave-one-out if there are only products with A, or rows are read once;
    - leave-one-out for GCV of a constant filter, whose score is flat.

    Filters that are compared share one rule if they can. Raise MuhatError if no rule can choose.
    """
    rules = [_rule_for(rule, filter, access, n) for filter in filters]
    for fallback in rules:
        if isinstance(fallback, KFold) and fallback is not rule:
            for place, filter in enumerate(filters):
                if filter.needs == Access.PRODUCTS:
                    rules[place] = fallback
            break
    one_of_each: dict[str, Rule] = {}
    return [one_of_each.setdefault(repr(each), each) for each in rules]


def _check_comparable(rule: Rule) -> None:
    """Raise MuhatError unless a rule can compare several filters."""
    if not rule.comparable or getattr(rule, "grid", None) is not None:
        have_one = "'loo', 'kfold' and 'gcv' have one"
        needed = f"several filters are compared by a score on grids of their own: {have_one}"
        raise MuhatError("selection", needed, rule, "use only one filter")


def choices_by(
    rules: Sequence[Rule], problem: Problem, filters: Sequence[Shrinker]
) -> list[Choice]:
    """Return each filter's choice by its rule.

    What filters with the same rule share is computed once.
    """
    found: dict[int, Choice] = {}
    for rule in {id(rule): rule for rule in rules}.values():
        places = [place for place, own in enumerate(rules) if own is rule]
        found.update(
            zip(places, rule.choices(problem, [filters[place] for place in places]), strict=True)
        )
    return [found[place] for place in range(len(filters))]


def _rule_for(rule: Rule, filter: Shrinker, access: Access, n: int) -> Rule:
    if filter.parameterless and not (isinstance(rule, Scored) and rule.grid is None):
        rule = LeaveOneOut()  # there is nothing to choose, and a score is all that is wanted
    for candidate in (rule, _stand_in(rule, filter, n)):
        if (
            candidate is not None
            and access.covers(candidate.needs(filter))
            and candidate.can_choose(filter, n)
        ):
            return candidate
    raise _no_rule_error(rule, filter, access)


def _no_rule_error(rule: Rule, filter: Shrinker, access: Access) -> MuhatError:
    """Return the error that says why no rule can choose for a filter."""
    asked, name = type(rule).__name__, type(filter).__name__
    needed = f"{asked} needs all eigenpairs for {name}"
    if Access.SPECTRUM in access:
        needed = f"{asked} cannot choose for {name} if rows are read only once"
    if Access.PRODUCTS not in access:
        got = "rows that are read only once"
        return MuhatError("selection", needed, got, "use selection='kfold'")
    advice = "use selection='kfold' or gram='dense'"
    if filter.needs == Access.SPECTRUM:
        advice = "use gram='dense' or 'nystrom'"
    return MuhatError("gram='blocks'", needed, "products with A alone", advice)


def _stand_in(rule: Rule, filter: Shrinker, n: int) -> Rule | None:
    """Return the rule that chooses where the one asked for cannot, with the same grid."""
    if isinstance(rule, LeaveOneOut):
        if filter.needs == Access.PRODUCTS:
            n_splits = max(2, min(KFold.n_splits, n))
            return KFold(n_splits, grid=rule.grid, bias_factor=rule.bias_factor)
        return GCV(rule.grid)
    if isinstance(rule, GCV) and filter.constant:
        return LeaveOneOut(rule.grid)
    return None
