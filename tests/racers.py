"""Racers for tests of the supervisor; the fixtures that run them are in conftest."""

import sys

from preselect.race.supervision import Racer

LONG = 120.0  # seconds; a time limit that no passing test comes near
TOKEN = "PRESELECT_TEST_TOKEN"


def shell(name, text, **options):
    return Racer(name, ("sh", "-c", text), **options)


def python(name, text, *arguments, **options):
    return Racer(name, (sys.executable, "-I", "-S", "-c", text, *arguments), **options)


def sleeper(name="sleeper"):
    return Racer(name, ("sleep", "1000"))


def answering(name="good", seconds=0.0, **options):
    return shell(name, f"sleep {seconds}; exit 10", **options)


def waiting(path, then="exit 10", **options):
    """A racer that answers when there is a file, however long that takes on a busy machine."""
    return shell("good", f"until [ -e '{path}' ]; do sleep 0.02; done; {then}", **options)


class Patient:
    """A racer that answers as soon as all others have ended, and the watch that tells it to."""

    def __init__(self, folder):
        self.file = folder / "now"
        self.racer = waiting(self.file)

    def watch(self, standings):
        if all(standing.status for standing in standings if standing.name != "good"):
            self.file.touch()


def by_name(result):
    return {finish.name: finish for finish in result.finishes}


def statuses(result):
    return {finish.name: finish.status for finish in result.finishes}
