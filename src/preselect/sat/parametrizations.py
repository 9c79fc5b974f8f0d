"""The paper's 20 parametrizations of SAPS: as printed in its supplement, and with the values that took effect.

Some of the probabilities were drawn negative. The paper's solver, ubcsat, compares them in 32-bit arithmetic that wraps
around, so that p < 0 has the effect of 1 - |p|. The printed values are the features of the arms; the effective values
are those that make a solver behave in the same way. One value differs in the data behind the paper, where wp of number
10 is 0.7155.
"""

import numpy as np

from preselect.sat.saps import Parameters

PARAMETER_NAMES = ("alpha", "rho", "ps", "wp")

PRINTED = np.array(
    [
        [1.54114, 0.851212, 0.739441, 0.846641],
        [1.85872, 0.662701, 0.532759, 0.193693],
        [1.48834, 0.839351, -0.219562, 0.973629],
        [0.807838, 0.787876, 0.634953, 0.987749],
        [1.27937, 0.78502, 0.871624, 0.769004],
        [1.08792, 0.0999449, 0.624429, -0.271802],
        [1.65351, 0.828302, 0.711434, 0.952419],
        [1.45122, 0.515806, 0.804639, -0.202731],
        [1.6245, 0.553748, 0.464212, 0.419496],
        [1.40361, 0.728122, 0.743332, 0.733345],
        [1.92961, 0.91072, 0.995255, 0.958284],
        [1.40955, 0.740847, -0.0788468, -0.367871],
        [1.79481, 0.82973, 0.81912, 0.318974],
        [1.8575, 0.654704, 0.588427, 0.466252],
        [1.74699, 0.699139, 0.610026, 0.96016],
        [1.88793, 0.464533, 0.924795, 0.727195],
        [1.6724, 0.830823, 0.704286, 0.791863],
        [1.97717, 0.941355, 0.824751, 0.935904],
        [1.71295, -0.955414, 0.988518, 0.585664],
        [0.859881, 0.932354, -0.0785504, 0.496108],
    ]
)
PRINTED.setflags(write=False)


def convert_printed(printed: tuple[float, float, float, float]) -> Parameters:
    """Convert a printed row into the parameters that took effect.

    Parameters
    ----------
    printed : tuple of float
        alpha, rho, ps and wp; of the last two, which are probabilities, p < 0 stands for 1 + p.

    Examples
    --------
    >>> convert_printed((1.48834, 0.839351, -0.219562, 0.973629)).ps
    0.780438
    """
    alpha, rho, ps, wp = map(float, printed)
    return Parameters(alpha, rho, _wrap(ps), _wrap(wp))


def _wrap(probability: float) -> float:
    return probability if probability >= 0.0 else 1.0 + probability


EFFECTIVE: tuple[Parameters, ...] = tuple(convert_printed(tuple(row)) for row in PRINTED)
