"""Are two samples alike? One pooled eigendecomposition per kernel answers for every weight and permutation at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._messages import refusal
from muhat._parts import as_gram
from muhat.gram import Approximation, Nystrom
from muhat.kernels import Kernel
from muhat.testing._base import DEFAULT_STATISTICS, PermutationTest
from muhat.testing._ladder import as_kernels, kernels_at_bandwidths
from muhat.testing._marginals import feature_differences
from muhat.testing._permutations import Law, PermutationTable, Relabelings
from muhat.testing._results import TwoSampleResult, of_table
from muhat.testing._spectrum import PooledSpectrum
from muhat.testing._statistics import Statistic

DENSE_UP_TO = 2000
"""Rows of the pool up to which the eigendecompositions of twenty kernels take less than about a minute."""

MOST_ROWS = 200_000
"""Rows of the pool beyond which the labels of all permutations do not fit in memory comfortably."""

LANDMARKS = 300
"""How many landmarks stand for more rows than that, if nothing else is asked for."""


class TwoSampleTest(PermutationTest):
    """Test whether two samples come from one distribution, with one exact p-value for many kernels and statistics.

    The rows are pooled and shuffled. Bandwidths, λ and eigendecompositions come from the pool whatever the labels are;
    then labels are permuted. All statistics share the permutations, and one soft maximum of their normal scores is
    compared with that of every permutation: the p-value is exact for every sample size and level, and never zero.

    Parameters
    ----------
    kernel : str, Kernel, callable or list of these, default=None
        Gaussian and Laplacian, if not given.
    bandwidths : int, 'median' or list of float, default=None
        For kernels whose bandwidth is not a number: how many, in equal ratios over the pooled distances (14 if not
        given, 6 but for the Gaussian kernel), the median, or the bandwidths themselves.
    statistics : str, Statistic or list of these, default=('mmd', 'spectral', 'kernel-fisher')
        'mmd', 'spectral', 'kernel-fisher', 'shrunk-means' or objects such as ``Spectral("landweber", [10, 100])``.
    gram : {'auto', 'dense', 'nystrom', 'random-features'}, Nystrom or RandomFeatures, default='auto'
        How the Gram matrix is held: as it is, by default up to 2000 rows in both samples together, or approximated by
        features, 300 landmarks by default, drawn from the pool. The p-value is exact either way.
    n_permutations : int, default=999
        Where there are no more relabelings than that, all of them are taken instead of random ones.
    random_state : int, RandomState or None, default=None
        For the permutations.
    n_jobs : int, default=None
        Cores to use, as many as there are if not given or −1.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import TwoSampleTest
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(50, 2)), rng.normal(1.0, 1.0, size=(40, 2))
    >>> TwoSampleTest(random_state=0).test(X, Y).p_value
    0.001
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        bandwidths: Any = None,
        statistics: Any = DEFAULT_STATISTICS,
        gram: Any = "auto",
        n_permutations: int = 999,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.bandwidths = bandwidths
        self.statistics = statistics
        self.gram = gram
        self.n_permutations = n_permutations
        self.random_state = random_state
        self.n_jobs = n_jobs

    def test(self, X: Any, Y: Any) -> TwoSampleResult:
        """Test whether the rows of X and of Y, of shape (n, d) and (m, d), come from one distribution."""
        statistics, kernels = self._check(), as_kernels(self.kernel)
        gram = self._gram(kernels)
        X, Y, names = self._samples(X, Y)
        if gram == "auto":
            gram = "dense" if len(X) + len(Y) <= DENSE_UP_TO else Nystrom(LANDMARKS)
        rng = self._rng()
        order = rng.permutation(len(X) + len(Y))
        Z = np.concatenate([X, Y])[order]
        relabelings = Relabelings.draw(order < len(X), self.n_permutations, rng)
        labels = relabelings.labels

        def table_of(kernel: Kernel) -> tuple[list[Statistic], Array, Array, Law]:
            spectrum = PooledSpectrum.from_rows(kernel, Z, gram)
            resolved = spectrum.resolve(statistics)
            return resolved, *spectrum.statistics(resolved, labels), spectrum.law(resolved, labels)

        ladder = kernels_at_bandwidths(kernels, self.bandwidths, Z)
        tables = self._map(table_of, ladder, len(Z))
        candidates = [
            ((kernel,), (each,)) for kernel, (resolved, *_) in zip(ladder, tables, strict=True) for each in resolved
        ]
        if not candidates:
            got, advice = "the same value k(x, y) for all pairs", "take another kernel or bandwidth"
            raise ValueError(refusal("TwoSampleTest", "a kernel that tells rows apart is needed", got, advice))
        _, values, scales, laws = zip(*tables, strict=True)
        table = PermutationTable(np.concatenate(values), np.concatenate(scales), Law.of_all(laws))

        (kernel,), (loudest,) = candidates[table.loudest]
        spectrum, observed = PooledSpectrum.from_rows(kernel, Z, gram), labels[:, 0]
        witness = spectrum.witness(loudest, observed)
        features = feature_differences(Z, labels, names)
        telling = [names.index(each.name) for each in features[:2]]
        return TwoSampleResult(
            **of_table(table, candidates),
            is_complete=relabelings.is_complete,
            mmd=spectrum.mmd(observed),
            mmd_interval=spectrum.mmd_interval(observed),
            witness=witness,
            witness_x=witness(X),
            witness_y=witness(Y),
            features=features,
            most_telling_x=X[:, telling],
            most_telling_y=Y[:, telling],
        )

    def _gram(self, kernels: list[Kernel]) -> str | Approximation:
        """Return how the Gram matrix is to be held, or refuse a way that gives no spectrum."""
        gram = as_gram(self.gram)
        if gram == "blocks":
            needed = "a gram with a spectrum is needed"
            raise ValueError(refusal("TwoSampleTest", needed, "'blocks'", "use 'dense' or 'nystrom'"))
        if isinstance(gram, Approximation):
            for kernel in kernels:
                gram.check(kernel)
        return gram

    def _samples(self, X: Any, Y: Any) -> tuple[Array, Array, tuple[str, ...]]:
        """Return both samples and the names of their features, or refuse them in one sentence."""
        (X, left), (Y, right) = self._sample("X", X), self._sample("Y", Y)
        if X.shape[1] != Y.shape[1]:
            got = f"{X.shape[1]} and {Y.shape[1]} columns"
            raise ValueError(refusal("TwoSampleTest", "X and Y must have the same columns", got))
        if left and right and left != right:
            first = next((a, b) for a, b in zip(left, right, strict=True) if a != b)
            needed, got = "X and Y must have the same columns in the same order", f"{first[0]!r} and {first[1]!r}"
            raise ValueError(refusal("TwoSampleTest", needed, got, "select them with Y[X.columns]"))
        if len(X) + len(Y) > MOST_ROWS:
            needed, advice = f"at most {MOST_ROWS} rows in both samples together are needed", "draw some of the rows"
            raise ValueError(refusal("TwoSampleTest", needed, len(X) + len(Y), advice))
        if not np.ptp(np.concatenate([X, Y]), axis=0).any():
            got = f"{len(X) + len(Y)} equal rows"
            raise ValueError(refusal("TwoSampleTest", "rows that differ are needed", got))
        return X, Y, left or right or tuple(f"column {number}" for number in range(X.shape[1]))
