"""What logs can tell without playing another round: a model that is fitted to them, and how well it predicts."""

from preselect.offline.fit import Fit, Score, fit
from preselect.offline.sources import check_logs, read_logs

__all__ = ["Fit", "Score", "check_logs", "fit", "read_logs"]
