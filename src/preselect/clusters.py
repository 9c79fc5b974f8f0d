"""Connect to a Dask cluster."""

from typing import Any

from preselect.errors import RunError


def connect(address: str) -> tuple[Any, Any]:
    """Return the module `distributed` and a client of the scheduler at an address.

    Parameters
    ----------
    address : str
        Where the scheduler is, as in tcp://host:8786.
    """
    try:
        import distributed as dask
    except ImportError:
        raise RunError("a cluster needs Dask; run pip install '.[dask]' in a checkout of preselect") from None
    distributed: Any = dask
    try:
        return distributed, distributed.Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise RunError(f"cannot reach a Dask scheduler at {address!r}: {str(error) or type(error).__name__}") from None
