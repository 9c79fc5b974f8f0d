"""Pools for tests: files, scripts and a formula."""

import stat

from preselect.race import read_pool
from preselect.sat import dimacs

FORMULA = dimacs.Formula.of(4, [[1, -2], [2, 3], [-1, -3, 4], [-4, 2]])

ARM = '[arms.a]\ncommand = ["a", "{instance}"]\n'

FULL = """
k = 2
policy = "cppl(omega=0.5)"
seed = 7
journal = "log/race.journal"
[limits]
seconds = 2.5
memory = 4000
output = 8
[features]
from = "sat"
clause_graph = true
seconds = 3
[success]
exit_codes = [10, 20]
verifier = "model"
[arms.one]
command = ["solver", "-s{seed}", "--limit={timeout}", "{instance}"]
features = { cdcl = 1, size = 2.5, fast = true }
environment = { OMP_NUM_THREADS = "1", EMPTY = "" }
[arms."two words"]
command = ["./own/solver", "in={instance}"]
success = { pattern = "^s (UN)?SAT", verifier = ["./check", "{instance}", "--of={output}"] }
[arms.three]
command = ["/usr/bin/solver", "{instance}"]
success = { exit_codes = [0], verifier = "none" }
"""


def write_pool_file(folder, text):
    path = folder / "pool.toml"
    path.write_text(text)
    return path


def make_pool(folder, text):
    return read_pool(write_pool_file(folder, text))


def write_script(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
