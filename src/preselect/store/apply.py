"""Learning as a fold over the journal: what each event does to a preselector, at first and when it is replayed."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from preselect.arguments import distinct_names, join_names
from preselect.decision import Decision, NamedDecision
from preselect.errors import InputError, JournalError
from preselect.outcomes import NoWinner, Outcome, Ranking, Void, Winner
from preselect.preselector import Preselector, require_one_outcome
from preselect.store.journal import Event, Journal
from preselect.store.values import encode

WINNER, RANKING, NO_WINNER, VOID = "winner", "ranking", "no-winner", "void"

_KINDS: dict[type[Outcome], str] = {Winner: WINNER, Ranking: RANKING, NoWinner: NO_WINNER, Void: VOID}


def describe(decision: NamedDecision) -> dict[str, Any]:
    """What the journal records of a decision beside its block of numbers."""
    return {
        "chosen": list(decision.names),
        "arms": decision.arms.tolist(),
        "scores": decision.scores.tolist(),
        "widths": decision.widths.tolist(),
        "round": decision.round,
        "d": decision.d,
    }


def pack_numbers(decision: NamedDecision) -> bytes:
    """Scores, widths and rows of a decision, exact to the last bit."""
    return b"".join(part.astype("<f8").tobytes() for part in (decision.scores, decision.widths, decision.rows))


def rebuild_decision(event: Event) -> NamedDecision:
    """Make the decision that an event records."""
    try:
        body, numbers = event.body, np.frombuffer(event.numbers, dtype="<f8").astype(np.float64)
        arms, chosen, d = np.array(body["arms"], dtype=np.int64), tuple(body["chosen"]), int(body["d"])
        if not len(numbers) == len(arms) * (2 + d) or len(chosen) != len(arms):
            raise ValueError("arms and numbers do not belong together")
        bounds, rows = np.split(numbers, [2 * len(arms)])
        return NamedDecision(Decision(arms, bounds, rows.reshape(len(arms), d), arms, int(body["round"])), chosen)
    except (KeyError, TypeError, ValueError) as error:
        raise JournalError(f"event {event.number} is damaged: it is not a complete decision ({error})") from None


def name_outcome(
    decision: NamedDecision,
    winner: str | None,
    ranking: Iterable[str] | None,
    outcome: Outcome | None,
    after: float | None,
) -> tuple[str, list[str], float | None]:
    """Turn the arguments of `learn` into what the journal records: the kind of the outcome, names and time."""
    require_one_outcome(winner, ranking, outcome, after)
    if winner is not None:
        kind, names = WINNER, [winner]
    elif ranking is not None:
        kind, names = RANKING, distinct_names(ranking, "ranking")
    else:
        kind = _find_kind(outcome)
        assert outcome is not None
        names, after = [decision.names[place] for place in outcome.positions(decision.arms)], outcome.after
    return kind, names, make_outcome(decision, kind, names, after).after


def _find_kind(outcome: Outcome | None) -> str:
    for known, kind in _KINDS.items():
        if isinstance(outcome, known):
            return kind
    raise InputError(f"outcome is {outcome!r:.80}; use Winner, Ranking, NoWinner or Void")


def make_outcome(decision: NamedDecision, kind: str, names: list[str], after: float | None) -> Outcome:
    """Make an outcome from what the journal records of it."""
    for name in names:
        if name not in decision.names:
            raise InputError(f"{name!r:.80} was not chosen; the decision has {join_names(decision.names)}")
    positions = [int(decision.arms[decision.names.index(name)]) for name in names]
    if kind == WINNER and len(names) == 1:
        return Winner(positions[0], after)
    if kind == NO_WINNER and not names:
        return NoWinner(after)
    if kind in (RANKING, VOID) and after is not None:
        raise InputError(f"after={after!r:.80} needs a winner or NoWinner; a {kind} has no time")
    if kind == RANKING:
        return Ranking(positions)
    if kind == VOID and not names:
        return Void()
    raise InputError(f"the kind of an outcome is {kind!r:.80}; it must be one of {join_names(_KINDS.values())}")


def teach(preselector: Preselector, decision: NamedDecision, outcome: Outcome) -> InputError | None:
    """Learn from an outcome, or return why it was refused: a refusal now is a refusal in every replay."""
    try:
        preselector.learn(decision, outcome=outcome)
    except InputError as refused:
        return refused
    return None


def apply_event(preselector: Preselector, journal: Journal, event: Event) -> str | None:
    """Do to a preselector what an event did; if a decision is made differently now, return the difference."""
    try:
        body = event.body
        if event.kind == "arm":
            preselector.add(body["name"], body["features"])
        elif event.kind == "decision":
            return _compare(event, preselector.select(body["context"], body["k"], eligible=body["eligible"]))
        else:
            decision = rebuild_decision(_find_decision(journal, event))
            teach(preselector, decision, make_outcome(decision, body["kind"], body["names"], body.get("after")))
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
    for name, value in describe(again).items():
        if encode(value, name) != encode(event.body.get(name), name):  # as texts, because NaN is not equal to itself
            return f"{where}: {name} was {event.body.get(name)} and is {value} when replayed"
    if pack_numbers(again) != event.numbers:
        return f"{where}: the joint features of the chosen arms differ when replayed"
    return None
