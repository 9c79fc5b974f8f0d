"""One racer, and which of several answers is the first."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    import _signal as signal

TIE_SECONDS = 0.003
PATTERN_SECONDS = 2.0


class Racer:
    """One command of the race, and what has become of it."""

    def __init__(self, number: int, given: dict[str, Any]) -> None:
        self.number = number
        self.command: list[str] = given["command"]
        self.environment: dict[str, str] = given["environment"]
        self.answers: list[int] = given["answers"]
        self.pattern: str | None = given["pattern"]
        self.verifier: list[str] | None = given["verifier"]
        self.ask: bool = given["ask"]
        self.lot: float = given["lot"]
        self.running = self.answered = False
        self.status: str | None = None
        self.seconds = self.cpu = 0.0
        self.exit_code: int | None = None
        self.signal: int | None = None
        self.detail = ""
        if self.pattern is not None:
            import re  # noqa: F401  # now, and not while the race is on

    def has_answered(self, code: int, output: str) -> bool:
        """Whether this exit with this file as the output is an answer; TimeoutError if that takes too long to say."""
        return code in self.answers if self.pattern is None else _matches(self.pattern, output)

    def report(self) -> dict[str, Any]:
        """All that the client is told."""
        names = ("number", "status", "seconds", "cpu", "exit_code", "signal", "detail")
        return {name: getattr(self, name) for name in names}


def first_of(answers: list[tuple[int, float, float, float]]) -> tuple[int, bool]:
    """Which of some answers (number, seconds, CPU seconds, lot) comes first, and whether others tied with it.

    Answers within TIE_SECONDS of the earliest compete: less CPU time is better, then the lower lot.
    """
    earliest = min(seconds for _, seconds, _, _ in answers)
    together = [answer for answer in answers if answer[1] <= earliest + TIE_SECONDS]
    return min(together, key=lambda answer: answer[2:])[0], len(together) > 1


def _matches(pattern: str, path: str) -> bool:
    import re

    with open(path, "rb") as file:
        text = file.read().decode(errors="replace")
    signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, PATTERN_SECONDS)
    try:
        return re.search(pattern, text, re.MULTILINE) is not None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _give_up(*_: object) -> None:
    raise TimeoutError
