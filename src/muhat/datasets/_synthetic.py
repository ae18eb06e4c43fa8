"""The paper's synthetic data: Gaussian mixtures whose kernel means have a closed form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from muhat._arrays import Array
from muhat._validation import whole_number
from muhat.errors import MuhatError
from muhat.kernels import Mixture

WEIGHTS = (0.05, 0.3, 0.4, 0.25)
"""The π_i."""

MAX_CENTRE = 10.0
"""The θ_ij are uniform between −10 and 10."""

DEGREES_OF_FREEDOM = 7
"""Of the Wishart distribution of the Σ_i: as many columns as G has."""

ENTRY_VARIANCE = 3.0
"""The variance of the entries of G."""

NOISE_VARIANCE = 0.2
"""The variance of ε."""


@dataclass(frozen=True, eq=False)
class Draw:
    """A sample with the distribution it is from.

    Attributes
    ----------
    distribution : Mixture
        P, whose ``squared_distance`` is the paper's loss in closed form.
    X : array of shape (n, d)
        The points, in rows.
    """

    distribution: Mixture
    X: Array


@dataclass(frozen=True)
class SyntheticFamily:
    """x ~ Σ_i π_i N(θ_i, Σ_i) + ε, the synthetic data of the paper's experiments.

    There are four components with π = (.05, .3, .4, .25), θ_ij ~ U(−10, 10), Σ_i ~ W(3I, 7) and ε ~
    N(0, 0.2 I). Beyond seven dimensions the Wishart distribution is singular and Σ_i is drawn as
    GGᵀ, the 7 columns of G from N(0, 3I).

    Parameters
    ----------
    dimension : int, default=20
        The number of features d.
    redraw : bool, default=True
        Whether each sample is from a mixture of its own, or all from one.

    Examples
    --------
    >>> first, second = SyntheticFamily().draw(range(2), n=50, random_state=0)
    >>> first.X.shape
    (50, 20)
    >>> first.distribution
    Mixture(4 components in 20 dimensions)

    The loss of an estimate is exact:

    >>> from muhat import KernelMean
    >>> plain = KernelMean(filter="kme").fit(first.X).embedding_
    >>> shrunk = KernelMean(filter="f-kmse").fit(first.X).embedding_
    >>> first.distribution.squared_distance(shrunk) < first.distribution.squared_distance(plain)
    True
    """

    dimension: int = 20
    redraw: bool = True

    def __post_init__(self) -> None:
        whole_number("SyntheticFamily", "dimension", self.dimension)
        if not isinstance(self.redraw, (bool, np.bool_)):
            raise MuhatError("SyntheticFamily", "redraw must be True or False", repr(self.redraw))

    def distribution(self, random_state: int | np.random.Generator) -> Mixture:
        """Return one member of the family: with ``redraw=False``, the one that ``draw`` draws from.

        Examples
        --------
        >>> SyntheticFamily(dimension=3).distribution(random_state=0).covariances.shape
        (4, 3, 3)
        """
        if not isinstance(random_state, np.random.Generator):
            whole_number("SyntheticFamily", "random_state", random_state, least=0)
        rng = np.random.default_rng(random_state)
        r, d = len(WEIGHTS), self.dimension
        means = rng.uniform(-MAX_CENTRE, MAX_CENTRE, size=(r, d))
        G = np.sqrt(ENTRY_VARIANCE) * rng.standard_normal((r, d, DEGREES_OF_FREEDOM))
        return Mixture(
            np.array(WEIGHTS), means, G @ G.swapaxes(-2, -1) + NOISE_VARIANCE * np.eye(d)
        )

    def draw(self, indices: Iterable[int], n: int, random_state: int) -> Iterator[Draw]:
        """Yield the samples with these indices.

        A sample depends on the random state and its own index alone, so that an experiment can be
        done in blocks.

        Parameters
        ----------
        indices : iterable of int
            Which samples: ``range(1000)`` in the paper, or a part of it.
        n : int
            The number of points in each; 50 in the paper.
        random_state : int
            The seed of all samples together.

        Examples
        --------
        >>> import numpy as np
        >>> family = SyntheticFamily(dimension=2)
        >>> *_, last = family.draw(range(4), n=5, random_state=0)
        >>> (again,) = family.draw([3], n=5, random_state=0)
        >>> np.array_equal(last.X, again.X)
        True
        """
        if not isinstance(indices, Iterable):
            needed, advice = (
                "indices must be a range of whole numbers",
                f"pass range({indices!r}) for that many",
            )
            raise MuhatError("SyntheticFamily", needed, repr(indices), advice)
        indices = list(indices)
        for index in indices:
            whole_number("SyntheticFamily", "each index", index, least=0)
        whole_number("SyntheticFamily", "n", n)
        whole_number("SyntheticFamily", "random_state", random_state, least=0)
        return self._draws(indices, n, random_state)

    def _draws(self, indices: list[int], n: int, random_state: int) -> Iterator[Draw]:
        common = None
        if not self.redraw:
            common = self.distribution(random_state)
        for index in indices:
            rng = np.random.default_rng(np.random.SeedSequence(random_state, spawn_key=(index,)))
            P = common or self.distribution(rng)
            yield Draw(P, P.sample(n, rng))
