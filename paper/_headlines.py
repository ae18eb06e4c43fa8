"""The sentences of the README that have numbers, written from the results for a test to compare."""

from os import PathLike

from paper._results import read_results
from paper._tables import one
from paper.experiments.finite_populations import over_laws


def headlines(folder: str | PathLike[str]) -> dict[str, str]:
    """Return the README's sentences on results, by the experiment that they come from.

    Parameters
    ----------
    folder : str or path
        Where the results are, ``docs/evidence`` in the repository.
    """
    return {"finite-populations": _of_populations(folder), "when-it-pays": _of_bandwidths(folder)}


def _of_populations(folder: str | PathLike[str]) -> str:
    """Return what the stacked mean gains on real rows that are drawn without replacement."""
    means = over_laws(read_results(folder, "finite-populations").rows)
    kernels = (("gaussian", 1.0), ("gaussian", 0.1), ("laplacian", 1.0))

    def gains(estimator: str) -> list[str]:
        rows = (
            one(means, family="sets", estimator=estimator, kernel=kernel, share=share, n=50)
            for kernel, share in kernels
        )
        return [f"{row['improvement']:.0f}" for row in rows]

    mine, best = gains("stacked"), gains("best")
    return (
        f"On real data sets, 50 rows drawn without replacement, the stacked mean removes {mine[0]} "
        f"% of the plain average's risk at the median bandwidth, {mine[1]} % at a tenth of its "
        f"square, and {mine[2]} % with a Laplacian kernel, where the best filter of each set in "
        f"hindsight removes {best[0]}, {best[1]} and {best[2]} %."
    )


def _of_bandwidths(folder: str | PathLike[str]) -> str:
    """Return what F-KMSE gains on the paper's family, from a narrow kernel to the median rule's."""
    rows = read_results(folder, "when-it-pays").rows
    gains = [
        one(rows, panel="bandwidth", estimator="f-kmse", rule="paper", factor=factor)["improvement"]
        for factor in (0.1, 0.2, 1.0)
    ]
    return (
        f"On the paper's synthetic data (n = 50, d = 20) F-KMSE removes {gains[0]:.0f} % of the "
        f"plain average's risk at a tenth of the median rule's bandwidth, {gains[1]:.0f} % at a "
        f"fifth of it, and {gains[2]:.1f} % at the median itself."
    )
