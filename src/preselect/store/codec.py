"""Write events as rows for a storage, and read them back."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from preselect.decision import read_values
from preselect.errors import InputError, JournalError
from preselect.named.decision import NamedDecision
from preselect.named.feedback import MISSING
from preselect.store.events import (
    ArmChanged,
    ArmJoined,
    ArmRetired,
    ContextAdded,
    Decided,
    Event,
    Expired,
    Noted,
    Place,
    Told,
)
from preselect.store.storage import Row
from preselect.store.values import decode, simplify

_VERSION = 2

_write = json.JSONEncoder(allow_nan=False, check_circular=False, separators=(",", ":")).encode

_scan = json.JSONDecoder().raw_decode
_START = re.compile(r'\{"v":2,(?:"chosen":|"kind":"(?P<kind>[a-z-]+)","names":)')  # what is counted comes first

_ALSO = ',"also":'  # follows the names
_PLAIN = re.compile(_START.pattern + r'\[("[^"\\]*",?)*\]')  # as _START, with all names, if none contains an escape

_Body = dict[str, Any]


def encode_event(event: Event, journal: str, at: float) -> Row:
    """Return an event as a row without number and digest; raise an InputError if JSON cannot hold a part of it.

    Parameters
    ----------
    event : Event
        What happened.
    journal : str
        The name of the journal.
    at : float
        When it happened, in seconds since 1970.
    """
    try:
        body, block = _WRITERS[type(event)](event)
    except RecursionError:
        raise InputError("values are nested too deeply, or contain themselves; JSON cannot hold them") from None
    decision = key = request = None
    if isinstance(event, Decided):
        key, request = event.key, event.request
    elif isinstance(event, Told | Expired):
        decision, key = event.decision, event.key
    text = _write({"v": _VERSION, **body})
    return Row(journal, None, at, event.kind, decision, key, request, text, block, None)


def decode_event(row: Row) -> Event:
    """Read the event in a row; raise a JournalError if the row is damaged.

    Parameters
    ----------
    row : Row
        A row of a storage.
    """
    try:
        body = decode(row.text)
        return _READERS[row.kind](row, body)
    except (ArithmeticError, LookupError, AttributeError, RecursionError, TypeError, ValueError, zlib.error) as error:
        what = f"its body does not fit an event of kind {row.kind!r:.20} ({type(error).__name__}: {error})"
        raise JournalError(f"event {row.number} is damaged: {what:.200}") from None


def peek_names(row: Row) -> tuple[str, tuple[Place, ...], tuple[str, ...]] | None:
    """Return kind, names, and arms that competed unchosen, which is all that counting needs; the rest is not read.

    The names are the chosen arms of a decision, or the ranked ones of an outcome. None if the row does not begin as
    this version writes it: then `decode_event` has to read it.

    Parameters
    ----------
    row : Row
        A row of a storage.
    """
    plain, found = _PLAIN.match(row.text), _START.match(row.text)
    if found is None:
        return None
    try:
        if plain is not None and not row.text.startswith(_ALSO, plain.end()):
            return _read_plain(plain[0])
        names, end = _scan(row.text, found.end())
        also = _scan(row.text, end + len(_ALSO))[0] if row.text.startswith(_ALSO, end) else ()
        return found["kind"] or Decided.kind, tuple([_place(one) for one in names]), _names(also)
    except (RecursionError, TypeError, ValueError):
        return None


@lru_cache(65536)  # cached, because they repeat again and again
def _read_plain(beginning: str) -> tuple[str, tuple[Place, ...], tuple[str, ...]]:
    """Return a kind and names, given the beginning of a row's text up to the end of the names."""
    body = json.loads(beginning + "}")
    return body.get("kind", Decided.kind), tuple(body["chosen"] if "chosen" in body else body["names"]), ()


# --- writing ----------------------------------------------------------------------------------------------------------


def _drop(body: _Body) -> _Body:
    """Leave out items without a value."""
    return {name: value for name, value in body.items() if value is not None}


def _write_joined(event: ArmJoined) -> tuple[_Body, None]:
    features = simplify(event.features, "features")
    return {"name": event.name, "features": features, **_drop({"group": event.group, "price": event.price})}, None


def _write_changed(event: ArmChanged) -> tuple[_Body, None]:
    given = {"features": event.features, "group": event.group, "price": event.price}
    return {"name": event.name} | {name: simplify(one, name) for name, one in given.items() if one is not MISSING}, None


def _write_retired(event: ArmRetired) -> tuple[_Body, None]:
    return {"name": event.name}, None


def _write_added(event: ContextAdded) -> tuple[_Body, None]:
    return {"feature": event.feature}, None


def _write_decided(event: Decided) -> tuple[_Body, bytes]:
    body: _Body = {
        "chosen": event.chosen,
        "k": event.k,
        "round": event.round,
        "seed": event.seed,
        "version": event.version,
        "labels": event.labels,
    }
    if event.label:
        body["label"] = event.label
    if event.rules:
        body["rules"] = simplify(event.rules, "rules")
    more: _Body = {"eligible": event.eligible, "included": event.included or None, "propensities": event.propensities}
    more |= {"departures": event.departures, "key": event.key, "request": event.request, "expires": event.expires}
    body |= _drop(more)
    return body, event.numbers


