"""What the paper printed in its Table 2: the average negative log-likelihood on the test set."""

from muhat.paper.experiments.contenders import PAPER

TABLE_2 = {
    "ionosphere": (36.1769, 36.1402, 36.1622, 36.1204, 36.1554, 36.1334, 36.1442),
    "glass": (10.7855, 10.7403, 10.7448, 10.7099, 10.7541, 10.9078, 10.7791),
    "bodyfat": (18.1964, 18.1158, 18.1810, 18.1607, 18.1941, 18.1267, 18.1061),
    "housing": (14.3016, 14.2195, 14.0409, 14.2499, 14.1983, 14.2868, 14.3129),
    "vowel": (13.9253, 13.8426, 13.8817, 13.8337, 14.1368, 13.8633, 13.8375),
    "svmguide2": (28.1091, 28.0546, 27.9640, 28.1052, 27.9693, 28.0417, 28.1128),
    "vehicle": (18.5295, 18.3693, 18.2547, 18.4873, 18.3124, 18.4128, 18.3910),
    "wine": (16.7668, 16.7548, 16.7457, 16.7596, 16.6790, 16.6954, 16.5719),
    "wdbc": (35.1916, 35.1814, 35.0023, 35.1402, 35.1366, 35.1881, 35.1850),
}
"""A row for each data set, in the order of ``PAPER``."""


def printed(dataset: str, estimator: str) -> float:
    """Return a cell of the paper's table.

    Examples
    --------
    >>> printed("wine", "tsvd")
    16.5719
    """
    return TABLE_2[dataset][PAPER.index(estimator)]


def cells_below_kme() -> int:
    """Return how many of the 54 cells of shrinkage estimators the paper has below KME.

    Examples
    --------
    >>> cells_below_kme()
    50
    """
    return sum(cell < row[0] for row in TABLE_2.values() for cell in row[1:])
