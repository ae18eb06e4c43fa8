"""Which groups and pairs are said to differ, rightly or wrongly, when some groups are odd."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from muhat import GroupTest
from paper._arrays import Array
from paper._claims import Finding
from paper._experiment import Experiment, Results, Row, Settings, Task, in_blocks, rows_of_tasks
from paper._figures import blank, legend_of_markers
from paper._tables import column, markdown, where
from paper.experiments.levels_of_groups import FEW_KERNELS, LEVEL


@dataclass(frozen=True)
class OddGroups:
    """Groups of normal rows in two columns, of which the first ones are odd, and equally so.

    Attributes
    ----------
    sizes : tuple of int
        The rows of every group.
    n_odd : int
        How many of them are odd.
    shift : float
        The mean of the odd groups in the first column.
    scale : float
        The standard deviation of the odd groups.
    """

    sizes: tuple[int, ...]
    n_odd: int
    shift: float = 0.0
    scale: float = 1.0

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return rows and their groups."""
        groups = np.repeat(np.arange(len(self.sizes)), self.sizes)
        X = rng.normal(size=(len(groups), 2))
        is_odd = groups < self.n_odd
        X[is_odd] *= self.scale
        X[is_odd, 0] += self.shift
        return X, groups


DESIGNS: dict[str, OddGroups] = {
    "8 of 10 rows, all alike": OddGroups((10,) * 8, 0),
    "8 of 10 rows, 2 with 4 times the SD": OddGroups((10,) * 8, 2, scale=4.0),
    "8 of 10 rows, 2 with twice the SD": OddGroups((10,) * 8, 2, scale=2.0),
    "8 of 10 rows, 2 shifted by 3": OddGroups((10,) * 8, 2, shift=3.0),
    "5 of 20 rows, all alike": OddGroups((20,) * 5, 0),
    "5 of 20 rows, 2 shifted by 1": OddGroups((20,) * 5, 2, shift=1.0),
    "5 of 20 rows, 2 shifted by 2": OddGroups((20,) * 5, 2, shift=2.0),
    "200, 10, 10 and 10 rows alike, 150 shifted by 1": OddGroups((150, 200, 10, 10, 10), 1, 1.0),
    "7 of 15 rows, 3 shifted by 1": OddGroups((15,) * 7, 3, shift=1.0),
    "12 of 15 rows, 1 shifted by 1": OddGroups((15,) * 12, 1, shift=1.0),
    "30 of 15 rows, 3 shifted by 1": OddGroups((15,) * 30, 3, shift=1.0),
}
"""More than half of the groups are alike in each."""


def settings(quick: bool) -> Settings:
    """Return the designs, and the numbers of draws and permutations."""
    chosen: Settings = {
        "seed": 241,
        "draws": 300,
        "n_permutations": 99,
        "block": 100,
        "designs": list(DESIGNS),
    }
    if quick:
        chosen |= {"draws": 2, "n_permutations": 19, "block": 2, "designs": list(DESIGNS)[4:6]}
    return chosen


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each block of draws of each design."""
    found: list[Task] = []
    for name in settings["designs"]:
        found += in_blocks({"design": name}, settings["draws"], settings["block"])
    return found


def run(settings: Settings, task: Task) -> list[Row]:
    """Return, for each draw, which true and false differences were found."""
    design = DESIGNS[task["design"]]
    place = list(DESIGNS).index(task["design"])
    rows = []
    for number in range(task["first"], task["last"]):
        rng = np.random.default_rng([settings["seed"], place, number])
        X, groups = design.draw(rng)
        test = GroupTest(
            **FEW_KERNELS,
            n_permutations=settings["n_permutations"],
            random_state=int(rng.integers(2**31)),
            n_jobs=1,
        )
        found = test.test(X, groups)
        of_groups: dict[bool, list[bool]] = {True: [], False: []}
        for each in found.groups:
            of_groups[each.group < design.n_odd].append(each.p_value <= LEVEL + 1e-9)
        of_pairs: dict[bool, list[bool]] = {True: [], False: []}
        for pair in found.pairs:
            differ = (pair.first < design.n_odd) != (pair.second < design.n_odd)
            of_pairs[differ].append(pair.p_value <= LEVEL + 1e-9)
        rows.append(
            {
                "design": task["design"],
                "false_group": any(of_groups[False]),
                "found_groups": _share(of_groups[True]),
                "false_pair": any(of_pairs[False]),
                "found_pairs": _share(of_pairs[True]),
            }
        )
    return rows


def _share(found: list[bool]) -> float | None:
    """Return the share that was found; None of nothing."""
    if not found:
        return None
    return sum(found) / len(found)


SHARES = ("false_group", "found_groups", "false_pair", "found_pairs")


def table(settings: Settings, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the shares of every design."""
    rows = rows_of_tasks(settings, results)
    found = []
    for name in settings["designs"]:
        some = where(rows, design=name)
        cell: Row = {"design": name, "draws": len(some)}
        for what in SHARES:
            cell[what] = None
            if some[0][what] is not None:
                cell[what] = float(np.mean([row[what] for row in some]))
        cell["error"] = float(np.sqrt(LEVEL * (1 - LEVEL) / len(some)))
        found.append(cell)
    return found


