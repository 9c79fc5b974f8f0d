"""Learn from logs: fit a model to them, and estimate what other policies would have won."""

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
