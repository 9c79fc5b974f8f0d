"""Structured logs: one JSON object on each line. No header of a request is ever logged."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

_LOGGER = logging.getLogger("preselect.serve")


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["traceback"] = "".join(traceback.format_exception(record.exc_info[1]))
        return json.dumps(line, default=str)


def log(level: int, message: str, *, error: BaseException | None = None, **fields: Any) -> None:
    """Write a line with some fields."""
    _LOGGER.log(level, message, exc_info=error, extra={"fields": fields})


def start_logs(level: str, stream: TextIO | None = None) -> None:
    """Write what this package and uvicorn log to standard error, as JSON."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(_JsonFormatter())
    for name in ("preselect", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper() if name == "preselect" else "WARNING")
