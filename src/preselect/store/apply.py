"""The state as a fold over the journal: outcomes and decisions as events record them, and how an event is replayed."""

from contextlib import suppress
from typing import Any

from preselect.arguments import join_names
from preselect.decision import NamedDecision
from preselect.errors import InputError, JournalError
from preselect.feedback import make_outcome
from preselect.outcomes import NoWinner, Outcome, Ranking, Void, Winner
from preselect.preselector import Preselector
from preselect.store.journal import Event, Journal
from preselect.store.values import encode

WINNER, RANKING, NO_WINNER, VOID = "winner", "ranking", "no-winner", "void"

_KINDS: dict[type[Outcome], str] = {Winner: WINNER, Ranking: RANKING, NoWinner: NO_WINNER, Void: VOID}


def name_outcome(decision: NamedDecision, outcome: Outcome) -> dict[str, Any]:
    """Return what the journal records of an outcome: its kind, the names of the ranked arms, and the time."""
    kind = next((kind for known, kind in _KINDS.items() if isinstance(outcome, known)), None)
    if kind is None:
        raise InputError(f"outcome is {outcome!r:.80}; use Winner, Ranking, NoWinner or Void")
    names = [decision.names[position] for position in outcome.positions(decision.arms)]
    return {"kind": kind, "names": names, "after": outcome.after}


def _restore_outcome(decision: NamedDecision, kind: str, names: list[str], after: float | None) -> Outcome:
    """Make an outcome from what the journal records of it."""
    if kind == WINNER and len(names) == 1:
        return make_outcome(decision, winner=names[0], after=after)
    if kind == NO_WINNER and not names:
        return NoWinner(after)
    if kind in (RANKING, VOID) and after is not None:
        raise InputError(f"after={after!r:.80} needs a winner or NoWinner; a {kind} has no time")
    if kind == RANKING:
        return make_outcome(decision, ranking=names)
    if kind == VOID and not names:
        return Void()
    raise InputError(f"the kind of an outcome is {kind!r:.80}; use {join_names(_KINDS.values())}")


def restore_decision(event: Event) -> NamedDecision:
    """Make the decision that an event records."""
    try:
        return NamedDecision.from_record(event.body, event.numbers)
    except (KeyError, TypeError, ValueError) as error:
        raise event.report_damage(f"it is not a complete decision ({error})") from None


def apply_event(preselector: Preselector, journal: Journal, event: Event) -> str | None:
    """Apply an event to a preselector; if a decision turns out differently now, return the difference."""
    try:
        body = event.body
        if event.kind == "arm":
            preselector.add(body["name"], body["features"])
        elif event.kind == "decision":
            return _compare(event, preselector.select(body["context"], k=body["k"], eligible=body["eligible"]))
        else:
            decision = restore_decision(_find_decision(journal, event))
            outcome = _restore_outcome(decision, body["kind"], body["names"], body.get("after"))
            with suppress(InputError):  # refused now as it was refused then
                preselector.learn(decision, outcome=outcome)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise JournalError(f"event {event.number} of {journal.path} cannot be replayed: {error}") from None
    return None


def _find_decision(journal: Journal, outcome: Event) -> Event:
    event = journal.event(outcome.decision or 0)
    if event is None or event.kind != "decision":
        raise ValueError(f"it is the outcome of event {outcome.decision}, which is not a decision")
    return event


def _compare(event: Event, again: NamedDecision) -> str | None:
    where = f"decision {event.number} ({event.body['label']})"
    values, numbers = again.to_record()
    for name, value in values.items():
        if encode(value, name) != encode(event.body.get(name), name):  # as texts, because NaN is not equal to itself
            return f"{where}: {name} was {event.body.get(name)} and is {value} when replayed"
    if numbers != event.numbers:
        return f"{where}: the joint features of the chosen arms differ when replayed"
    return None
