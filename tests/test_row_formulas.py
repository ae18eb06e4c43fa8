"""Why leaving a row out has two formulas: each keeps the digits that its own sums need.

With t = 1 + p_i φ_iᵀRφ_i = z G_ii both are one identity. Means sum terms of the order of p_i, which
t − 1 has and z G_ii lost; regression divides by t, which is of the order of z where K is regular,
and which z G_ii has and 1 + p_i φ_iᵀRφ_i lost. docs/maths.md has the table.
"""

import numpy as np
import pytest

from muhat.kernels import Gaussian


def left_out_predictions(form, K, y, ridge):
    """Predictions of each row by Tikhonov regression on all others, from the eigenpairs of K/n.

    A ridge λ on the other n − 1 rows is the pole z = −(1 − 1/n) λ.
    """
    n = len(K)
    gamma, U = np.linalg.eigh(K / n)
    z = -(1 - 1 / n) * ridge
    if form == "removal":  # R = (z − Ĉ)⁻¹ and t = 1 + p φᵀRφ
        own = U**2 @ (gamma / (z - gamma))
        return -(U @ (gamma / (z - gamma) * (U.T @ y)) - own * y) / (1 + own)
    G = (U / (z - gamma)) @ U.T  # its rows and columns, and G_ii
    return -(G @ y / np.diag(G) - y)


def test_regression_needs_the_ratio_where_lambda_is_below_all_eigenvalues():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y, ridge = np.sin(X[:, 0]), 1e-9
    K = Gaussian(0.3)(X)
    truth = np.empty_like(y)
    for i in range(len(X)):
        rest = np.delete(np.arange(len(X)), i)
        inverse = K[np.ix_(rest, rest)] + len(rest) * ridge * np.eye(len(rest))
        truth[i] = K[i, rest] @ np.linalg.solve(inverse, y[rest])
    errors = {}
    for form in ("ratio", "removal"):
        found = left_out_predictions(form, K, y, ridge)
        errors[form] = np.abs(found - truth).max() / np.abs(truth).max()
    assert errors["ratio"] < 1e-11
    assert errors["removal"] > 1e-9


def linear_term(form, x, dtype, ratio):
    """Σ p_i ⟨φ_i − m_i, R_i m_i⟩ at z = −(1 − 1/n) ratio γ for a linear kernel in one dimension."""
    x = x.astype(dtype)
    p = 1 / dtype(len(x))
    q, c = np.sqrt(p), 1 - p
    gamma, mean = p * (x**2).sum(), p * x.sum()
    z = -c * dtype(ratio) * gamma
    if form == "definition":
        left_out = (mean - p * x) / c
        return (p * (x - left_out) * left_out / (z - gamma + p * x**2)).sum()
    if form == "removal":
        own, towards = p * x**2 / (z - gamma), p * x * mean / (z - gamma)
        return ((towards - own) * (towards + p) / (1 + own)).sum() / c**2
    U = q * x / np.sqrt(gamma)
    spanned = q * U.sum()
    G = U**2 / (z - gamma) + (1 - U**2) / z
    Gq = U * spanned / (z - gamma) + (q - U * spanned) / z
    qGq = spanned**2 / (z - gamma) + (1 - spanned**2) / z
    quadratic = (p * (z * (qGq - Gq**2 / G) - c)).sum() / c**2
    return (q * Gq / G - p).sum() / c - quadratic


@pytest.mark.skipif(
    np.finfo(np.longdouble).eps == np.finfo(np.float64).eps, reason="no longer type for the truth"
)
@pytest.mark.parametrize(
    ("dtype", "kept", "lost"), [(np.float64, 1e-12, 1e-9), (np.float32, 1e-5, 1e-1)]
)
def test_means_of_many_rows_need_the_removal(dtype, kept, lost):
    x = 1 + np.random.default_rng(0).normal(size=100_000)
    truth = linear_term("definition", x, np.longdouble, 1e3)
    errors = {}
    for form in ("ratio", "removal"):
        errors[form] = abs(float(linear_term(form, x, dtype, 1e3) / truth - 1))
    assert errors["removal"] < kept
    assert errors["ratio"] > lost
