"""Theorem 2 and the general form it is about (equation 5): shrinking component by component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat._arrays import Array
from muhat._messages import refusal
from muhat._validation import as_points


@dataclass(frozen=True)
class Theorem2:
    """Which shrinkage α_i helps component i: 0 < α_i < upper_i.

    Attributes
    ----------
    risk : array
        Δ_i, the risk of component i of KME.
    gap : array
        f*_i − μ_i.
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
    mean : array
        μ_i, the Fourier coefficients of μ_P in the basis (e_i).
    target : array, default=0.0
        f*_i, those of the target.

    Examples
    --------
    >>> theorem_2(risk=[1.0, 1.0], mean=[1.0, 3.0]).upper
    array([1. , 0.2])
    """
    try:
        risk, gap = np.broadcast_arrays(np.asarray(risk, np.float64), np.subtract(target, mean, dtype=np.float64))
    except (TypeError, ValueError) as error:
        needed = "risk, mean and target must be numbers, one for each component"
        got = f"shapes {np.shape(risk)}, {np.shape(mean)} and {np.shape(target)}"
        raise ValueError(refusal("theorem_2", needed, got)) from error
    if not (risk >= 0).all() or not np.isfinite(gap).all():
        needed = "the risks Δ_i must not be negative and means and targets must be finite"
        raise ValueError(refusal("theorem_2", needed, f"Δ_i from {risk.min()} and gaps from {gap.min()}"))
    upper = np.divide(2 * risk, risk + gap**2, out=np.zeros(risk.shape), where=risk > 0)
    return Theorem2(risk, gap, upper)


def shrink_components(vectors: Array, target: Array, basis: Array, h: Array) -> Array:
    """Return the general form of equation 5: Σ_i h_i ⟨f*, e_i⟩ e_i + Σ_i (1 − h_i) ⟨μ̂, e_i⟩ e_i.

    Parameters
    ----------
    vectors : array of shape (d,) or (n, d)
        What is shrunk: μ̂, or several vectors in rows.
    target : array of shape (d,)
        f*.
    basis : array of shape (d, d)
        The e_i, orthonormal, in columns.
    h : array of shape (d,)
        The shrinkage of each component.

    Examples
    --------
    >>> import numpy as np
    >>> shrink_components(np.array([2.0, 2.0]), np.zeros(2), np.eye(2), np.array([0.0, 0.5]))
    array([2., 1.])
    """
    vectors, target, basis, h = (np.asarray(each, dtype=np.float64) for each in (vectors, target, basis, h))
    d = len(basis)
    if basis.shape != (d, d) or h.shape != (d,) or target.shape != (d,) or vectors.shape[-1:] != (d,):
        needed = "vectors, target, basis and h must have the shapes (n, d), (d,), (d, d) and (d,)"
        got = ", ".join(str(each.shape) for each in (vectors, target, basis, h))
        raise ValueError(refusal("shrink_components", needed, got))
    return (h * (target @ basis) + (1 - h) * (vectors @ basis)) @ basis.T


def whitening(X: Array) -> Array:
    """Return the whitened rows x̄ + Σ^(−1/2)(x − x̄): equation 5 with f* = x̄ and 1 − h(α_i) = 1/√α_i.

    (α_i, e_i) are the eigenpairs of the covariance matrix Σ = (1/n) Σ_i (x_i − x̄)(x_i − x̄)ᵀ; along those with α_i = 0
    no row differs from x̄, and h = 1.

    Examples
    --------
    >>> import numpy as np
    >>> whitening(np.array([[0.0], [4.0]]))
    array([[1.],
           [3.]])
    """
    X = as_points(X)
    mean = X.mean(axis=0)
    alpha, basis = np.linalg.eigh((X - mean).T @ (X - mean) / len(X))
    kept = alpha > len(alpha) * np.finfo(alpha.dtype).eps * alpha[-1]
    h = np.ones_like(alpha)
    h[kept] -= alpha[kept] ** -0.5
    return shrink_components(X, mean, basis, h)
