# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0

"""Settings of the documentation's site, which ``make docs`` builds with Sphinx.

The source folder is the root of the project, so that links between docs/, studies/ and examples/
hold on the site as they hold in a checkout.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "python")]

project = "Airpath"
author = "The Airpath authors"
project_copyright = author
release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "pages"]
extensions += ["notebooks"]
root_doc = "docs/site/index"
include_patterns = ["*.md", "docs/*.md", "docs/*/*.md", "studies/*/README.md"]
include_patterns += ["examples/*/README.md", "examples/*.ipynb"]
# Folders that Sphinx need not look into.
exclude_patterns = [".*", "crates", "fuzz", "python", "schema", "scripts", "target", "tests"]
exclude_patterns += ["bench-results", "build", "demo-results", "dist", "results", "LICENSES"]

highlight_language = "none"
myst_heading_anchors = 4
# Only for the targets that the extension `pages` makes.
myst_enable_extensions = ["attrs_inline"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 80
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"Airpath {release}"
html_static_path = ["static"]
html_css_files = ["airpath.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
# The first page has the address that a server opens without a path.
html_additional_pages = {"index": "front.html"}
templates_path = ["templates"]
