"""Learning as a fold over the journal: what each event does to a preselector, now and whenever it is replayed."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from preselect.decision import Decision, NamedDecision
from preselect.errors import InputError, JournalError
from preselect.outcomes import NoWinner, Outcome, Ranking, Void, Winner
from preselect.preselector import Preselector, require_one_outcome
from preselect.store.journal import Event, Journal
from preselect.store.values import encode

WINNER, RANKING, NO_WINNER, VOID = "winner", "ranking", "no-winner", "void"


def describe(decision: NamedDecision) -> dict[str, Any]:
    """What the journal says of a decision beside its numbers, from which it is made again."""
    return {
        "chosen": list(decision.names),
        "arms": decision.arms.tolist(),
        "scores": decision.scores.tolist(),
        "widths": decision.widths.tolist(),
        "round": decision.round,
        "d": decision.d,
    }


def pack_numbers(decision: NamedDecision) -> bytes:
    """Its scores, widths and rows, to the last bit."""
    return decision.numbers.astype("<f8").tobytes()


def rebuild_decision(event: Event) -> NamedDecision:
    """The decision as it was made."""
    try:
        body, numbers = event.body, np.frombuffer(event.numbers, dtype="<f8").astype(np.float64)
        arms, chosen, d = np.array(body["arms"], dtype=np.int64), tuple(body["chosen"]), int(body["d"])
        if not len(numbers) == len(arms) * (2 + d) or len(chosen) != len(arms):
            raise ValueError("arms and numbers do not belong together")
        return NamedDecision(Decision(arms, numbers, d, arms, int(body["round"])), chosen)
    except (KeyError, TypeError, ValueError) as error:
        raise JournalError(f"event {event.number} is damaged, it is no whole decision: {error}") from None


def name_outcome(
    decision: NamedDecision,
    winner: str | None,
    ranking: Iterable[str] | None,
    outcome: Outcome | None,
    after: float | None,
) -> tuple[str, list[str], float | None]:
    """Kind, names and time of an outcome, which is checked."""
    require_one_outcome(winner, ranking, outcome, after)
    if winner is not None:
        kind, names = WINNER, [winner]
    elif ranking is not None:
        if isinstance(ranking, str) or not isinstance(ranking, Iterable):
            raise InputError(f"ranking must be a list of names, got {ranking!r:.80}")
        kind, names = RANKING, list(ranking)
    else:
        kind, names = _kind(outcome), _ranked(decision, outcome)
        after = outcome.after  # type: ignore[union-attr]  # _kind has checked it
    return kind, names, make_outcome(decision, kind, names, after).after


def _kind(outcome: Outcome | None) -> str:
    kinds = {Winner: WINNER, Ranking: RANKING, NoWinner: NO_WINNER, Void: VOID}
    for known, kind in kinds.items():
        if isinstance(outcome, known):
            return kind
    raise InputError(f"outcome must be Winner, Ranking, NoWinner or Void, got {outcome!r:.80}")


def _ranked(decision: NamedDecision, outcome: Outcome | None) -> list[str]:
    assert outcome is not None
    return [decision.names[place] for place in outcome.positions(decision.arms)]


def make_outcome(decision: NamedDecision, kind: str, names: list[str], after: float | None) -> Outcome:
    """An outcome by kind and names, as the journal keeps it."""
    strangers = [name for name in names if name not in decision.names]
    if strangers:
        raise InputError(f"{kind} must name arms that were chosen, {list(decision.names)}, got {strangers[0]!r:.80}")
    if len(set(names)) < len(names):
        raise InputError(f"{kind} must name distinct arms, got {names}")
    positions = [int(decision.arms[decision.names.index(name)]) for name in names]
    if kind == WINNER and len(names) == 1:
        return Winner(positions[0], after)
    if kind == NO_WINNER and not names:
        return NoWinner(after)
    if kind in (RANKING, VOID) and after is not None:
        raise InputError(f"after must come with a winner or with none, got {after!r:.80} for a {kind}")
    if kind == RANKING:
        return Ranking(positions)
    if kind == VOID and not names:
        return Void()
    raise InputError(f"kind of an outcome must be {WINNER}, {RANKING}, {NO_WINNER} or {VOID}, got {kind!r:.80}")


def teach(preselector: Preselector, decision: NamedDecision, outcome: Outcome) -> InputError | None:
    """Learn from an outcome; answers why it taught nothing if its numbers were refused, then as in every replay."""
    try:
        preselector.learn(decision, outcome=outcome)
    except InputError as refused:
        return refused
    return None


def apply_event(preselector: Preselector, journal: Journal, event: Event) -> str | None:
    """Do what an event did; answers in what a decision that is made again differs from the recorded one."""
    try:
        body = event.body
        if event.kind == "arm":
            preselector.add(body["name"], body["features"])
        elif event.kind == "decision":
            return _difference(event, preselector.select(body["context"], body["k"], eligible=body["eligible"]))
        else:
            decision = rebuild_decision(_find_decision(journal, event))
            teach(preselector, decision, make_outcome(decision, body["kind"], body["names"], body.get("after")))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise JournalError(f"event {event.number} of {journal.path} cannot be taken in again: {error}") from None
    return None


def _find_decision(journal: Journal, outcome: Event) -> Event:
    event = journal.event(outcome.decision or 0)
    if event is None or event.kind != "decision":
        raise ValueError(f"it is the outcome of event {outcome.decision}, which is no decision")
    return event


def _difference(event: Event, again: NamedDecision) -> str | None:
    where = f"decision {event.number} ({event.body['label']})"
    for name, value in describe(again).items():
        if encode(value, name) != encode(event.body.get(name), name):  # as texts, because NaN is not equal to itself
            return f"{where}: {name} was {event.body.get(name)}, made again it is {value}"
    if pack_numbers(again) != event.numbers:
        return f"{where}: the joint features of the chosen arms are others when it is made again"
    return None
