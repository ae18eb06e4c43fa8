"""A density from an embedding: the Gaussian mixture whose kernel mean is nearest to it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import Bounds, OptimizeResult, minimize
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import BLAS_ON_ONE_THREAD, Array, rounding
from muhat._bases import BaseEstimator, DensityMixin
from muhat._parts import as_gram, as_kernel
from muhat._random_states import as_random_state, check_is_random_state
from muhat._summary import EstimatorHtmlReprMixin, Summary
from muhat._validation import checked_sample, positive, whole_number
from muhat.embedding import Embedding
from muhat.errors import MuhatError, MuhatTypeError
from muhat.gram import RandomFeatures
from muhat.kernels import Gaussian, Kernel, Mixture
from muhat.kernels._base import terms
from muhat.mean import KernelMean

__all__ = ["MatchedMixture", "kmeans_start"]

MAX_VARIANCE = 1e3
"""Largest variance of a component, in units of the spread: a wider one is flat to the kernel."""

MAX_MEAN_OFFSET = 1.0
"""Largest distance of a mean from the box of the points, in units of the spread."""

MAX_SPREAD = 1e150
"""Largest spread of the points, and inverse of the smallest, whose squares stay finite."""

TOL_WINDOW = 20
"""Steps of the solver over which ``tol`` is measured: single steps are small in bends."""

CURVATURE_MEMORY = 100
"""Steps from which the solver learns curvature; with ten it takes ten times as many steps."""


class MatchedMixture(EstimatorHtmlReprMixin, DensityMixin, BaseEstimator):
    """The density Q = Σ_j π_j N(θ_j, σ_j² I) whose kernel mean is nearest to an estimate.

    ‖μ_Q − μ‖² has a closed form for the Gaussian kernel. It is minimised over the weights π (on the
    simplex), the means θ and the variances σ² with exact gradients, starting at the best of many
    K-means runs (section 5 of the paper, Table 2). The interface is that of scikit-learn's
    ``GaussianMixture``. If the weights of μ sum to less than one, the missing mass is given to
    components as wide as the solver allows.

    Parameters
    ----------
    n_components : int, default=5
        The number r of components.
    mean : KernelMean, default=None
        The estimator of μ, by default ``KernelMean()``. Its kernel must be Gaussian, or a sum or
        multiple of Gaussians. Random features are not supported, because their functions are not
        in the RKHS of the kernel.
    tol : float, default=1e-6
        The solver has converged when its last 20 steps together have lowered ‖μ_Q − μ‖² by less
        than this share of it.
    n_init, max_iter : int, default=50 and 5000
        Runs of K-means, of which the best is the start, and the most steps of the solver.
    early_stopping : float, default=None
        If given, the solver stops as soon as one step lowers ‖μ_Q − μ‖² by less than this share of
        ‖μ‖²; with 1e-6, after about ten steps. This keeps Q near its K-means start, which
        regularises, because μ is only an estimate (docs/evidence.md). ``converged_`` is then False,
        without a warning.
    min_variance : float, default=1e-2
        The smallest variance of a component, as a share of the average variance of the features, so
        that no component collapses onto a point.
    random_state : int, RandomState, Generator or None, default=0
        Seed of K-means and of ``sample``. With None, every call draws new numbers.

    Attributes
    ----------
    weights_, means_, variances_ : arrays of shape (r,), (r, d) and (r,)
        The π_j, θ_j and σ_j².
    embedding_, squared_distance_ : Embedding and float
        The estimate μ that was matched, and the ‖μ_Q − μ‖² that was reached.
    converged_, n_iter_ : bool and int
        Whether the solver stopped by ``tol``, or at a minimum to rounding, and the steps it took.
        If it did neither, nor stopped by ``early_stopping``, a ``ConvergenceWarning`` says so.
    n_features_in_, feature_names_in_ : int and array of shape (n_features_in_,)
        The number of features, and their names if X had any.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-4, 1, size=(140, 2)), rng.normal(4, 1, size=(60, 2))])
    >>> q = MatchedMixture(2, random_state=0).fit(X)
    >>> np.sort(q.weights_).round(1)
    array([0.3, 0.7])
    >>> q.converged_
    True
    """

    n_features_in_: int
    weights_: Array
    means_: Array
    variances_: Array
    squared_distance_: float
    n_iter_: int
    converged_: bool

    def __init__(
        self,
        n_components: int = 5,
        *,
        mean: KernelMean | None = None,
        n_init: int = 50,
        tol: float = 1e-6,
        max_iter: int = 5000,
        early_stopping: float | None = None,
        min_variance: float = 1e-2,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.mean = mean
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.min_variance = min_variance
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Estimate the kernel mean of a sample, of shape (n, d), and match it; y is ignored.

        For points with masses, fit a KernelMean with sample_weight and give its ``embedding_`` to
        ``fit_embedding``.
        """
        X = checked_sample(self, X, reset=True).astype(np.float64, copy=False)
        self._check_parameters()
        mean = KernelMean()
        if self.mean is not None:
            mean = clone(self.mean)
        _gaussians(as_kernel(mean.kernel))
        if isinstance(as_gram(mean.gram), RandomFeatures):
            needed, advice = (
                "mean must be an estimate in the RKHS of its kernel, without random features",
                "use gram='nystrom' instead",
            )
            raise MuhatError("MatchedMixture", needed, f"gram={mean.gram!r}", advice)
        return self._match(_on_points(mean.fit(X).embedding_))

    def fit_embedding(self, embedding: Embedding, start: Mixture | None = None) -> Self:
        """Match a given embedding.

        Parameters
        ----------
        embedding : Embedding
            The function to match, with a kernel that is Gaussian, or a sum or multiple of
            Gaussians.
        start : Mixture, default=None
            Where the solver starts; of a covariance the average variance counts, and what lies
            beyond the solver's bounds is moved to them. By default from K-means on the embedding's
            points.
        """
        self._check_parameters()
        shape = (self.n_components, _on_points(embedding).points.shape[1])
        if start is not None and (not isinstance(start, Mixture) or start.means.shape != shape):
            needed = f"start must be a Mixture of {shape[0]} components in {shape[1]} dimensions"
            got = type(start).__name__
            if isinstance(start, Mixture):
                got = repr(start)
            raise MuhatError("MatchedMixture", needed, got)
        self.n_features_in_ = shape[1]
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        return self._match(embedding, start)

    def _match(self, embedding: Embedding, start: Mixture | None = None) -> Self:
        """Minimise ‖μ_Q − μ‖² from a start, in units of the points' spread."""
        objective = _Objective.from_embedding(embedding)
        centre, unit = objective.centre, objective.unit
        if start is None:
            first = _vector(
                kmeans_start(objective.points, self.n_components, self.n_init, self.random_state)
            )
        else:
            first = _vector(start, centre, unit)
        bounds = objective.bounds(self.n_components, self.min_variance)
        first = np.clip(first, bounds.lb, bounds.ub)
        stop = None
        options: dict[str, Any] = {
            "maxiter": self.max_iter,
            "maxfun": 10 * self.max_iter,
            "gtol": 0.0,
        }
        if self.early_stopping is None:
            stop = _Stop(self.tol)
            options |= {"ftol": 0.0, "maxcor": CURVATURE_MEMORY}
        else:
            options["ftol"] = self.early_stopping
        with BLAS_ON_ONE_THREAD:
            solution = minimize(
                objective,
                first,
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options=options,
                callback=stop,
            )
        value, gradient = objective(solution.x)
        downhill = np.clip(solution.x - gradient, bounds.lb, bounds.ub) - solution.x

        table = solution.x.reshape(self.n_components, -1)
        self.weights_ = softmax(table[:, 0])
        self.means_ = centre + unit * table[:, 1:-1]
        self.variances_ = unit**2 * np.exp(table[:, -1])
        self.embedding_ = embedding
        self.squared_distance_ = max(value, 0.0) * objective.squared_norm
        self.n_iter_ = int(solution.nit)
        # Status 0 is a stop by ftol, 2 a failed line search, by rounding if values do not descend.
        flat = bool(-gradient @ downhill <= max(self.tol * value, rounding(downhill)))
        early = self.early_stopping is not None and solution.status == 0
        by_tol = solution.status == 0 or (stop is not None and stop.reached)
        self.converged_ = not early and (by_tol or (solution.status == 2 and flat))
        if not self.converged_ and not early:
            steps = f"not converged after {self.n_iter_} steps"
            message = f"MatchedMixture: {steps}; increase max_iter or tol."
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        return self

    @property
    def mixture_(self) -> Mixture:
        """Q as a distribution with its kernel mean in closed form."""
        check_is_fitted(self, "weights_")
        return Mixture.isotropic(self.weights_, self.means_, self.variances_)

    def score_samples(self, X: Any) -> Array:
        """Return the log density log Q(x) of each row, of shape (m,)."""
        return logsumexp(self._joint(X), axis=1)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log density of the rows; the paper's Table 2 has its negative."""
        return float(self.score_samples(X).mean())

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each component given each row, of shape (m, r)."""
        return softmax(self._joint(X), axis=1)

    def predict(self, X: Any) -> Array:
        """Return the most probable component of each row."""
        return self._joint(X).argmax(axis=1)

    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Draw points from Q; return them, of shape (n_samples, d), and the component of each."""
        check_is_fitted(self, "weights_")
        random, n = (
            as_random_state(self, self.random_state),
            whole_number(self, "n_samples", n_samples),
        )
        y = random.choice(len(self.weights_), size=n, p=self.weights_)
        noise = random.standard_normal((n, self.means_.shape[1]))
        return self.means_[y] + np.sqrt(self.variances_[y])[:, None] * noise, y

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion on X: the lower, the better."""
        log_densities = self.score_samples(X)
        return float(-2 * log_densities.sum() + np.log(len(log_densities)) * self._n_parameters())

    def aic(self, X: Any) -> float:
        """Return Akaike's information criterion on X: the lower, the better."""
        return float(-2 * self.score_samples(X).sum() + 2 * self._n_parameters())

    def _summary(self) -> Summary:
        state = "stopped"
        if self.converged_:
            state = "converged"
        sentence = f"{len(self.weights_)} Gaussians, {state} after {self.n_iter_} steps."
        rows = []
        for place in np.argsort(-self.weights_, kind="stable"):
            mean = ", ".join(f"{each:.3g}" for each in self.means_[place])
            rows.append((f"{self.weights_[place]:.3f}", f"{self.variances_[place]:.4g}", mean))
        return Summary(sentence, ("weight", "variance", "mean"), rows)

    def _n_parameters(self) -> int:
        """r·d means, r variances and r − 1 weights."""
        return self.means_.size + len(self.variances_) + len(self.weights_) - 1

    def _joint(self, X: Any) -> Array:
        """Return log π_j + log N(x; θ_j, σ_j² I), of shape (m, r)."""
        check_is_fitted(self, "weights_")
        squared = cdist(checked_sample(self, X, reset=False), self.means_, "sqeuclidean")
        d = self.means_.shape[1]
        return (
            np.log(self.weights_)
            - (squared / self.variances_ + d * np.log(2 * np.pi * self.variances_)) / 2
        )

    def _check_parameters(self) -> None:
        for name in ("n_components", "n_init", "max_iter"):
            whole_number(self, name, getattr(self, name))
        check_is_random_state(self, self.random_state)
        positive(self, "tol", self.tol)
        if self.early_stopping is not None:
            positive(self, "early_stopping", self.early_stopping)
        if positive(self, "min_variance", self.min_variance) > 1:
            raise MuhatError("MatchedMixture", "min_variance must be at most 1", self.min_variance)
        if self.mean is not None and not isinstance(self.mean, KernelMean):
            needed, advice = (
                "mean must be a KernelMean or None",
                "use fit_embedding for any embedding",
            )
            raise MuhatTypeError("MatchedMixture", needed, type(self.mean).__name__, advice)


