"""Write the guide's pictures of groups and of kernel PCA, docs/*.png: ``make tour``."""

import re
import runpy
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from muhat import GroupDistanceDisplay, GroupMapDisplay
from muhat.plots import figure_of_groups, save

DOCS = Path(__file__).parent
FIRST_BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def example(name: str) -> dict[str, Any]:
    """Run an example of the gallery and return its names."""
    return runpy.run_path(str(DOCS.parent / "examples" / f"plot_{name}.py"))


def map_and_distances(means: Any) -> Figure:
    """Return the map of groups beside the matrix of their distances."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    GroupMapDisplay.from_estimator(means).plot(left)
    GroupDistanceDisplay.from_estimator(means).plot(right)
    return figure


def components() -> Figure:
    """Return the figure that the first block of docs/pca.md makes."""
    names: dict[str, Any] = {}
    exec(FIRST_BLOCK.search((DOCS / "pca.md").read_text(encoding="utf-8"))[1], names)
    return names["figure"]


if __name__ == "__main__":
    mpl.use("agg")
    save(map_and_distances(example("groups")["means"]), DOCS / "groups.png")
    save(figure_of_groups(example("which_groups_differ")["result"]), DOCS / "group-tests.png")
    save(components(), DOCS / "pca.png")
