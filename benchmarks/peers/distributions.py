"""Quantiles and CRPS beside quantile-forest and scikit-learn's Gaussian process.

It runs in an environment that has both.

    python -m venv peers && peers/bin/pip install numpy scipy scikit-learn quantile-forest
    PYTHONPATH=src peers/bin/python benchmarks/peers/distributions.py 5 \\
        > docs/evidence/distribution-peers.csv

The data sets are those of the experiment ``accuracy``, with the first few of its splits. Scores
are in standard deviations of the test targets; the CRPS is that of 99 quantiles.
"""

from __future__ import annotations

import csv
import sys
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np

from muhat import ConditionalMean
from muhat.conditional import ConditionalDistribution
from paper.experiments.conditional_accuracy import LEVELS, SETS, pinball, settings, split

MANY = np.arange(1, 100) / 100


def forest(X: Any, y: Any, new: Any) -> Any:
    """Return quantiles of a quantile regression forest, by default parameters."""
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(random_state=0).fit(X, y)
    return model.predict(new, quantiles=[*LEVELS, *MANY.tolist()])


def process(X: Any, y: Any, new: Any) -> Any:
    """Return quantiles of a Gaussian process with one length scale, by maximum likelihood."""
    from scipy.stats import norm
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel() * RBF(np.sqrt(X.shape[1])) + WhiteKernel(0.1)
    mean, deviation = (
        GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y).predict(new, return_std=True)
    )
    return mean[:, None] + deviation[:, None] * norm.ppf([*LEVELS, *MANY])


def ours(X: Any, y: Any, new: Any) -> Any:
    """Return quantiles of the default conditional mean."""
    return ConditionalMean().fit(X, y).predict_quantiles(new, [*LEVELS, *MANY.tolist()], "weights")


def ours_on_y(X: Any, y: Any, new: Any) -> Any:
    """Return quantiles with a Gaussian kernel on y."""
    return (
        ConditionalMean(kernel_y="gaussian")
        .fit(X, y)
        .predict_quantiles(new, [*LEVELS, *MANY.tolist()])
    )


def crps(y: Any, quantiles: Any) -> float:
    """Return the mean CRPS of distributions with equal probabilities on quantiles."""
    scores = [
        ConditionalDistribution.from_weights(
            each[:, None], np.full((1, len(each)), 1 / len(each))
        ).crps([value])[0, 0]
        for value, each in zip(y, quantiles, strict=True)
    ]
    return float(np.mean(scores))


def main(splits: int) -> None:
    """Print a row for each data set and model."""
    models = {
        "muhat": ours,
        "muhat, kernel on y": ours_on_y,
        f"quantile-forest {version('quantile-forest')}": forest,
        f"scikit-learn {version('scikit-learn')} GP": process,
    }
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(
        ["dataset", "model", "splits", "pinball", "pinball_error", "crps", "crps_error"]
    )
    for name in SETS:
        found: dict[str, list[tuple[float, float]]] = {}
        for number in range(splits):
            X, y, new, true = split(settings(False), {"dataset": name, "split": number})
            for model, fit in models.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    quantiles = fit(X, y, new)
                few, many = np.split(quantiles, [len(LEVELS)], axis=1)
                found.setdefault(model, []).append(
                    (pinball(true, few) / true.std(), crps(true, many) / true.std())
                )
        for model, scores in found.items():
            means, errors = (
                np.mean(scores, axis=0),
                np.std(scores, axis=0, ddof=1) / np.sqrt(splits),
            )
            cells = [f"{value:.4f}" for pair in zip(means, errors, strict=True) for value in pair]
            writer.writerow([name, model, splits, *cells])
            sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
