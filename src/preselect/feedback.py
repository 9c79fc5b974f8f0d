"""What `learn` is told, by the names of arms: a winner, a ranking or another outcome."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from preselect.arguments import distinct_names, join_names
from preselect.decision import NamedDecision
from preselect.errors import InputError
from preselect.outcomes import Outcome, Ranking, Winner

Names: TypeAlias = Iterable[str]


def make_outcome(
    decision: NamedDecision,
    winner: str | None = None,
    ranking: Names | None = None,
    outcome: Outcome | None = None,
    after: float | None = None,
) -> Outcome:
    """Return the outcome that the arguments of `learn` name; exactly one of winner, ranking and outcome is given."""
    given = [one for one in (winner, ranking, outcome) if one is not None]
    if len(given) != 1:
        raise InputError(f"give exactly one of winner, ranking and outcome; {len(given)} were given")
    if winner is None and after is not None:
        raise InputError(f"after={after!r:.80} needs a winner; for a race without one use outcome=NoWinner(after)")
    if not isinstance(decision, NamedDecision):
        raise InputError(f"decision is {decision!r:.80}; give what select returned")
    if winner is not None:
        return Winner(_find_chosen(decision, winner), after)
    if ranking is not None:
        return Ranking([_find_chosen(decision, name) for name in distinct_names(ranking, "ranking")])
    assert outcome is not None
    return outcome


def _find_chosen(decision: NamedDecision, name: str) -> int:
    if name not in decision.names:
        raise InputError(f"{name!r:.80} was not chosen; the decision has {join_names(decision.names)}")
    return int(decision.arms[decision.names.index(name)])
