"""docs/studies/your-own.md: every block runs as written, from top to bottom, and prints what the page says."""

import contextlib
import csv
import gzip
import io
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
from commands import preselect
from test_choices import write_sushi

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "studies" / "your-own.md"
FEW = ["--reps", "1", "--workers", "1"]


def write_commuters(folder, monkeypatch):
    """Make a table of three made-up commuters with the example that makes the real one."""
    columns = ["casenum", "altnum", "chose", "tottime", "totcost", "hhinc", "dist", "vehbywrk", "femdum", "wkempden"]
    with gzip.open(folder / "MTCwork.csv.gz", "wt", newline="") as file:
        rows = (
            [case, mode, int(mode == case), 10 * mode, 50, 42.5, 7, 1, 0, 3]
            for case in (1, 2, 3)
            for mode in range(1, 5)
        )
        csv.writer(file).writerows([columns, *rows])
    monkeypatch.setattr(sys, "argv", ["commuters_table.py", "MTCwork.csv.gz", "commuters.csv"])
    runpy.run_path(str(ROOT / "examples" / "commuters_table.py"), run_name="__main__")
    assert (folder / "commuters.csv").read_text().splitlines()[1] == "1,alone by car,1,10,50,42.5,7,1,0,3"


class Reader:
    """Does what each block of the page says."""

    def __init__(self):
        self.names = {"__name__": "your_own"}
        self.printed = ""

    def read(self, language, block):
        """Run one block: a module, Python, a command, a part of a class, or what was printed before."""
        if language == "python" and (found := re.match(r"# (\w+\.py)\n", block)):
            Path(found[1]).write_text(block)
        elif language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(block, "your-own.md", "exec"), self.names)
            self.printed += printed.getvalue()
        elif block.startswith("preselect "):
            for line in block.splitlines():
                preselect(*shlex.split(line)[1:], *([] if " show " in line else FEW))
        elif block.startswith("    measures"):
            extended = "from preselect.study import Measure\n" + Path("routes.py").read_text() + "\n" + block
            Path("costly_routes.py").write_text(extended)
            found = preselect(
                "study", "run", "costly_routes:Routes", "--k", 2, *FEW, "--horizon", 20, "--out", "costly"
            )
            assert "cumulative cost, €" in found.stdout
        else:
            assert block == self.printed


def test_every_block_runs_as_written(tmp_path, monkeypatch):
    pytest.importorskip("statsmodels")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("preselect.study.study.write_report", lambda results: results.folder)
    write_commuters(tmp_path, monkeypatch)
    write_sushi(tmp_path, order="100 1\n0 4 5 99 0 8\n0 4 26 7 1 8\n").rename(tmp_path / "sushi3b.5000.10.order")
    reader = Reader()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 10
    for language, block in blocks:
        reader.read(language, block)
    for module in ("routes", "costly_routes"):
        sys.modules.pop(module, None)


def test_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#:]+)[^):]*\)", PAGE.read_text()):
        assert (PAGE.parent / link).exists(), link
