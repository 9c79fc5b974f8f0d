"""Begin the journal of a pool, or check that an existing one still fits the pool."""

from typing import Any

from preselect.errors import JournalError
from preselect.outcomes import Void
from preselect.preselector import Preselector
from preselect.race.instance_features import FeatureValues
from preselect.race.pool import Arm, Pool
from preselect.store import Entry, Learner


def make_preselector(pool: Pool, values: FeatureValues) -> Preselector:
    """Make the preselector with which a journal begins."""
    arms = {name: arm.features for name, arm in pool.arms.items()}
    return Preselector(arms, context=values, policy=pool.policy, seed=pool.seed)


def describe(pool: Pool) -> dict[str, Any]:
    """Return the settings with which a journal must have been started to be continued with this pool."""
    return {"kind": "race", "policy": pool.policy, "seed": pool.seed}


def update_journal(learner: Learner, pool: Pool) -> None:
    """Check that the journal fits the pool, add new arms, and end the races of earlier processes."""
    for key, value in describe(pool).items():
        if learner.about.get(key) != value:
            raise JournalError(
                f"{key} is {value!r}, but {pool.journal} was started with {learner.about.get(key)!r}; "
                f"restore it, or write another journal into {pool.path}"
            )
    for name, arm in pool.arms.items():
        if name in learner.arms:
            _check_features(learner, arm, pool)
        else:
            learner.add(name, arm.features)
    for entry in learner.unfinished():
        _end_unfinished(learner, entry)


def _end_unfinished(learner: Learner, entry: Entry) -> None:
    """End a race that an earlier process left unfinished: with the outcome that it noted, or as void."""
    note = learner.find_note(entry)
    if note is None:
        learner.learn(entry, outcome=Void(), details={"reason": "the process ended before the race did"})
    else:
        learner.learn(entry, outcome=note.make_outcome(entry.decision), details=note.details)


def _check_features(learner: Learner, arm: Arm, pool: Pool) -> None:
    known = {name: value for name, value in learner.preselector.arm(arm.name).items() if value is not None}
    if arm.features != known:
        raise JournalError(
            f"the features of arm {arm.name} are {dict(arm.features)}, but {pool.journal} has {known}; "
            "restore them, or give the arm another name"
        )
