"""The error of the mean of m features: measured, written to docs/scale, and drawn."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Ratio
from muhat._arrays import Array
from muhat.datasets import SyntheticFamily
from muhat.embedding import Embedding
from muhat.gram import Nystrom, RandomFeatures
from muhat.kernels import Gaussian, Kernel
from muhat.plots import COLOURS, save
from muhat.plots._style import logarithmic, without_frame
from paper._figures import PRINT, blank, letter_panels

SIZES = (16, 32, 64, 128, 256, 512, 1024)
FOLDER = Path(__file__).parents[1] / "docs" / "scale"
BLOCK = 2000

METHODS = {
    "subsample": ("plain mean of m rows", COLOURS["kme"], "o"),
    "uniform": ("Nyström, uniform", COLOURS["f-kmse"], "s"),
    "leverage": ("Nyström, leverage", COLOURS["tsvd"], "^"),
    "k-means++": ("Nyström, k-means++", COLOURS["landweber"], "D"),
    "random-features": ("random features", COLOURS["nu-method"], "v"),
}
"""What pictures call each, its colour and its marker."""


def values_of_mean(kernel: Kernel, X: Array, points: Array) -> Array:
    """Return μ̂ at the points, in blocks of rows."""
    blocks = [points[start : start + BLOCK] for start in range(0, len(points), BLOCK)]
    return np.concatenate([kernel(block, X).mean(axis=1) for block in blocks])


class Sample:
    """A sample with its empirical mean μ̂, and how far approximations are from it."""

    def __init__(self, X: Array) -> None:
        self.X, self.kernel = X, Gaussian().resolve(X)
        self.values = values_of_mean(self.kernel, X, X)
        self.squared_norm = float(self.values.mean())

    @property
    def sampling_error(self) -> float:
        """The root of E‖μ̂ − μ‖², estimated: what no approximation needs to beat."""
        return float(np.sqrt((1 - self.squared_norm) / (len(self.X) - 1)))

    def distances(self, estimate: Embedding) -> dict[str, float]:
        """Return ‖f − μ̂‖ and the root mean square of f(x) − μ̂(x) over the rows."""
        inner = float(estimate.weights @ values_of_mean(self.kernel, self.X, estimate.points))
        squared = estimate.squared_norm() - 2 * inner + self.squared_norm
        gaps = (
            np.concatenate([estimate(self.X[i : i + BLOCK]) for i in range(0, len(self.X), BLOCK)])
            - self.values
        )
        return {"norm": float(np.sqrt(max(squared, 0))), "rms": float(np.sqrt(np.mean(gaps**2)))}

    def errors(self, m: int, seed: int) -> dict[str, dict[str, float]]:
        """Return the errors of every method with m features, landmarks or rows."""
        found = {}
        for rule in ("uniform", "leverage", "k-means++"):
            features = Nystrom(m, landmarks=rule, random_state=seed).resolve(self.kernel, self.X)
            projected = features.whitening.T @ values_of_mean(
                self.kernel, self.X, features.landmarks
            )
            found[rule] = self.distances(features.embedding(projected))
            if rule == "uniform":
                found["subsample"] = self.distances(
                    Embedding(self.kernel, features.landmarks, np.full(m, 1 / m))
                )
        Z = RandomFeatures(m, random_state=seed).resolve(self.kernel, self.X)(self.X)
        found["random-features"] = {
            "rms": float(np.sqrt(np.mean((Z @ Z.mean(axis=0) - self.values) ** 2)))
        }
        return found


def measured(sample: Sample, sizes: Sequence[int], seeds: int) -> list[dict[str, Any]]:
    """Return a row for each method, m and measure: the error (RMS over seeds) and its range."""
    rows = []
    for m in sizes:
        by_seed = [sample.errors(m, seed) for seed in range(seeds)]
        for method, measures in by_seed[0].items():
            for measure in measures:
                errors = np.array([errors[method][measure] for errors in by_seed])
                ends = {"low": float(errors.min()), "high": float(errors.max())}
                rows.append(
                    {"method": method, "measure": measure, "m": m, "error": _rms(errors), **ends}
                )
    return rows


def _rms(errors: Array) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def line(rows: list[dict[str, Any]], method: str, measure: str, column: str = "error") -> Array:
    """Return a column of a method's rows, in the order of m."""
    return np.array(
        [row[column] for row in rows if (row["method"], row["measure"]) == (method, measure)]
    )


