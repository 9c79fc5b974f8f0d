"""The policies, one per file."""

from preselect.policies.colstim import CoLSTIM
from preselect.policies.cppl import CPPL
from preselect.policies.epoch_greedy import EpochGreedy
from preselect.policies.epsilon_greedy import EpsilonGreedy
from preselect.policies.linucb import LinUCB
from preselect.policies.max_theta import MaxTheta
from preselect.policies.mm import MM
from preselect.policies.nearby import Nearby
from preselect.policies.newton import Newton
from preselect.policies.ofu_mnl import OFUMNL
from preselect.policies.persistence import load
from preselect.policies.policy import Policy
from preselect.policies.thompson import Thompson
from preselect.policies.ts_mnl import TSMNL
from preselect.policies.ucb_mnl import UCBMNL
from preselect.policies.uniform import Random

__all__ = [
    "CPPL",
    "MM",
    "OFUMNL",
    "TSMNL",
    "UCBMNL",
    "CoLSTIM",
    "EpochGreedy",
    "EpsilonGreedy",
    "LinUCB",
    "MaxTheta",
    "Nearby",
    "Newton",
    "Policy",
    "Random",
    "Thompson",
    "load",
]
