"""Contextual online preselection: choose k of n, see which one wins, choose better."""

from preselect.client import AsyncClient, Client, ServedDecision
from preselect.context import StructuredContext
from preselect.decision import Decision
from preselect.errors import InputError, PreselectError, StateFileError
from preselect.features import Concatenation, Identity, Kronecker, OneHot, Reduction
from preselect.loading import load
from preselect.named.decision import NamedDecision
from preselect.named.estimates import Estimate, Estimates, FeatureWeight
from preselect.named.explanations import ArmExplanation, Explanation
from preselect.named.readable_state import Propensity
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
    Nearby,
    Newton,
    Policy,
    Random,
    Thompson,
)
from preselect.policies.propensities import Propensities
from preselect.preselector import Preselector
from preselect.rules import Rules
from preselect.scaling import Scaling

__version__ = "0.1.0"

__all__ = [
    "CPPL",
    "MM",
    "OFUMNL",
    "TSMNL",
    "UCBMNL",
    "ArmExplanation",
    "AsyncClient",
    "Client",
    "CoLSTIM",
    "Concatenation",
    "Decision",
    "EpochGreedy",
    "EpsilonGreedy",
    "Estimate",
    "Estimates",
    "Explanation",
    "FeatureWeight",
    "Identity",
    "InputError",
    "Kronecker",
    "LinUCB",
    "MaxTheta",
    "NamedDecision",
    "Nearby",
    "Newton",
    "NoWinner",
    "OneHot",
    "Outcome",
    "Policy",
    "PreselectError",
    "Preselector",
    "Propensities",
    "Propensity",
    "Random",
    "Ranking",
    "Reduction",
    "Rules",
    "Scaling",
    "ServedDecision",
    "StateFileError",
    "StructuredContext",
    "Thompson",
    "Void",
    "Winner",
    "load",
]
