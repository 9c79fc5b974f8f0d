"""The exceptions that this package raises on purpose.

    PreselectError
    ├── InputError        an argument, an option or a file from the caller is wrong (also a ValueError)
    │   ├── NotFoundError     what the caller names does not exist
    │   ├── ConflictError     something else is there already
    │   └── ExpiredError      the decision has expired, so nothing can be learnt from it
    ├── StateFileError    a state file cannot be read
    ├── JournalError      a journal cannot be read, written or resumed
    │   └── UnlearntError     an outcome is recorded, but cannot be learnt from
    ├── OverloadedError   there is too much to do at present; try again later
    ├── ResultsError      a folder of study results cannot be used
    ├── RunError          a study stopped before it was finished
    ├── StoppedError      a race was stopped from outside
    ├── RequestError      a request to the service is refused: its form, size, key or rate is wrong
    └── ServiceError      the service cannot be reached, or fails

Every message is a sentence in the caller's terms: what was wrong, the value, and what to do about it.

One more exception, ClientGoneError, lives in `preselect.race.supervisor`: that program imports nothing from the rest of
the package, and it never leaves that program.
"""


class PreselectError(Exception):
    """Base of all exceptions that this package raises on purpose."""


class InputError(PreselectError, ValueError):
    """An argument, an option or a file from the caller cannot be used. Nothing has changed."""


class NotFoundError(InputError):
    """Something that the caller names, such as a decision, does not exist."""


class ConflictError(InputError):
    """Something different exists already: another outcome of the decision, another preselector of this name."""


class ExpiredError(InputError):
    """The decision has expired: its outcome came too late, and nothing is learnt from it."""


class StateFileError(PreselectError):
    """A file does not hold a state that this version can read."""


class JournalError(PreselectError):
    """A journal cannot be read, written or resumed."""


class UnlearntError(JournalError):
    """An outcome is recorded, but cannot be learnt from, for instance because the arm has left."""


class OverloadedError(PreselectError):
    """There is too much to do at present. Nothing has changed; try again later."""


class ResultsError(PreselectError):
    """A folder of study results cannot be used as asked. Nothing in it has changed."""


class RunError(PreselectError):
    """A study stopped early. Finished blocks are kept; the same command resumes it."""


class StoppedError(PreselectError):
    """A race was stopped from outside. It is void: all its processes are dead, and nothing is learnt."""


class RequestError(PreselectError):
    """A request is refused: its form, size, key or rate is wrong.

    Parameters
    ----------
    status : int
        The HTTP status of the answer.
    detail : str
        What is wrong, and what to do.
    headers : dict, optional
        More headers for the answer.
    pointer : str, optional
        Where in the body it is wrong: a JSON pointer.
    """

    def __init__(
        self, status: int, detail: str, headers: dict[str, str] | None = None, pointer: str | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.headers, self.pointer = status, dict(headers or {}), pointer


class ServiceError(PreselectError):
    """The service cannot be reached, or fails. It is not known whether the request has been carried out."""
