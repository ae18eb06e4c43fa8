"""Many samples of one size at once: what StackedMean gives one by one, from arrays over all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Integral
from operator import getitem
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from muhat._arrays import Array, available_cores, share_between_cores, slices
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

TOGETHER = 2**18
"""Values at frequencies of one candidate, over samples and rows, that are worked on together: they stay in cache."""

ROUND = 4
"""Blocks of samples for each core that are worked on between two steps that one core does alone."""

SMALLEST = 3
"""Rows from which on samples are taken together."""

FAR = 1000.0
"""The largest ω·(x − x̄) that is left to single precision."""


@dataclass(frozen=True, eq=False)
class StackedSample:
    """The stacked mean of one of many samples: the weights of its candidates, and the estimate."""

    weights: Array
    embedding: Element


def stacked_means(samples: Sequence[Array], kernel: Any = "gaussian", random_states: Any = 0) -> list[StackedSample]:
    """Return the stacked mean of many samples of one size, the same as ``StackedMean`` gives one by one, sooner.

    Samples of 3 to 100 rows are taken together where the kernel's frequencies have a known law: what is computed at
    these, most of the work, is done for many samples at once, on all cores, and in single precision. As it only chooses
    w, weights differ from those of ``StackedMean`` by some 1e-6, and estimates by less than 1e-7 where the kernel's
    means of Gaussians have a closed form; where they are draws, as for ``Laplacian``, the draws differ too. Weights
    differ by more where candidates can hardly be told apart, as with very wide kernels. All other samples are fitted
    one by one, and so are those whose rows were drawn again or lie some hundred bandwidths apart.

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
    samples = list(samples)
    shapes = sorted({np.shape(X) for X in samples})
    if len(shapes) != 1 or len(shapes[0]) != 2:
        raise ValueError(refusal("stacked_means", "samples must be matrices of one shape", f"shapes {shapes}"))
    if any(np.ma.is_masked(X) or issparse(X) for X in samples):
        raise TypeError(refusal("stacked_means", "samples must be dense arrays", "sparse ones or masked values"))
    table = np.concatenate([np.asarray(X) for X in samples])
    checked = checked_sample(StackedMean(), table, reset=True, name="samples, one below the other,")
    rows = checked.astype(np.float64, copy=False).reshape(len(samples), *shapes[0])
    kernels = _one_for_each("kernel", kernel, len(rows))
    states = _one_for_each("random_states", random_states, len(rows))
    if not all(state is None or isinstance(state, Integral) for state in states):
        raise TypeError(refusal("stacked_means", "random_states must be whole numbers", repr(random_states)))
    parts = [as_kernel(each) for each in kernels]
    small = SMALLEST <= len(rows[0]) <= ONE_BY_ONE_UP_TO and all(map(has_law, parts))
    repeats = (np.diff(np.sort(rows[..., 0], axis=1)) == 0).sum(axis=1)  # in the first column: mostly none
    together = [
        place
        for place, X in enumerate(rows)
        if small and not (repeats[place] and is_drawn_again(parts[place].resolve(X), X, *distinct_rows(X)))
    ]

    def block(some: list[int]) -> _Block:
        resolved = [parts[place].resolve(rows[place]) for place in some]
        for each, place in zip(resolved, some, strict=True):
            check_scale(type(each).__name__, float(each.bound), np.float64, rows[place])
        return _Block.from_samples([rows[place] for place in some], resolved, [states[place] for place in some])

    size = max(1, TOGETHER // (FREQUENCIES * len(rows[0])))
    means: list[StackedSample] = []
    for some in slices(0, len(together), size * ROUND * available_cores()):
        blocks = [block(together[some][few]) for few in slices(0, len(together[some]), size)]
        for each, stack in zip(blocks, share_between_cores(_Block.stack, blocks), strict=True):
            means += each.means(*stack)
    found = dict(zip(together, means, strict=True))
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
    """Some samples of n rows; every row is left out by itself, and waves are pairs of real and imaginary parts.

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
    K : array of shape (S, n, n)
        Their Gram matrices, divided by κ².
    """

    samples: list[Sample]
    states: Sequence[Any]
    rngs: list[np.random.Generator]
    X: Array
    frequencies: Array
    K: Array

    @classmethod
    def from_samples(cls, rows: Sequence[Array], kernels: Sequence[Kernel], states: Sequence[Any]) -> _Block:
        """Draw the frequencies of each sample, as StackedMean does, and find its trees and its Gram matrix.

        These are calls so small that those of two threads would wait for each other more than they compute.
        """
        n, d = rows[0].shape
        masses = np.full(n, 1 / n)
        samples = [Sample(kernel, X, masses, n) for X, kernel in zip(rows, kernels, strict=True)]
        rngs = [np.random.default_rng(check_random_state(state).randint(2**31)) for state in states]
        with np.errstate(over="ignore", invalid="ignore"):
            drawn = [
                orthogonal_frequencies(kernel, FREQUENCIES, d, rng) for kernel, rng in zip(kernels, rngs, strict=True)
            ]
            for sample in samples:
                for tree in ("tree",) if d == 1 else ("tree", "whitened_tree", "tree_of_features"):
                    getattr(sample, tree)
        X = np.stack([sample.X - sample.center for sample in samples])
        K = np.stack([sample.kernel(sample.X) / sample.kernel.bound for sample in samples])
        return cls(samples, states, rngs, X, np.stack(drawn), K)

    @property
    def n(self) -> int:
        return self.X.shape[1]

    @cached_property
    def phases(self) -> Array:
        """ω·(x_i − x̄), of shape (S, n, R)."""
        return (self.X @ self.frequencies.swapaxes(-2, -1)).astype(np.float32)

    @cached_property
    def rows(self) -> Array:
        """exp(iω·(x_i − x̄)), of shape (2, S, n, R)."""
        phases = self.X @ self.frequencies.swapaxes(-2, -1)
        return np.stack([np.cos(phases), np.sin(phases)]).astype(np.float32)

    def stack(self) -> tuple[list[Estimate], Array, Array]:
        """Return the estimates of all candidates by the place of a sample, and B and a of each sample."""
        with np.errstate(over="ignore", invalid="ignore"):
            measures, left_out = self._candidates()
            return measures, *self._moments(left_out)

    def means(self, measures: list[Estimate], B: Array, a: Array) -> list[StackedSample]:
        """Return the stacked mean of each sample."""
        is_far = ~np.isfinite(B).all(axis=(1, 2)) | (np.abs(self.phases).max(axis=(1, 2)) > FAR)
        found = []
        for place, (sample, rng) in enumerate(zip(self.samples, self.rngs, strict=True)):
            if is_far[place]:
                found.append(_by_itself(sample.X, sample.kernel, self.states[place]))
                continue
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
        count, waves = len(left_out), [*left_out, self.rows]
        found = np.empty((len(self.samples), count, count + 1))
        flat = np.empty((2 * len(waves), *self.phases[0].shape))
        for place, sample in enumerate(self.samples):
            np.concatenate([wave[:, place] for wave in waves], out=flat)
            parts = flat.reshape(len(waves), -1)
            np.matmul(parts[:-1], parts.T, out=found[place])
            found[place] *= sample.kernel.bound / (self.n * FREQUENCIES)
        return found[..., :-1], found[..., -1]

    def _of_weights(self, V: Array) -> Array:
        """Return the waves of weights in columns, V of shape (S, n, columns)."""
        return V.swapaxes(-2, -1).astype(np.float32, copy=False) @ self.rows

    def _nu_steps(self, candidate: NuSteps) -> tuple[list[Estimate], list[Array]]:
        """The weights on all rows, and, in single precision, those without each as columns of one iteration."""
        n, single = self.n, self.K.astype(np.float32)
        whole = candidate.paths(lambda V: self.K @ V, np.full((n, 1), 1 / n))
        left = candidate.paths(lambda V: single @ V, ((1 - np.eye(n)) / (n - 1)).astype(np.float32))
        fits: list[Any] = [partial(getitem, weights[..., 0]) for weights in whole]
        return fits, [self._of_weights(weights) for weights in left]

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
        wave, factor = np.stack([np.cos(mean), np.sin(mean)]), float(unbiased(n - 1))
        left_out = [wave * np.exp(-factor / 2 * spread)]
        if len(candidate.names(self.samples[0])) == 2:
            lengths = (self.X**2).sum(axis=2)
            means = (self.X.sum(axis=1, keepdims=True) - self.X) / (n - 1)
            rest = (lengths.sum(axis=1, keepdims=True) - lengths) / (n - 1) - (means**2).sum(axis=2)
            spread = (np.maximum(rest, 0) / d)[..., None] * (self.frequencies**2).sum(axis=2)[:, None]
            left_out.append(wave * np.exp(-factor / 2 * spread.astype(np.float32)))
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
        wave = np.empty((2, *away.shape), dtype=away.dtype)
        for part, function in zip(wave, (np.cos, np.sin), strict=True):
            function(away, out=part)
            part *= changed
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
        every = candidate.parts(self.samples)
        fits: list[Any] = [partial(self._recombination, labels, parts) for parts in every]
        return fits, [self._left_out_of_parts(labels, candidate.n_clusters, parts) for parts in every]

    def _recombination(self, labels: Array, parts: Array, place: int) -> Measure:
        sample = self.samples[place]
        return Recombination(sample.X, sample.masses, labels[place], parts[place])

    def _left_out_of_parts(self, labels: Array, count: int, parts: Array) -> Array:
        """Return the waves of recombinations without each row, which changes the means of its own cluster only."""
        member = _members(labels, count)
        sizes = member.sum(axis=2)[..., None]
        others = _at(sizes, labels) - 1  # rows of the cluster of each row, without it
        whole = sizes / (self.n - 1)
        scale = others / (self.n - 1) / np.maximum(others, 1) ** parts.shape[1]  # sums of all parts to means, at once
        changed = np.broadcast_to(scale.astype(np.complex64), self.phases.shape).copy()
        wave = np.empty_like(changed)
        for factors in parts.swapaxes(0, 1):
            phases = (self.X @ (factors[:, None] * self.frequencies).swapaxes(-2, -1)).astype(np.float32)
            np.cos(phases, out=wave.real)
            np.sin(phases, out=wave.imag)
            sums = member @ wave
            whole = whole * (sums / np.maximum(sizes, 1))
            changed *= np.subtract(_at(sums, labels), wave, out=wave)
        changed += whole.sum(axis=1, keepdims=True)
        changed -= _at(whole, labels)
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
