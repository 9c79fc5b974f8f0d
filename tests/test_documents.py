"""Documents do what they say: Python runs and prints what is shown, commands are understood, links lead somewhere."""

import importlib
import pkgutil
import pydoc
import re
import subprocess
import sys
import tempfile
import tomllib

import click
import matplotlib as mpl
import pytest
import yaml
from commands import preselect
from documents import (
    DOCUMENTS,
    NOTEBOOKS,
    ROOT,
    list_anchors,
    list_blocks,
    list_commands,
    list_links,
    list_python,
    list_shell,
    name,
    read_cells,
    read_text,
)

import preselect as library
from preselect.cli.main import preselect as command
from preselect.policies import registry

OWN_TESTS = "".join(path.read_text() for path in (ROOT / "tests").glob("test_*_document.py"))  # of pages that need more
WITH_PYTHON = [path for path in DOCUMENTS if list_python(path.read_text()) and f'"{path.name}"' not in OWN_TESTS]
POOL = """\
[success]
verifier = "none"
[arms.one]
command = ["sh", "-c", "exit 10", "{instance}"]
[arms.two]
command = ["sh", "-c", "sleep 5", "{instance}"]
"""


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """Where a document's code runs, with a pool and an instance, as if the page about races had been followed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "pool.toml").write_text(POOL)
    (tmp_path / "cnf").mkdir()
    (tmp_path / "cnf" / "one.cnf").write_text("p cnf 1 1\n1 0\n")
    return tmp_path


@pytest.mark.usefixtures("empty_folder")
@pytest.mark.parametrize("document", WITH_PYTHON, ids=name)
def test_python_in_documents_runs_and_prints_what_is_shown(document, capsys):
    names = {"__name__": f"example_{document.stem.lower()}"}
    for block, shown in list_python(document.read_text()):
        exec(compile(block, document.name, "exec"), names)
        printed = capsys.readouterr().out
        assert not shown or printed.split() == shown.split()


@pytest.mark.usefixtures("empty_folder")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=name)
def test_notebooks_run(notebook):
    mpl.use("agg")
    names = {}
    for cell in read_cells(notebook, "code"):
        assert not cell["outputs"]  # the site shows those of its own run
        exec(compile("".join(cell["source"]), notebook.name, "exec"), names)
    names["plt"].close("all")


@pytest.fixture
def understand(monkeypatch):
    """Runs the command line without carrying anything out: names, options, values and policies have to be right."""
    called = []

    def check(**options):
        for texts in options.get("policies") or ():
            called.extend(registry.parse(text) for text in registry.split(texts) if ":" not in text)
        called.append(options)

    def replace(one):
        monkeypatch.setattr(one, "callback", check)
        if isinstance(one, click.Group):  # commands are imported when they are asked for
            context = click.Context(one)
            for other in one.list_commands(context):
                replace(one.get_command(context, other))

    replace(command)

    def run(arguments):
        called.clear()
        preselect(*arguments)
        return called

    return run


@pytest.mark.parametrize("document", [*DOCUMENTS, *NOTEBOOKS], ids=name)
def test_commands_in_documents_are_understood(document, tmp_path, understand):
    for arguments in list_commands(read_text(document), tmp_path):
        assert understand(arguments), arguments


def test_a_wrong_command_is_noticed(tmp_path, understand):
    (wrong,) = list_commands("```\npreselect study synthetic --repetition 3\n```\n", tmp_path)
    with pytest.raises(AssertionError, match="No such option"):
        understand(wrong)


def test_tables_and_settings_in_documents_can_be_read(tmp_path):
    text = "\n".join(path.read_text() for path in DOCUMENTS)
    assert all(tomllib.loads(block) for block in list_blocks(text, "toml"))
    for block in list_blocks(text, "csv"):
        (tmp_path / "table.csv").write_text(block)
        assert preselect("logs", "check", tmp_path / "table.csv")


@pytest.mark.soak
@pytest.mark.parametrize("document", ["README.md", "docs/tutorials/solvers.md", "docs/running-studies.md"])
def test_commands_of_the_first_pages_run_as_written(document, tmp_path):
    lines = list_shell((ROOT / document).read_text())
    lines = [line for line in lines if not re.match("preselect (demo|serve)", line)]  # which stay; they have tests
    script = "\n".join([f'preselect() {{ "{sys.executable}" -m preselect "$@"; }}', *lines])
    done = subprocess.run(["sh", "-euxc", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_targets_and_programs_in_documents_are_there():
    text = "\n".join(path.read_text() for path in DOCUMENTS)
    assert all((ROOT / program).exists() for program in re.findall(r"^python (\S+)", text, flags=re.MULTILINE))
    targets = re.findall(r"^make ([a-z./-]+)", text, flags=re.MULTILINE)
    assert {"demo", "test", "docs", ".venv/ready"} <= set(targets)
    rules = (ROOT / "Makefile").read_text().replace("$(VENV)", ".venv")
    assert all(f"\n{target}:" in rules for target in targets)


def test_the_worked_policy_runs_in_a_study_as_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (tmp_path / "win_share.py").write_text(list_python(text)[0][0])
    (arguments,) = [one for one in list_commands(text, tmp_path) if "win_share:WinShare,mm,random" in one]
    preselect(*arguments, "--workers", 1)
    assert "win_share:WinShare" in (tmp_path / "win-share" / "summary.csv").read_text()


@pytest.mark.parametrize("document", [*DOCUMENTS, *NOTEBOOKS], ids=name)
def test_links_lead_somewhere(document):
    for link in list_links(read_text(document)):
        file, _, fragment = link.partition("#")
        target = (document.parent / file).resolve() if file else document
        assert target.exists(), link
        assert not fragment or fragment in list_anchors(target), link


def test_the_reference_has_all_public_names():
    pages = "\n".join(path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md"))
    single = set(re.findall(r"^\.\. auto(?:class|function):: (\w+)$", pages, flags=re.MULTILINE))
    whole = set(re.findall(r"^\.\. automodule:: preselect\.(\w+)\n   :members:", pages, flags=re.MULTILINE))
    assert set(library.__all__) - vars(library.errors).keys() <= single
    modules = [importlib.import_module(f"preselect.{one.name}") for one in pkgutil.iter_modules(library.__path__)]
    public = {module.__name__.split(".")[1] for module in modules if hasattr(module, "__all__")}
    inner = (
        {"client", "policies"},
        {"reports", "serve"},
    )  # whose names are those of the library, or of no use to callers
    assert whole == public.difference(*inner) | {"errors"}


def test_help_fits_on_a_screen():
    for one in (library.Preselector.select, library.Preselector.learn):
        lines = pydoc.plain(pydoc.render_doc(one)).splitlines()
        assert sum(1 + len(line) // 120 for line in lines) <= 40


def test_the_citation_is_that_of_this_version():
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    page = (ROOT / "docs" / "about" / "citing.md").read_text()
    assert found["version"] == library.__version__
    assert f"version = {{{library.__version__}}}" in page
    assert found["preferred-citation"]["journal"] in page
    assert all(author["family-names"].split("ü")[0] in page for author in found["preferred-citation"]["authors"])
