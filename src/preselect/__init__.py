"""Contextual online preselection: choose k of n, see which one wins, choose better."""

from preselect.context import StructuredContext
from preselect.decision import Decision, NamedDecision
from preselect.errors import InputError, PreselectError, StateFileError
from preselect.features import Concatenation, Identity, Kronecker, OneHot, Reduction
from preselect.outcomes import NoWinner, Outcome, Ranking, Void, Winner
from preselect.policies import (
    CPPL,
    MM,
    OFUMNL,
    TSMNL,
    UCBMNL,
    CoLSTIM,
    EpochGreedy,
    EpsilonGreedy,
    LinUCB,
    MaxTheta,
    Newton,
    Policy,
    Random,
    Thompson,
)
from preselect.preselector import Preselector, load
from preselect.scaling import Scaling

__version__ = "0.1.0"

__all__ = [
    "CPPL",
    "MM",
    "OFUMNL",
    "TSMNL",
    "UCBMNL",
    "CoLSTIM",
    "Concatenation",
    "Decision",
    "EpochGreedy",
    "EpsilonGreedy",
    "Identity",
    "InputError",
    "Kronecker",
    "LinUCB",
    "MaxTheta",
    "NamedDecision",
    "Newton",
    "NoWinner",
    "OneHot",
    "Outcome",
    "Policy",
    "PreselectError",
    "Preselector",
    "Random",
    "Ranking",
    "Reduction",
    "Scaling",
    "StateFileError",
    "StructuredContext",
    "Thompson",
    "Void",
    "Winner",
    "load",
]
