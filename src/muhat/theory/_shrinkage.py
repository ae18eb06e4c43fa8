"""Theorems 1 and 2, with their appendix and equation 5: when shrinking beats the empirical mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._validation import as_points, positive, whole_number
from muhat.errors import MuhatError
from muhat.gram import DenseGram, Gram
from muhat.kernels import Kernel, Precomputed


def admissible_fraction(c: float, beta: float, n: float | None = None) -> float:
    """Return A(c, β), below which S-KMSE with λ = cn^(−β) beats KME (Theorem 1).

    A(c, β) = 2^(1/β)β/(2^(1/β)β + c^(1/β)(β−1)^((β−1)/β)).

    A is the infimum over real n > 0 of A_n = (c² + 2cn^β)/(nc² + c² + 2cn^β), attained at n =
    (c/(2(β−1)))^(1/β). It tends to one for c → 0, but to 1/2 for β → ∞, where the paper's remark
    has one: only A_n for n > 1 tends to one.

    Parameters
    ----------
    c, beta : float
        c > 0 and β > 1.
    n : float, default=None
        Given, A_n is returned: S-KMSE beats KME at this n if and only if ‖μ_P‖² < A_n ∫k(x, x)dP.
    """
    c, beta = (
        positive("admissible_fraction", "c", c),
        positive("admissible_fraction", "beta", beta, above=1),
    )
    if n is not None:
        lam = c * positive("admissible_fraction", "n", n) ** -beta
        return (lam + 2) / (n * lam + lam + 2)
    return 1 / (1 + (c / 2) ** (1 / beta) * (beta - 1) ** ((beta - 1) / beta) / beta)


@dataclass(frozen=True)
class Theorem1:
    """Whether a sample looks as if its distribution is inside the class P_(c,β) of Theorem 1.

    Attributes
    ----------
    squared_norm, mean_diagonal : float
        The unbiased estimates of ‖μ_P‖² and ∫k(x, x)dP: the means of K off its diagonal and on it.
    ratio, standard_error : float
        Their ratio, an estimate of ‖μ_P‖²/∫k(x, x)dP, and its standard error by the delta method.
    bound, bound_at_n : float
        A(c, β) for every n, and A_n for this one.
    inside, inside_at_n : bool
        Whether the ratio is below the bound, so that S-KMSE beats KME for every n, or for this one.
    risk_difference : float
        The unbiased estimate of E‖μ_λ − μ_P‖² − E‖μ̂ − μ_P‖² at this n: negative where S-KMSE is
        better.
    """

    squared_norm: float
    mean_diagonal: float
    ratio: float
    standard_error: float
    bound: float
    bound_at_n: float
    inside: bool
    inside_at_n: bool
    risk_difference: float


def theorem_1(gram: Gram | Array, c: float, beta: float) -> Theorem1:
    """Answer whether a sample is inside the class ‖μ_P‖² < A ∫k(x, x)dP of Theorem 1.

    Parameters
    ----------
    gram : Gram or array of shape (n, n)
        The sample under its kernel: a Gram operator, of which only a product is needed, or the Gram
        matrix K.
    c, beta : float
        S-KMSE's λ = c n^(−β), c > 0 and β > 1.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> theorem_1(Gaussian(1.0)(X), c=1.0, beta=2.0).inside
    True
    """
    bound, gram = admissible_fraction(c, beta), _gram_operator(gram)
    p, root = gram.masses, np.sqrt(gram.masses)
    if len(p) < 2:
        raise MuhatError("theorem_1", "at least 2 points are needed", f"n = {len(p)}")
    own = gram.diagonal() / p  # k(x_i, x_i)
    others = (gram.product(root) / root - gram.diagonal()) / (
        1 - p
    )  # Σ_(j≠i) p_j k(x_i, x_j)/(1−p_i)
    pairs = p * (1 - p) / (1 - p @ p)
    squared_norm, mean_diagonal = float(pairs @ others), float(p @ own)
    if not mean_diagonal > 0:
        raise MuhatError(
            "theorem_1", "∫k(x, x)dP must be positive", mean_diagonal, "use another kernel"
        )
    ratio = squared_norm / mean_diagonal
    influence = (2 * (others - squared_norm) - ratio * (own - mean_diagonal)) / mean_diagonal
    size = 1 / float(p @ p)
    bound_at_n = admissible_fraction(c, beta, size)
    lam = c * size**-beta
    risk = (mean_diagonal - squared_norm) * float(p @ p)  # Δ = E‖μ̂ − μ_P‖²
    return Theorem1(
        squared_norm=squared_norm,
        mean_diagonal=mean_diagonal,
        ratio=ratio,
        standard_error=float(np.sqrt(p**2 @ influence**2)),
        bound=bound,
        bound_at_n=bound_at_n,
        inside=ratio < bound,
        inside_at_n=ratio < bound_at_n,
        risk_difference=(lam**2 * squared_norm - (lam**2 + 2 * lam) * risk) / (1 + lam) ** 2,
    )


def _gram_operator(gram: Any) -> Gram:
    """Return a Gram operator unchanged, and that of a Gram matrix; else raise MuhatError."""
    if hasattr(gram, "masses"):
        return gram
    K = as_points(gram).astype(np.float64)
    if K.shape[0] != K.shape[1]:
        needed = "a Gram matrix of shape (n, n) or a Gram operator is needed"
        raise MuhatError("theorem_1", needed, f"shape {K.shape}", "pass kernel(X) for a sample X")
    return DenseGram.from_sample(Precomputed(K), np.arange(len(K))[:, None])


@dataclass(frozen=True)
class CharacteristicBound:
    """A class of distributions inside P_(c,β), by the L² norm of the characteristic function.

    Attributes
    ----------
    l1_norm : float
        ‖ψ‖_(L¹).
    bound : float
        The paper's: ‖φ_P‖_(L²) < √(A (2π)^(d/2) ψ(0)/‖ψ‖_(L¹)).
    widest : float
        The same with (2π)^d, which the proof gives for this φ_P: the paper's (2π)^(d/2) mixes two
        Fourier conventions.
    """

    l1_norm: float
    bound: float
    widest: float


def characteristic_bound(
    kernel: Kernel, d: int, c: float, beta: float, l1_norm: float | None = None
) -> CharacteristicBound:
    """Return the class of Theorem 1 for a kernel k(x, y) = ψ(x − y) on R^d (the appendix).

    Parameters
    ----------
    kernel, d : Kernel and int
        The kernel, every parameter a number, and the dimension.
    c, beta : float
        S-KMSE's λ = c n^(−β), c > 0 and β > 1.
    l1_norm : float, default=None
        ‖ψ‖_(L¹); known for Gaussian and Laplacian kernels, needed for others.
    """
    A = admissible_fraction(c, beta)
    d = whole_number("characteristic_bound", "d", d)
    if l1_norm is None:
        l1_norm = kernel.l1_norm(d)
        if l1_norm is None:
            needed = "the L¹ norm of ψ is known for Gaussian and Laplacian kernels"
            raise MuhatError("characteristic_bound", needed, repr(kernel), "pass l1_norm=…")
    l1_norm = positive("characteristic_bound", "l1_norm", l1_norm)
    share = A * float(kernel.diagonal(np.zeros((1, d)))[0]) / l1_norm
    return CharacteristicBound(
        l1_norm, (share * (2 * np.pi) ** (d / 2)) ** 0.5, (share * (2 * np.pi) ** d) ** 0.5
    )


@dataclass(frozen=True)
class Theorem2:
    """Which shrinkage α_i helps component i: 0 < α_i < upper_i.

    Attributes
    ----------
    risk, gap : array
        Δ_i, the risk of component i of KME, and f*_i − μ_i.
    upper : array
        2Δ_i/(Δ_i + (f*_i − μ_i)²); zero where there is no risk, and so nothing to gain.
    """

    risk: Array
    gap: Array
    upper: Array

    @property
    def best(self) -> Array:
        """The α_i of least risk, half of the upper bound: Δ_i/(Δ_i + (f*_i − μ_i)²)."""
        return self.upper / 2

    def difference(self, alpha: Any) -> Array:
        """Return Δ_α,i − Δ_i = α_i²(Δ_i + (f*_i − μ_i)²) − 2α_iΔ_i; their sum is Δ_α − Δ."""
        alpha = np.asarray(alpha, dtype=np.float64)
        return alpha**2 * (self.risk + self.gap**2) - 2 * alpha * self.risk


def theorem_2(risk: Any, mean: Any, target: Any = 0.0) -> Theorem2:
    """Return the range in which shrinking each component towards the target helps.

    Parameters
    ----------
    risk : array
        Δ_i = E(μ̂_i − μ_i)², not negative.
    mean, target : array, the latter with default=0.0
        μ_i and f*_i, the Fourier coefficients of μ_P and of the target in the basis (e_i).

    Examples
    --------
    >>> theorem_2(risk=[1.0, 1.0], mean=[1.0, 3.0]).upper
    array([1. , 0.2])
    """
    try:
        risk, gap = np.broadcast_arrays(
            np.asarray(risk, np.float64), np.subtract(target, mean, dtype=np.float64)
        )
    except (TypeError, ValueError) as error:
        needed = "risk, mean and target must be numbers, one for each component"
        got = f"shapes {np.shape(risk)}, {np.shape(mean)} and {np.shape(target)}"
        raise MuhatError("theorem_2", needed, got) from error
    if not (risk >= 0).all() or not np.isfinite(gap).all():
        needed = "the risks Δ_i must not be negative, and means and targets must be finite"
        got = "a mean or target that is NaN or infinite"
        if not (risk >= 0).all():
            got = f"a risk of {risk.min()}"
        raise MuhatError("theorem_2", needed, got)
    upper = np.divide(2 * risk, risk + gap**2, out=np.zeros(risk.shape), where=risk > 0)
    return Theorem2(risk, gap, upper)


def shrink_components(vectors: Array, target: Array, basis: Array, h: Array) -> Array:
    """Return the general form of equation 5: Σ_i h_i ⟨f*, e_i⟩ e_i + Σ_i (1 − h_i) ⟨μ̂, e_i⟩ e_i.

    Parameters
    ----------
    vectors, target : array of shape (d,) or (n, d), and array of shape (d,)
        What is shrunk, μ̂ or several vectors in rows, and f*.
    basis, h : array of shape (d, d), and array of shape (d,)
        The e_i, orthonormal, in columns, and the shrinkage of each component.

    Examples
    --------
    >>> import numpy as np
    >>> shrink_components(np.array([2.0, 2.0]), np.zeros(2), np.eye(2), np.array([0.0, 0.5]))
    array([2., 1.])
    """
    vectors, target, basis, h = (
        np.asarray(each, dtype=np.float64) for each in (vectors, target, basis, h)
    )
    d = len(basis)
    if (
        basis.shape != (d, d)
        or h.shape != (d,)
        or target.shape != (d,)
        or vectors.shape[-1:] != (d,)
    ):
        needed = "vectors, target, basis and h must have the shapes (n, d), (d,), (d, d) and (d,)"
        got = ", ".join(str(each.shape) for each in (vectors, target, basis, h))
        raise MuhatError("shrink_components", needed, got)
    return (h * (target @ basis) + (1 - h) * (vectors @ basis)) @ basis.T


def whitening(X: Array) -> Array:
    """Return the whitened rows x̄ + Σ^(−1/2)(x − x̄): equation 5 with f* = x̄ and 1 − h(α_i) = 1/√α_i.

    (α_i, e_i) are the eigenpairs of the covariance matrix Σ = (1/n) Σ_i (x_i − x̄)(x_i − x̄)ᵀ;
    along those with α_i = 0 no row differs from x̄, and h = 1.
    """
    X = as_points(X)
    mean = X.mean(axis=0)
    alpha, basis = np.linalg.eigh((X - mean).T @ (X - mean) / len(X))
    kept = alpha > len(alpha) * np.finfo(alpha.dtype).eps * alpha[-1]
    h = np.ones_like(alpha)
    h[kept] -= alpha[kept] ** -0.5
    return shrink_components(X, mean, basis, h)
