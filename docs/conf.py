"""How Sphinx builds the site: ``make docs``."""

import os
import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

import api  # noqa: E402
import versions  # noqa: E402

import muhat  # noqa: E402

project, author, copyright = "muhat", "the authors of muhat", "the authors of muhat"
version = release = muhat.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "formulas",
    "llms",
]
exclude_patterns = ["_build", "gallery/README*", "gallery/**.ipynb"]
templates_path = ["_templates"]

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "dollarmath"]
html_math_renderer = "mathml"  # docs/formulas.py
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": "gallery_order.ByTask",
    "download_all_examples": False,
    "backreferences_dir": "reference/examples",  # "Examples using this" on a page of the reference
    "doc_module": ("muhat",),
    "thumbnail_size": (640, 420),
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "show_memory": False,
    "min_reported_time": 0,
    "write_computation_times": False,  # a page that loads scripts from the network
}
suppress_warnings = ["config.cache"]

REPOSITORY = os.environ.get("GITHUB_REPOSITORY", "")
"""``owner/name`` on GitHub, set by its workflows: pages then have edit links and versions."""

html_theme = "pydata_sphinx_theme"
html_title = "muhat"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["muhat.css"]
html_favicon = "_static/logo.svg"
copybutton_exclude = ".linenos, .gp, .go"
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "logo": {
        "text": f"muhat {release}",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
}
html_sidebars = {"index": [], "coming-from": []}
html_context = {"default_mode": "auto"}
if REPOSITORY:
    owner, _, name = REPOSITORY.partition("/")
    html_context |= {"github_user": owner, "github_repo": name, "github_version": "main"}
    html_context["doc_path"] = "docs"
    html_theme_options["use_edit_page_button"] = True
    html_theme_options["github_url"] = f"https://github.com/{REPOSITORY}"
    html_theme_options["switcher"] = {
        "json_url": f"https://{owner}.github.io/{name}/switcher.json",
        "version_match": versions.version_of(os.environ.get("GITHUB_REF_NAME", "")),
    }
    html_theme_options["check_switcher"] = False  # it is written after the first build
    html_theme_options["navbar_start"] = ["navbar-logo", "version-switcher"]


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


def skip_requests(
    app: object, what: str, name: str, part: object, skip: bool, options: object
) -> bool | None:
    """Leave out scikit-learn's ``set_…_request``, whose docstrings refer to its own pages."""
    if re.fullmatch(r"set_\w+_request", name):
        return True
    return None


def setup(app: object) -> None:
    """Connect what is done to docstrings and members."""
    app.connect("autodoc-process-docstring", escape_plain)
    app.connect("autodoc-skip-member", skip_requests)


api.write_reference(DOCS / "reference")  # before Sphinx looks for pages
