"""Decorators that compile functions with numba, and a cache on disk that spares later processes the compiling.

A *kernel* is called from Python. It is compiled at the first call, together with the helpers that it calls, and kept
in numba's cache. A *helper* is called only by compiled functions. It has no entry point for Python (calling it from
Python crashes the process; see `entry`), which saves a third of the time to compile it.

A bad cache is never an error. If it cannot be written, it is still read; if it is damaged, it is replaced; if neither
works, every process compiles for itself, and one warning says so.
"""

import hashlib
import os
import pickle
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import numba
from numba.core import caching

_Function = TypeVar("_Function", bound=Callable[..., Any])

_STRICT: frozenset[str] = frozenset()
_FUSED = frozenset({"contract"})
_REORDERED = frozenset({"contract", "reassoc", "nsz"})

KERNELS: list[Any] = []  # every kernel of the modules that were imported


@cache
def _digest_folder(folder: Path) -> str:
    """Return one digest of all files in a folder: numba checks only a kernel's own file, not those of its helpers."""
    sources = [Path(__file__), *sorted(folder.glob("*.py"))]
    return hashlib.sha256(b"".join(hashlib.sha256(source.read_bytes()).digest() for source in sources)).hexdigest()


@cache
def _warn_once() -> None:
    warnings.warn(
        "compiled functions cannot be kept on disk, so every process spends seconds on compiling them again; "
        "set NUMBA_CACHE_DIR to a folder that can be written and has some MB of space left",
        RuntimeWarning,
        stacklevel=2,
    )


class _File(caching.IndexDataCacheFile):  # type: ignore[misc]  # numba has no types
    """Cached data with a checksum, because damaged machine code would crash the process."""

    def _save_data(self, name: str, data: Any) -> None:
        content = self._dump(data)
        super()._save_data(name, (hashlib.sha256(content).digest(), content))

    def _load_data(self, name: str) -> Any:
        checksum, content = super()._load_data(name)
        if hashlib.sha256(content).digest() != checksum:
            raise ValueError(f"{name} is damaged")
        return pickle.loads(content)


def _read_only(locator: type) -> type:
    """Make a locator that also accepts a read-only folder with a cache in it; numba's own locators have to write."""
    return type(locator.__name__, (locator,), {"ensure_cache_path": _require_cache})


def _require_cache(locator: Any) -> None:
    if not any(name.endswith(".nbi") for name in os.listdir(locator.get_cache_path())):
        raise FileNotFoundError(locator.get_cache_path())


class _Folders(caching.CompileResultCacheImpl):  # type: ignore[misc]  # numba has no types
    """numba's folders in numba's order: NUMBA_CACHE_DIR, the package's own, the user's. Each may be read-only."""

    _locator_classes: ClassVar = [
        either
        for locator in caching.CompileResultCacheImpl._locator_classes
        for either in (locator, _read_only(locator))
    ]


class _Cache(caching.FunctionCache):  # type: ignore[misc]  # numba has no types
    """numba's cache of one kernel, valid until a source in the kernel's folder changes; only creating it can fail."""

    _impl_class = _Folders

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp(), _digest_folder(Path(function.__code__.co_filename).parent)
        self._cache_file = _File(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            return super().load_overload(signature, context)
        except Exception:  # unpickling garbage may raise anything
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        try:
            self._save(signature, result)
        except Exception:
            _warn_once()

    def _save(self, signature: Any, result: Any) -> None:
        try:
            super().save_overload(signature, result)
        except OSError:
            raise
        except Exception:  # the index is damaged
            self.flush()
            super().save_overload(signature, result)


def _kernel(function: _Function, fastmath: frozenset[str]) -> _Function:
    kernel = numba.njit(nogil=True, error_model="numpy", fastmath=set(fastmath), no_cfunc_wrapper=True)(function)
    try:
        kernel._cache = _Cache(function)
    except Exception:  # there is no folder, or this version of numba is unknown
        _warn_once()
    KERNELS.append(kernel)
    return cast(_Function, kernel)


def _helper(function: _Function, fastmath: frozenset[str], **options: Any) -> _Function:
    return cast(_Function, numba.njit(nogil=True, error_model="numpy", fastmath=set(fastmath), **options)(function))


def compiled(function: _Function) -> _Function:
    """Make a kernel whose operations are neither fused nor reordered: it computes exactly what its source says."""
    return _kernel(function, _STRICT)


def fused(function: _Function) -> _Function:
    """Make a kernel that keeps the order of operations, but may fuse a multiplication and an addition."""
    return _kernel(function, _FUSED)


def helper(function: _Function) -> _Function:
    """Make a helper that computes as `fused` does."""
    return _helper(function, _FUSED, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def embedded(function: _Function) -> _Function:
    """Make a helper whose machine code is copied into its callers: for what is done once per arm, or per row."""
    return _helper(function, _FUSED, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)


def inlined(function: _Function) -> _Function:
    """Make a helper that becomes a part of its caller: for functions that call others and have one or two callers."""
    return _helper(function, _FUSED, inline="always")


def reordered(function: _Function) -> _Function:
    """Make a helper whose sums may be reordered, hence vectorised; NaN and infinity keep their meaning."""
    return _helper(function, _REORDERED, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def embedded_sum(function: _Function) -> _Function:
    """Make a helper as `reordered` does, whose machine code is copied into its callers."""
    return _helper(function, _REORDERED, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)


def entry(function: _Function) -> _Function:
    """Turn a helper into a kernel, for callers in Python."""
    return fused(cast(_Function, getattr(function, "py_func", function)))  # NUMBA_DISABLE_JIT=1: no py_func