def slope(sizes: Sequence[int], errors: Array) -> float:
    """Return the exponent of m in the error, by least squares of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def approximation(
    n: int = 20_000,
    sizes: Sequence[int] = SIZES,
    compared: int = 256,
    seeds: int = 5,
    folder: Path = FOLDER,
) -> Iterator[Ratio]:
    """(g) The error of Nyström's and random features' means, against the mean of m rows."""
    (draw,) = SyntheticFamily().draw([0], n=n, random_state=0)
    sample = Sample(draw.X)
    rows = measured(sample, sizes, seeds)
    slopes = {
        f"{method}, {measure}": slope(sizes, line(rows, method, measure))
        for method, measure in dict.fromkeys((row["method"], row["measure"]) for row in rows)
    }
    what = {"rows": n, "features": draw.X.shape[1], "kernel": repr(sample.kernel), "seeds": seeds}
    found = {**what, "sampling_error": sample.sampling_error, "slopes": slopes, "errors": rows}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "approximation.json").write_text(json.dumps(found, indent=1) + "\n")
    save(picture(rows, n, sizes, sample.sampling_error), folder / "approximation.png")

    at = list(sizes).index(compared)
    plain_mean = line(rows, "subsample", "norm")[at]
    for rule in ("uniform", "leverage", "k-means++"):
        name = f"(g) Nyström ({rule}), m = {compared}, ‖μ̃ − μ̂‖ against the mean of m rows"
        yield Ratio(
            name, line(rows, rule, "norm")[at], plain_mean, 5, larger_is_better=True, unit=""
        )
    for method, expected in (("random-features, rms", 0.5), ("uniform, norm", 1.0)):
        name = (
            f"(g) the error of {method.split(',')[0]} falls as m^−{expected:g}: exponent against it"
        )
        yield Ratio(name, expected, -slopes[method], 0.9, larger_is_better=True, unit="")


def picture(rows: list[dict[str, Any]], n: int, sizes: Sequence[int], sampling_error: float) -> Any:
    """Return the figure: errors against m, both axes logarithmic, with slopes to compare with."""
    from matplotlib import rc_context

    with rc_context(PRINT):
        figure = blank(3.7)
        axes = figure.subplots(1, 2)
        for ax, measure, apart in zip(axes, ("norm", "rms"), (1.3, 2.0), strict=True):
            ends = {}
            for method, (name, colour, marker) in METHODS.items():
                errors = line(rows, method, measure)
                if len(errors):
                    low, high = (line(rows, method, measure, column) for column in ("low", "high"))
                    ax.fill_between(sizes, low, high, color=colour, alpha=0.18, linewidth=0)
                    ax.plot(sizes, errors, color=colour, marker=marker, markersize=4, linewidth=1.3)
                    ends[name] = (errors[-1], colour)
            logarithmic(ax.xaxis)
            logarithmic(ax.yaxis)
            without_frame(ax)
            ax.set_xticks(sizes[::2], [f"{m:,}" for m in sizes[::2]])
            ax.tick_params(which="minor", length=0)
            ax.set(
                xlabel="m (landmarks, rows or features)", xlim=(sizes[0] * 0.85, sizes[-1] * 1.15)
            )
            _label(ax, sizes[-1], ends, apart)
        axes[0].axhline(
            sampling_error, color=GREY, linewidth=0.9, linestyle=(0, (1, 1.5)), zorder=1
        )
        _say(axes[0], sizes[-1], sampling_error, "error of μ̂ itself", (9, 0), "center")
        _guide(axes[0], sizes, 0.5, 1.5, "slope −1/2")
        _guide(axes[0], sizes, 1.0, 0.25, "slope −1", below=True)
        _guide(axes[1], sizes, 0.5, 1.1, "slope −1/2")
        axes[0].set_ylabel(f"error of μ̃ against μ̂ of all {n:,} rows")
        letter_panels(axes, ("‖μ̃ − μ̂‖ in the RKHS", "μ̃(x) − μ̂(x), r.m.s. over rows"))
    return figure


GREY = "#707070"


def _guide(
    ax: Any, sizes: Sequence[int], exponent: float, start: float, text: str, below: bool = False
) -> None:
    """Draw a grey line of slope −exponent, and say so."""
    m = np.array([sizes[2], sizes[-2]], float)
    ax.plot(m, start * m**-exponent, color=GREY, linewidth=0.9, linestyle=(0, (5, 2)), zorder=1)
    middle = float(np.sqrt(m.prod()))
    _say(
        ax,
        middle,
        start * middle**-exponent,
        text,
        (-6, -4) if below else (4, 3),
        "top" if below else "bottom",
        below,
    )


def _say(
    ax: Any, x: float, y: float, text: str, offset: tuple[int, int], side: str, left: bool = False
) -> None:
    """Write a grey remark at a point."""
    where = {"va": side, "ha": "right" if left else "left"}
    ax.annotate(
        text,
        (x, y),
        offset,
        textcoords="offset points",
        color=GREY,
        fontsize=8,
        annotation_clip=False,
        **where,
    )


def _label(ax: Any, last: int, ends: dict[str, tuple[float, str]], apart: float) -> None:
    """Write each line's name behind its last point, neighbours by at least this factor apart."""
    names = sorted(ends, key=lambda name: -ends[name][0])
    places = np.log([ends[name][0] for name in names])
    for _ in range(50):  # neighbours that are too near push each other away
        for i in range(len(places) - 1):
            missing = np.log(apart) - (places[i] - places[i + 1])
            if missing > 0:
                places[i : i + 2] += missing / 2 * np.array([1, -1])
    for name, place in zip(names, np.exp(places), strict=True):
        where = {"textcoords": "offset points", "va": "center", "annotation_clip": False}
        ax.annotate(name, (last, place), (9, 0), color=ends[name][1], fontsize=8, **where)


BENCHMARKS = {approximation: {"n": 200, "sizes": (4, 8, 16, 32), "compared": 16, "seeds": 1}}
