"""Plans by the kind that manifests name: the three of this library, and every other subclass that was imported."""

from collections.abc import Iterator
from typing import Any

from preselect.errors import ResultsError
from preselect.study import aslib, saps, synthetic  # noqa: F401 (so that their plans are known)
from preselect.study.plan import Plan


def find_plan(kind: str) -> type[Plan]:
    """Return the class of plans of a kind.

    >>> find_plan("saps")
    <class 'preselect.study.saps.SapsPlan'>
    """
    known = {plan.kind: plan for plan in _find_subclasses(Plan)}
    if kind not in known:
        raise ResultsError(f"there is no study called {kind!r}; known are {', '.join(known)}")
    return known[kind]


def _find_subclasses(plan: Any) -> Iterator[type[Plan]]:
    for subclass in plan.__subclasses__():
        yield from _find_subclasses(subclass)
        yield subclass
