"""Messages between the client and the supervisor: lines, each a marshalled value in hexadecimal digits.

Both ends are the same interpreter, and marshal is there without being imported from a file.
"""

from __future__ import annotations

import marshal
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class LifeLineError(Exception):
    """The life line has ended."""


def encode(message: Any) -> bytes:
    """A message as a line."""
    return marshal.dumps(message).hex().encode() + b"\n"


def decode(line: bytes) -> Any:
    """The message that a line is."""
    return marshal.loads(bytes.fromhex(line.decode()))


def emit(event: dict[str, Any]) -> None:
    """Tell the client; if it is gone, the race is over."""
    line = encode(event)
    try:
        while line:
            line = line[os.write(1, line) :]
    except BrokenPipeError:
        raise LifeLineError from None


def hear() -> bytes:
    """What the client has said by now; if it is gone, the race is over."""
    data = os.read(0, 65536)
    if not data:
        raise LifeLineError
    return data
