"""Policies by name, as commands and files write them: `cppl`, `cppl(omega=0.5)`, or `my_module:MyPolicy`."""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

from preselect.arguments import show
from preselect.errors import InputError
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
RACING = "newton(outside=True)"  # the default where a round may end without a winner

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
    """Return the class and the parameters that a text names.

    >>> parse("cppl(omega=0.5)")
    (<class 'preselect.policies.cppl.CPPL'>, {'omega': 0.5})
    """
    name, bracket, rest = _as_text(text).strip().partition("(")
    parameters = _parse_parameters(text, rest) if bracket else {}
    policy = _import(name) if ":" in name else POLICIES.get(name.lower())
    if policy is None:
        raise InputError(f"unknown policy {show(name)}; choose {', '.join(POLICIES)}, or your own as module:Class")
    known = inspect.signature(policy).parameters
    strange = [parameter for parameter in parameters if parameter not in known]
    if strange:
        raise InputError(f"{name} has no parameter {', '.join(strange)}; it has {', '.join(known)}")
    return policy, parameters


def let_nobody_win(policy: type[Policy], parameters: dict[str, Any], identity: bool) -> dict[str, Any]:
    """Return parameters that turn on the outside option of a policy, for arms with weights of their own or without.

    >>> let_nobody_win(Newton, {"beta": 1.0}, identity=True)
    {'beta': 1.0, 'outside': True}
    """
    if "outside" not in inspect.signature(policy).parameters:
        able = [name for name, one in POLICIES.items() if "outside" in inspect.signature(one).parameters]
        raise InputError(f"{policy.__name__} cannot learn that nobody won; use one of {', '.join(able)}")
    if not parameters.get("outside", True):
        raise InputError(
            "the policy has outside=False, but nobody_may_win=True asks for the opposite; drop one of them"
        )
    if not identity:
        raise InputError(
            "nobody_may_win=True needs identity=True: features are scaled to mean 0, so that without weights of their "
            "own arms would be as good as nobody on average, however often nobody wins"
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


def _parse_parameters(text: str, inside: str) -> dict[str, Any]:
    try:
        call = ast.parse(f"f({inside}", mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)) or call.args:
            raise ValueError
        if any(keyword.arg is None for keyword in call.keywords):
            raise ValueError
        return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):  # the last three: nested too deeply
        raise InputError(f"cannot read the policy {show(text)}; write name or name(parameter=value, ...)") from None


def digest_source(text: str) -> str:
    """Return a digest of the file in which your own policy is written; empty for the policies of this library.

    >>> digest_source("cppl(omega=0.5)")
    ''
    """
    name = _as_text(text).partition("(")[0].strip()
    file = inspect.getsourcefile(_import(name)) if ":" in name else None
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16] if file else ""


def _import(name: str) -> type[Policy]:
    module, _, attribute = name.partition(":")
    sys.path.insert(0, "")  # a module in the current folder, as with python -m
    try:
        policy = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # importing a module may raise anything
        raise InputError(f"cannot import the policy {show(name)}: {type(error).__name__}: {error}") from None
    finally:
        sys.path.remove("")
    if not (isinstance(policy, type) and issubclass(policy, Policy)):
        raise InputError(f"{show(name)} is {show(policy)}, not a class derived from preselect.Policy")
    return policy
