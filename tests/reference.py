"""Slow truth: the paper's formulas in an explicit feature space, by loops and refits.

Nothing here is shared with the library. A Gram matrix is turned into explicit features, rows φ_i
with ⟨φ_i, φ_j⟩ = K_ij; an estimate is then an ordinary vector, Ĉ an ordinary matrix, and every
estimator is what its definition says.
"""

import math

import numpy as np


def features(K):
    """Rows φ_i with ⟨φ_i, φ_j⟩ = K_ij."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0))


def estimate(name, parameter, F, p, target=None, kappa2=1.0, order=3, nu=1.0):
    """The estimate μ_λ in feature space, from rows F with masses p, as the paper defines it."""
    p = p / p.sum()
    f = np.zeros(F.shape[1]) if target is None else target
    mean = sum((p_i * row for p_i, row in zip(p, F, strict=True)), np.zeros(F.shape[1]))
    C = sum(
        (p_i * np.outer(row, row) for p_i, row in zip(p, F, strict=True)),
        np.zeros((F.shape[1],) * 2),
    )
    if name == "componentwise":
        values, vectors = np.linalg.eigh(C)
        return f + component_wise(without_rounding(values, len(F)), vectors, mean, f, p)
    return shrunk(name, parameter, C, mean, f, kappa2, order, nu, n=len(F))


def shrunk(name, parameter, C, mean, f, kappa2=1.0, order=3, nu=1.0, n=1):
    """f + s_λ(C) (mean − f), from the definition of each filter; n is the number of rows."""
    if name == "kme":
        return mean
    if name == "s-kmse":  # minimiser of Σ p_i ‖φ_i − g‖² + λ‖g − f*‖²
        return (mean + parameter * f) / (1 + parameter) if np.isfinite(parameter) else f
    if name in ("f-kmse", "iterated-tikhonov"):
        # (C + λ) μ_j = C μ̂ + λ μ_(j−1), in the eigenbasis, where a tiny λ costs no digits.
        values, vectors = np.linalg.eigh(C)
        estimate, goal = vectors.T @ f, vectors.T @ mean
        for _ in range(1 if name == "f-kmse" else order):
            estimate = (np.maximum(values, 0) * goal + parameter * estimate) / (
                np.maximum(values, 0) + parameter
            )
        return vectors @ estimate
    if name == "landweber":
        # μ ← μ + C (μ̂ − μ)/κ² from f*, t times: μ̂ − μ is multiplied by I − C/κ² each time.
        return mean + np.linalg.matrix_power(np.eye(len(C)) - C / kappa2, int(parameter)) @ (
            f - mean
        )
    if name == "showalter":  # μ' = C (μ̂ − μ) from f* up to the time 1/λ, in the eigenbasis
        values, vectors = np.linalg.eigh(C)
        return mean + vectors @ (
            np.exp(-np.maximum(values, 0) / parameter) * (vectors.T @ (f - mean))
        )
    if name == "nu-method":
        return nu_method(int(parameter), C, mean, f, kappa2, nu)
    values, vectors = np.linalg.eigh(C)
    if name == "tsvd":
        keep = vectors[:, without_rounding(values, n) >= parameter]
        return f + keep @ (keep.T @ (mean - f))
    raise NotImplementedError(f"write the definition of {name} here")


def without_rounding(values, n):
    """Eigenvalues of n rows, with those that are rounding set to zero."""
    return np.where(values <= n * np.finfo(float).eps * values.max(), 0, values)


def nu_method(t, C, mean, f, kappa2, nu):
    """Accelerated Landweber by its update, started at the target."""
    before = f
    estimate = f + (4 * nu + 2) / (4 * nu + 1) * C @ (mean - f) / kappa2
    for k in range(2, t + 1):
        below = (k + 2 * nu - 1) * (2 * k + 4 * nu - 1)
        m = (k - 1) * (2 * k - 3) * (2 * k + 2 * nu - 1) / (below * (2 * k + 2 * nu - 3))
        w = 4 * (2 * k + 2 * nu - 1) * (k + nu - 1) / below
        before, estimate = (
            estimate,
            estimate + m * (estimate - before) + w * C @ (mean - estimate) / kappa2,
        )
    return estimate


def component_wise(values, vectors, mean, f, p):
    """Theorem 2's best shrinkage of μ̂ − f*, with estimates plugged in for each eigenspace."""
    size = 1 / (p**2).sum()
    shrunk = np.zeros_like(mean)
    for value in _distinct(values):
        space = vectors[:, np.abs(values - value) <= 1e-8 * values.max()]
        gap = space @ (space.T @ (mean - f))
        length = np.linalg.norm(gap)
        if length > 0:
            along = gap @ mean / length
            noise = max(value - along**2, 0) / (size - 1) if size > 1 + 1e-9 else 0.0
            shrunk += (1 - noise / (noise + length**2)) * gap
    return shrunk


