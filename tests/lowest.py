"""Print pip constraints to the lowest versions of pyproject.toml: ``make test-lowest``."""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
TOOLS = {"hatchling", "mypy", "ruff"}
"""They check or build the code and never run it: users' environments need none of them."""


def lowest(project):
    """Return ``name==version`` for every requirement that has a lowest version."""
    declared = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    found = {}
    for requirement in declared:
        match = re.fullmatch(r"([\w.-]+)(?:\[[\w,-]+\])?>=([\w.]+)", requirement)
        if match and match[1] not in TOOLS:
            found[match[1]] = match[2]
    return [f"{name}=={version}" for name, version in sorted(found.items())]


if __name__ == "__main__":
    sys.stdout.write("\n".join(lowest(tomllib.loads(PROJECT.read_text())["project"])) + "\n")
