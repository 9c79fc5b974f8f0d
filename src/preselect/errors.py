"""What can go wrong: one base, few leaves. Every message names the argument, the value seen and what was expected."""


class PreselectError(Exception):
    """Base of all errors that this library raises on purpose."""


class InputError(PreselectError, ValueError):
    """An argument is not what the call needs. Nothing has changed."""


class StateFileError(PreselectError):
    """A file is not a state that this version can read."""


class JournalError(PreselectError):
    """A journal cannot be read, written or gone on with."""
