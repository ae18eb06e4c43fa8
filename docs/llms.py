"""llms.txt: the pages of the site in one list, with a sentence on each, for language models."""

from pathlib import Path
from typing import Any

from docutils import nodes

SUMMARY = (
    "muhat compares distributions with kernels in Python and on the command line: tests of two "
    "samples, many groups, independence and drift, regression with prediction intervals, kernel "
    "PCA, and shrinkage estimates of kernel means."
)

SECTIONS = {
    "User guide": "guide",
    "Background": "background",
    "About": "about",
}
"""Headings of the list, and the pages whose tables of contents are under them."""


def first_sentence(document: nodes.document) -> str:
    """Return the first paragraph of a page in one line."""
    for paragraph in document.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if text:
            return text
    return ""


def list_of_pages(app: Any) -> str:
    """Return the content of llms.txt."""
    environment = app.env
    lines = [f"# {app.config.project} {app.config.release}", "", f"> {SUMMARY}", ""]
    for heading, parent in SECTIONS.items():
        lines += [f"## {heading}", ""]
        for name in [parent, *environment.toctree_includes.get(parent, [])]:
            title = environment.titles[name].astext()
            sentence = first_sentence(environment.get_doctree(name))
            lines.append(f"- [{title}](_sources/{name}.md.txt): {sentence}")
        lines.append("")
    return "\n".join(lines)


def write(app: Any, exception: Exception | None) -> None:
    """Write llms.txt beside the pages once they are built."""
    if exception is None and app.builder.name == "html":
        (Path(app.outdir) / "llms.txt").write_text(list_of_pages(app), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Register the file with Sphinx."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
