"""Parse requests: paths, headers, queries and bodies, whatever they mean."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec

from preselect.errors import InputError, RequestError
from preselect.serve.calls import CALLS, Call
from preselect.serve.problems import read_mistake
from preselect.serve.stream import Message, Receive

_ANY = "{}"

_JSON = b"application/json"
_decoders = {call.body: msgspec.json.Decoder(call.body) for call in CALLS if call.body is not None}


def _make_tree() -> dict[str, Any]:
    """Return the calls by method, at the leaves of a tree by segments of their paths."""
    tree: dict[str, Any] = {}
    for call in CALLS:
        node = tree
        for segment in call.segments:
            node = node.setdefault(_ANY if segment.startswith("{") else segment, {})
        node.setdefault("", {})[call.method] = call
    return tree


_tree = _make_tree()


def find_call(scope: Message) -> tuple[Call, list[str]]:
    """Find the call that a request makes, and the names in its path.

    The path is split before it is decoded, so that an arm may have a slash in its name.
    """
    raw = scope.get("raw_path") or scope["path"].encode()
    names, node = [], _tree
    for segment in raw.partition(b"?")[0][1:].split(b"/"):
        text = _decode_segment(segment)
        inner = node.get(text) if text else None
        if inner is None:
            inner = node.get(_ANY) if text else None
            names.append(text)
        if inner is None:
            raise RequestError(404, "there is nothing at this path; /openapi.json lists all calls")
        node = inner
    methods = node.get("")
    if methods is None:
        raise RequestError(404, "there is nothing at this path; /openapi.json lists all calls")
    method = scope["method"]
    call = methods.get("GET" if method == "HEAD" else method)
    if call is None:
        allowed = ", ".join(sorted(methods))
        raise RequestError(405, f"{method:.20} is not possible here; use {allowed}", {"Allow": allowed})
    return call, names


def _decode_segment(segment: bytes) -> str:
    try:
        return (unquote_to_bytes(segment) if b"%" in segment else segment).decode()
    except UnicodeDecodeError:
        raise RequestError(400, "the path is not UTF-8; encode names as UTF-8, then percent-encode them") from None


def find_header(scope: Message, wanted: bytes) -> bytes | None:
    """Return a header, None if it is missing; refuse one that occurs twice."""
    found = [value for name, value in scope["headers"] if name == wanted]
    if len(found) > 1:
        raise RequestError(400, f"the header {wanted.decode()} is there {len(found)} times; send it once")
    return found[0] if found else None


def read_query(scope: Message, call: Call) -> dict[str, str]:
    """Return the parameters of a query by name; refuse those that the call does not have."""
    if not scope["query_string"]:
        return {}
    try:
        pairs = parse_qsl(scope["query_string"].decode(), keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:
        raise RequestError(400, "the query cannot be read; percent-encode its values as UTF-8") from None
    known = [one.name for one in call.queries]
    for name, _ in pairs:
        if name not in known:
            listed = f"those of this call are {', '.join(known)}" if known else "this call has none"
            raise InputError(f"there is no parameter {name!r:.40}; {listed}")
    return dict(pairs)


async def read_body(scope: Message, receive: Receive, call: Call, most: int, patience: float) -> Any:
    """Read a body of at most `most` bytes, and check it against its schema."""
    kind = call.body
    assert kind is not None
    _check_media(scope)
    content = await _receive_all(scope, receive, most, patience)
    try:
        return _decoders[kind].decode(content)
    except msgspec.ValidationError as error:
        raise _explain(error, content, kind) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(400, f"the body is not JSON: {error}") from None


def _explain(error: msgspec.ValidationError, content: bytes, kind: type[Any]) -> RequestError:
    try:
        mistake = read_mistake(error, content, kind)
    except (ValueError, RecursionError) as worse:  # the part after the mistake is not JSON
        return RequestError(400, f"the body is not JSON: {worse}")
    where = mistake.pointer or "its top"
    return RequestError(422, f"the body does not fit: {mistake.detail}, at {where}", pointer=mistake.pointer)


def _check_media(scope: Message) -> None:
    media = (find_header(scope, b"content-type") or b"").partition(b";")[0].strip().lower()
    if media != _JSON:
        raise RequestError(415, f"the body is {media.decode('latin-1') or 'of no type'}; send application/json")
    if find_header(scope, b"content-encoding") not in (None, b"identity"):
        raise RequestError(415, "the body is compressed; send it as it is")


async def _receive_all(scope: Message, receive: Receive, most: int, patience: float) -> bytes:
    _check_length(find_header(scope, b"content-length"), most)
    try:
        async with asyncio.timeout(patience):  # for the whole body: single bytes now and then do not extend it
            return await _join_parts(receive, most)
    except TimeoutError:
        raise RequestError(
            408, f"the body did not arrive within {patience:g} seconds; send it without pauses", {"Connection": "close"}
        ) from None


async def _join_parts(receive: Receive, most: int) -> bytes:
    message = await receive()
    content: bytes = message.get("body", b"")
    while message.get("more_body"):
        _require_small(len(content), most)
        message = await receive()
        content += message.get("body", b"")
    if message["type"] == "http.disconnect":
        raise RequestError(400, "the connection ended before the body did")
    _require_small(len(content), most)
    return content


def _check_length(length: bytes | None, most: int) -> None:
    if length is not None:
        if not length.isdigit():
            raise RequestError(400, "content-length is not a number")
        _require_small(int(length[:20]), most)


def _require_small(found: int, most: int) -> None:
    if found > most:
        raise RequestError(413, f"the body has more than {most} bytes; send less at once", {"Connection": "close"})
