"""Options that several commands share, each with its help text: they mean the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

FOUND = 3
"""The exit status if p is at most what ``--fail-below`` says."""

Drop = Annotated[
    list[str] | None,
    Option(
        metavar="A,B,...",
        show_default=False,
        help="Columns to leave out, separated by commas. Can be given several times.",
    ),
]
OnlyNumeric = Annotated[
    bool, Option("--only-numeric", help="Leave out columns that are not numbers.")
]
OneHot = Annotated[
    bool, Option("--one-hot", help="Turn columns of text or categories into 0/1 indicators.")
]
Missing = Annotated[
    str,
    Option(
        metavar="error|drop",
        help="What to do with rows that have missing values: stop with an error, or drop them.",
    ),
]
Separator = Annotated[
    str | None,
    Option(
        metavar="CHARACTER",
        show_default="detected",
        help="Field separator of text files: a character, 'tab' or 'space'.",
    ),
]
Decimal = Annotated[
    str | None,
    Option(
        metavar="CHARACTER",
        show_default=".",
        help="Decimal sign of text files: '.' or ','. If you give several files, those without "
        "decimal commas are read with '.'. By default, points that look like thousands separators "
        "are an error.",
    ),
]
Standardize = Annotated[
    bool,
    Option("--standardize/--no-standardize", help="Scale columns to mean 0 and variance 1."),
]
Kernels = Annotated[
    list[str] | None,
    Option(
        metavar="NAME",
        show_default=False,
        help="Kernel of the test. Can be given several times. By default several kernels are "
        "combined.",
    ),
]
Permutations = Annotated[
    int,
    Option(
        min=1,
        metavar="NUMBER",
        help="Number of permutations. The smallest possible p-value is 1/(NUMBER + 1).",
    ),
]
RandomState = Annotated[int, Option(min=0, metavar="NUMBER", help="Seed of the permutations.")]
Distinct = Annotated[
    bool, Option("--distinct", help="Drop rows that are exact copies of others before testing.")
]
FailBelow = Annotated[
    float | None,
    Option(
        metavar="LEVEL",
        show_default=False,
        help=f"Exit with status {FOUND} if the p-value is at most LEVEL (for scripts and CI).",
    ),
]
ToleranceText = Annotated[
    str | None,
    Option(
        "--tolerance",
        metavar="NUMBER",
        show_default=False,
        help="Also test whether the difference is larger than this distance (MMD). 'halves' is the "
        "distance between the first and the second half of your rows: of the first sample, or of "
        "all groups together, each split in two.",
    ),
]
BlockLength = Annotated[
    int | None,
    Option(
        min=1,
        metavar="ROWS",
        show_default=False,
        help="If consecutive rows depend on each other: permute blocks of this many rows. "
        "P-values are then approximate.",
    ),
]
FigureFile = Annotated[
    Path | None,
    Option(
        "--out", metavar="FILE", show_default=False, help="Write a figure (.png, .svg or .pdf)."
    ),
]
ReportFile = Annotated[
    Path | None,
    Option(
        "--report", metavar="FILE", show_default=False, help="Write a self-contained HTML report."
    ),
]
ModelFile = Annotated[
    Path | None,
    Option(
        "--save",
        metavar="FILE",
        show_default=False,
        help="Save the fitted model; muhat apply uses it on new rows.",
    ),
]
AsJson = Annotated[bool, Option("--json", help="Print JSON instead of text.")]
