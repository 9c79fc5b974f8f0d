"""What logs can tell without another round: a model that is fitted to them, and what policies would have won."""

from preselect.offline.evaluate import Estimate, Evaluation, PolicyValue, evaluate
from preselect.offline.fit import Fit, Score, fit
from preselect.offline.sources import check_logs, read_logs

__all__ = [
    "Estimate",
    "Evaluation",
    "Fit",
    "PolicyValue",
    "Score",
    "check_logs",
    "evaluate",
    "fit",
    "read_logs",
]