def findings(results: Results) -> list[Finding]:
    """Return the largest shares of false findings."""
    found = []
    for what, title in (("false_group", "a group"), ("false_pair", "a pair")):
        worst = max(results.rows, key=lambda row: row[what])
        error = worst["error"]
        found.append(
            Finding(
                f"How often {title} of those that are alike is said to differ, at most (level "
                f"{LEVEL}).",
                f"{worst[what]:.3f} ± {error:.3f} ({worst['design']})",
            )
        )
    return found


def details(results: Results) -> str:
    """Return the table of designs."""
    first = results.rows[0]
    lines = [
        f"Shares of {first['draws']:,} draws with p ≤ {LEVEL} (standard error "
        f"{first['error']:.3f} of a share of {LEVEL}): a false group is one of those that are "
        "alike, against the rest; a false pair are two of them. Of odd groups, and of pairs that "
        "differ, it is the share that was found.\n"
    ]
    body = []
    for row in results.rows:
        shares = []
        for what in SHARES:
            text = ""
            if row[what] is not None:
                text = f"{row[what]:.3f}"
            shares.append(text)
        body.append([row["design"], *shares])
    titles = ["groups", "a false group", "odd groups found", "a false pair", "pairs found"]
    return "\n".join([*lines, *markdown(titles, body)]) + "\n"


def figure(results: Results) -> Any:
    """Return the figure: shares of false groups and pairs, and of odd groups that were found."""
    drawn = blank(1.4 + 0.25 * len(results.rows))
    ax = drawn.subplots()
    ax.axvline(LEVEL, color="black", linewidth=0.8)
    places = np.arange(len(results.rows))
    styles = {}
    for what, label, marker, colour in (
        ("false_group", "a false group", "o", "#D55E00"),
        ("false_pair", "a false pair", "s", "#E69F00"),
        ("found_groups", "odd groups found", "D", "#0072B2"),
    ):
        shares = column(results.rows, what).astype(float)  # nan where nothing is odd
        ax.plot(shares, places, marker, color=colour, markersize=4)
        styles[label] = (colour, marker)
    names = [row["design"] for row in results.rows]
    ax.set_yticks(places, names, fontsize="x-small")
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel(f"share of draws with p ≤ {LEVEL}")
    legend_of_markers(drawn, styles)
    return drawn


EXPERIMENT = Experiment(
    name="group-odd",
    title="Odd groups, found and falsely found",
    text=(
        "Normal rows in two columns; some groups are odd, more than half are alike. A group of "
        "those that are alike should have p ≤ 0.05 in at most 5 % of draws. Gaussian kernel at "
        "three bandwidths, 99 permutations."
    ),
    settings=settings,
    tasks=tasks,
    run=run,
    table=table,
    findings=findings,
    details=details,
    figure=figure,
)
