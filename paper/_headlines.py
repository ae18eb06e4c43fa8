"""The sentences of the README that have numbers, written from the results for a test to compare."""

from os import PathLike

from paper._results import read_results
from paper._tables import column, one, where
from paper.experiments.finite_populations import over_laws


def headlines(folder: str | PathLike[str]) -> dict[str, str]:
    """Return the README's sentences on results, by the experiment that they come from.

    Parameters
    ----------
    folder : str or path
        Where the results are, ``docs/evidence`` in the repository.
    """
    return {
        "accuracy": _of_intervals(folder),
        "default-rule": _of_default(folder),
        "finite-populations": _of_populations(folder),
        "test-alternatives": _of_power(folder),
        "test-levels": _of_levels(folder),
        "when-it-pays": _of_bandwidths(folder),
    }


def _of_levels(folder: str | PathLike[str]) -> str:
    """Return how often tests rejected where there was nothing to find."""
    rows = read_results(folder, "test-levels").rows
    rates = []
    for row in rows:
        rates.append(100 * row["rejected"])
    draws = column(rows, "draws")
    return (
        "At level 5 %, a test should reject about 5 % of samples that do not differ. In "
        f"{len(rows)} simulated settings, {draws.max():.0f} samples each (with 600 rows "
        f"{draws.min():.0f}), our tests rejected {min(rates):.1f} to {max(rates):.1f} %; no rate "
        f"was more than {column(rows, 'z').max():.1f} standard errors above 5 %."
    )


def _of_power(folder: str | PathLike[str]) -> str:
    """Return on how many alternatives the default is clearly above and below simpler tests."""
    rows = where(read_results(folder, "test-alternatives").rows, problem="independence")
    rows += read_results(folder, "test-differences").rows
    margins = {}
    for row in rows:
        if row["test"] == "default":
            same = []
            for each in rows:
                if each["test"] not in ("default", "former") and (
                    each["problem"],
                    each["alternative"],
                    each["n"],
                ) == (row["problem"], row["alternative"], row["n"]):
                    same.append(each["power"])
            margins[row["problem"], row["alternative"], row["n"]] = row["power"] - max(same)
    above = sum(round(margin, 6) > 0.05 for margin in margins.values())
    below = sum(round(margin, 6) < -0.05 for margin in margins.values())
    (problem, alternative, _), worst = min(margins.items(), key=lambda item: item[1])
    return (
        f"We simulated {len(margins)} kinds of difference and compared power with the better of "
        f"two simple tests. The default had over 5 percentage points more power on {above} of them "
        f"and over 5 points less on {below or 'none'}. The largest loss was {-100 * worst:.0f} "
        f"points ({problem}: {alternative})."
    )


def _of_intervals(folder: str | PathLike[str]) -> str:
    """Return how many new values were inside conformal intervals."""
    rows = read_results(folder, "accuracy").rows
    shares = []
    for row in rows:
        if row["method"] == "conformal":
            shares.append(100 * row["coverage"])
    return (
        f"On {len(shares)} data sets, 90 % conformal intervals contained {min(shares):.0f} to "
        f"{max(shares):.0f} % of the new values of y."
    )


def _of_default(folder: str | PathLike[str]) -> str:
    """Return what the default estimate of one kernel mean gains, and the worst of its cells."""
    rows = where(read_results(folder, "default-rule").rows, estimator="default")
    worst = min(rows, key=lambda row: row["gain"] + 2 * row["error"])
    mean = sum(row["gain"] for row in rows) / len(rows)
    return (
        f"In {len(rows)} combinations of distribution, sample size and bandwidth, "
        f"`KernelMean()` removed {mean:.1f} % of the plain average's risk on average, most of it "
        f"with narrow kernels. In the worst combination `KernelMean()` added {-worst['gain']:.3f} "
        f"± {worst['error']:.3f} % of risk."
    )


def _of_populations(folder: str | PathLike[str]) -> str:
    """Return what the stacked mean gains on real rows that are drawn without replacement."""
    means = over_laws(read_results(folder, "finite-populations").rows)
    kernels = (("gaussian", 1.0), ("gaussian", 0.1), ("laplacian", 1.0))

    def gains(estimator: str) -> list[str]:
        rows = (
            one(means, family="sets", estimator=estimator, kernel=kernel, share=share, n=50)
            for kernel, share in kernels
        )
        found = []
        for row in rows:
            found.append(f"{row['improvement']:.0f}")
        return found

    mine, best = gains("stacked"), gains("best")
    return (
        "We drew samples of 50 rows from eight data sets of the paper. With a Gaussian kernel at "
        f"the median bandwidth, stacking removed {mine[0]} % of the plain average's risk, and the "
        f"best single filter, chosen for each set in hindsight, {best[0]} %. At 0.32 times the "
        f"median bandwidth, stacking removed {mine[1]} % and the best filter {best[1]} %. With a "
        f"Laplacian kernel at the median bandwidth, stacking removed {mine[2]} % and the best "
        f"filter {best[2]} %."
    )


def _of_bandwidths(folder: str | PathLike[str]) -> str:
    """Return what F-KMSE gains on the paper's family, from a narrow kernel to the median rule's."""
    rows = read_results(folder, "when-it-pays").rows
    gains = []
    for factor in (0.1, 0.2, 1.0):
        gains.append(
            one(rows, panel="bandwidth", estimator="f-kmse", rule="paper", factor=factor)[
                "improvement"
            ]
        )
    return (
        "On the paper's synthetic data (50 rows, 20 columns) the filter F-KMSE removes "
        f"{gains[0]:.0f} % of the plain average's risk at 0.1 times the median bandwidth, "
        f"{gains[1]:.0f} % at 0.2 times, and {gains[2]:.1f} % at the median bandwidth itself."
    )
