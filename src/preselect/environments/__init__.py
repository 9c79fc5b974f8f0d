"""Where rounds come from."""

from preselect.environments.environment import Environment
from preselect.environments.synthetic import VARIATIONS, Drifting, FixedArms, Misspecified, Signed, Synthetic

__all__ = ["VARIATIONS", "Drifting", "Environment", "FixedArms", "Misspecified", "Signed", "Synthetic"]
