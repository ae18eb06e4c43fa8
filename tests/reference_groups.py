"""The joint means of groups by their formulas, one group, fold and pair at a time."""

import numpy as np
from scipy.optimize import nnls


def plain_gram(K, codes, kept):
    """G_tu = ⟨μ̂_t, μ̂_u⟩ and the mean of k(x, x), from the rows that are kept."""
    T = codes.max() + 1
    G = np.empty((T, T))
    own = np.empty(T)
    for t in range(T):
        rows = np.flatnonzero((codes == t) & kept)
        own[t] = np.diag(K)[rows].mean()
        for u in range(T):
            others = np.flatnonzero((codes == u) & kept)
            G[t, u] = K[np.ix_(rows, others)].mean()
    return G, own


def noise(G, own, n):
    """D_t and mean(v)."""
    ss = n * (own - np.diag(G))
    pooled = ss.sum() / (n - 1).sum()
    v = (ss + 20 * pooled) / (n - 1 + 20)
    return v / n, v.mean()


def smoother(squared, D, n, h):
    """W_tu ∝ n_u exp(−d²_tu/(h (D_t + D_u)))."""
    T = len(n)
    W = np.empty((T, T))
    for t in range(T):
        for u in range(T):
            W[t, u] = n[u] * np.exp(-squared[t, u] / (h * (D[t] + D[u])))
        W[t] /= W[t].sum()
    return W


def squared_distances(G):
    """Of the means whose inner products are G."""
    T = len(G)
    return np.array([[G[t, t] + G[u, u] - 2 * G[t, u] for u in range(T)] for t in range(T)])


def candidates(G, own, n):
    """All W, and D."""
    T = len(n)
    D, v = noise(G, own, n)
    w = n / n.sum()
    U = G - np.diag(D)
    first = np.maximum(squared_distances(U), 0)
    np.fill_diagonal(first, 0)
    q = np.sqrt(w)
    H = np.eye(T) - np.outer(q, q)
    E = v / n
    e, V = np.linalg.eigh(H @ np.diag(E**-0.5) @ G @ np.diag(E**-0.5) @ H)
    u = np.maximum(e - 1, 0)

    def filtered(c):
        inner = V @ np.diag(u / (u + c)) @ V.T
        return np.outer(np.ones(T), w) + np.diag(E**0.5) @ inner @ np.diag(E**-0.5)

    P = (smoother(first, D, n, 0.5) + filtered(10)) / 2
    second = np.maximum(squared_distances(P @ G @ P.T), 0)
    second_noise = P**2 @ D
    found = [np.eye(T), np.outer(np.ones(T), w)]
    found += [smoother(first, D, n, h) for h in (0.25, 0.5, 1, 2, 4)]
    found += [filtered(c) for c in (1, 3, 10, 30)]
    found += [smoother(second, second_noise, n, h) for h in (1, 2, 4, 8)]
    return found, D


def best(B, a, centre):
    """Non-negative least squares with the ridge, by another factor than a Cholesky one."""
    ridge = 0.02 * (B[0, 0] - a[0])
    gamma, V = np.linalg.eigh(B + ridge * np.eye(len(a)))
    root = np.sqrt(gamma)[:, None] * V.T
    w = nnls(root, (V / np.sqrt(gamma)).T @ (a + ridge * centre))[0]
    w = w / w.sum()
    plain = np.eye(len(a))[0]

    def error(v):
        return v @ B @ v - 2 * a @ v

    gain = (error(plain) - error(w)) / (B[0, 0] - a[0])
    kept = 1 - 0.02 / gain if gain > 0.02 else 0.0
    return kept * w + (1 - kept) * plain


def moments(K, codes, folds, F):
    """B and a of every fold and group, with their counts n_tf, the noise D and the W_tt."""
    T = codes.max() + 1
    B = np.zeros((F, T, 15, 15))
    a = np.zeros((F, T, 15))
    counts = np.zeros((F, T))
    D = np.zeros((F, T))
    own_weights = np.zeros((F, T, 15))
    for f in range(F):
        kept = folds != f
        here = np.array([t for t in range(T) if (kept & (codes == t)).any()])
        compact = np.searchsorted(here, codes)
        inside = np.isin(codes, here)
        sub = np.ix_(inside, inside)
        G, own = plain_gram(K[sub], compact[inside], kept[inside])
        n = np.array([(kept & (codes == t)).sum() for t in here], float)
        found, D[f, here] = candidates(G, own, n)
        for place, t in enumerate(here):
            tested = np.flatnonzero((codes == t) & ~kept)
            counts[f, t] = len(tested)
            if not len(tested):
                continue
            cross = [K[np.ix_((codes == u) & kept, tested)].mean() for u in here]
            for m in range(15):
                own_weights[f, t, m] = found[m][place, place]
                a[f, t, m] = found[m][place] @ cross
                for k in range(15):
                    B[f, t, m, k] = found[m][place] @ G @ found[k][place]
    return B, a, counts, D, own_weights


