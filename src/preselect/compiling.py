"""The decorator for compiled functions outside `kernels`: nothing but numba, in one place.

Functions that call each other must be in one source file: numba keys its disk cache by the file of the one that is
called, so a helper in another file could change without its callers being compiled again.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def compiled(kernel: _Kernel) -> _Kernel:
    """Compile at the first call, and keep the result on disk."""
    return cast(_Kernel, numba.njit(cache=True, nogil=True, error_model="numpy")(kernel))
