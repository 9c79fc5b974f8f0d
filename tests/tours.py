"""The walks of the page docs/explanation/tour.md, and which functions of the package a run visits."""

import ast
import inspect
import re
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from documents import ROOT

PAGE = ROOT / "docs" / "explanation" / "tour.md"
SOURCES = ROOT / "src" / "preselect"
_WALK = re.compile(r"^## Walk (\d): .*?$(.*?)(?=^## |\Z)", flags=re.DOTALL | re.MULTILINE)
_STOP = re.compile(r"^\d+\. (In another process, )?`([\w/]+\.py)`: ((?:`[\w.]+`,\s+)*`[\w.]+`)\.\s", re.MULTILINE)
_COUNT = re.compile(r"^\| \[(\d)\]\(#.*\| (\d+)", flags=re.MULTILINE)


@dataclass(frozen=True)
class Stop:
    """A file that a walk opens, and the functions to read in it."""

    file: str
    functions: tuple[str, ...]
    is_elsewhere: bool  # whether it runs in another process than the command

    @property
    def is_compiled(self):
        return self.file.startswith("kernels/")


@dataclass(frozen=True)
class Walk:
    """A section of the page: the files to open, those that can be skipped, and the other walks to which it refers."""

    stops: tuple[Stop, ...]
    details: tuple[str, ...]
    others: frozenset[int]

    @property
    def files(self):
        return [*(stop.file for stop in self.stops), *self.details]


def _read_walk(text):
    steps, _, details = text.partition("\nDetails that you can skip:")
    found = _STOP.findall(steps)
    assert len(found) == len(re.findall(r"^\d+\. ", text, flags=re.MULTILINE))  # all are written as they are read here
    stops = tuple(Stop(file, tuple(re.findall(r"`(.+?)`", names)), bool(where)) for where, file, names in found)
    return Walk(stops, _find_files(details), frozenset(map(int, re.findall(r"\[walk\s+(\d)\]", text))))


def _find_files(text):
    return tuple(re.findall(r"`([\w/]+\.py)`", text))


_BEGINNING, *_ = PAGE.read_text().partition("\n## Walk ")
WALKS = {int(number): _read_walk(text) for number, text in _WALK.findall(PAGE.read_text())}
COUNTS = {int(number): int(count) for number, count in _COUNT.findall(_BEGINNING)}  # in the table of walks
SHARED = _find_files(_BEGINNING)  # files that are met everywhere


def list_others(number):
    """The files of the walks to which a walk refers, and of those to which these refer."""
    others = WALKS[number].others
    return {file for other in others for file in {*WALKS[other].files, *list_others(other)}}


@cache
def list_functions(file):
    """The names of the functions of a file, and of its methods with their class."""
    found, waiting = set(), [("", ast.parse((SOURCES / file).read_text()))]
    for prefix, node in waiting:
        for one in node.body:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(prefix + one.name)
            elif isinstance(one, ast.ClassDef):
                waiting.append((f"{prefix}{one.name}.", one))
    return found


class Visits:
    """When a run first enters each function of the package: `first` has a number for each file and name.

    A profiler does not see compiled functions, so those that the page names are wrapped. Calls that are made while a
    module is imported do not count: they happen once in a process, and another test may have caused them.
    """

    def __init__(self, monkeypatch):
        self.first = {}
        self._known = set()
        for stop in {stop for walk in WALKS.values() for stop in walk.stops if stop.is_compiled}:
            for name in stop.functions:
                self._wrap(monkeypatch, stop.file, name)

    @property
    def files(self):
        return {file for file, _ in self.first}

    def _wrap(self, monkeypatch, file, name):
        module = import_module("preselect." + file.removesuffix(".py").replace("/", "."))
        function = getattr(module, name)

        def call(*arguments):
            self._add(file, name)
            return function(*arguments)

        monkeypatch.setattr(module, name, call)

    def _add(self, file, name):
        self.first.setdefault((file, name), len(self.first))

    @contextmanager
    def watch(self):
        """Note the visits of this thread, and of all that are started meanwhile."""
        before = sys.getprofile()
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(None)

    def _note(self, frame, event, _):
        code = frame.f_code
        if event != "call" or code in self._known:
            return
        file = _find_file(code)
        if file is not None and _is_importing(frame):
            return
        self._known.add(code)
        if file is not None and not file.startswith("kernels/") and code.co_flags & inspect.CO_OPTIMIZED:
            self._add(file, code.co_qualname)


def _find_file(code):
    """The file of the package that a function is in; None if it is in none."""
    folder, file = f"{SOURCES}/", code.co_filename
    return file.removeprefix(folder) if file.startswith(folder) and file.endswith(".py") else None


def _is_importing(frame):
    while frame is not None:
        if frame.f_code.co_name == "<module>" and _find_file(frame.f_code) is not None:
            return True
        frame = frame.f_back
    return False
