"""Messages between the client and the supervisor: one line each, a marshalled value in hexadecimal digits.

Both ends run the same interpreter, and marshal is built into it. A racer that finds the pipes can write to them, so
every message but the first, which brings the key and comes before any racer starts, is signed and numbered. Whatever
else arrives is ignored.
"""

from __future__ import annotations

import marshal
import os
from _blake2 import blake2b
from _operator import _compare_digest as is_equal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EVENTS, ORDERS = b"events", b"orders"  # the two directions: what the supervisor sends, and what the client sends

_LONGEST = 2**24  # bytes of a line


class ClientGoneError(Exception):
    """The client has closed its end, asked to stop, or died."""


def to_line(message: Any) -> bytes:
    """Encode a message as a line."""
    return marshal.dumps(message).hex().encode() + b"\n"


def from_line(line: bytes) -> Any:
    """Decode the message in a line."""
    return marshal.loads(bytes.fromhex(line.decode()))


class Sender:
    """Signs the messages of one direction with a key that racers do not know."""

    def __init__(self, key: bytes, direction: bytes) -> None:
        self.key, self.direction, self.count = key, direction, 0

    def to_line(self, message: Any) -> bytes:
        """Encode a message as a signed line; it begins a line of its own whatever was written there before."""
        self.count += 1
        line = to_line((self.count, message))
        return b"\n" + _sign(self, line[:-1]) + line


class Receiver:
    """Reads the messages of one direction, and ignores everything that the other end has not signed."""

    def __init__(self, key: bytes, direction: bytes) -> None:
        self.key, self.direction, self.count = key, direction, 0
        self.rest = b""

    def receive(self, data: bytes) -> list[Any]:
        """Return the messages that are complete with these bytes, each of them only once."""
        *lines, rest = (self.rest + data).split(b"\n")
        self.rest = rest[-_LONGEST:]
        found = []
        for line in lines:
            signature, content = line[:32], line[32:]
            if content and is_equal(signature, _sign(self, content)):
                number, message = from_line(content)
                if number > self.count:
                    self.count = number
                    found.append(message)
        return found


def _sign(end: Sender | Receiver, content: bytes) -> bytes:
    return blake2b(content, key=end.key, person=end.direction, digest_size=16).hexdigest().encode()


class Connection:
    """The supervisor's end: events go to standard output, and orders come from standard input."""

    def __init__(self, key: bytes) -> None:
        self.sender, self.receiver = Sender(key, EVENTS), Receiver(key, ORDERS)

    def emit(self, event: dict[str, Any]) -> None:
        """Send an event to the client."""
        line = self.sender.to_line(event)
        try:
            while line:
                line = line[os.write(1, line) :]
        except BrokenPipeError:
            raise ClientGoneError from None

    def receive(self) -> list[Any]:
        """Read the orders that the client has sent so far; wait for one if there are none."""
        return self.receiver.receive(read_input())


def read_input() -> bytes:
    """Read what is on standard input; wait if there is nothing."""
    data = os.read(0, 65536)
    if not data:
        raise ClientGoneError
    return data