def _distinct(values):
    kept = []
    for value in values:
        if not kept or abs(value - kept[-1]) > 1e-8 * values.max():
            kept.append(value)
    return kept


def leave_out_score(name, parameter, F, p, folds, target=None, target_weights=None, **settings):
    """Σ over folds of Σ_i p_i ‖φ_i − μ^(−fold)‖², every fold really left out.

    A target is a vector, or weights on the sample, of which those of the fold are left out too:
    what is left of a measure has the same mass as all of it.
    """
    p = p / p.sum()
    total = 0.0
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(F)), fold)
        if target_weights is not None:
            tau = np.array([target_weights[j] for j in rest])
            if (target_weights >= 0).all() and tau.sum() > 0:
                tau = tau / tau.sum() * target_weights.sum()
            target = F[rest].T @ tau
        mu = estimate(name, parameter, F[rest], p[rest], target, **settings)
        total += sum(p[i] * ((F[i] - mu) ** 2).sum() for i in fold)
    return total


def leave_one_out_score(name, parameter, F, p, target=None, **settings):
    """The score with each point left out in turn."""
    return leave_out_score(name, parameter, F, p, [[i] for i in range(len(F))], target, **settings)


def kernel_value(kernel, x, y):
    """k(x, y) of one pair of points, from the definition."""
    gap = [a - b for a, b in zip(x, y, strict=True)]
    squared = math.fsum(g * g for g in gap)
    product = math.fsum(a * b for a, b in zip(x, y, strict=True))
    name = type(kernel).__name__
    if name == "Gaussian":
        return math.exp(-squared / (2 * kernel.bandwidth**2))
    if name == "Laplacian":
        return math.exp(-math.fsum(abs(g) for g in gap) / kernel.bandwidth)
    if name == "Matern":
        return matern(math.sqrt(squared) / kernel.bandwidth, kernel.nu)
    if name == "RationalQuadratic":
        return (1 + squared / (2 * kernel.alpha * kernel.bandwidth**2)) ** -kernel.alpha
    if name == "InverseMultiquadric":
        return 1 / math.sqrt(1 + squared / kernel.bandwidth**2)
    if name == "Linear":
        return product
    if name == "Polynomial":
        return (kernel.gamma * product + kernel.coef0) ** kernel.degree
    if name == "Sum":
        return kernel_value(kernel.left, x, y) + kernel_value(kernel.right, x, y)
    if name == "Product":
        return kernel_value(kernel.left, x, y) * kernel_value(kernel.right, x, y)
    if name == "Scaled":
        return kernel.factor * kernel_value(kernel.kernel, x, y)
    raise NotImplementedError(name)


def matern(r, nu):
    """The Matérn function by its integral representation (Basset), for any ν."""
    if r == 0:
        return 1.0
    z = math.sqrt(2 * nu) * r
    most = 12 - min(math.log(z), 0)  # beyond, z cosh u is so large that nothing is left
    u = np.linspace(0, most, 4001)  # K_ν(z) = ∫ exp(−z cosh u) cosh(νu) du
    bessel = np.trapezoid(np.exp(-z * np.cosh(u)) * np.cosh(nu * u), u)
    return 2 ** (1 - nu) / math.gamma(nu) * z**nu * bessel
