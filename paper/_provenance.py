"""Where a result comes from: versions, source code, commit and machine."""

import hashlib
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import joblib
import numpy
import scipy
import sklearn

import muhat

PACKAGES = {"muhat": Path(muhat.__file__).parent, "paper": Path(__file__).parent}
"""Where the source code is, by the name of the package."""


def provenance_of(results: Path) -> dict[str, Any]:
    """Return what is written beside tables in the folder ``results``, to trace their numbers."""
    versions = {
        "muhat": muhat.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
    return {
        "versions": versions,
        "source": source_digest(),
        "commit": source_commit(PACKAGES["paper"], results),
        "platform": platform.platform(),
        "cores": joblib.cpu_count(),
    }


def source_digest(packages: Mapping[str, Path] = PACKAGES) -> str:
    """Return a digest of the source code, as it now is on the disk."""
    digest = hashlib.sha256()
    for package, folder in packages.items():
        for path in sorted(folder.rglob("*.py")):
            name, content = Path(package) / path.relative_to(folder), path.read_bytes()
            digest.update(f"{name.as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def source_commit(package: Path, results: Path) -> str | None:
    """Return the git commit of a package; None outside git.

    It ends in ``-dirty`` if anything but the results has changed.
    """
    try:
        # Else the repository around is someone else's.
        _git(package, "ls-files", "--error-unmatch", "__init__.py")
        commit = _git(package, "rev-parse", "HEAD")
        top = Path(_git(package, "rev-parse", "--show-toplevel")).resolve()
        but_results = []
        if top in results.resolve().parents:
            but_results = [f":(exclude){results.resolve().relative_to(top).as_posix()}"]
        changed = _git(top, "status", "--porcelain", "--", ".", *but_results)
    except (OSError, subprocess.CalledProcessError):
        return None
    if changed:
        return f"{commit}-dirty"
    return commit


def _git(folder: Path, *arguments: str) -> str:
    """Return what git prints, without waiting for another git."""
    command = ["git", "-C", str(folder), "--no-optional-locks", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