def _write_told(event: Told) -> tuple[_Body, None]:
    more: _Body = {"also": event.also or None, "after": event.after, "key": event.key}
    body: _Body = {"kind": event.outcome, "names": event.names, **_drop(more)}
    if event.details:
        body["details"] = simplify(event.details, "details")
    return body, None


def _write_expired(event: Expired) -> tuple[_Body, None]:
    return _drop({"key": event.key}), None


def _write_noted(event: Noted) -> tuple[_Body, None]:
    return {"decision": event.told.decision, **_write_told(event.told)[0]}, None


_WRITERS: dict[type, Callable[[Any], tuple[_Body, bytes | None]]] = {
    ArmJoined: _write_joined,
    ArmChanged: _write_changed,
    ArmRetired: _write_retired,
    ContextAdded: _write_added,
    Decided: _write_decided,
    Told: _write_told,
    Expired: _write_expired,
    Noted: _write_noted,
}


# --- reading ----------------------------------------------------------------------------------------------------------


def _read_joined(_: Row, body: _Body) -> ArmJoined:
    return ArmJoined(_text(body["name"]), _mapping(body["features"]), body.get("group"), body.get("price"))


def _read_changed(_: Row, body: _Body) -> ArmChanged:
    given = {name: body[name] for name in ("features", "group", "price") if name in body}
    if "features" in given:
        _mapping(given["features"])
    return ArmChanged(_text(body["name"]), **given)


def _read_retired(_: Row, body: _Body) -> ArmRetired:
    return ArmRetired(_text(body["name"]))


def _read_added(_: Row, body: _Body) -> ContextAdded:
    return ContextAdded(_text(body["feature"]))


def _read_decided(row: Row, body: _Body) -> Decided:
    if row.block is None:
        raise ValueError("its numbers are missing")
    if body.get("v", 1) == 1:
        return _read_old_decision(row.block, body)
    of_context, of_arms = body["labels"]
    chosen, eligible = _names(body["chosen"]), body.get("eligible")
    labels = _names(of_context), None if of_arms is None else _names(of_arms)
    width = 2 * len(chosen) + len(chosen) * len(labels[1] or ()) + len(labels[0])
    if len(row.block) != 8 * width:
        raise ValueError("the numbers do not fit the arms")
    propensities = body.get("propensities")
    return Decided(
        chosen,
        row.block,
        labels,
        _integer(body["round"]),
        None if body["seed"] is None else _integer(body["seed"]),
        _integer(body["version"]),
        _integer(body["k"]),
        _text(body.get("label", "")),
        None if eligible is None else _names(eligible),
        _mapping(body.get("rules", {})),
        _names(body.get("included", ())),
        None if propensities is None else tuple(map(float, propensities)),
        row.key,
        row.request,
        body.get("expires"),
        None if "departures" not in body else _integer(body["departures"]),
    )


def _read_old_decision(block: bytes, body: _Body) -> Decided:
    """Read a body of version 1, with compressed numbers; the oldest ones hold joint features, too."""
    decision = NamedDecision.from_record(body, zlib.decompress(block))
    written = [*body["scores"], *body["widths"], *body["context"].values()]
    if not np.array_equal(read_values(written), [*decision._bounds, *decision.context], equal_nan=True):
        raise ValueError("the numbers do not fit the text")
    eligible = body["eligible"]
    return Decided.of(
        decision,
        k=_integer(body["k"]),
        label=_text(body["label"]),
        eligible=None if eligible is None else _names(eligible),
        rules=_mapping(body.get("rules", {})),
    )


def _read_told(row: Row, body: _Body) -> Told:
    names, details, after = body["names"], body.get("details", {}), body.get("after")
    if not isinstance(names, list):
        raise TypeError(f"{names!r:.40} is not a list of names")
    found = tuple([_place(one) for one in names])
    return Told(
        _text(body["kind"]),
        found,
        None if after is None else float(after),
        details if isinstance(details, Mapping) else {},
        row.decision,
        row.key,
        _names(body.get("also", ())),
    )


def _place(value: Any) -> Place:
    return _names(value) if isinstance(value, list) else _text(value)


def _read_expired(row: Row, _: _Body) -> Expired:
    return Expired(row.decision, row.key)


def _read_noted(row: Row, body: _Body) -> Noted:
    return Noted(_read_told(row._replace(decision=_integer(body["decision"]), key=body.get("key")), body))


_READERS: dict[str, Callable[[Row, _Body], Event]] = {
    ArmJoined.kind: _read_joined,
    ArmChanged.kind: _read_changed,
    ArmRetired.kind: _read_retired,
    ContextAdded.kind: _read_added,
    Decided.kind: _read_decided,
    Told.kind: _read_told,
    Expired.kind: _read_expired,
    Noted.kind: _read_noted,
}


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"{value!r:.40} is not a text")
    return value


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r:.40} is not an integer")
    return value


def _mapping(value: Any) -> Mapping[str, Any]:
    if type(value) is not dict:
        raise TypeError(f"{value!r:.40} is not a mapping")
    return value


def _names(value: Any) -> tuple[str, ...]:
    return _check_names(tuple(value))


@lru_cache(4096)  # cached, because they repeat again and again
def _check_names(found: tuple[Any, ...]) -> tuple[str, ...]:
    if set(map(type, found)) - {str} or len(set(found)) < len(found):
        raise TypeError(f"{found!r:.40} are not distinct names")
    return found
