"""The HTTP service: programs in any language ask which arms to show, and report which one was picked."""

from preselect.serve.backend import Backend
from preselect.serve.openapi import make_document, write_document

__all__ = ["Backend", "make_document", "write_document"]
