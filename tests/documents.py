"""What documents contain: blocks of Python with what they print, commands, links; and the code of notebooks."""

import json
import re
import subprocess
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
DOCUMENTS += sorted((ROOT / "docs").rglob("*.md")) + sorted((ROOT / "examples").rglob("*.md"))
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))
_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
_SAY_ARGUMENTS = r"""preselect() { printf '%s\n' "$@" ---; }"""


def name(path):
    return str(path.relative_to(ROOT))


def list_python(text):
    """The blocks of Python, each with the block of plain text that follows it at once: what it prints, or nothing."""
    blocks = [*_BLOCK.finditer(text), None]
    return [
        (one[2], after[2] if after and not after[1] and after.start() - one.end() == 2 else "")
        for one, after in pairwise(blocks)
        if one[1] == "python"
    ]


def read_cells(notebook, kind):
    """The cells of a notebook that are of a kind."""
    return [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == kind]


def read_text(path):
    """The text of a document or notebook."""
    if path.suffix == ".ipynb":
        return "\n\n".join("".join(cell["source"]) for cell in read_cells(path, "markdown"))
    return path.read_text()


def list_blocks(text, language):
    return [block for found, block in _BLOCK.findall(text) if found == language]


def list_shell(text):
    """The lines of a shell that set a variable or call `preselect`, wherever the document says that it is."""
    blocks = [block.replace("\\\n", "") for language, block in _BLOCK.findall(text) if language in ("", "sh")]
    lines = "".join(blocks).replace(".venv/bin/", "").splitlines()
    return [line for line in lines if re.match(r"\w+=[^$]|preselect ", line)]


def list_commands(text, folder):
    """The arguments of each `preselect ...` in blocks of shell, expanded by a shell in an empty folder."""
    script = "\n".join([_SAY_ARGUMENTS, *list_shell(text)])
    said = subprocess.run(["sh", "-euc", script], cwd=folder, capture_output=True, text=True, check=True).stdout
    return [arguments.splitlines() for arguments in said.split("---\n")[:-1]]


def list_links(text):
    """The targets of links and images within the repository."""
    prose = re.sub(r"`[^`\n]*`", "", _BLOCK.sub("", text))
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", prose) if not re.match(r"\w+:", link)]


def list_anchors(path):
    """The fragments by which headings of a document can be reached."""
    headings = re.findall(r"^#+ (.*)$", _BLOCK.sub("", read_text(path)), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
