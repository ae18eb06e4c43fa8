"""Learning from groups: one y for each group, by kernel ridge regression on their means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array, as_array
from muhat._parts import HasKernel
from muhat._validation import checked_target
from muhat.errors import MuhatError
from muhat.groups._estimator import KernelMeans
from muhat.groups._joint import limited_means
from muhat.groups._ridge import RidgeFit, best_fit
from muhat.groups._rows import new_samples

MEANS = ("plain", "filtered", "joint")
"""The estimates of the means that can be learnt from."""

AUTO = ("plain", "filtered")
"""Those that ``means="auto"`` chooses from.

Joint means are not among them: a group that is left out has taken part in the means of the others,
which a new group has not, and their left-out error was too small by up to a factor of six."""


class _GroupRidge(HasKernel, BaseEstimator):
    """What learning numbers and classes from groups have in common."""

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        means: str = "plain",
        gram: Any = "auto",
        standardize: bool = True,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.means = means
        self.gram = gram
        self.standardize = standardize
        self.random_state = random_state

    def _fit_means(self, X: Any, groups: Any, sample_weight: Any) -> dict[str, Array]:
        """Estimate the means of the groups, and return those to choose from as vectors."""
        if self.means not in ("auto", *MEANS):
            needed = f"means must be 'auto', {', '.join(map(repr, MEANS))}"
            raise MuhatError(self, needed, repr(self.means))
        self.group_means_ = KernelMeans(
            kernel=self.kernel,
            gram=self.gram,
            standardize=self.standardize,
            random_state=self.random_state,
        ).fit(X, groups, sample_weight)
        self.groups_ = self.group_means_.groups_
        self.n_features_in_ = self.group_means_.n_features_in_
        if hasattr(self.group_means_, "feature_names_in_"):
            self.feature_names_in_ = self.group_means_.feature_names_in_
        joint = self.group_means_._joint
        filtered = limited_means(joint.vectors, joint.filter_weights, joint.kappa)[0]
        found = {"plain": joint.vectors.Z, "filtered": filtered, "joint": joint.means}
        chosen = AUTO if self.means == "auto" else (self.means,)
        return {name: found[name] for name in chosen}

    def _fit_ridge(self, means: dict[str, Array], y: Array) -> None:
        """Choose the means and the fit with the least left-out error of y."""
        fits = {name: best_fit(vectors, y) for name, vectors in means.items()}
        self.left_out_errors_ = {name: fit.error(y) for name, fit in fits.items()}
        self.means_ = min(fits, key=lambda name: self.left_out_errors_[name])
        self.fit_: RidgeFit = fits[self.means_]

    def _outputs(self, X: Any, groups: Any) -> Array:
        """Return the outputs for new groups, of shape (groups, outputs)."""
        check_is_fitted(self, "fit_")
        model = self.group_means_
        joint = model._joint
        weights = {"filtered": joint.filter_weights, "joint": joint.candidate_weights}
        vectors = []
        for sample in new_samples(model, X, groups):
            new = model._space.new_group(model._scaled(sample), joint.vectors)
            vector = new.vector
            if self.means_ != "plain":
                vector = joint.mean_of_new(vector, new.n, new.own, weights[self.means_])
            vectors.append(vector)
        return self.fit_.predict(np.array(vectors))

    def _by_group(self, y: Any) -> Any:
        """Return y in the order of ``groups_``: one for each group, or a mapping from labels.

        A Series whose index has the labels of the groups is a mapping.
        """
        T = len(self.groups_)
        labels = self.groups_.tolist()
        index = getattr(y, "index", None)
        if index is not None and not callable(index) and set(index) == set(labels):
            return as_array([y[label] for label in labels])
        if isinstance(y, Mapping):
            missing = [label for label in labels if label not in y]
            if missing:
                raise MuhatError(
                    self, "y must have a value for each group", f"none for {missing[0]}"
                )
            return as_array([y[label] for label in labels])
        n = int(self.group_means_.n_rows_.sum())
        if y is not None and len(y) == n != T:
            advice = "give one y for each group, in the order of the sorted labels, or a mapping"
            got = f"{n}, one for each row"
            raise MuhatError(self, f"y must have one value for each of {T} groups", got, advice)
        if y is not None and len(y) != T:
            raise MuhatError(self, f"y must have one value for each of {T} groups", len(y))
        return y


class GroupRegressor(RegressorMixin, _GroupRidge):
    """Regression of one y for each group on the distribution of its rows.

    Kernel ridge regression with the kernel exp(−MMD²/2h²) of the groups' kernel means, or linear in
    them. The left-out error of y, exact leave-one-out over groups, chooses between kernels and λ.
    At the chosen ones it is optimistic, as the least of many errors is.

    Parameters
    ----------
    kernel, gram, standardize, random_state
        As of `KernelMeans`.
    means : {'plain', 'filtered', 'joint', 'auto'}, default='plain'
        Which estimates of the means are used: the plain means, those of filters without smoothers,
        those of `KernelMeans`; 'auto' takes the better of the first two by the left-out error. All
        but the plain means make that error too small for new groups, as the rows of a group that
        is left out have taken part in the means of the others.

    Attributes
    ----------
    groups_ : array of shape (T,)
        The labels of the groups, sorted.
    means_ : str
        The means that were chosen.
    left_out_errors_ : dict of str to float
        The least mean squared left-out error with each of the means.
    left_out_predictions_ : array of shape (T,)
        The prediction for each group without its y.
    loo_score_ : float
        R² of these.
    group_means_ : KernelMeans
        The means of the groups.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import GroupRegressor
    >>> rng = np.random.default_rng(0)
    >>> y = rng.uniform(-1, 1, 40)
    >>> samples = [rng.normal(centre, 1, size=(20, 2)) for centre in y]
    >>> model = GroupRegressor().fit(samples, y)
    >>> bool(model.loo_score_ > 0.8)
    True
    >>> model.predict(samples[:3]).shape
    (3,)
    """

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Learn y from groups.

        Parameters
        ----------
        X, groups, sample_weight
            As of `KernelMeans.fit`.
        y : array of shape (T,) or mapping of labels to numbers
            One for each sample of a list, else for each group in the order of the sorted labels.

        Returns
        -------
        self : GroupRegressor
            The fitted estimator.
        """
        means = self._fit_means(X, groups, sample_weight)
        target = checked_target(type(self).__name__, self._by_group(y))
        if target.ndim != 1:
            raise MuhatError(self, "y must have one number for each group", f"shape {target.shape}")
        self._fit_ridge(means, target[:, None])
        self.left_out_predictions_ = self.fit_.left_out[:, 0]
        variance = float(((target - target.mean()) ** 2).mean())
        error = self.left_out_errors_[self.means_]
        self.loo_score_: float = 0.0
        if variance > 0:
            self.loo_score_ = float(1 - error / variance)
        return self

    def predict(self, X: Any, groups: Any = None) -> Array:
        """Return a prediction for each new group: of a list, or by sorted labels."""
        return self._outputs(X, groups)[:, 0]