def weights_by_size(B, a, counts, n):
    """The candidates' weights for each group."""
    B = np.einsum("ft,ftmk->tmk", counts, B)
    a = np.einsum("ft,ftm->tm", counts, a)
    common = best(B.sum(axis=0), a.sum(axis=0), np.full(15, 1 / 15))
    rows = []
    for size in n:
        near = np.exp(-0.5 * np.log(n / size) ** 2)
        rows.append(best(np.tensordot(near, B, 1), near @ a, common))
    return np.array(rows)


def limited_step(step, G, D, kappa):
    """A step from the plain mean, no longer than √(κD)."""
    q = step @ G @ step
    return min(1, np.sqrt(kappa * D / q)) * step if q > 0 else step


def joint_weights(K, codes, folds, F, kappa):
    """W of the estimate, and the gain on rows left out, corrected to all rows."""
    T = codes.max() + 1
    n = np.bincount(codes).astype(float)
    G, own = plain_gram(K, codes, np.ones(len(codes), bool))
    found, D = candidates(G, own, n)
    B, a, counts, left_out_noise, own_weights = moments(K, codes, folds, F)
    by_group = weights_by_size(B, a, counts, n)
    W = np.array([sum(by_group[t, m] * found[m][t] for m in range(15)) for t in range(T)])
    for t in range(T):
        W[t] = np.eye(T)[t] + limited_step(W[t] - np.eye(T)[t], G, D[t], kappa)
    gained = np.zeros((2, T))
    risk, expected, noise = np.zeros(T), 0.0, 0.0
    for f in range(F):
        others = np.arange(F) != f
        fitted = weights_by_size(B[others], a[others], counts[others], n)
        for t in np.flatnonzero(counts[f]):
            count = counts[f, t] * (1 - counts[f, t] / counts[:, t].sum())
            for place, weights in enumerate((by_group[t], fitted[t])):
                step = limited_step(weights - np.eye(15)[0], B[f, t], left_out_noise[f, t], kappa)
                w = np.eye(15)[0] + step
                plain = B[f, t, 0, 0] - 2 * a[f, t, 0]
                gained[place, t] += count * (plain - (w @ B[f, t] @ w - 2 * a[f, t] @ w))
                if place == 0:
                    kept = w @ own_weights[f, t]
                    length = step @ B[f, t] @ step
                    expected += count * (2 * (1 - kept) * left_out_noise[f, t] - length)
            risk[t] += count * (B[f, t, 0, 0] - a[f, t, 0])
            noise += count * left_out_noise[f, t]
    all_expected, all_noise = 0.0, 0.0
    for t in np.flatnonzero(counts.sum(axis=0)):
        step = W[t] - np.eye(T)[t]
        all_expected += n[t] * (2 * (1 - W[t, t]) * D[t] - step @ G @ step)
        all_noise += n[t] * D[t]
    fixed = all_expected / all_noise - expected / noise
    measured = gained.mean(axis=0)
    scattered = scattered_correction(measured, risk, counts, n)
    return W, measured.sum() / risk.sum() + (fixed + scattered) / 2


def scattered_correction(measured, risk, counts, n):
    """What all rows add to the gain g = D/(A + D), where A does not change and D falls."""
    total = 0.0
    for t in np.flatnonzero(counts.sum(axis=0)):
        near = np.exp(-0.5 * np.log(n / n[t]) ** 2)
        g = min(max(near @ measured / (near @ risk), 0.0), 1.0)
        kept = sum(count * (1 - count / n[t]) for count in counts[:, t])
        ratio = n[t] / kept if kept else 1.0  # noise without a fold over that with all rows
        if g > 0:
            A = ratio * (1 - g) / g  # in units of the noise with all rows
            total += risk[t] * (1 / (A + 1) - g)
    return total / risk.sum()
