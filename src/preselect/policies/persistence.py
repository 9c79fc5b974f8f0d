"""Save policies to state files, load them, and add features to them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from preselect import state
from preselect.arguments import integer
from preselect.errors import InputError, StateFileError
from preselect.randomness import hash_root

if TYPE_CHECKING:
    from preselect.policies.policy import Policy
    from preselect.policies.readable import ReadablePolicy

Arrays: TypeAlias = dict[str, NDArray[Any]]
_AnyPolicy = TypeVar("_AnyPolicy", bound="ReadablePolicy")

_COUNTS = ("rounds", "observations", "no_winners", "voids")
_kinds: dict[str, type[Policy]] = {}
_room: ContextVar[int] = ContextVar("room")  # how many numbers a policy may hold while it is read from a file


def register(policy: type[Any]) -> None:
    """Register a class under its kind, so that `load` finds it."""
    _kinds[policy.kind] = policy


def load(path: str | PathLike[str]) -> Policy:
    """Read any policy that `save` wrote; a policy class of your own must have been imported.

    Parameters
    ----------
    path : str or PathLike
        The file.
    """
    return restore(state.read(path))


def collect_state(policy: ReadablePolicy) -> tuple[dict[str, Any], Arrays]:
    """Return everything that decides what a policy does next: plain values, and arrays."""
    header = {
        "parameters": policy.parameters,
        "counts": {name: getattr(policy, name) for name in _COUNTS},
        "root": policy._root,
    }
    return header, policy._arrays()


def restore(file: state.StateFile) -> Policy:
    """Make the policy that a state file holds."""
    policy = _kinds.get(file.kind)
    if policy is None:
        raise StateFileError(f"{file.path} holds a {file.kind}, a policy whose class has not been imported")
    with explain_restoring(file.path, policy.__name__):
        with _limit_room(sum(array.size for array in file.arrays.values())):
            made = policy(**file.header["parameters"])
        return resume(made, file.header, file.arrays)


@contextmanager
def explain_restoring(path: PathLike[str], kind: str) -> Iterator[None]:
    """Turn any exception caused by a bad header or array into a StateFileError."""
    try:
        yield
    except StateFileError:
        raise
    except Exception as error:
        raise StateFileError(f"{path} is not a complete {kind} state: {error}") from None


@contextmanager
def _limit_room(numbers: int) -> Iterator[None]:
    token = _room.set(numbers)
    try:
        yield
    finally:
        _room.reset(token)


def make_block(rows: int, d: int) -> NDArray[np.float64]:
    """Return rows x d zeros for what a policy learns; raise an InputError if there is no room for them.

    A policy may not hold more numbers than the file that it is read from; otherwise a small file could claim all
    memory.
    """
    most = _room.get(None)
    if most is not None and rows * d > most:
        raise InputError(f"d={d} makes {rows * d} numbers, but the arrays have {most}")
    if rows * d > _count_memory() // 8:
        size, memory = rows * d / 2**27, _count_memory() / 2**30
        raise InputError(f"d={d} takes {size:.4g} GiB, and this machine has {memory:.4g} GiB; use fewer features")
    return np.zeros((rows, d))


def _count_memory() -> int:
    """Return the memory of this machine in bytes; the largest size of an array where it is not known."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on every system
        return 2**62


def restore_within(file: state.StateFile, part: str, d: int) -> Policy:
    """Make the policy that is a part of a larger state: its header has this name, and its arrays have it as a prefix.

    It needs d features, as many as it will be shown.
    """
    header, prefix = file.header[part], f"{part}."
    arrays = {name.removeprefix(prefix): array for name, array in file.arrays.items() if name.startswith(prefix)}
    policy = restore(state.StateFile(file.path, header["kind"], header, arrays))
    if policy.d != d:
        raise ValueError(f"the policy has d={policy.d}, but arms and context make {d} joint features")
    return policy


def widen(policy: _AnyPolicy, d: int) -> _AnyPolicy:
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
    return resume(wider, header, wider._widen_arrays(arrays))


def resume(policy: _AnyPolicy, header: dict[str, Any], arrays: Arrays) -> _AnyPolicy:
    """Let a new policy continue from what `collect_state` returned."""
    policy._root = _read_root(header)
    for name in _COUNTS:
        setattr(policy, name, integer(header["counts"][name], name, 0))
    policy._restore_arrays(arrays)
    return policy


def _read_root(header: dict[str, Any]) -> int:
    """Return the number that seeds are counted from; earlier versions kept a generator instead."""
    if "root" in header:
        return integer(header["root"], "root", 0)
    return hash_root(repr(sorted(header["generator"].items())))


def restore_in_place(ours: Arrays, arrays: Arrays) -> None:
    """Overwrite our arrays with those of the same names, which must have the same shapes and finite entries."""
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
