"""A single race: `race` and `race_async` open a session for it."""

from os import PathLike

from preselect.race.pool import Pool
from preselect.race.result import RaceResult
from preselect.race.session import RaceSession
from preselect.race.supervision import Watch


def race(
    pool: Pool | str | PathLike[str],
    instance: str | PathLike[str],
    *,
    watch: Watch | None = None,
    level: str | None = None,
) -> RaceResult:
    """Race k arms of a pool on one instance, stop at the first right answer, and learn from it.

    This blocks its thread; in an event loop use `race_async`. On Ctrl-C the race ends and is void.

    Parameters
    ----------
    pool : Pool, str or path
        The pool, or its file.
    instance : str or path
        The file to race on.
    watch : callable, optional
        Called with the list of standings at every event and four times a second.
    level : str, optional
        How processes are contained, "pid namespace" or "subreaper"; by default the best one that this machine allows.
    """
    with RaceSession(pool, level=level) as session:
        return session.run(instance, watch=watch)


async def race_async(
    pool: Pool | str | PathLike[str],
    instance: str | PathLike[str],
    *,
    watch: Watch | None = None,
    level: str | None = None,
) -> RaceResult:
    """Race as `race` does, without blocking the event loop. Cancelling it ends the race, which is then void.

    Parameters
    ----------
    pool : Pool, str or path
        The pool, or its file.
    instance : str or path
        The file to race on.
    watch : callable, optional
        Called with the list of standings at every event and four times a second.
    level : str, optional
        How processes are contained, "pid namespace" or "subreaper"; by default the best one that this machine allows.
    """
    with RaceSession(pool, level=level) as session:
        return await session.run_async(instance, watch=watch)
