"""The paper's claims about its figures, each with our number, its interval and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from muhat.paper.evidence.base import FAILS, HOLDS, Claim, all_or_some, listed, minus, one, told
from muhat.paper.experiments.base import Row
from muhat.paper.experiments.figure_3b import WAYS
from muhat.paper.experiments.when_it_pays import rate_name
from muhat.paper.reproduction import Results, where
from muhat.plots._style import name_of

FILTERS = ("f-kmse", "landweber", "nu-method", "iterated-tikhonov", "tsvd")
"""The spectral filters that the paper compares with S-KMSE."""

TUNED = ("s-kmse", *FILTERS)
"""All that shrink."""

TYPICAL = 20
"""The dimension of the paper's other figures."""

FEW = 10
"""Iterations that we call a few."""

NEXT_TO_NOTHING = 0.1
"""An improvement, in percent, that we call none."""

ALIKE = 0.5
"""An improvement, in percent, up to which we call two estimators alike."""

OURS = "not in the paper"


def early_stopping(results: Results) -> list[Claim]:
    """Figure 3a: stopping is shrinking, the best iteration comes early, and running on returns to KME."""
    claims, place = [], "Figure 3a"
    ends = [_Curve.of(results, name, sampling) for name, sampling in _iterated(results)]
    names = list(dict.fromkeys(end.estimator for end in ends))

    def holding(test: Callable[[_Curve], bool]) -> str:
        failing = {each.estimator for each in ends if not test(each)}
        return all_or_some([name for name in names if name not in failing], names)

    says = "The number of iterations acts as shrinkage parameter: stopping early beats KME."
    number = listed(f"{each.label} {told(each.best)} at t = {each.best['t']}" for each in ends)
    claims.append(Claim(place, says, number, holding(lambda each: each.best["improvement_low"] > 0)))
    says = f"Its optimal value is attained within just a few iterations (here: at most {FEW})."
    number = listed(
        f"{each.label} best t = {each.best['t']}, leave-one-out stops at {each.median_stop} in the median"
        for each in ends
    )
    claims.append(Claim(place, says, number, holding(lambda each: each.best["t"] <= FEW)))
    says = f"Running on returns to the empirical estimator, and is never worse (but for {NEXT_TO_NOTHING} %)."
    number = listed(
        f"{each.label} at least {told(each.worst_after)} (t = {each.worst_after['t']}), "
        f"at the end {told(each.rows[-1])}"
        for each in ends
    )
    claims.append(Claim(place, says, number, holding(_Curve.returns)))
    says = "Stopped too early, both shrink too much and are worse than KME."
    number = listed(f"{each.label} {told(each.rows[0])} after one iteration" for each in ends)
    return [*claims, Claim(OURS, says, number, holding(lambda each: each.rows[0]["improvement_high"] < 0))]


def _iterated(results: Results) -> list[tuple[str, str]]:
    return [(name, sampling) for sampling in results.settings["samplings"] for name in results.settings["longest"]]


@dataclass(frozen=True)
class _Curve:
    """The risk of one iterative estimator."""

    estimator: str
    sampling: str
    rows: list[Row]

    @classmethod
    def of(cls, results: Results, name: str, sampling: str) -> _Curve:
        return cls(name, sampling, where(results.rows, estimator=name, sampling=sampling))

    @property
    def label(self) -> str:
        return f"{name_of(self.estimator)} ({self.sampling})"

    @property
    def best(self) -> Row:
        return max(self.rows, key=lambda row: row["improvement"])

    @property
    def worst_after(self) -> Row:
        """The worst iteration after the best."""
        later = [row for row in self.rows if row["t"] >= self.best["t"]]
        return min(later, key=lambda row: row["improvement"])

    def returns(self) -> bool:
        """Whether it ends at KME and is not worse on the way there."""
        end, worst = self.rows[-1]["improvement"], self.worst_after["improvement"]
        return bool(abs(end) < NEXT_TO_NOTHING and worst > -NEXT_TO_NOTHING)

    @property
    def median_stop(self) -> int:
        shares = np.cumsum([row["chosen"] for row in self.rows])
        return int(self.rows[int(np.searchsorted(shares, shares[-1] / 2))]["t"])


