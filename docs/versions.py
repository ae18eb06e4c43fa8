"""Versions of the published site: one folder each, and the list that the version switcher reads.

The workflow docs.yml calls it with the branch ``gh-pages`` checked out:
``python docs/versions.py docs/_build/html pages 1.0.0 https://owner.github.io/name``.
"""

import json
import re
import shutil
import sys
from pathlib import Path

DEVELOPMENT = "dev"
"""The folder of the main branch."""


def version_of(reference: str) -> str:
    """Return the folder for a tag or branch: ``1.0.0`` for ``v1.0.0``, else ``dev``."""
    if re.fullmatch(r"v\d+(\.\d+)*", reference):
        return reference.removeprefix("v")
    return DEVELOPMENT


def releases(pages: Path) -> list[str]:
    """Return the published releases, the newest first."""
    names = [path.name for path in pages.iterdir() if re.fullmatch(r"\d+(\.\d+)*", path.name)]
    return sorted(names, key=lambda name: [int(part) for part in name.split(".")], reverse=True)


def publish(site: Path, pages: Path, version: str, address: str) -> None:
    """Copy a built site to the folder of its version, and list all versions anew."""
    shutil.rmtree(pages / version, ignore_errors=True)
    shutil.copytree(site, pages / version)
    found = releases(pages)
    entries = []
    for name in [*found, DEVELOPMENT]:
        if (pages / name).exists():
            entry = {"version": name, "url": f"{address}/{name}/"}
            if found and name == found[0]:
                entry |= {"name": f"{name} (stable)", "preferred": True}
            entries.append(entry)
    (pages / "switcher.json").write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
    first = entries[0]["version"]
    redirect = f'<!doctype html><meta http-equiv="refresh" content="0; url={first}/">\n'
    (pages / "index.html").write_text(redirect, encoding="utf-8")
    (pages / ".nojekyll").touch()  # folders that start with an underscore are served too


if __name__ == "__main__":
    built, checked_out, reference, where = sys.argv[1:]
    publish(Path(built), Path(checked_out), version_of(reference), where)
