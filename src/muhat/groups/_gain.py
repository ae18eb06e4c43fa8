"""How much the joint means gain over the plain ones, measured on rows that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from muhat._arrays import Array, quotient
from muhat._tolerances import MIN_VARIANCE_SHARE
from muhat.groups._candidates import NAMES, PLAIN, GroupVectors
from muhat.groups._moments import GroupLeftOutMoments, alike
from muhat.groups._translation import LimitedMeans, limiting_factors

MIN_GROUPS_FOR_GAIN = 6
"""Groups from which on the gain is estimated: from fewer it is not reliable."""

NORMAL_QUANTILE = 1.96
"""Errors are widened by Student's t over this, so that two of them cover 95 % of few groups too."""

WEIGHTS_SHARE = 1.5
"""How often the effect of choosing the weights counts in the error, from simulated groups."""

FEWER_ROWS_SHARE = 0.75
"""The share of the correction for rows left out that counts in the error: it is a formula's.

The same share of the difference between its two formulas counts, too."""


@dataclass(frozen=True)
class Gain:
    """How much lower the risk is than the plain means', as a share of it, with standard error."""

    value: float
    error: float


@dataclass(frozen=True, eq=False)
class RiskShare:
    """A sum over groups as a share of the plain means' risk.

    Attributes
    ----------
    gains : array of shape (T,)
        How much lower each group's risk is, times its number of rows.
    risks : array of shape (T,)
        The risk of its plain mean, times its number of rows.
    """

    gains: Array
    risks: Array

    @property
    def value(self) -> float:
        """Σ gains/Σ risks."""
        return float(self.gains.sum() / self.risks.sum())

    @property
    def influences(self) -> Array:
        """What each group adds to the error of the share, of shape (T,)."""
        return (self.gains - self.value * self.risks) / self.risks.sum()


@dataclass(frozen=True, eq=False)
class LeftOutGain:
    """The gain of estimates without a fold, over all folds.

    Attributes
    ----------
    measured : RiskShare
        On the rows of the fold.
    expected : RiskShare
        By the formula for a W that does not depend on the rows, 2(1 − W_tt)D_t − ‖(W − I)μ̂‖²_t.
    """

    measured: RiskShare
    expected: RiskShare

    @classmethod
    def from_moments(
        cls, moments: GroupLeftOutMoments, by_fold: Sequence[Array], kappa: float
    ) -> LeftOutGain:
        """Return the gain with the candidates' weights, of shape (T, M), for each fold."""
        T = moments.counts.shape[1]
        plain = np.eye(len(NAMES))[PLAIN]
        measured, expected, risks, noise = np.zeros((4, T))
        # n_tf (n_t − n_tf)/n_t: the noise of a group then counts alike, whatever was left out.
        counts = moments.counts * (1 - quotient(moments.counts, moments.counts.sum(axis=0)))
        for fold, by_group in enumerate(by_fold):
            B, a, D = moments.B[fold], moments.a[fold], moments.noise[fold]
            steps = by_group - plain
            lengths = np.einsum("tm,tmk,tk->t", steps, B, steps)
            factors = limiting_factors(lengths, D, kappa)
            steps *= factors[:, None]
            lengths *= factors**2
            # ‖μ̂ − μ*‖² − ‖μ̂ + h − μ*‖² = 2⟨h, μ* − μ̂⟩ − ‖h‖², μ* estimated by the fold's mean.
            towards = np.einsum("tm,tm->t", steps, a - B[:, PLAIN])
            own_steps = np.einsum("tm,tm->t", steps, moments.own_weights[fold])
            measured += counts[fold] * (2 * towards - lengths)
            expected += counts[fold] * (-2 * own_steps * D - lengths)
            risks += counts[fold] * (B[:, PLAIN, PLAIN] - a[:, PLAIN])
            noise += counts[fold] * D
        return cls(RiskShare(measured, risks), RiskShare(expected, noise))


