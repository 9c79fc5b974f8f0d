"""`load` reads a policy or preselector from a file that `save` wrote."""

from preselect import state
from preselect.named.state import AnyPath
from preselect.policies import Policy, persistence
from preselect.preselector import Preselector


def load(path: AnyPath) -> Preselector | Policy:
    """Read any policy or preselector that `save` wrote.

    Parameters
    ----------
    path : str or path
        The file. If its policy is a class of your own, import that class first.
    """
    file = state.read(path)
    return Preselector._restore(file) if file.kind == "Preselector" else persistence.restore(file)
