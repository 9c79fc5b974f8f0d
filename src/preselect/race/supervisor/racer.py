"""The input of a race (racers, limits, a level of containment), and the ways in which a racer can end.

The client and the supervisor share these classes. A message carries a racer or limits as the dictionary of attributes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAMESPACE, SUBREAPER = "pid namespace", "subreaper"  # how processes are contained; see the module `main`


class Status:
    """How a racer can end; the docstring of this package says what each status means.

    The groups are what a status tells about the racer's run time: another racer was faster, the racer would not have
    answered on its own either, or the racer had no fair chance, so that the race teaches nothing.
    """

    WON = "won"
    FINISHED = "finished"
    BEHIND = "behind"
    KILLED = "killed"
    FINISHED_LATE = "finished late"
    WRONG_ANSWER = "wrong answer"
    CRASHED = "crashed"
    NO_ANSWER = "no answer"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    NOT_STARTED = "not started"
    INFRASTRUCTURE_ERROR = "infrastructure error"

    BEATEN = (KILLED, FINISHED_LATE, BEHIND)
    FAILED = (TIMEOUT, MEMORY, CRASHED, WRONG_ANSWER, NO_ANSWER)
    NOT_RACED = (NOT_STARTED, INFRASTRUCTURE_ERROR)


class _Record:
    """A plain class that compares and prints by its attributes; dataclasses would triple the supervisor's imports."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class Limits(_Record):
    """What a race may use.

    Parameters
    ----------
    seconds : float, default 60
        Wall-clock time of a race.
    memory : float, optional
        MB (2**20 bytes) that all processes of one racer may hold together; unlimited by default.
    output : float, default 64
        MB that a racer or a verifier may write to any one file.
    """

    def __init__(self, seconds: float = 60.0, memory: float | None = None, output: float = 64.0) -> None:
        self.seconds, self.memory, self.output = seconds, memory, output


class Racer(_Record):
    """A command that is ready to run.

    Parameters
    ----------
    name : str
        Distinguishes the racer from the others of the race.
    command : sequence of str
        The program and its arguments.
    environment : mapping of str to str, optional
        Variables to set in addition to those of this process.
    exit_codes : sequence of int, default (10, 20)
        Exit codes that count as an answer.
    pattern : str, optional
        A regular expression that counts as an answer when it matches the output, whatever the exit code; ^ and $ match
        at every line.
    verifier : sequence of str, optional
        A command that exits with 0 if the answer is right; `{output}` in its arguments becomes the output file's path.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        exit_codes: Sequence[int] = (10, 20),
        pattern: str | None = None,
        verifier: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self.command = command
        self.environment = dict(environment or {})
        self.exit_codes = exit_codes
        self.pattern = pattern
        self.verifier = verifier
