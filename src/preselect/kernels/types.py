"""The array types and the constants that the kernels and their callers share."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Matrix = NDArray[np.floating[Any]]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

OK, NOT_FINITE, TIED, IMPRECISE, LONG = 0, 1, 2, 3, 4  # what a kernel returns
LOGARITHM, PLAIN, CONTRAST = 0, 1, 2  # the forms of a width

ROUNDING = 1e-10  # rounding may lower a log-likelihood by this share of it
