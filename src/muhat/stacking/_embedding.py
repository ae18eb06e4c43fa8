"""Points and Gaussians as one element of the RKHS, as a stacked mean has them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from muhat._arrays import Array
from muhat._validation import as_points, frozen
from muhat.embedding import Element, Embedding
from muhat.errors import MuhatError
from muhat.kernels import Kernel, Mixture


@dataclass(frozen=True, eq=False, repr=False)
class MixedEmbedding(Element):
    """The function Σ_i β_i k(x_i, ·) + Σ_c p_c E k(Y_c, ·), Y_c ~ N(θ_c, S_c).

    Parameters
    ----------
    atoms : Embedding
        The sum over points, with a kernel for which the kernel mean of a Gaussian has a closed
        form.
    gaussians : Mixture
        The N(θ_c, S_c); its own weights do not count.
    masses : array of shape (r,)
        The p_c, of any sign.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat.kernels import Gaussian
    >>> atoms = Embedding(Gaussian(1.0), np.zeros((1, 1)), np.array([0.5]))
    >>> f = MixedEmbedding(atoms, Mixture([1.0], [[0.0]], [[[1.0]]]), np.array([0.5]))
    >>> f(np.array([[0.0]])).round(4)
    array([0.8536])
    >>> (f - f).norm()
    0.0
    """

    atoms: Embedding
    gaussians: Mixture
    masses: Array
    absorbs_point_embeddings: ClassVar[bool] = True

    def __post_init__(self) -> None:
        masses = np.asarray(self.masses, dtype=np.float64)
        if masses.shape != self.gaussians.weights.shape or not np.isfinite(masses).all():
            count = len(self.gaussians.weights)
            needed = f"masses must be finite numbers, one for each of {count} Gaussians"
            raise MuhatError("MixedEmbedding", needed, f"{masses}")
        vars(self).update(masses=frozen(masses))

    @property
    def kernel(self) -> Kernel:  # type: ignore[override]
        """The kernel k of the RKHS."""
        return self.atoms.kernel

    @property
    def weights(self) -> Array:  # type: ignore[override]
        """The β_i, and after them the p_c."""
        return np.concatenate([self.atoms.weights, self.masses])

    def __call__(self, Y: Array) -> Array:
        Y = as_points(Y)
        return self.atoms(Y) + self.masses @ self.gaussians.means_at(self.kernel, Y)

    def inner(self, other: Embedding | MixedEmbedding) -> float:
        """Return the inner product ⟨f, g⟩."""
        self._check_same_space(other)
        if not isinstance(other, MixedEmbedding):
            return self.atoms.inner(other) + float(self._with_points(other))
        both = self.gaussians.inner_products(self.kernel, other.gaussians)
        own = float(other._with_points(self.atoms) + self.masses @ both @ other.masses)
        return self.inner(other.atoms) + own

    def squared_norm(self) -> float:
        """Return ‖f‖², zero where rounding would make it negative."""
        return max(self.inner(self), 0.0)

    def loss(self, P: Mixture) -> float:
        """Return ‖f − μ_P‖², zero where rounding would make it negative."""
        cross = self.weights @ np.concatenate(
            [
                P.mean(self.kernel, self.atoms.points),
                self.gaussians.inner_products(self.kernel, P) @ P.weights,
            ]
        )
        return max(self.squared_norm() - 2 * float(cross) + P.inner(self.kernel, P), 0.0)

    def __repr__(self) -> str:
        points, gaussians = len(self.atoms.points), len(self.masses)
        return (
            f"MixedEmbedding({self.kernel!r}, {points} points and {gaussians} Gaussians, "
            f"weights sum to {self.weights.sum():.6g})"
        )

    def _with_points(self, atoms: Embedding) -> Any:
        """Return the inner product of the Gaussians with a sum over points."""
        return self.masses @ self.gaussians.means_at(self.kernel, atoms.points) @ atoms.weights

    def _plus(self, other: Embedding | MixedEmbedding) -> Self:
        if isinstance(other, Embedding):
            return replace(self, atoms=self.atoms + other)
        means = np.concatenate([self.gaussians.means, other.gaussians.means])
        covariances = np.concatenate([self.gaussians.covariances, other.gaussians.covariances])
        equal = np.full(len(means), 1 / len(means))
        masses = np.concatenate([self.masses, other.masses])
        return replace(
            self,
            atoms=self.atoms + other.atoms,
            gaussians=Mixture(equal, means, covariances),
            masses=masses,
        )

    def _times(self, factor: float) -> Self:
        return replace(self, atoms=factor * self.atoms, masses=factor * self.masses)

    def _check_same_space(self, other: Element) -> None:
        if isinstance(other, MixedEmbedding):
            other = other.atoms
        self.atoms._check_same_space(other)