def run_time(results: Results) -> list[Claim]:
    """Figure 3b: Landweber and the ν-method against F-KMSE, and our way of choosing against the paper's."""
    n = max(results.settings["sizes"])
    rows = where(results.rows, n=n)
    claims = []
    for way in dict.fromkeys(row["way"] for row in rows):
        times = {row["estimator"]: row for row in where(rows, way=way)}
        peer = times.pop("f-kmse")
        says = f"Landweber and the ν-method are more efficient than F-KMSE ({way}, n = {n}; quartiles in brackets)."
        number = listed(f"{name_of(name)}{_at(row)} {_times_as_fast(row, peer)}" for name, row in times.items())
        faster = [name for name, row in times.items() if row["seconds_high"] < peer["seconds_low"]]
        claims.append(Claim("Figure 3b", says, number, all_or_some(faster, times)))
    _, slow, fast = WAYS
    pairs = {
        name: (one(rows, estimator=name, way=slow), one(rows, estimator=name, way=fast)) for name in [*times, "f-kmse"]
    }
    number = listed(f"{name_of(name)} {_times_as_fast(ours, paper)}" for name, (paper, ours) in pairs.items())
    faster = [name for name, (paper, ours) in pairs.items() if ours["seconds_high"] < paper["seconds_low"]]
    says = f"All exact leave-one-out scores from one decomposition are cheaper than one by one (n = {n})."
    return [*claims, Claim(OURS, says, number, all_or_some(faster, pairs))]


def _at(row: Row) -> str:
    """Return the number of iterations, where it matters."""
    if row["way"] != WAYS[0]:
        return ""
    return f" at t = {row['parameter']:g}{', the last candidate,' if row['at_edge'] else ''}"


def _times_as_fast(row: Row, peer: Row) -> str:
    """Return how many times as fast as a peer, with what the quartiles make of it."""
    ratio = peer["seconds"] / row["seconds"]
    low, high = peer["seconds_low"] / row["seconds_high"], peer["seconds_high"] / row["seconds_low"]
    return f"{ratio:.2g} times as fast [{low:.2g}, {high:.2g}]"


def dimension(results: Results) -> list[Claim]:
    """Figure 3c: improvement against dimension, the filters against S-KMSE, and truncated SVD."""
    dimensions, typical = results.settings["dimensions"], typical_dimension(results)
    ends = [(next(d for d in dimensions if d > 1), typical), (typical, max(dimensions))]
    claims = []
    for sampling in results.settings["samplings"]:
        rows = where(results.rows, sampling=sampling, rule="paper")
        claims += [_growth(rows, sampling, *pair) for pair in ends if pair[0] < pair[1]]
        claims += [_against_simple(where(rows, d=typical), sampling), _truncation(where(rows, d=typical), sampling)]
    return claims


def typical_dimension(results: Results) -> int:
    """Return the dimension of the paper's other figures, or the nearest to it that there is."""
    return int(min(results.settings["dimensions"], key=lambda d: abs(d - TYPICAL)))


def _growth(rows: list[Row], sampling: str, low: int, high: int) -> Claim:
    """The improvement from one dimension to a higher one."""
    gaps = {name: _gap(rows, name, low, high) for name in TUNED}
    what = "The improvement becomes increasingly remarkable in high dimension"
    number = listed(f"{name_of(name)} {told(gap, unit=' points')}" for name, gap in gaps.items())
    grown = [name for name, gap in gaps.items() if gap["improvement_low"] > 0]
    says = f"{what} (mixture {sampling}, from d = {low} to {high})."
    return Claim("Figure 3c", says, number, all_or_some(grown, TUNED))


