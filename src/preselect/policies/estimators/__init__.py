"""Estimators, which learn theta from outcomes. A linear policy holds one, and chooses arms by its estimate."""

from preselect.policies.estimators.arm_by_arm import ArmByArm
from preselect.policies.estimators.averaged import AveragedSGD, Sandwich
from preselect.policies.estimators.blocks import BlockNewton, make_newton
from preselect.policies.estimators.estimator import Estimator, simplify
from preselect.policies.estimators.gaussian import Gaussian, Gram
from preselect.policies.estimators.online_newton import OnlineNewton
from preselect.policies.estimators.whole_history import WholeHistory

__all__ = [
    "ArmByArm",
    "AveragedSGD",
    "BlockNewton",
    "Estimator",
    "Gaussian",
    "Gram",
    "OnlineNewton",
    "Sandwich",
    "WholeHistory",
    "make_newton",
    "simplify",
]
