"""Print the lowest versions that pyproject.toml declares, as constraints for pip: ``make test-lowest``."""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
TOOLS = {"hatchling", "mypy", "ruff"}
"""They check or build the code and never run it, so that their versions say nothing about users' environments."""


def lowest(project):
    """Return ``name==version`` for every requirement of the project and its extras that has a lowest version."""
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
