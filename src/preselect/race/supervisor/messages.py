"""Messages between the client and the supervisor: one line each, a marshalled value in hexadecimal digits.

Both ends run the same interpreter, and marshal is built into it.
"""

from __future__ import annotations

import marshal
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ClientGoneError(Exception):
    """The client has closed its end, asked to stop, or died."""


def to_line(message: Any) -> bytes:
    """Encode a message as a line."""
    return marshal.dumps(message).hex().encode() + b"\n"


def from_line(line: bytes) -> Any:
    """Decode the message in a line."""
    return marshal.loads(bytes.fromhex(line.decode()))


def emit(event: dict[str, Any]) -> None:
    """Send an event to the client."""
    line = to_line(event)
    try:
        while line:
            line = line[os.write(1, line) :]
    except BrokenPipeError:
        raise ClientGoneError from None


def receive() -> bytes:
    """Read what the client has sent so far; blocks if that is nothing."""
    data = os.read(0, 65536)
    if not data:
        raise ClientGoneError
    return data
