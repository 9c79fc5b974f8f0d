"""The decorators for compiled functions: nothing but numba, in one place."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def compiled(kernel: _Kernel) -> _Kernel:
    """Compile at the first call, and keep the result on disk."""
    return cast(_Kernel, numba.njit(cache=True, nogil=True, error_model="numpy")(kernel))


def fused(kernel: _Kernel) -> _Kernel:
    """Compile in strict order of operations; only fused multiply-add is allowed."""
    return cast(_Kernel, numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})(kernel))


def reordered(kernel: _Kernel) -> _Kernel:
    """Compile so that sums may be reordered, hence vectorised; NaN and infinity keep their meaning."""
    fastmath = {"contract", "reassoc", "nsz"}
    return cast(_Kernel, numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=fastmath)(kernel))
