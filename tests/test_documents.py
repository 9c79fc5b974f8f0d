"""The Python in the documents runs as written, from top to bottom."""

import re
from pathlib import Path

import pytest
from commands import preselect

ROOT = Path(__file__).parents[1]


DOCUMENTS = ["README.md", "CONTRIBUTING.md", "docs/preselector.md", "docs/logs.md"]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_python_in_documents_runs(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / document).read_text(), flags=re.DOTALL | re.MULTILINE)
    assert blocks
    names = {"__name__": f"example_{Path(document).stem.lower()}"}
    for block in blocks:
        exec(compile(block, document, "exec"), names)


def test_the_worked_policy_runs_in_a_study_as_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (tmp_path / "win_share.py").write_text(re.search(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)[1])
    command = re.search(r"^preselect (study synthetic .*win_share:WinShare.*)$", text, flags=re.MULTILINE)[1]
    preselect(*command.split(), "--workers", 1)
    assert "win_share:WinShare" in (tmp_path / "win-share" / "summary.csv").read_text()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_named_in_documents_are_there(document):
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / document).read_text())
    for link in links:
        assert ((ROOT / document).parent / link).exists(), link
