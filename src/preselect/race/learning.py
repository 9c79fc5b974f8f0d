"""What after-races may cost: the table `[learning]` of a pool file."""

from dataclasses import dataclass

from preselect.arguments import number
from preselect.errors import InputError
from preselect.race.pool_values import Table, check_keys, read_boolean, read_integer

_KEYS = ("budget", "priority", "wait")


@dataclass(frozen=True)
class Learning:
    """What after-races may cost.

    Parameters
    ----------
    budget : float, default 0
        How much time of cores they may take, as a share of what the races of a session take; 0 for no after-races.
    priority : int, default 19
        How far their processes step back for others: the nice value, from 0 to 19.
    wait : bool, default False
        Whether the next instance of a list waits until the after-race has ended.
    """

    budget: float = 0.0
    priority: int = 19
    wait: bool = False


def read_learning(table: Table) -> Learning:
    """Read the table `[learning]`."""
    check_keys(table, "learning.", _KEYS)
    budget = table.get("budget", Learning.budget)
    if isinstance(budget, bool):
        raise InputError(f"learning.budget is {budget}; use a number of at least 0")
    priority = read_integer(table.get("priority", Learning.priority), "learning.priority", 0)
    if priority > 19:
        raise InputError(f"learning.priority is {priority}; use an integer from 0 to 19")
    return Learning(
        number(budget, "learning.budget", least=0.0),
        priority,
        read_boolean(table.get("wait", Learning.wait), "learning.wait"),
    )
