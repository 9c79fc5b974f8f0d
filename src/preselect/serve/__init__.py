"""The service: decide, show, report the pick, over HTTP and from any language."""

from preselect.serve.backend import Backend
from preselect.serve.openapi import make_document, write_document

__all__ = ["Backend", "make_document", "write_document"]
