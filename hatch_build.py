"""Metadata that depends on where the repository is: addresses, and the README's links.

A package index shows the README without the repository, so its pictures and links need whole
addresses. GitHub's workflows set GITHUB_REPOSITORY ("owner/name"); without it links stay as they
are and no address is given.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r'(\]\(|src=")(?!https?:|#)([^)"]+)')
PICTURE = re.compile(r"\.(png|svg)$")


def with_whole_addresses(text: str, repository: str, version: str) -> str:
    """Return a page whose links to files of the repository can be followed from elsewhere."""

    def address(match: re.Match[str]) -> str:
        start, path = match.groups()
        host = f"https://github.com/{repository}/blob"
        if PICTURE.search(path):
            host = f"https://raw.githubusercontent.com/{repository}"
        return f"{start}{host}/v{version}/{path}"

    return LINK.sub(address, text)


class RepositoryMetadata(MetadataHookInterface):
    """Adds the README and, where the repository is known, addresses."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set what pyproject.toml declares as dynamic."""
        root = Path(self.root)
        text = (root / "README.md").read_text(encoding="utf-8")
        repository = os.environ.get("GITHUB_REPOSITORY", "")
        metadata["urls"] = {}
        if repository:
            page = f"https://github.com/{repository}"
            source = (root / "src" / "muhat" / "__init__.py").read_text(encoding="utf-8")
            version = re.search(r'^__version__ = "(.+)"', source, flags=re.MULTILINE)[1]
            text = with_whole_addresses(text, repository, version)
            metadata["urls"] = {
                "Repository": page,
                "Documentation": f"{page}/blob/v{version}/docs/guide.md",
                "Changes": f"{page}/blob/v{version}/CHANGELOG.md",
                "Issues": f"{page}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