def _against_simple(rows: list[Row], sampling: str) -> Claim:
    """The spectral filters against S-KMSE, in pairs."""
    over = {name: one(rows, estimator=name) for name in FILTERS}
    better = [name for name, row in over.items() if row["over_s_kmse_low"] > 0]
    says = f"Most spectral filters outperform S-KMSE (mixture {sampling}, d = {rows[0]['d']})."
    number = listed(f"{name_of(name)} {told(row, 'over_s_kmse')}" for name, row in over.items())
    verdict = HOLDS if 2 * len(better) > len(FILTERS) else all_or_some(better, FILTERS)
    return Claim("Figure 3c", says, number, verdict)


def _truncation(rows: list[Row], sampling: str) -> Claim:
    """Truncated SVD against the others."""
    gains = {name: one(rows, estimator=name) for name in TUNED}
    mine = gains.pop("tsvd")
    other = min(gains.values(), key=lambda row: float(row["improvement"]))
    says = f"Truncated SVD still gains, but less than the others (mixture {sampling}, d = {mine['d']})."
    number = listed([told(mine), f"the least of the others {told(other)}"])
    if mine["improvement"] >= other["improvement"] or mine["improvement"] < -NEXT_TO_NOTHING:
        return Claim("Figure 3c", says, number, FAILS)
    gained = mine["improvement_low"] > 0 and mine["improvement"] > NEXT_TO_NOTHING
    return Claim("Figure 3c", says, number, HOLDS if gained else "it gains least, but next to nothing")


def _gap(rows: list[Row], name: str, low_d: int, high_d: int) -> Row:
    """Return the difference of two improvements from independent samples."""
    low, high = one(rows, estimator=name, d=low_d), one(rows, estimator=name, d=high_d)
    value = high["improvement"] - low["improvement"]
    reach = float(np.hypot(*(row["improvement_high"] - row["improvement"] for row in (low, high))))
    return {"improvement": value, "improvement_low": value - reach, "improvement_high": value + reach}


def rate(results: Results) -> list[Claim]:
    """The appendix: λ = c·n^(−β) approaches KME for small c and for large β."""
    rows = where(results.rows, estimator="s-kmse", sampling="redrawn")
    small, large = min(results.settings["c"]), max(results.settings["beta"])
    ends = [
        (f"if c is very small (c = {small:g})", where(rows, panel="beta fixed", c=small)),
        (f"if β is very large (β = {large:g})", where(rows, panel="c fixed", beta=large)),
    ]
    claims = []
    for condition, inside in ends:
        furthest = max(inside, key=lambda row: abs(row["improvement"]))
        says = f"The estimator behaves like the empirical one {condition}: within {ALIKE} % of its risk at every n."
        number = f"furthest at n = {furthest['n']}: {told(furthest)}"
        claims.append(Claim("Appendix", says, number, HOLDS if abs(furthest["improvement"]) < ALIKE else FAILS))
    return claims


def when_it_pays(results: Results) -> list[Claim]:
    """Where there is much to gain and where little, and what Theorem 1 says about it."""
    rows = where(results.rows, panel="bandwidth", estimator="f-kmse", rule="paper")
    number = listed(f"{minus(row['improvement'], 1)} % at {row['factor']:g}" for row in rows)
    falls = _falls(rows)
    says = "The smaller the bandwidth next to the median rule's, the more F-KMSE gains."
    claims = [Claim(OURS, says, number, HOLDS if falls else FAILS)]
    rows = where(results.rows, panel="size", estimator="f-kmse", rule="paper")
    number = listed(f"{told(row)} at n = {row['n']}" for row in rows)
    falls = _falls(rows)
    claims.append(Claim(OURS, "The smaller n, the more F-KMSE gains.", number, HOLDS if falls else FAILS))
    return claims + theorem_1(results)


