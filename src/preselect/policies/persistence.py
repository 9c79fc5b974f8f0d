"""Policies in state files: what is collected, how it is restored, and how features are added."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from preselect import state
from preselect.arguments import integer
from preselect.errors import InputError, StateFileError

if TYPE_CHECKING:
    from preselect.policies.policy import Policy

Arrays: TypeAlias = dict[str, NDArray[Any]]

_COUNTS = ("rounds", "observations", "no_winners", "voids")
_kinds: dict[str, type[Policy]] = {}


def register(policy: type[Policy]) -> None:
    """Remember a class by its kind, so that `load` finds it."""
    _kinds[policy.kind] = policy


def load(path: str | PathLike[str]) -> Policy:
    """Read any policy that `save` wrote; a policy class of your own must have been imported.

    Parameters
    ----------
    path : str or PathLike
        The file.
    """
    return restore(state.read(path))


def collect_state(policy: Policy) -> tuple[dict[str, Any], Arrays]:
    """Return everything that decides what a policy does next: plain values, and arrays."""
    header = {
        "parameters": policy.parameters,
        "counts": {name: getattr(policy, name) for name in _COUNTS},
        "generator": policy._generator.bit_generator.state,
    }
    return header, policy._arrays()


def restore(file: state.StateFile) -> Policy:
    """Make the policy that a state file holds."""
    policy = _kinds.get(file.kind)
    if policy is None:
        raise StateFileError(f"{file.path} holds a {file.kind}, a policy whose class has not been imported")
    try:
        return _continue(policy(**file.header["parameters"]), file.header, file.arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise StateFileError(f"{file.path} is not a complete {policy.__name__} state: {error}") from None


def widen(policy: Policy, d: int) -> Policy:
    """Return the policy with features added at the end, as if they had been zero in every decision."""
    header, arrays = collect_state(policy)
    if policy.d is None:
        raise InputError("this policy has no d, so there are no features to add to; make it with d=...")
    if integer(d, "d", 1) < policy.d:
        raise InputError(f"d={d}, but the policy already has {policy.d} features; widening can only add features")
    lists = [name for name, value in header["parameters"].items() if isinstance(value, list)]
    if lists:
        raise InputError(f"{', '.join(lists)} was given per feature, so it says nothing about the features to add")
    wider = type(policy)(**{**header["parameters"], "d": d})
    return _continue(wider, header, wider._widen_arrays(arrays))


def _continue(policy: Policy, header: dict[str, Any], arrays: Arrays) -> Policy:
    """Let a new policy continue from what `collect_state` returned."""
    policy._generator.bit_generator.state = header["generator"]
    for name in _COUNTS:
        setattr(policy, name, int(header["counts"][name]))
    policy._restore_arrays(arrays)
    return policy


def restore_in_place(ours: Arrays, arrays: Arrays) -> None:
    """Overwrite our arrays by those of the same names, which must have the same shapes and finite entries."""
    for name, expected in ours.items():
        if arrays[name].shape != expected.shape or arrays[name].dtype != expected.dtype:
            raise ValueError(f"{name} has shape {arrays[name].shape}, expected {expected.shape}")
        if not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} has entries that are not finite")
        expected[...] = arrays[name]


def widen_arrays(ours: Arrays, arrays: Arrays) -> Arrays:
    """Return copies of our arrays with the smaller ones of the same names copied into their leading part."""
    widened = {name: array.copy() for name, array in ours.items()}
    for name, array in widened.items():
        array[tuple(slice(size) for size in arrays[name].shape)] = arrays[name]
    return widened
