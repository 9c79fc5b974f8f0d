"""Features of any file: its size, and what its first bytes look like.

| feature       | meaning                                                                                    |
|---------------|--------------------------------------------------------------------------------------------|
| log_size      | logarithm to base 2 of 1 + the size in bytes                                               |
| entropy       | bits per byte, if bytes are independent                                                    |
| pair_entropy  | bits per byte, if the byte before is known                                                 |
| distinct      | share of the 256 bytes that occur                                                          |
| text          | share of printable ASCII characters, spaces, tabs and ends of lines                        |
| digits        | share of the digits 0 to 9                                                                 |
| lines         | share of ends of lines                                                                     |
| zeros         | share of zero bytes                                                                        |
| high          | share of bytes from 128 on                                                                 |
| repeats       | share of bytes that equal the byte before                                                  |
| repeats_of_4  | share of bytes that equal the byte four places before, as in tables of numbers             |

All but the size are about the first megabyte. Shares and entropies of an empty file are 0.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from preselect.errors import InputError

FILE_FEATURES = (
    "log_size",
    "entropy",
    "pair_entropy",
    "distinct",
    "text",
    "digits",
    "lines",
    "zeros",
    "high",
    "repeats",
    "repeats_of_4",
)

_MAX_BYTES = 1 << 20
_TEXT = [*range(32, 127), 9, 10, 13]


def compute_file_features(path: Path) -> dict[str, float | None]:
    """Compute the features of a file, by name; raise an InputError if it cannot be read.

    Parameters
    ----------
    path : Path
        The file.
    """
    try:
        with path.open("rb") as file:
            data = np.frombuffer(file.read(_MAX_BYTES), np.uint8)
            size = file.seek(0, 2)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    shares = np.bincount(data, minlength=256) / max(len(data), 1)
    values = (
        np.log2(1 + size),
        _measure_entropy(shares),
        _measure_pairs(data),
        np.count_nonzero(shares) / 256,
        shares[_TEXT].sum(),
        shares[48:58].sum(),
        shares[10],
        shares[0],
        shares[128:].sum(),
        _find_repeats(data, 1),
        _find_repeats(data, 4),
    )
    return dict(zip(FILE_FEATURES, map(float, values), strict=True))


def _measure_entropy(shares: NDArray[np.float64]) -> float:
    found = shares[shares > 0]
    return abs(float(-found @ np.log2(found)))  # not -0.0


def _measure_pairs(data: NDArray[np.uint8]) -> float:
    """Return the entropy of a byte, given the byte before: that of pairs minus that of their first bytes."""
    if len(data) < 2:
        return 0.0
    pairs = np.bincount(data[:-1].astype(np.int64) * 256 + data[1:], minlength=1 << 16) / (len(data) - 1)
    return max(0.0, _measure_entropy(pairs) - _measure_entropy(pairs.reshape(256, 256).sum(axis=1)))


def _find_repeats(data: NDArray[np.uint8], distance: int) -> float:
    return float(np.mean(data[distance:] == data[:-distance])) if len(data) > distance else 0.0
