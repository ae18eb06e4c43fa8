"""The components of a table in words: what each follows, what is noise, which rows are unusual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from muhat._arrays import Array, quotient
from muhat._messages import IN_COMMAND
from muhat._reportable import Reportable
from muhat._text import agree, count, listed, numbered
from muhat._wording import rows_text, setting_text
from muhat.errors import MuhatTypeError
from muhat.filters import TruncatedSVD
from muhat.pca._choice import MAX_EXPLAINED_SHARE, ComponentChoice, ComponentPath
from muhat.pca._estimator import KernelPCA

MIN_LOADING = 0.5
"""A correlation from which on a component is said to follow a column."""

MIN_ROWS_TO_TRUST = 20
"""Rows below which a verdict says that it is uncertain."""

MAX_NAMED = 3
"""Columns that are named for a component, components that are named, and rows."""


def describe_components(
    model: KernelPCA | Pipeline,
    X: Any,
    *,
    name: str = "the sample",
    columns: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    row_numbers: Sequence[int] | None = None,
) -> ComponentsResult:
    """Return the components of the rows that a model was fitted to, with what they mean.

    Parameters
    ----------
    model : KernelPCA or Pipeline
        A fitted kernel PCA of rows in memory, or a pipeline that ends in one.
    X : array or data frame of shape (n, d)
        The rows that it was fitted to, before the other steps of a pipeline.
    name : str, default='the sample'
        What the rows are called.
    columns : sequence of str, default=None
        The names of the columns; by default those of a data frame.
    labels : sequence of str, default=None
        A label for each row, by which a map is coloured.
    row_numbers : sequence of int, default=None
        What the verdict calls each row: by default 1, 2, ...

    Returns
    -------
    result : ComponentsResult
        Scores, correlations of columns with components, unusual rows, and a verdict in words.
    """
    last = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(last, KernelPCA):
        needed = "a fitted KernelPCA, or a pipeline that ends in one, is needed"
        raise MuhatTypeError("describe_components", needed, type(last).__name__)
    check_is_fitted(last, "eigenvalues_")
    if columns is None:
        columns = getattr(model, "feature_names_in_", None)
    values = np.asarray(X, float)
    if columns is None:
        columns = numbered("column", values.shape[1], start=1)
    rows: Any = X
    if isinstance(model, Pipeline):
        rows = model[:-1].transform(X)
    scores = np.asarray(last.transform(rows))
    if row_numbers is None:
        row_numbers = range(1, len(scores) + 1)
    choice = last.choose_components()
    path = last.leave_one_out()
    errors = last.reconstruction_error(rows)
    p_values = last.novelty_p_values(rows)
    if path.n_rows == len(scores):  # each row is known without itself
        errors = path.row_errors
        order = np.sort(errors)
        p_values = (len(errors) - np.searchsorted(order, errors, side="left")) / len(errors)
    return ComponentsResult(
        pca=last,
        name=name,
        columns=tuple(map(str, columns)),
        scores=scores,
        correlations=_correlations(values, scores),
        errors=errors,
        p_values=p_values,
        row_numbers=np.asarray(row_numbers),
        choice=choice,
        path=path,
        labels=None if labels is None else np.asarray(labels).astype(str),
    )


@dataclass(frozen=True, eq=False)
class ComponentsResult(Reportable):
    """Kernel principal components of a table, and what they mean.

    Attributes
    ----------
    pca : KernelPCA
        The fitted model.
    name, columns : str, and tuple of str
        What the rows and the columns are called.
    scores : array of shape (n, components)
        The scores of all rows.
    correlations : array of shape (d, components)
        The correlation of each column with each score: loadings.
    errors, p_values : arrays of shape (n,)
        The reconstruction error of each row, left out where all rows are, and the share of rows
        with an error at least as large; of very many rows, ``KernelPCA.novelty_p_values``, which
        compares each row with a sample of them.
    row_numbers : array of shape (n,)
        The numbers of the rows in their file, from 1.
    choice : ComponentChoice
        How well each number of components separates signal from noise.
    path : ComponentPath
        The reconstruction errors of left-out rows.
    labels : array of shape (n,) or None
        A label for each row, by which a map is coloured.
    left_out : tuple of str
        Sentences on what of the data was left out, with which the verdict ends.
    """

    pca: KernelPCA
    name: str
    columns: tuple[str, ...]
    scores: Array
    correlations: Array
    errors: Array
    p_values: Array
    row_numbers: Array
    choice: ComponentChoice
    path: ComponentPath
    labels: Array | None = None
    left_out: tuple[str, ...] = ()

    @property
    def unusual(self) -> Array:
        """The places of rows in the order of their errors, the largest first: shape (n,)."""
        return np.argsort(-self.errors, kind="stable")

    @property
    def is_ranked_in_sample(self) -> bool:
        """Whether p-values compare rows with a random sample of them, as there are very many."""
        return self.path.n_rows < len(self.errors)

    @property
    def explained(self) -> float:
        """The share of the columns' variance that the components reproduce in left-out rows."""
        place = min(self.pca.n_components_, len(self.choice.grid) - 1)
        return float(self.choice.explained[place])

    def leading_columns(self, component: int) -> list[int]:
        """Return the columns of the largest correlations with a component, in absolute value."""
        found = np.argsort(-np.abs(self.correlations[:, component]), kind="stable")
        return [int(place) for place in found]

    def verdict(self) -> str:
        """Return what was found, in sentences."""
        sentences = [self._number_sentence(), self._meaning_sentence(), self._unusual_sentence()]
        return " ".join(filter(None, [*sentences, *self.left_out]))

    def to_dict(self) -> dict[str, Any]:
        """Return the result in plain types, as JSON can hold it."""
        pca, choice = self.pca, self.choice
        loadings = {}
        for place, name in enumerate(self.columns):
            loadings[name] = self.correlations[place].tolist()
        unusual = []
        for place in self.unusual[:10].tolist():
            row = {"row": int(self.row_numbers[place]), "p_value": float(self.p_values[place])}
            unusual.append({**row, "error": float(self.errors[place])})
        is_tsvd = isinstance(pca.filter_, TruncatedSVD)
        return {
            "name": self.name,
            "rows": len(self.scores),
            "columns": len(self.columns),
            "components": pca.n_components_,
            "is_chosen": self.path.is_chosen,
            "recommended_components": choice.n_components,
            "has_structure": choice.best > 0,
            "noise_sd": choice.noise_sd,
            "explained": self.explained if is_tsvd else None,
            "kernel": repr(pca.kernel_),
            "filter": pca.filter_.name,
            "parameter": pca.parameter_,
            "explained_variance_ratio": pca.explained_variance_ratio_.tolist(),
            "correlations": loadings,
            "unusual": unusual,
            "verdict": self.verdict(),
        }

    def _number_sentence(self) -> str:
        """Return how many components there are, and what they explain."""
        choice, n = self.choice, self.pca.n_components_
        is_rough = len(self.scores) < MIN_ROWS_TO_TRUST
        rough = f"With only {rows_text(len(self.scores))} this is a rough indication"
        columns = count(len(self.columns), "column")
        sample = f"{self.name} ({rows_text(len(self.scores))}, {columns})"
        start = f"{sample}: "
        if is_rough:
            start = f"{rough}: in {self.name}, "
        if not isinstance(self.pca.filter_, TruncatedSVD):
            setting = setting_text(self.pca.filter_.symbol, self.pca.parameter_)
            return f"{start}{count(n, 'component')}, shrunk by {self.pca.filter_.label}, {setting}."
        if choice.best == 0:
            shown = agree(n, "1 component is", f"{n:,} components are")
            choose = "set n_components"
            if IN_COMMAND.get():
                choose = "set --components"
            nothing = (
                f"No component of {sample} is worth keeping if all columns have equal noise: rows "
                "left out of the fit are then described best by the mean alone. Columns may still "
                f"be related, so {shown} shown with correlations; you can {choose} yourself."
            )
            if is_rough:
                return f"{rough}. {nothing}"
            return nothing
        share = f"{100 * max(self.explained, 0):.0f} % of the variance of the columns"
        explain = agree(n, "explains", "explain")
        taken = f"{start}{count(n, 'component')} {explain} {share} in rows left out of the fit"
        if is_rough:
            return f"{taken}."
        if choice.is_limited and n <= choice.n_components:
            share = f"{100 * MAX_EXPLAINED_SHARE:.0f} %"
            return f"{taken}. No fewer explain {share}."
        if n == choice.n_components:
            return f"{taken}. The variance that remains looks like noise."
        if choice.is_limited:
            return f"{taken}."
        recommended = f"Leave-one-out recommends {count(choice.n_components, 'component')}"
        return f"{taken}. {recommended}: the variance that then remains looks like noise."

    def _meaning_sentence(self) -> str:
        """Return which columns the first components follow."""
        parts = []
        if self.choice.best == 0:
            return ""
        for k in range(min(self.scores.shape[1], MAX_NAMED)):
            found = []
            for place in self.leading_columns(k)[:MAX_NAMED]:
                r = self.correlations[place, k]
                if abs(r) >= MIN_LOADING:
                    found.append(f"{self.columns[place]} (r = {r:.2f})".replace("-", "−"))
            if found:
                parts.append(f"component {k + 1} is correlated with {listed(found)}")
        if not parts:
            return ""
        text = "; ".join(parts)
        return f"{text[0].upper()}{text[1:]}."

    def _unusual_sentence(self) -> str:
        """Return which rows are the most unusual; empty where leave-one-out keeps no component."""
        if self.choice.best == 0:
            return ""
        rows = [str(self.row_numbers[place]) for place in self.unusual[:MAX_NAMED]]
        return f"Most unusual rows: {listed(rows)}."


def _correlations(X: Array, scores: Array) -> Array:
    """Return the correlation of each column of X with each score; 0 for constants."""
    centred, other = X - X.mean(axis=0), scores - scores.mean(axis=0)
    norms = np.outer(np.linalg.norm(centred, axis=0), np.linalg.norm(other, axis=0))
    return quotient(centred.T @ other, norms)