def estimated_gain(
    limited: LimitedMeans,
    vectors: GroupVectors,
    moments: GroupLeftOutMoments,
    by_group: Array,
    kappa: float,
) -> Gain | None:
    """Return the gain of the joint means over the plain ones, and its standard error.

    It is measured on rows that are left out. Weights that come from all folds have seen these rows,
    which is optimistic; weights from the other folds, whose candidates were built with these rows,
    err to the other side by about as much: their mean is taken. Fewer rows gain more, groups of two
    rows with one left out much more, so what two formulas say of all rows rather than of those that
    were kept is added: that for a fixed W, which takes too little away where groups scatter, and
    `scattered_correction`, which takes too much away where they are of a few kinds. Their mean is
    taken.

    The error takes groups as units, and adds how much the choice of the weights and the formulas
    matter. A group of one row has nothing to leave out and does not count. None for fewer than six
    groups, or if the plain means have no risk.

    Parameters
    ----------
    limited : LimitedMeans
        The estimates from all rows.
    vectors : GroupVectors
        The plain means.
    moments : GroupLeftOutMoments
        The moments of all folds.
    by_group : array of shape (T, 15)
        The weights of the candidates.
    kappa : float
        κ of limited translation.
    """
    if _is_exact(vectors):
        return None
    F = len(moments.B)
    from_others = []
    for fold in range(F):
        from_others.append(moments.weights(vectors.n, vectors.n, np.arange(F) != fold))
    seen = LeftOutGain.from_moments(moments, [by_group] * F, kappa)
    unseen = LeftOutGain.from_moments(moments, from_others, kappa)
    is_tested = seen.expected.risks > 0
    T = int(is_tested.sum())
    if T < MIN_GROUPS_FOR_GAIN or not seen.measured.risks.sum() > 0:
        return None
    n = vectors.n * is_tested * moments.multiplicities
    all_rows = RiskShare(
        n * (2 * (1 - limited.own_weights) * vectors.noise - limited.squared_steps),
        n * vectors.noise,
    )
    middle = RiskShare((seen.measured.gains + unseen.measured.gains) / 2, seen.measured.risks)
    fixed = all_rows.value - seen.expected.value
    scattered = scattered_correction(middle, vectors.n, moments.counts)
    more_rows = (fixed + scattered) / 2
    influences = middle.influences + all_rows.influences - seen.expected.influences
    between_groups = np.sqrt(T / (T - 1) * float(influences @ influences))
    parts = [
        stdtrit(T - 1, 0.975) / NORMAL_QUANTILE * between_groups,
        WEIGHTS_SHARE * (seen.measured.value - unseen.measured.value),
        FEWER_ROWS_SHARE * more_rows,
        FEWER_ROWS_SHARE * (fixed - scattered),
    ]
    return Gain(middle.value + more_rows, float(np.linalg.norm(parts)))


def scattered_correction(measured: RiskShare, n: Array, counts: Array) -> float:
    """Return what all rows add to the gain, if groups scatter around a centre.

    With A the squared distance from the centre and D the noise, the best linear shrinkage gains
    g = D/(A + D) of D; a c-th of the noise then gains g/(c − (c − 1)g). g is that of groups of
    about the same size, and c_t = n_t/Σ_f n_tf(1 − n_tf/n_t), which is F/(F − 1) for large groups
    and 2 for those of two rows.

    Parameters
    ----------
    measured : RiskShare
        The gains with a fold left out.
    n : array of shape (T,)
        The sizes of the groups.
    counts : array of shape (F, T)
        n_tf, the rows in each fold.
    """
    totals = counts.sum(axis=0)
    c = quotient(totals, (counts * (1 - quotient(counts, totals))).sum(axis=0))
    gains = np.empty(len(n))
    representatives, places = alike(n)
    for place, size in enumerate(representatives):
        nearness = np.exp(-0.5 * np.log(n / size) ** 2)
        gains[places == place] = quotient(nearness @ measured.gains, nearness @ measured.risks)
    gains = np.clip(gains, 0, 1)
    with_all = quotient(gains, c - (c - 1) * gains)
    return float(measured.risks @ (with_all - gains) / measured.risks.sum())


def _is_exact(vectors: GroupVectors) -> bool:
    """Whether rows do not vary within groups, but for rounding: the plain means have no error."""
    within = vectors.own - (vectors.Z**2).sum(axis=1)
    return bool(within.max() <= 2 * MIN_VARIANCE_SHARE * np.abs(vectors.own).mean())
