"""A first pool of programs other than SAT solvers: compressors, of which the one with the smallest output wins."""

import shutil
import sys

from preselect.race.solvers import Solver

_COMMANDS = {
    "gzip": ("gzip", "-9", "-c", "{instance}"),
    "bzip2": ("bzip2", "-9", "-c", "{instance}"),
    "xz": ("xz", "-9", "-c", "{instance}"),
    "zstd": ("zstd", "-19", "-q", "-c", "{instance}"),
}
_MODULES = {"gzip": "gzip", "bzip2": "bz2", "xz": "lzma"}  # Python's modules, for programs that are not installed
_SCRIPT = "import sys, {0}; sys.stdout.buffer.write({0}.compress(open(sys.argv[1], 'rb').read()))"

PROGRAMS = """\
# A pool of programs. `preselect race POOL FILE...` races k of them on each file, takes the best value, and learns which
# to choose. `preselect race check POOL --instance FILE` tests every arm.

k = {k}                            # racers per file; at most the number of idle cores
seed = 0
journal = {journal}         # decisions and outcomes; in the folder of this file

[limits]
seconds = {seconds:g}                     # per race
# memory = 4000                  # MB per racer; unlimited if left out
output = 64                      # MB of output per racer

[features]                       # what is known about a file before the race
from = "file"                    # its size, and what its bytes look like
# from = "command"               # a program that prints a JSON object of numbers; null for a missing one
# command = ["my-features", "{{instance}}"]

[success]                        # every racer runs to its end, and the best value wins
value = ["stat", "--format=%s", "{{output}}"]  # a command that prints a number: here the size of the output
better = "smaller"               # or "larger"
# verifier = ["my-checker", "{{instance}}", "{{output}}"]  # a program that exits with 0 if the answer is right

# Optimisers print their values, and those that are stopped at the time limit count with the last one; a program that
# keeps its output back needs `stdbuf -oL` before it, or a limit of its own below that of the race. Take care that the
# expression finds values of solutions only, not bounds. For solvers of integer programs, for instance, minimising:
#
# [success]
# better = "smaller"
# [arms.glpk]
# command = ["glpsol", "--tmlim", "50", "--lp", "{{instance}}"]
# success = {{ value = 'mip = +(\\S+) +>=' }}  # `obj =` would be the relaxation
# [arms.cbc]
# command = ["cbc", "{{instance}}", "sec", "50", "solve"]
# success = {{ value = 'Objective value: +(\\S+)' }}
# [arms.highs]
# command = ["highs", "--time_limit", "50", "{{instance}}"]
# success = {{ value = 'Primal bound +(\\S+)' }}
"""


def find_compressors(path: str | None = None) -> list[Solver]:
    """Find gzip, bzip2, xz and zstd, or what Python has instead of the first three.

    Parameters
    ----------
    path : str, optional
        The folders to search, as in the environment variable PATH, which is the default.
    """
    found = []
    for name, command in _COMMANDS.items():
        if shutil.which(name, path=path):
            found.append(Solver(name, command, {}))
        elif name in _MODULES:
            found.append(Solver(name, (sys.executable, "-c", _SCRIPT.format(_MODULES[name]), "{instance}"), {}))
    return found
