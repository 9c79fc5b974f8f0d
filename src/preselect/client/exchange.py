"""When to send a request again, how long to wait before that, and which exception an answer becomes."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from typing import Any

from preselect.arguments import number
from preselect.client.requests import Answer, Request
from preselect.errors import (
    ConflictError,
    ExpiredError,
    InputError,
    NotFoundError,
    OverloadedError,
    PreselectError,
    RequestError,
    ServiceError,
)

_ERRORS: dict[int, type[PreselectError]] = {
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    422: InputError,
    503: OverloadedError,
}
_AGAIN = (429, 502, 503, 504)  # statuses after which the same request may succeed
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0  # seconds


def make_options(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    """Return the arguments of an httpx client."""
    if not (isinstance(url, str) and url.startswith(("http://", "https://"))):
        raise InputError(f"url is {url!r:.80}; give the address of a service, such as 'http://127.0.0.1:8000'")
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    return {"base_url": url, "headers": headers, "timeout": number(timeout, "timeout", above=0.0)}


class Attempts:
    """The attempts at one request: how long to wait before the next one, until patience ends.

    Parameters
    ----------
    patience : float
        For how many seconds to try again.
    """

    def __init__(self, patience: float) -> None:
        self.count = 0
        self._until = time.monotonic() + patience

    def wait_after_error(self, error: Exception) -> float:
        """Return how many seconds to wait after a network error; raise a ServiceError if patience has run out."""
        pause = self._next_pause(None)
        if pause is None:
            problem = f"{error or type(error).__name__}"
            raise ServiceError(f"the service cannot be reached: {problem}; is it running at that address?") from error
        return pause

    def wait_after_status(self, status: int, headers: Mapping[str, str]) -> float | None:
        """Return how many seconds to wait after an answer; None if the answer is final."""
        return self._next_pause(headers.get("retry-after")) if status in _AGAIN else None

    def _next_pause(self, asked: str | None) -> float | None:
        self.count += 1
        pause = min(_FIRST_PAUSE * 2.0**self.count, _LONGEST_PAUSE) * random.uniform(0.5, 1.0)
        if asked is not None and asked.isdecimal():
            pause = max(pause, float(asked))
        return pause if time.monotonic() + pause < self._until else None


def read_answer(request: Request[Answer], status: int, content: bytes, attempts: Attempts) -> Answer:
    """Return the content of an answer, or raise the exception that its status stands for."""
    if status == 404 and request.method == "DELETE" and attempts.count:
        return request.read({})  # an earlier attempt has deleted it
    try:
        answer = json.loads(content) if content else {}
    except ValueError:
        answer = None
    if 200 <= status < 300 and answer is not None:
        return request.read(answer)
    detail = answer.get("detail") if isinstance(answer, dict) else None
    if detail is None:
        raise ServiceError(
            f"{request.method} {request.path} got an answer with status {status} that is not from preselect"
        )
    if status in _ERRORS:
        raise _ERRORS[status](detail)
    raise RequestError(status, detail)