def _falls(rows: list[Row]) -> bool:
    """Whether the improvement falls from row to row, or stays as it is."""
    return all(after["improvement"] < before["improvement"] + NEXT_TO_NOTHING for before, after in pairwise(rows))


def theorem_1(results: Results) -> list[Claim]:
    """Theorem 1: inside its class S-KMSE with λ = c·n^(−β) wins."""
    claims = []
    for c, beta in results.settings["rates"]:
        rows = where(results.rows, panel="theorem-1", rule=rate_name(c, beta))
        total = sum(row["m"] for row in rows)
        inside, wins, both = (sum(row["m"] * row[key] for row in rows) for key in ("inside", "wins", "inside_and_wins"))
        boundary = f"A = {rows[0]['boundary']:.3f}"
        says = f"Whoever is in the class ‖μ‖² < A∫k(x, x)dP wins by λ = {c:g}·n^(−{beta:g}); {boundary}."
        number = (
            f"inside: {both:.0f} of {inside:.0f} pairs of a distribution and a bandwidth win; outside: "
            f"{wins - both:.0f} of {total - inside:.0f} (exact risks, no sampling error)"
        )
        verdict = HOLDS if 0 < round(inside) == round(both) else FAILS
        if verdict == HOLDS and round(wins) > round(both):
            verdict += "; it is not necessary at one n"
        claims.append(Claim("Theorem 1", says, number, verdict))
    return claims


def measure(results: Results) -> list[Claim]:
    """The loss and the risk of KME, which all else is measured by."""
    losses = where(results.rows, quantity="loss of one estimate")
    reach = [(row["average"] - row["exact"]) / (row["average_high"] - row["average"]) for row in losses]
    inside = sum(abs(each) <= 1 for each in reach)
    risk = one(results.rows, quantity="risk under one kernel")
    low, high = risk["average_low"], risk["average_high"]
    return [
        Claim(
            "Section 5",
            "The loss has a closed form for Gaussian mixtures.",
            f"{inside} of {len(losses)} estimators' losses in the 95 % interval of {losses[0]['draws']:,} draws; "
            f"the furthest at {max(map(abs, reach)):.2f} half-widths (it holds below 2)",
            HOLDS if max(map(abs, reach)) < 2 else FAILS,
        ),
        Claim(
            "Section 2",
            "KME's risk is (∫k(x, x)dP − ‖μ‖²)/n.",
            f"{risk['average']:.6f} [{low:.6f}, {high:.6f}] against {risk['exact']:.6f}",
            HOLDS if low <= risk["exact"] <= high else FAILS,
        ),
    ]


def geometry(results: Results) -> list[Claim]:
    """Figure 1: direction matters only where the distribution is anisotropic."""
    spread = {
        shape: [row["probability"] for row in where(results.rows, shape=shape)] for shape in results.settings["shapes"]
    }
    gain = {
        shape: [row["gain_along"] for row in where(results.rows, shape=shape)] for shape in results.settings["shapes"]
    }
    number = listed(
        f"{shape}: helps with probability {min(spread[shape]):.3f} to {max(spread[shape]):.3f}, "
        f"shrinking along θ gains {min(gain[shape]):.1f} to {max(gain[shape]):.1f} % of the risk"
        for shape in spread
    )
    says = "For an isotropic Gaussian shrinkage has the same effect in every direction, for an anisotropic one not."
    same = np.ptp(gain["isotropic"]) < 1e-9 < np.ptp(gain["anisotropic"])
    return [Claim("Figure 1", says, number, HOLDS if same else FAILS)]


CLAIMS: Mapping[str, Callable[[Results], list[Claim]]] = {
    "loss": measure,
    "figure-1": geometry,
    "figure-3a": early_stopping,
    "figure-3b": run_time,
    "figure-3c": dimension,
    "appendix": rate,
    "when-it-pays": when_it_pays,
}
"""The claims that an experiment answers, by the experiment's name."""
