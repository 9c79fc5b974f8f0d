"""The shape of the code: short files, short functions, an underscore on every name internal to its module."""

import ast
import statistics
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PUBLIC = {
    "model.py",
    "testing.py",
    "errors.py",
    "conformance.py",
    "shared_conformance.py",
}  # what users import from here need not be used by the package itself


@cache
def tree_of(path):
    return ast.parse(path.read_text())


def functions():
    for path in SOURCES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


def lines_of_body(function):
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_functions_are_short():
    lengths = [lines_of_body(function) for function in functions()]
    assert statistics.median(lengths) <= 5
    assert statistics.quantiles(lengths, n=10)[-1] <= 15


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "examples"])
def test_files_are_short(folder):
    lengths = {path.name: path.read_text().count("\n") for path in (ROOT / folder).rglob("*.py")}
    assert {name: length for name, length in lengths.items() if length > 400} == {}


@cache
def words_of(path):
    """Every identifier that a module mentions: names, attributes, imports, and those in strings such as `__all__`."""
    found = set()
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.Constant(value=str(word)):
                found.add(word)
            case ast.alias(name=word):
                found.add(word.rpartition(".")[2])
    return found


def names_defined(node):
    match node:
        case ast.FunctionDef(decorator_list=[_, *_]) if any("command" in ast.unparse(d) for d in node.decorator_list):
            return []  # click finds it
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Assign(targets=targets):
            return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


@pytest.mark.parametrize("path", [path for path in SOURCES if path.name not in PUBLIC], ids=lambda path: path.name)
def test_names_that_no_other_module_uses_are_marked_internal(path):
    names = [name for node in tree_of(path).body for name in names_defined(node) if not name.startswith("_")]
    elsewhere = set().union(*(words_of(other) for other in SOURCES if other != path))
    assert set(names) - elsewhere == set()
