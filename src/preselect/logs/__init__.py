r"""Logs of rounds: which arms were shown, in what context, and how they came out. One table, wherever it comes from.

>>> from io import StringIO
>>> table = "round,arm,place,context.hour\n1,storm,1,20\n1,derby,,20\n2,derby,1,9\n2,storm,2,9\n"
>>> logs = read(StringIO(table))
>>> len(logs), logs.arms, logs.context
(2, ('storm', 'derby'), ('hour',))
"""

from preselect.logs.logs import Logs
from preselect.logs.reading import Problem, check, read

__all__ = ["Logs", "Problem", "check", "read"]
