"""How Sphinx builds the site: ``make docs``."""

import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

import api  # noqa: E402

import muhat  # noqa: E402

project, author, copyright = "muhat", "the authors of muhat", "the authors of muhat"
version = release = muhat.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/README*", "gallery/**.ipynb"]
templates_path = ["_templates"]

myst_heading_anchors = 3
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "show_memory": False,
    "min_reported_time": 0,
    "write_computation_times": False,  # a page that loads scripts from the network
}
suppress_warnings = ["config.cache"]

html_theme = "pydata_sphinx_theme"
html_title = "muhat"
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "logo": {"text": f"muhat {release}"},
}


PLAIN = re.compile(r"\||(?<=\w)_(?!\w)|(?<=[\s(])\*(?=\w)")
"""What docstrings mean as it stands: |x|, the underscore at the end of a name, and *args."""


def escape_plain(
    app: object, what: str, name: str, part: object, options: object, lines: list[str]
) -> None:
    """Keep Sphinx from reading mark-up where docstrings have none."""
    for number, line in enumerate(lines):
        outside = line.split("``")
        outside[::2] = [PLAIN.sub(r"\\\g<0>", each) for each in outside[::2]]
        lines[number] = "``".join(outside)


def setup(app: object) -> None:
    """Tell Sphinx of what is done to docstrings."""
    app.connect("autodoc-process-docstring", escape_plain)


api.write_reference(DOCS / "reference")  # before Sphinx looks for pages
