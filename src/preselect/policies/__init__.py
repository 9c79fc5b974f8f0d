"""The policies, one per file."""

from preselect.policies.cppl import CPPL
from preselect.policies.greedy import EpsilonGreedy, MaxTheta
from preselect.policies.mm import MM
from preselect.policies.policy import Policy, load
from preselect.policies.uniform import Random

__all__ = ["CPPL", "MM", "EpsilonGreedy", "MaxTheta", "Policy", "Random", "load"]
