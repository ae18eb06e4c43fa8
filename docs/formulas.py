"""Formulas as MathML, which browsers draw themselves: no script, and nothing from the network."""

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def visit_inline(writer: Any, node: nodes.math) -> None:
    """Write a formula inside a line."""
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula that has a line of its own."""
    formula = tex2mathml(node.astext(), as_block=True)
    writer.body.append(f'<div class="math" tabindex="0">{formula}</div>')  # may scroll, by keys too
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer with Sphinx."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
