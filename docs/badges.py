"""Write the README's badges, docs/_static/badge-*.svg, from the metadata: ``make docs``."""

import tomllib
from pathlib import Path

import muhat

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "_static"

BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img">
<title>{label}: {value}</title>
<rect width="{width}" height="20" rx="3" fill="#005a94"/>
<rect width="{left}" height="20" rx="3" fill="#444"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{label_x}" y="14">{label}</text>
<text x="{value_x}" y="14">{value}</text>
</g>
</svg>
"""
LETTER = 7
"""Width of a letter, in pixels."""


def badges() -> dict[str, str]:
    """Return the text of each badge by its name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    prefix = "Programming Language :: Python :: 3."
    minors = []
    for classifier in project["classifiers"]:
        if classifier.startswith(prefix):
            minors.append(int(classifier.removeprefix(prefix)))
    return {
        "version": muhat.__version__,
        "python": f"3.{min(minors)} to 3.{max(minors)}",
        "licence": project["license"],
    }


def drawn(label: str, value: str) -> str:
    """Return a badge as SVG."""
    left = LETTER * len(label) + 12
    width = left + LETTER * len(value) + 12
    places = {"label_x": left / 2, "value_x": (left + width) / 2}
    return BADGE.format(label=label, value=value, left=left, width=width, **places)


if __name__ == "__main__":
    for name, text in badges().items():
        (FOLDER / f"badge-{name}.svg").write_text(drawn(name, text), encoding="utf-8")
