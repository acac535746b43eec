"""Build the site: ``python -m sphinx -W --keep-going docs docs/_build/html``."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs"), str(ROOT / "docs" / "_extensions")]

# For the kernels that execute the pages.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT), str(ROOT / "docs"), str(ROOT / "docs" / "_extensions")]
)

import stand_ins  # noqa: E402

stand_ins.import_rooms()

from logunif_kl import __version__  # noqa: E402

project = "logunif_kl"
author = "logunif_kl maintainers"
release = version = __version__
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx-mathjax-offline",
    "sphinxcontrib.bibtex",
    "computed",
    "docstrings",
    "explore",
    "gallery",
    "listings",
    "llms",
    "made_by",
    "papers",
    "public_names",
    "results",
    "roles",
]
exclude_patterns = ["_build", "papers/_made"]
templates_path = ["_templates"]
default_role = "autolink"

# Code cells are executed at every build, and one that fails, fails the build.
nb_execution_mode = "force"
nb_execution_excludepatterns = ["gallery/*"]  # they need frameworks: docs/gallery/make.py
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_show_inherited_class_members = False

bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = f"logunif_kl {__version__}"
html_favicon = "_static/favicon.svg"
# PLACEHOLDER: once the repository has an address, set "edit_page_url_template" here, and
# "use_edit_page_button" below.
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "navigation_depth": 1,  # the pages of the objects are in the tables of their module's page
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}
html_show_sourcelink = True
html_copy_source = True
