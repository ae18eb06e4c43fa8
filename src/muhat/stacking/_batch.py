"""Many samples of one size at once: what StackedMean gives one by one, from arrays over all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import getitem
from typing import Any, TypeAlias

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from muhat._arrays import Array, share_between_cores, slices
from muhat._messages import refusal
from muhat._parts import as_kernel
from muhat._validation import check_scale, checked_sample
from muhat.embedding import Element
from muhat.kernels import Kernel
from muhat.stacking._candidates import (
    EXTRA,
    GaussianFit,
    InDegree,
    NuSteps,
    WardMixtures,
    mixture_of_clusters,
    unbiased,
)
from muhat.stacking._estimator import ONE_BY_ONE_UP_TO, StackedMean, default_candidates, has_law
from muhat.stacking._measures import Measure, Recombination
from muhat.stacking._recombined import ClusterJitter, IndependentBlocks, Recombined
from muhat.stacking._sample import Sample, cut, distinct_rows, is_drawn_again, orthogonal_frequencies
from muhat.stacking._span import combination
from muhat.stacking._weights import LeftOutMoments

Estimate: TypeAlias = Callable[[int], Measure]
"""What a candidate estimates from a sample, given by its place; only the ones with a weight are asked for."""

FREQUENCIES = 128
"""Random frequencies of a sample, as many as ``StackedMean`` has by default."""

TOGETHER = 2**17
"""Values at frequencies of one candidate, over samples and rows, that are worked on together: they stay in cache."""

FEWEST = 3
"""Rows from which on samples are taken together."""


@dataclass(frozen=True, eq=False)
class StackedSample:
    """The stacked mean of one of many samples: the weights of its candidates, and the estimate."""

    weights: Array
    embedding: Element


def stacked_means(samples: Sequence[Array], kernel: Any = "gaussian", random_states: Any = 0) -> list[StackedSample]:
    """Return the stacked mean of many samples of one size, the same as ``StackedMean`` gives one by one, sooner.

    Up to 100 rows and for kernels whose frequencies have a known law, all but the clusters' trees and the least squares
    is done for many samples at once, on all cores. The waves, which only choose w, are of single precision: weights
    differ from those of ``StackedMean`` by some 1e-6, and estimates by less than 1e-7 where the kernel's means of
    Gaussians have a closed form; where they are draws, as for ``Laplacian``, the draws differ too. Else each is fitted
    by itself.

    Parameters
    ----------
    samples : list of arrays of shape (n, d), or array of shape (m, n, d)
        The samples.
    kernel : str, Kernel or list of these, default='gaussian'
        One kernel for all samples, or one for each. A bandwidth that is not a number is learnt from each sample.
    random_states : int or list of int, default=0
        The ``random_state`` of all samples, or of each.

    Examples
    --------
    >>> import numpy as np
    >>> samples = np.random.default_rng(0).normal(size=(10, 50, 2))
    >>> means = stacked_means(samples)
    >>> len(means), means[0].embedding(samples[0][:3]).shape
    (10, (3,))
    """
    shapes = sorted({np.shape(X) for X in samples})
    if len(shapes) != 1 or len(shapes[0]) != 2:
        raise ValueError(refusal("stacked_means", "samples must be matrices of one shape", f"shapes {shapes}"))
    checked = checked_sample(StackedMean(), np.concatenate([np.asarray(X) for X in samples]), reset=True)
    rows = list(checked.astype(np.float64, copy=False).reshape(len(samples), *shapes[0]))
    kernels = _one_for_each("kernel", kernel, len(rows))
    states = _one_for_each("random_states", random_states, len(rows))
    parts = [as_kernel(each) for each in kernels]
    small = FEWEST <= len(rows[0]) <= ONE_BY_ONE_UP_TO and all(map(has_law, parts))
    together = [place for place, X in enumerate(rows) if small and not is_drawn_again(X, distinct_rows(X)[1])]

    def work(some: list[int]) -> list[StackedSample]:
        resolved = [parts[place].resolve(rows[place]) for place in some]
        for each, place in zip(resolved, some, strict=True):
            check_scale(type(each).__name__, float(each.bound), np.float64, rows[place])
        return _Block.from_samples([rows[place] for place in some], resolved, [states[place] for place in some]).means()

    size = max(1, TOGETHER // (FREQUENCIES * len(rows[0])))
    blocks = share_between_cores(work, [together[some] for some in slices(0, len(together), size)])
    found = dict(zip(together, (mean for block in blocks for mean in block), strict=True))
    alone = [place for place in range(len(rows)) if place not in found]
    fits = share_between_cores(lambda place: _by_itself(rows[place], kernels[place], states[place]), alone)
    found |= dict(zip(alone, fits, strict=True))
    return [found[place] for place in range(len(rows))]


def _one_for_each(name: str, given: Any, count: int) -> list[Any]:
    if not isinstance(given, Sequence | np.ndarray | range) or isinstance(given, str):
        return [given] * count
    if len(given) != count:
        raise ValueError(
            refusal("stacked_means", f"{name} must be one, or one for each of {count} samples", len(given))
        )
    return list(given)


def _by_itself(X: Array, kernel: Any, random_state: Any) -> StackedSample:
    mu = StackedMean(kernel=kernel, random_state=random_state).fit(X)
    return StackedSample(mu.weights_, mu.embedding_)


@dataclass(frozen=True, eq=False)
class _Block:
    """Some samples of n rows, each of which is left out by itself; waves are pairs of real and imaginary parts.

    Attributes
    ----------
    samples : list of Sample
        The samples.
    states : list
        The ``random_state`` of each.
    rngs : list of Generator
        Where the draws of each come from.
    X : array of shape (S, n, d)
        Their rows, centred.
    frequencies : array of shape (S, R, d)
        ω.
    phases : array of shape (S, n, R)
        ω·(x_i − x̄).
    rows : array of shape (2, S, n, R)
        exp(iω·(x_i − x̄)).
    """

    samples: list[Sample]
    states: Sequence[Any]
    rngs: list[np.random.Generator]
    X: Array
    frequencies: Array
    phases: Array
    rows: Array

    @classmethod
    def from_samples(cls, rows: Sequence[Array], kernels: Sequence[Kernel], states: Sequence[Any]) -> _Block:
        """Draw the frequencies of each sample, as StackedMean does."""
        n, d = rows[0].shape
        masses = np.full(n, 1 / n)
        samples = [Sample(kernel, X, masses, n) for X, kernel in zip(rows, kernels, strict=True)]
        rngs = [np.random.default_rng(check_random_state(state).randint(2**31)) for state in states]
        frequencies = np.stack(
            [orthogonal_frequencies(kernel, FREQUENCIES, d, rng) for kernel, rng in zip(kernels, rngs, strict=True)]
        )
        X = np.stack([sample.X - sample.center for sample in samples])
        phases = X @ frequencies.swapaxes(-2, -1)
        waves = np.stack([np.cos(phases), np.sin(phases)])
        return cls(samples, states, rngs, X, frequencies, phases.astype(np.float32), waves.astype(np.float32))

    @property
    def n(self) -> int:
        return self.X.shape[1]

    def means(self) -> list[StackedSample]:
        """Return the stacked mean of each sample."""
        with np.errstate(over="ignore", invalid="ignore"):
            measures, left_out = self._candidates()
            B, a = self._moments(left_out)
        if not np.isfinite(B).all():  # each is refused by itself
            each = zip(self.samples, self.states, strict=True)
            return [_by_itself(sample.X, sample.kernel, state) for sample, state in each]
        found = []
        for place, (sample, rng) in enumerate(zip(self.samples, self.rngs, strict=True)):
            w = LeftOutMoments(B[place][None], a[place][None], np.ones(1)).best_weights()
            used = np.flatnonzero(w)
            own = [measures[m](place) for m in used]
            found.append(StackedSample(w, combination(sample, own, w[used], rng)))
        return found

    def _candidates(self) -> tuple[list[Estimate], list[Array]]:
        """Return the estimates of all candidates by the place of a sample, and their waves without each row."""
        measures: list[Estimate] = [lambda place: self.samples[place].masses]
        left_out = [(self.rows.sum(axis=2, keepdims=True) - self.rows) / (self.n - 1)]
        ways: dict[type, Any] = {
            NuSteps: self._nu_steps,
            InDegree: self._in_degree,
            GaussianFit: self._gaussians,
            WardMixtures: self._clusters,
            IndependentBlocks: self._recombined,
            ClusterJitter: self._recombined,
        }
        for candidate in default_candidates()[1:]:
            if candidate.names(self.samples[0]):
                fits, waves = ways[type(candidate)](candidate)
                measures += fits
                left_out += waves
        return measures, left_out

    def _moments(self, left_out: list[Array]) -> tuple[Array, Array]:
        """Return B and a of each sample; one by one, so that its waves are in cache."""
        count, S = len(left_out), len(self.samples)
        B, a = np.empty((S, count, count)), np.empty((S, count))
        flat = np.empty((count, 2, *self.phases[0].shape))
        for place, sample in enumerate(self.samples):
            for m, wave in enumerate(left_out):
                flat[m] = wave[:, place]
            parts = flat.reshape(count, -1)
            scale = sample.kernel.bound / (self.n * FREQUENCIES)
            B[place], a[place] = scale * (parts @ parts.T), scale * (parts @ self.rows[:, place].ravel())
        return B, a

    def _of_weights(self, V: Array) -> Array:
        """Return the waves of weights in columns, V of shape (S, n, columns)."""
        return V.swapaxes(-2, -1).astype(np.float32) @ self.rows

    def _nu_steps(self, candidate: NuSteps) -> tuple[list[Estimate], list[Array]]:
        """All rows, and those without each, as columns of one iteration."""
        n = self.n
        masses = np.column_stack([(1 - np.eye(n)) / (n - 1), np.full(n, 1 / n)])
        K = np.stack([sample.kernel(sample.X) / sample.kernel.bound for sample in self.samples])
        paths = candidate.paths(lambda V: K @ V, masses)
        fits: list[Any] = [partial(getitem, weights[..., -1]) for weights in paths]
        return fits, [self._of_weights(weights[..., :-1]) for weights in paths]

    def _in_degree(self, candidate: InDegree) -> tuple[list[Estimate], list[Array]]:
        """Where x_g leaves, it gives nothing, and whoever gave to it gives to its next nearest."""
        n, k = self.n, candidate.count(self.n)
        distances = np.stack([cdist(sample.X, sample.X) for sample in self.samples])
        order = np.argsort(distances, axis=-1, kind="stable")
        nearest, following = np.zeros((2, len(order), n, n))
        np.put_along_axis(nearest, order[..., :k], 1.0, axis=-1)
        np.put_along_axis(following, order[..., k : k + 1], 1.0, axis=-1)
        received = nearest.sum(axis=1)
        itself = np.diagonal(nearest, axis1=-2, axis2=-1)
        moved = following.swapaxes(-2, -1) @ nearest - (itself[..., None] * following).swapaxes(-2, -1)
        left = (received[..., None] - nearest.swapaxes(-2, -1) + moved) * (1 - np.eye(n)) / (k * (n - 1))
        fits: list[Any] = [partial(getitem, received / (k * n))]
        return fits, [self._of_weights(left)]

    def _gaussians(self, candidate: GaussianFit) -> tuple[list[Estimate], list[Array]]:
        n, d = self.n, self.X.shape[2]
        phases, squares = self.phases, self.phases**2
        mean = (phases.sum(axis=1, keepdims=True) - phases) / (n - 1)
        spread = np.maximum((squares.sum(axis=1, keepdims=True) - squares) / (n - 1) - mean**2, 0)
        wave, factor = np.stack([np.cos(mean), np.sin(mean)]), unbiased(n - 1)
        left_out = [wave * np.exp(-factor / 2 * spread)]
        if len(candidate.names(self.samples[0])) == 2:
            lengths = (self.X**2).sum(axis=2)
            means = (self.X.sum(axis=1, keepdims=True) - self.X) / (n - 1)
            rest = (lengths.sum(axis=1, keepdims=True) - lengths) / (n - 1) - (means**2).sum(axis=2)
            norms = (self.frequencies**2).sum(axis=2)
            left_out.append(wave * np.exp(-factor / (2 * d) * np.maximum(rest, 0)[..., None] * norms[:, None]))
        fits: list[Any] = [partial(self._gaussian, candidate, which) for which in range(len(left_out))]
        return fits, left_out

    def _gaussian(self, candidate: GaussianFit, which: int, place: int) -> Measure:
        return candidate.fit(self.samples[place])[which]

    def _clusters(self, candidate: WardMixtures) -> tuple[list[Estimate], list[Array]]:
        trees = np.stack([(each.whitened_tree if candidate.whiten else each.tree)[0] for each in self.samples])
        levels = cut(trees, candidate.sizes_for(self.samples[0])).swapaxes(0, 1)
        fits: list[Any] = [partial(self._mixture, labels) for labels in levels]
        return fits, [self._left_out_of_clusters(labels) for labels in levels]

    def _mixture(self, labels: Array, place: int) -> Measure:
        return mixture_of_clusters(self.samples[place], labels[place])

    def _left_out_of_clusters(self, labels: Array) -> Array:
        """Return the waves of mixtures without each row, for one cluster of each row: labels of shape (S, n).

        Where x_i leaves its cluster, that loses δ = (ω·x_i − mean)² n_c/(n_c − 1) of its scatter. All others change by
        what they borrow alone, and that depends on the cluster by its size only.
        """
        n, sizes, mean, scatter = self.n, *self._moments_of_clusters(labels)
        size = np.take_along_axis(sizes, labels, axis=1)[..., None]  # of the cluster of each row
        away = self.phases - _at(mean, labels)
        lost = away**2
        lost *= size / np.maximum(size - 1, 1)
        rows = np.maximum(n - 1 - (sizes > 0).sum(axis=1)[:, None, None] + (size == 1), 1)
        within = np.maximum(scatter.sum(axis=1, keepdims=True) - lost, 0)
        within *= -EXTRA / 2 / rows  # what is borrowed, as an exponent of clusters of size n_c, times n_c + 4

        heights = sizes[..., None] / (n - 1) * np.exp(-scatter / 2 / (sizes[..., None] + EXTRA - 1))
        whole = np.stack([heights * np.cos(mean), heights * np.sin(mean)])  # what each gives, but for what it borrows
        lost -= _at(scatter, labels)
        np.minimum(lost, 0, out=lost)
        lost /= 2
        lost += within
        lost /= size + EXTRA - 2
        changed = np.exp(lost, out=lost)
        changed *= (size - 1) / (n - 1)
        away /= -np.maximum(size - 1, 1)
        away += _at(mean, labels)
        wave = np.stack([changed * np.cos(away), changed * np.sin(away)])
        borrowed = np.exp(within / (size + EXTRA - 1), out=away)
        for part, given in zip(wave, whole, strict=True):
            part -= borrowed * _at(given, labels)
        for these in _distinct(sizes):
            alike = (sizes == these[:, None])[:, None].astype(np.float32)
            np.exp(np.divide(within, these[:, None, None] + EXTRA - 1, out=borrowed), out=borrowed)
            for part, given in zip(wave, whole, strict=True):
                part += np.multiply(borrowed, alike @ given, out=changed)
        return wave

    def _recombined(self, candidate: Recombined) -> tuple[list[Estimate], list[Array]]:
        labels = cut(np.stack([sample.tree[0] for sample in self.samples]), [candidate.n_clusters])[:, 0]
        every = list(zip(*(candidate.parts(sample) for sample in self.samples), strict=True))
        fits: list[Any] = [partial(self._recombination, labels, parts) for parts in every]
        return fits, [self._left_out_of_parts(labels, candidate.n_clusters, parts) for parts in every]

    def _recombination(self, labels: Array, parts: Sequence[Array], place: int) -> Measure:
        sample = self.samples[place]
        return Recombination(sample.X, sample.masses, labels[place], parts[place])

    def _left_out_of_parts(self, labels: Array, count: int, parts: Sequence[Array]) -> Array:
        """Return the waves of recombinations without each row, which changes the means of its own cluster only."""
        member = _members(labels, count)
        sizes = member.sum(axis=2)[..., None]
        others = _at(sizes, labels) - 1  # rows of the cluster of each row, without it
        whole, changed = sizes / (self.n - 1), (others / (self.n - 1)).astype(np.complex64)
        changed = np.broadcast_to(changed, self.phases.shape).copy()
        wave = np.empty_like(changed)
        for factors in np.stack(parts, axis=1):
            phases = (self.X @ (factors[:, None] * self.frequencies).swapaxes(-2, -1)).astype(np.float32)
            np.cos(phases, out=wave.real)
            np.sin(phases, out=wave.imag)
            sums = member @ wave
            whole = whole * (sums / np.maximum(sizes, 1))
            left = np.subtract(_at(sums, labels), wave, out=wave)
            left /= np.maximum(others, 1)
            changed *= left
        changed += whole.sum(axis=1, keepdims=True) - _at(whole, labels)
        return np.stack([changed.real, changed.imag])

    def _moments_of_clusters(self, labels: Array) -> tuple[Array, Array, Array]:
        """Return the number of rows, and the mean and the scatter of ω·x, of each cluster; zeros of an empty one."""
        member = _members(labels, labels.max() + 1)
        sizes = member.sum(axis=2)
        mean = (member / np.maximum(sizes, 1)[..., None]) @ self.phases
        return sizes, mean, member @ (self.phases - _at(mean, labels)) ** 2


def _members(labels: Array, count: int) -> Array:
    """Return which rows are in which cluster, (S, clusters, n), from the cluster of each row, (S, n)."""
    return (labels[:, None] == np.arange(count)[:, None]).astype(np.float32)


def _at(values: Array, labels: Array) -> Array:
    """Return the values of the cluster of each row, (S, n, R), from those of all clusters, (S, clusters, R)."""
    return values[np.arange(len(labels))[:, None], labels]


def _distinct(sizes: Array) -> Array:
    """Return the different sizes of the clusters of each sample, zero where it has no more: (most, S)."""
    ordered = -np.sort(-sizes, axis=1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = 0
    distinct = -np.sort(-ordered, axis=1)
    return distinct[:, : int((distinct > 0).sum(axis=1).max())].T