def kmeans_start(
    X: Array, n_components: int, n_init: int = 50, random_state: Any = None
) -> Mixture:
    """Return the mixture of the best of many K-means runs, one component for each cluster.

    Where points coincide there may be fewer clusters than asked for; those left over count as one
    point.
    """
    if len(X) < n_components:
        needed = f"at least n_components = {n_components} points are needed"
        got, advice = f"n_samples = {len(X)}", "use fewer components or more points"
        raise MuhatError("MatchedMixture", needed, got, advice)
    from sklearn.cluster import KMeans  # here, because it takes longer to import than all of muhat

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than clusters
        seed = as_random_state("MatchedMixture", random_state)
        clusters = KMeans(n_components, n_init=n_init, random_state=seed).fit(X)
    member = np.eye(n_components)[clusters.labels_]
    counts = np.maximum(member.sum(axis=0), 1)
    squared = ((X - clusters.cluster_centers_[clusters.labels_]) ** 2).mean(axis=1)
    return Mixture.isotropic(
        counts / counts.sum(), clusters.cluster_centers_, squared @ member / counts
    )


class _Stop:
    """Stops the solver once its last steps lowered the objective by less than a share."""

    def __init__(self, tol: float) -> None:
        self.tol = tol
        self.values: list[float] = []
        self.reached = False

    def __call__(self, intermediate_result: OptimizeResult) -> None:
        value = float(intermediate_result.fun)
        self.values.append(value)
        if (
            len(self.values) > TOL_WINDOW
            and self.values[-1 - TOL_WINDOW] - value <= self.tol * value
        ):
            self.reached = True
            raise StopIteration


