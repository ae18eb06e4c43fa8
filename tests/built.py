"""Wheel and sdist, built as a release is."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def build(kind, folder, root=ROOT):
    """Build a wheel or an sdist of a tree into a folder and return its path."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    (made,) = Path(folder).iterdir()
    return made
