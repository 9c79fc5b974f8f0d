"""The description of an ASlib scenario, `description.txt`, which is YAML with a few liberties."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from preselect.environments.aslib import arff
from preselect.errors import InputError, PreselectError

_MAX_CHARACTERS = 4_000_000  # the longest published description has one million characters
_MAX_VALUES = 1_000_000  # counted after aliases have been replaced by their values

_NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
_BARE_QUESTION_MARK = re.compile(r"(?<=[:-])(\s++)\?(?=\s*+(?:#|$))")


def read_description(path: Path) -> dict[str, Any]:
    """The contents of the file. Every plain value is a text; null and empty values are None."""
    text = "\n".join(map(_tidy, arff.read_lines(path)))
    if len(text) > _MAX_CHARACTERS:
        raise InputError(f"{path} has {len(text)} characters; a description may have {_MAX_CHARACTERS}")
    found = _load(path, text)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InputError(f"{path} is not a description: it has to consist of lines 'key: value'")
    return {str(key): value for key, value in found.items()}


def as_list(value: Any) -> list[str]:
    """A list of names, which may also be written as a single name, as nothing, or run together (`a - b`).

    >>> as_list("a - b"), as_list(["a", None]), as_list(None)
    (['a', 'b'], ['a'], [])
    """
    if isinstance(value, str):
        return [name.strip() for name in value.split(" - ")]
    return [str(item) for item in value or [] if item is not None]


def _tidy(line: str) -> str:
    """A line in which tabs and bare question marks, which YAML does not allow, are replaced."""
    return _BARE_QUESTION_MARK.sub(r"\1'?'", line.expandtabs())


def _load(path: Path, text: str) -> Any:
    yaml = _import_yaml()
    try:
        loader = _make_loader()(text)
        node = loader.get_single_node()
        if node is None:
            return None
        if _count_values(node, {}) > _MAX_VALUES:
            raise InputError(f"{path}: its aliases stand for more than {_MAX_VALUES} values")
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        raise InputError(_explain(path, text, error)) from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply") from None


def _explain(path: Path, text: str, error: Any) -> str:
    """What is wrong with the file, and in which line if that is known."""
    problem = getattr(error, "problem", None) or getattr(error, "reason", error)
    begins = getattr(error, "context_mark", None) if type(error).__name__ == "ScannerError" else None
    mark = begins or getattr(error, "problem_mark", None)
    if mark is None:
        return f"{path} is not valid YAML: {problem}"
    line = (text.splitlines() or [""])[min(mark.line, text.count("\n"))]
    return f"{path}, line {mark.line + 1}: {line.strip()!r:.80} is not valid YAML here: {problem}"


def _import_yaml() -> Any:
    try:
        import yaml
    except ImportError:
        advice = "run pip install '.[study]' in a checkout of preselect, or pip install pyyaml"
        raise PreselectError(f"reading an ASlib scenario needs PyYAML; {advice}") from None
    return yaml


@cache
def _make_loader() -> Any:
    """A YAML loader class that reads all values but nulls as texts.

    Its base is PyYAML's loader in Python; the one in C overflows the stack on deep nesting.
    """
    loader: Any = type("Loader", (_import_yaml().BaseLoader,), {})
    null = "tag:yaml.org,2002:null"
    loader.add_implicit_resolver(null, _NULL, ["~", "n", "N", ""])
    loader.add_constructor(null, lambda *_: None)
    return loader


def _count_values(node: Any, counts: dict[int, float]) -> float:
    """How many values a node stands for; infinitely many if it contains itself."""
    if id(node) not in counts:
        counts[id(node)] = float("inf")
        children = node.value if isinstance(node.value, list) else []
        parts = [part for child in children for part in (child if isinstance(child, tuple) else (child,))]
        counts[id(node)] = 1 + sum(_count_values(part, counts) for part in parts)
    return counts[id(node)]
