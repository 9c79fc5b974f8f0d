"""Compare the beginning of a journal with what a caller would begin it with now."""

from __future__ import annotations

from typing import Any

from preselect import state
from preselect.preselector import Preselector

_SAME = ("context", "features", "identity", "covariance")


def compare_beginnings(genesis: bytes, now: Preselector, made: Preselector) -> str | None:
    """Describe how a preselector differs from the one with which a journal was begun; None if it does not.

    Arms and features that joined later are known; seeds are ignored.

    Parameters
    ----------
    genesis : bytes
        The state with which the journal was begun.
    now : Preselector
        The state that the journal has come to.
    made : Preselector
        The preselector with which the caller would begin it.
    """
    then, new, later = (_read(one) for one in (genesis, made.to_bytes(), now.to_bytes()))
    for name in _SAME:
        if new.get(name) not in (then.get(name), later.get(name)):
            return f"{name} was {then.get(name)} and is {new.get(name)}"
    strangers = [arm for arm in new["arms"] if arm not in then["arms"] and arm not in later["arms"]]
    if strangers:
        return f"arms has {strangers}, which have not joined"
    return _compare_policies(then["policy"], new["policy"])


def _compare_policies(then: dict[str, Any], new: dict[str, Any]) -> str | None:
    before, after = (format_policy(one) for one in (then, new))
    return None if before == after else f"policy was {before} and is {after}"


def format_policy(header: dict[str, Any]) -> str:
    """Return a policy with its parameters, from the header of a state, as a call."""
    given = {name: value for name, value in header["parameters"].items() if name not in ("d", "seed")}
    return f"{header['kind']}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


def _read(content: bytes) -> dict[str, Any]:
    return state.unpack(content, "the journal").header
