"""The documentation site: `make docs` builds it with warnings as errors, and nothing in it is loaded from elsewhere."""

import inspect
import re

from docutils import nodes
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
html_css_files = ["site.css"]

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

_COLON = "\ue000"  # stands for a colon that ends no type
_LONGEST = 400  # characters of a signature
_NUMBERS = re.compile(r"(?<=\d) ± (?=\d)|(?<=\d) (?=(?:%|s|ms|µs|kB|MB|GB)\b|%)|\((?:\d+|n), (?:\d+|d), (?:\d+|k)\)")


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


def name_examples(app, what, name, obj, options, lines):  # noqa: ARG001
    """Examples below the parameters have a heading, as they have elsewhere; without one they are read as parameters."""
    headings = [place for place, line in enumerate(lines) if re.fullmatch("-{3,}", line)]
    first = next((place for place, line in enumerate(lines) if line.startswith(">>>")), None)
    if first is not None and headings and headings[-1] < first and lines[headings[-1] - 1] != "Examples":
        lines[first:first] = ["Examples", "--------"]


def keep_colons(app, what, name, obj, options, lines):  # noqa: ARG001
    """What is before a colon in the docstring of a property is not its type; `write_signs` puts the colon back."""
    if what in ("property", "attribute") and lines:
        lines[0] = lines[0].replace(": ", f"{_COLON} ")


def write_signs(app, what, name, obj, options, lines):  # noqa: ARG001
    """Between a parameter and what it means there are two hyphens, as sections are read."""
    lines[:] = [line.replace(" -- ", " – ", 1).replace(_COLON, ":") for line in lines]


class _Dots:
    def __repr__(self):
        return "..."


def sign_briefly(app, what, name, obj, options, signature, returns):  # noqa: ARG001
    """A class is called as `__init__` says, not as a `__new__` that takes anything; long defaults are three dots.

    A protocol is not called at all.
    """
    if getattr(obj, "_is_protocol", False):
        return "", None
    if signature is None or not (signature == "(*_, **__)" or "=<" in signature or len(signature) > _LONGEST):
        return None
    found = inspect.signature(obj)
    short = [
        one.replace(default=_Dots()) if re.match(r"<(?!class 'inspect)|.{400}", repr(one.default)) else one
        for one in found.parameters.values()
    ]
    return stringify_signature(found.replace(parameters=short), show_annotation=False), None


def link_pages(app, docname, source):  # noqa: ARG001
    """A link to a document beside the folder of documents leads to its page."""
    links = {"README": "/index.md", "CHANGELOG": "/about/changelog.md", "CONTRIBUTING": "/about/contributing.md"}
    source[0] = re.sub(r"\]\((?:\.\./)+([A-Z]+)\.md", lambda found: f"]({links[found[1]]}", source[0])


def skip_aliases(app, what, name, obj, skip, options):  # noqa: ARG001
    """Fields of a named tuple are described by its class; Python says no more of them than their number."""
    return True if (inspect.getdoc(obj) or "").startswith("Alias for field number") else None


def read_help_plainly(app, context, lines):  # noqa: ARG001
    """Help is plain text: a star is a star, a default is what one would type, commands and columns stay as they are."""
    found, is_block = [], False
    for line in lines:
        if re.match(r"\| (?: |preselect )", line):
            found += [f"    {line[2:]}"] if is_block else ["", "::", "", f"    {line[2:]}"]
            is_block = True
        else:
            typed = re.sub(r"(:default: ``)(?:PosixPath\()?'(.+?)'\)?``", r"\1\2``", line.removeprefix("| "))
            typed = typed.replace("*", r"\*").replace(r"\*\*Required\*\*", "Required.")
            found += ["", typed] if is_block else [typed]
            is_block = False
    lines[:] = found


def keep_together(app, doctree, docname):  # noqa: ARG001
    """A number keeps its error and its unit on its line, and so does a triple of numbers; a picture opens in full."""
    for text in list(doctree.findall(nodes.Text)):
        if not isinstance(text.parent, nodes.literal | nodes.literal_block | nodes.FixedTextElement):
            kept = _NUMBERS.sub(lambda found: found[0].replace(" ", "\u00a0"), text)
            if kept != text:
                text.parent.replace(text, nodes.Text(kept))
    for image in doctree.findall(nodes.image):
        if "jupyter_execute" not in image["uri"]:
            image.setdefault("width", "100%")  # with a width, it is a link to itself


def setup(app):
    for part in ("description", "options", "arguments"):
        app.connect(f"sphinx-click-process-{part}", read_help_plainly)
    app.connect("doctree-resolved", keep_together)
    app.connect("source-read", link_pages)
    app.connect("autodoc-skip-member", skip_aliases)
    app.connect("autodoc-process-signature", sign_briefly)
    app.connect("autodoc-process-docstring", read_plainly, priority=100)  # before sections are read
    app.connect("autodoc-process-docstring", name_examples, priority=101)
    app.connect("autodoc-process-docstring", keep_colons, priority=102)
    app.connect("autodoc-process-docstring", write_signs, priority=900)
