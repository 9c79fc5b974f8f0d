"""Turn what `learn` is told about named arms (a winner or nobody, a ranking, ratings, an outcome) into an outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from preselect.arguments import distinct_names, join_names, number, show
from preselect.errors import InputError
from preselect.named.decision import NamedDecision
from preselect.outcomes import NoWinner, Outcome, Ranking, Winner

Names: TypeAlias = Iterable[str]
Places: TypeAlias = Iterable[str | Iterable[str]]  # each place of a ranking: a name, or the names of tied arms
Ratings: TypeAlias = Mapping[str, float]


class _Missing:
    """The type of MISSING, the default of arguments for which None means something."""

    def __repr__(self) -> str:
        return "..."


MISSING: Final[Any] = _Missing()


def make_outcome(
    decision: NamedDecision,
    *,
    winner: str | None = MISSING,
    ranking: Places | None = None,
    ratings: Ratings | None = None,
    outcome: Outcome | None = None,
    after: float | None = None,
    also: tuple[str, ...] = (),
    nobody_may_win: bool = True,
) -> Outcome:
    """Return the outcome that the arguments of `learn` give: exactly one of winner, ranking, ratings and outcome.

    It refers to the places of the chosen arms, followed by those that competed alongside them (`also`).

    Unless `nobody_may_win`, winner=None is refused, because a caller who writes it expects the policy to learn from it.
    """
    given = [one for one in (ranking, ratings, outcome) if one is not None]
    many = len(given) + (winner is not MISSING)
    if many != 1:
        raise InputError(f"give exactly one of winner, ranking, ratings and outcome; {many} were given")
    if winner is MISSING and after is not None:
        raise InputError(f"after={show(after)} needs a winner; for a race without one use outcome=NoWinner(after)")
    if not isinstance(decision, NamedDecision):
        raise InputError(f"decision is {show(decision)}; give what select returned")
    names = decision.names + also
    if ratings is not None:
        ranking = _rank_by_rating(names, ratings)
    if ranking is not None:
        return Ranking([[_find_place(names, name) for name in tied] for tied in _list_places(ranking)])
    if outcome is not None:
        if not isinstance(outcome, Outcome):
            raise InputError(f"outcome is {show(outcome)}; use a Winner, Ranking, NoWinner or Void")
        return outcome
    return _make_winner(names, winner, after, nobody_may_win)


def list_besides(decision: NamedDecision, also: Names | None) -> tuple[str, ...]:
    """Return the names of arms that competed alongside the chosen ones; raise an InputError if any was chosen."""
    if also is None:
        return ()
    if not isinstance(decision, NamedDecision):
        raise InputError(f"decision is {show(decision)}; give what select returned")
    names = tuple(distinct_names(also, "also"))
    chosen = [name for name in names if name in decision.names]
    if chosen:
        raise InputError(f"also has {join_names(chosen)}, already chosen; name only arms that were not chosen")
    return names


def _make_winner(names: tuple[str, ...], winner: Any, after: float | None, nobody_may_win: bool) -> Outcome:
    if winner is not None:
        return Winner(_find_place(names, winner), after)
    if not nobody_may_win:
        raise InputError(
            "winner=None says that nobody won, and this policy does not learn from that; make the preselector with "
            "nobody_may_win=True, or give outcome=NoWinner(), which is only counted"
        )
    return NoWinner(after)


def _list_places(ranking: Places) -> list[list[str]]:
    """Return the names at each place of a ranking, best first: one, or those of a tie."""
    if isinstance(ranking, (str, bytes)) or not isinstance(ranking, Iterable) or getattr(ranking, "ndim", 1) == 0:
        return [distinct_names(ranking, "ranking")]  # which says what is wrong
    places = [list(place) if isinstance(place, list | tuple | set | frozenset) else [place] for place in ranking]
    if [] in places:
        raise InputError("ranking has an empty list; arms that are tied are in a list, such as [['a', 'b'], 'c']")
    distinct_names([name for place in places for name in place], "ranking")
    return places  # type: ignore[return-value]  # only names are in it


def _rank_by_rating(names: tuple[str, ...], ratings: Ratings) -> list[list[str]]:
    """Return the chosen arms by rating, the highest first; those of equal ratings are tied."""
    if not isinstance(ratings, Mapping):
        raise InputError(f"ratings is {show(ratings)}; give a number for each chosen arm, such as {{'a': 4, 'b': 1}}")
    for name in ratings:
        _find_place(names, name)
    unrated = [name for name in names if name not in ratings]
    if unrated:
        raise InputError(f"ratings lacks {join_names(unrated)}; rate all chosen arms, or give a ranking of the best")
    rated = {name: number(ratings[name], f"the rating of {name!r:.40}") for name in names}
    return [[name for name in rated if rated[name] == rating] for rating in sorted(set(rated.values()), reverse=True)]


def _find_place(names: tuple[str, ...], name: str) -> int:
    if not isinstance(name, str) or name not in names:
        raise InputError(f"{show(name)} was not chosen; the decision has {join_names(names)}")
    return names.index(name)