@dataclass(frozen=True)
class _Objective:
    """‖μ_Q − μ‖²/‖μ‖² and its gradient: μ = Σ_i β_i k(x_i, ·), k = Σ_g a_g exp(−‖x−y‖²/2τ_g).

    The points are components of no variance and of mass −β, so that μ_Q − μ is the kernel mean of
    Σ_a b_a N(y_a, w_a I) with (b, y, w) = (−β_i, x_i, 0) and (π_j, θ_j, v_j), and ‖μ_Q − μ‖² = Σ_ae
    b_a b_e κ(y_a − y_e; w_a + w_e), where

        κ(g; v) = (τ/c)^(d/2) exp(−‖g‖²/2c) with c = τ + v,  ∂κ/∂g = −κ g/c,  ∂κ/∂v = κ (‖g‖²/2c² −
        d/2c).

    Lengths are measured from the points' centre in units of their spread, so that the solver's
    steps depend neither on the origin nor on the unit.
    """

    points: Array
    weights: Array
    terms: list[tuple[float, float]]
    squared_norm: float
    centre: Array
    unit: float

    @classmethod
    def from_embedding(cls, embedding: Embedding) -> _Objective:
        """Return the objective of an embedding; points of weight zero do not take part."""
        gaussians = [
            (factor, positive(k, "bandwidth", k.bandwidth))
            for factor, k in _gaussians(embedding.kernel)
        ]
        points, weights = embedding.points.astype(np.float64), embedding.weights.astype(np.float64)
        squared_norm = Embedding(embedding.kernel, points, weights).squared_norm()
        if not 0 < squared_norm < np.inf:
            raise MuhatError(
                "MatchedMixture", "a finite embedding that is not zero is needed", repr(embedding)
            )
        points, weights = points[weights != 0], weights[weights != 0]
        moved = points - points[0]  # so that equal rows have no spread at all
        size = float(np.abs(moved).max())
        spread = size
        if 0 < size < np.inf:
            spread *= float(np.sqrt((moved / size).var(axis=0).mean()))
        unit = spread or min(sigma for _, sigma in gaussians)
        if not 1 / MAX_SPREAD < unit < MAX_SPREAD:
            allowed = f"{1 / MAX_SPREAD:g} to {MAX_SPREAD:g}"
            needed = f"points must vary by {allowed}, for variances to be numbers"
            raise MuhatError("MatchedMixture", needed, f"{unit:.3g}", "rescale X")
        terms = [(factor, (sigma / unit) ** 2) for factor, sigma in gaussians]
        middle = moved.mean(axis=0)
        return cls((moved - middle) / unit, weights, terms, squared_norm, points[0] + middle, unit)

    def __call__(self, vector: Array) -> tuple[float, Array]:
        """Return the value and the gradient at the solver's vector."""
        n, d = self.points.shape
        table = vector.reshape(-1, d + 2)
        pi, theta, v = softmax(table[:, 0]), table[:, 1:-1], np.exp(table[:, -1])
        atoms, masses = np.vstack([self.points, theta]), np.append(-self.weights, pi)[:, None]
        widths, squared = np.append(np.zeros(n), v)[:, None] + v, cdist(atoms, theta, "sqeuclidean")
        value, by_pi, by_theta, by_v = (
            self.squared_norm,
            np.zeros_like(pi),
            np.zeros_like(theta),
            np.zeros_like(v),
        )
        for factor, tau in self.terms:
            c = tau + widths
            felt = (
                factor * masses * np.exp(-squared / (2 * c) - d / 2 * np.log(c / tau))
            )  # b_a κ(y_a − θ_j; w_a + v_j)
            value += pi @ (felt[:n].sum(axis=0) + felt.sum(axis=0))
            by_pi += felt.sum(axis=0)
            pull = felt / c
            by_theta += pull.T @ atoms - pull.sum(axis=0)[:, None] * theta
            by_v += (pull * (squared / c - d)).sum(axis=0) / 2
        columns = pi * (by_pi - pi @ by_pi), pi[:, None] * by_theta, pi * v * by_v
        return float(value) / self.squared_norm, 2 / self.squared_norm * np.column_stack(
            columns
        ).ravel()

    def bounds(self, n_components: int, min_variance: float) -> Bounds:
        """Return the solver's bounds of weights, means and variances."""
        smallest = np.log(rounding(self.points))
        low = [smallest, *(self.points.min(axis=0) - MAX_MEAN_OFFSET), np.log(min_variance)]
        high = [-smallest, *(self.points.max(axis=0) + MAX_MEAN_OFFSET), np.log(MAX_VARIANCE)]
        return Bounds(np.tile(low, n_components), np.tile(high, n_components))


