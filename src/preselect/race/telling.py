"""What the journal is told of a race: its outcome, with what the after-race has found."""

from typing import Any

from preselect.outcomes import NoWinner, Void
from preselect.race.after_races import Findings
from preselect.race.pool import Pool
from preselect.race.result import RaceResult


def describe_outcome(result: RaceResult, pool: Pool) -> dict[str, Any]:
    """Return what `Learner.learn` is told of a race."""
    limit = pool.limits.seconds
    details, after = result.to_details(limit), result.seconds / limit
    if result.void is not None:
        return {"details": details, "outcome": Void()}
    if result.better is not None:
        return {"details": details, **({"ranking": result.ranking} if result.winner else {"outcome": NoWinner()})}
    if result.winner is None:
        return {"details": details, "outcome": NoWinner(after)}
    return {"details": details, "winner": result.winner, "after": after}


def add_findings(told: dict[str, Any], found: Findings, limit: float) -> dict[str, Any]:
    """Add to what is told of a race what its after-race has found."""
    told = {**told, "details": {**told["details"], "after_race": found.to_details()}}
    if not found.also:
        return told
    if found.winner is None:
        return {**told, "also": found.also}
    return {"details": told["details"], "winner": found.winner, "after": found.seconds / limit, "also": found.also}
