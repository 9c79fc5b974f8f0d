"""The documentation site: `make docs` builds it with warnings as errors, and nothing in it is loaded from elsewhere."""

import inspect
import re

from sphinx.util.inspect import stringify_signature

import preselect

project = "preselect"
author = copyright = "The preselect developers"
version = release = preselect.__version__

extensions = ["myst_nb", "sphinx_click", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "preselect"
html_show_search_summary = False  # summaries are fetched, which a browser refuses to pages of a local folder
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["narrow.css"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
highlight_language = "none"
smartquotes = False

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 300

suppress_warnings = ["misc.highlighting_failure", "ref.python"]  # languages without colours; names of several things

default_role = "py:obj"  # names in docstrings are links where they can be, and code where not
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say it in words
napoleon_use_param = napoleon_use_rtype = False  # types are words, not links
napoleon_custom_sections = [("Attributes", "params_style")]
python_maximum_signature_line_length = 88


def read_plainly(app, what, name, obj, options, lines):  # noqa: ARG001
    """Docstrings are plain text: an indented paragraph is a formula, shown as it stands, and |x| an absolute value."""
    found, before, is_formula = [], 0, False
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if line and found and not found[-1] and indent > before == 0:
            found += ["::", ""]
            is_formula = True
        is_formula &= not line or indent > 0
        before = indent if line else before
        found.append(line if is_formula or ">>>" in line else line.replace("|", r"\|"))
    lines[:] = found


def write_dashes(app, what, name, obj, options, lines):  # noqa: ARG001
    """Between a parameter and what it means there are two hyphens, as sections are read."""
    lines[:] = [line.replace(" -- ", " – ", 1) for line in lines]


def sign_by_init(app, what, name, obj, options, signature, returns):  # noqa: ARG001
    """A class is called as `__init__` says, not as the `__new__` of a base that takes anything."""
    return (
        (stringify_signature(inspect.signature(obj), show_annotation=False), None)
        if signature == "(*_, **__)"
        else None
    )


def link_pages(app, docname, source):  # noqa: ARG001
    """A link to a document beside the folder of documents leads to its page."""
    links = {"README": "/index.md", "CHANGELOG": "/about/changelog.md", "CONTRIBUTING": "/about/contributing.md"}
    source[0] = re.sub(r"\]\((?:\.\./)+([A-Z]+)\.md", lambda found: f"]({links[found[1]]}", source[0])


def skip_aliases(app, what, name, obj, skip, options):  # noqa: ARG001
    """Fields of a named tuple are described by its class; Python says no more of them than their number."""
    return True if (inspect.getdoc(obj) or "").startswith("Alias for field number") else None


def read_help_plainly(app, context, lines):  # noqa: ARG001
    """Help is plain text, in which a star is a star; a default is what one would type."""
    typed = (re.sub(r"(:default: ``)(?:PosixPath\()?'(.+?)'\)?``", r"\1\2``", line) for line in lines)
    lines[:] = [line.replace("*", r"\*") for line in typed]


def setup(app):
    for part in ("description", "options", "arguments"):
        app.connect(f"sphinx-click-process-{part}", read_help_plainly)
    app.connect("source-read", link_pages)
    app.connect("autodoc-skip-member", skip_aliases)
    app.connect("autodoc-process-signature", sign_by_init)
    app.connect("autodoc-process-docstring", read_plainly, priority=100)  # before sections are read
    app.connect("autodoc-process-docstring", write_dashes, priority=900)
