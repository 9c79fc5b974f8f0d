"""What a race is given and what it gives back: racers, how each of them ended, and the result."""

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from preselect.errors import InputError


class Status(enum.StrEnum):
    """How a racer ended; the supervisor's docstring says what each means."""

    WON = "won"
    KILLED = "killed"
    FINISHED_LATE = "finished late"
    WRONG_ANSWER = "wrong answer"
    CRASHED = "crashed"
    NO_ANSWER = "no answer"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    NOT_STARTED = "not started"
    INFRASTRUCTURE_ERROR = "infrastructure error"


@dataclass(frozen=True)
class Racer:
    """A command that takes part in a race.

    It has answered if it exits with one of the codes `answers`; with a `pattern`, if it exits by itself and a line of
    its output matches this regular expression (searched in the whole output, ^ and $ stand for lines). `verifier` is a
    command that exits with 0 if the answer is right; `{output}` in its arguments becomes the file with the output.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    answers: tuple[int, ...] = (10, 20)
    pattern: str | None = None
    verifier: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not _is_text(self.name):
            raise InputError(f"name of a racer must be a text, got {self.name!r:.80}")
        _check_command(self.command, f"command of {self.name}")
        if self.verifier is not None:
            _check_command(self.verifier, f"verifier of {self.name}")
        for key, value in self.environment.items():
            if not (_is_text(key) and _is_text(value) and key and "=" not in key):
                raise InputError(f"environment of {self.name} must map names to texts, got {key!r:.80}: {value!r:.80}")
        if not all(isinstance(code, int) and 0 <= code <= 255 for code in self.answers):
            raise InputError(f"answers of {self.name} must be exit codes from 0 to 255, got {self.answers!r:.80}")
        try:
            re.compile(self.pattern or "")
        except re.error as error:
            raise InputError(
                f"pattern of {self.name} must be a regular expression, got {self.pattern!r:.80}: {error}"
            ) from None


class Finish(NamedTuple):
    """What became of one racer."""

    name: str
    status: Status
    seconds: float
    cpu_seconds: float
    exit_code: int | None
    signal: int | None
    detail: str
    output: Path
    errors: Path


class Standing(NamedTuple):
    """Where a racer is while the race goes on; no status means that it runs, or that its answer is being verified."""

    name: str
    status: Status | None
    seconds: float
    answered: bool


@dataclass(frozen=True)
class Result:
    """How a race ended.

    `seconds` go from the start of the racers to the winner's exit, or to the end; `tie` says that others answered
    within milliseconds of the winner; `infrastructure` is what failed of ours, if anything did.
    """

    winner: str | None
    tie: bool
    seconds: float
    finishes: tuple[Finish, ...]
    level: str
    infrastructure: str | None


def checked(racers: Sequence[Racer]) -> tuple[Racer, ...]:
    """The same racers; an error if there are none, or two of one name."""
    found = tuple(racers)
    if not found or not all(isinstance(racer, Racer) for racer in found):
        raise InputError(f"racers must be one Racer or more, got {racers!r:.80}")
    names = [racer.name for racer in found]
    if len(set(names)) < len(names):
        raise InputError(f"racers must have distinct names, got {names!r:.80}")
    return found


def plain(racer: Racer) -> dict[str, Any]:
    """A racer in the plain types that a message can hold."""
    return {
        "command": [str(part) for part in racer.command],
        "environment": {str(name): str(value) for name, value in racer.environment.items()},
        "answers": [int(code) for code in racer.answers],
        "pattern": None if racer.pattern is None else str(racer.pattern),
        "verifier": None if racer.verifier is None else [str(part) for part in racer.verifier],
    }


def _check_command(command: tuple[str, ...], argument: str) -> None:
    if isinstance(command, str) or not command or not all(_is_text(part) for part in command) or not command[0]:
        raise InputError(f"{argument} must be a program and its arguments, texts each, got {command!r:.80}")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value