class GroupClassifier(ClassifierMixin, _GroupRidge):
    """Classification of groups by the distribution of their rows.

    As `GroupRegressor`, with one output for each class, 1 for its groups and 0 for others; the
    class with the largest output is predicted.

    Parameters
    ----------
    kernel, means, gram, standardize, random_state
        As of `GroupRegressor`.

    Attributes
    ----------
    classes_ : array of shape (classes,)
        The classes.
    groups_, means_, left_out_errors_, group_means_
        As of `GroupRegressor`.
    left_out_predictions_ : array of shape (T,)
        The class of each group by the fit without its y.
    loo_score_ : float
        The share of these that is right.

    Examples
    --------
    >>> import numpy as np
    >>> from muhat import GroupClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["wide", "narrow"], 10)
    >>> samples = [rng.normal(size=(15, 2)) * (3 if kind == "wide" else 1) for kind in y]
    >>> float(GroupClassifier().fit(samples, y).loo_score_)
    1.0
    """

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Learn the classes of groups.

        Parameters
        ----------
        X, groups, sample_weight
            As of `KernelMeans.fit`.
        y : array of shape (T,) or mapping of labels to classes
            One for each sample of a list, else for each group in the order of the sorted labels.

        Returns
        -------
        self : GroupClassifier
            The fitted estimator.
        """
        means = self._fit_means(X, groups, sample_weight)
        labels = as_array(self._by_group(y))
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise MuhatError(self, "at least two classes are needed", len(self.classes_))
        self._fit_ridge(means, np.eye(len(self.classes_))[codes])
        self.left_out_predictions_ = self.classes_[self.fit_.left_out.argmax(axis=1)]
        self.loo_score_: float = float((self.left_out_predictions_ == labels).mean())
        return self

    def decision_function(self, X: Any, groups: Any = None) -> Array:
        """Return the outputs of all classes for each new group, of shape (groups, classes)."""
        return self._outputs(X, groups)

    def predict(self, X: Any, groups: Any = None) -> Array:
        """Return the class of each new group: of a list, or by sorted labels."""
        return self.classes_[self._outputs(X, groups).argmax(axis=1)]