def _on_points(embedding: Any) -> Embedding:
    """Return an embedding; raise MuhatError unless it is a sum of k(x_i, ·) on points."""
    if isinstance(embedding, Embedding):
        return embedding
    needed, advice = (
        "an Embedding on points is needed",
        "use fit(X) for points, and gram='nystrom' for many of them",
    )
    raise MuhatTypeError("MatchedMixture", needed, type(embedding).__name__, advice)


def _vector(mixture: Mixture, centre: Array | float = 0.0, unit: float = 1.0) -> Array:
    """Return the solver's vector: log π, θ and log v of each component."""
    variances = np.trace(mixture.covariances, axis1=1, axis2=2) / mixture.means.shape[1]
    with np.errstate(divide="ignore"):  # the bounds make zeros finite
        columns = (
            np.log(mixture.weights),
            (mixture.means - centre) / unit,
            np.log(variances / unit**2),
        )
    return np.column_stack(columns).ravel()


def _gaussians(kernel: Kernel) -> list[tuple[float, Gaussian]]:
    """Return the factors and Gaussians whose sum a kernel is; raise MuhatError for others."""
    others = [part for _, part in terms(kernel) if not isinstance(part, Gaussian)]
    if others:
        needed = "a Gaussian kernel, or a sum or multiple of Gaussians, is needed"
        raise MuhatError(
            "MatchedMixture", needed, repr(others[0]), "use KernelMean(kernel='gaussian')"
        )
    return [(factor, part) for factor, part in terms(kernel) if isinstance(part, Gaussian)]
