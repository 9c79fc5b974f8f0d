"""Policies by name, as commands and files write them: `cppl`, `cppl(omega=0.5)`, or `my_module:MyPolicy`."""

from __future__ import annotations

import inspect
from typing import Any

from preselect.arguments import show
from preselect.errors import InputError
from preselect.own_classes import check_parameters, digest_class, import_class, parse_call
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
from preselect.policies.policy import Policy
from preselect.policies.thompson import Thompson
from preselect.policies.ts_mnl import TSMNL
from preselect.policies.ucb_mnl import UCBMNL
from preselect.policies.uniform import Random

DEFAULT = "newton"
RACING = "nearby(outside=True)"  # the default for races in which the first answer wins
COMPARING = "newton(outside=True)"  # the default for races in which the best value wins

POLICIES: dict[str, type[Policy]] = {
    "colstim": CoLSTIM,
    "cppl": CPPL,
    "epoch-greedy": EpochGreedy,
    "epsilon-greedy": EpsilonGreedy,
    "linucb": LinUCB,
    "max-theta": MaxTheta,
    "mm": MM,
    "nearby": Nearby,
    "newton": Newton,
    "ofu-mnl": OFUMNL,
    "random": Random,
    "thompson": Thompson,
    "ts-mnl": TSMNL,
    "ucb-mnl": UCBMNL,
}


def parse(text: str) -> tuple[type[Policy], dict[str, Any]]:
    """Return the class and the parameters of a policy that is given as text.

    >>> parse("cppl(omega=0.5)")
    (<class 'preselect.policies.cppl.CPPL'>, {'omega': 0.5})
    """
    name, parameters = parse_call(_as_text(text), "policy")
    policy = _import(name) if ":" in name else POLICIES.get(name.lower())
    if policy is None:
        raise InputError(f"unknown policy {show(name)}; choose {', '.join(POLICIES)}, or your own as module:Class")
    check_parameters(name, policy, parameters)
    return policy, parameters


def turn_on_outside(policy: type[Policy], parameters: dict[str, Any], identity: bool) -> dict[str, Any]:
    """Return parameters that turn on the outside option of a policy, for arms with weights of their own or without.

    >>> turn_on_outside(Newton, {"beta": 1.0}, identity=True)
    {'beta': 1.0, 'outside': True}
    """
    if "outside" not in inspect.signature(policy).parameters:
        able = [name for name, one in POLICIES.items() if "outside" in inspect.signature(one).parameters]
        raise InputError(f"{policy.__name__} cannot learn that nobody won; use one of {', '.join(able)}")
    if not parameters.get("outside", True):
        raise InputError(
            "the policy has outside=False, but nobody_may_win=True (--nobody-may-win) asks for the opposite; drop one "
            "of them"
        )
    if not identity:
        raise InputError(
            "nobody_may_win=True (--nobody-may-win) needs identity=True (--identity): features are scaled to mean 0, "
            "so that without weights of their own arms would be as good as nobody on average, however often nobody "
            "wins"
        )
    return {**parameters, "outside": True}


def split(texts: str) -> list[str]:
    """Split a comma-separated list of policies; commas in parentheses do not separate.

    >>> split("cppl(omega=1, ridge=2),mm")
    ['cppl(omega=1, ridge=2)', 'mm']
    """
    parts, depth = [""], 0
    for letter in _as_text(texts):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _as_text(text: str) -> str:
    if not isinstance(text, str):
        raise InputError(f"a policy is given by its name, such as 'newton' or 'newton(beta=1.0)', not as {show(text)}")
    return text


def digest_source(text: str) -> str:
    """Return a digest of the file in which your own policy is written; empty for the policies of this library.

    >>> digest_source("cppl(omega=0.5)")
    ''
    """
    name, _ = parse_call(_as_text(text), "policy")
    return digest_class(_import(name)) if ":" in name else ""


def _import(name: str) -> type[Policy]:
    policy = import_class(name, "policy")
    if not (isinstance(policy, type) and issubclass(policy, Policy)):
        raise InputError(f"{show(name)} is {show(policy)}, not a class derived from preselect.Policy")
    return policy
