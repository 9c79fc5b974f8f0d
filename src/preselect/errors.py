"""The exceptions that this package raises on purpose.

    PreselectError
    ├── InputError        an argument, an option or a file from the caller is wrong (also a ValueError)
    ├── StateFileError    a state file cannot be read
    ├── JournalError      a journal cannot be read, written or resumed
    ├── ResultsError      a folder of study results cannot be used
    └── RunError          a study stopped before it was finished

Every message is a sentence in the caller's terms: what was wrong, the value, and what to do about it.

One more exception, ClientGoneError, lives in `preselect.race.supervisor`: that program imports nothing from the rest of
the package, and it never leaves that program.
"""


class PreselectError(Exception):
    """Base of all exceptions that this package raises on purpose."""


class InputError(PreselectError, ValueError):
    """An argument, an option or a file from the caller cannot be used. Nothing has changed."""


class StateFileError(PreselectError):
    """A file does not hold a state that this version can read."""


class JournalError(PreselectError):
    """A journal cannot be read, written or resumed."""


class ResultsError(PreselectError):
    """A folder of study results cannot be used as asked. Nothing in it has changed."""


class RunError(PreselectError):
    """A study stopped early. Finished blocks are kept; the same command resumes it."""
