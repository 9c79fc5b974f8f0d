"""Mutants: when a defining line is wrong, does a test notice? `make mutants` runs those that mutants.toml lists.

A mutant replaces one text in a copy of the sources. The tests listed with it, which pass on the sources as they are,
have to fail on that copy. A mutant that survives means that a test is missing.

Compiled functions are interpreted unless the mutant says `compiled = true`: with small arrays that takes less time than
compiling. Everything happens in a temporary folder, numba's cache included, which is removed even after Ctrl-C.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_SECONDS = 300.0  # for a mutant, which may loop forever
PASSED, FAILED = 0, 1  # exit codes of pytest; any other says that the tests could not be run
OPTIONS = ("-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider")
TEMPORARY = ("interpreted", "compiled")  # folders for what tests write
SETTINGS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Mutant:
    """`old`, which occurs once in `file` of the package, becomes `new`; some of `tests`, in tests/, have to fail."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    compiled: bool = False

    def find_line(self, root):
        """Return the number of the line that changes; the list has rotted if there is not exactly one."""
        text = self._path(root).read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"mutants.toml: {self.old!r} occurs {text.count(self.old)} times in {self.file}, not once")
        return text[: text.index(self.old)].count("\n") + 1

    def apply(self, root):
        """Change the file in a copy of the sources."""
        path = self._path(root)
        before = path.stat().st_mtime
        path.write_text(path.read_text().replace(self.old, self.new))
        os.utime(path, (before + 2, before + 2))  # Python ignores a change of equal length in the same second

    def _path(self, root):
        return root / "src" / "preselect" / self.file


def read_mutants(root):
    tables = tomllib.loads((root / "tests" / "mutants.toml").read_text())["mutant"]
    return [Mutant(**table | {"tests": tuple(table["tests"])}) for table in tables]


class Runs:
    """Runs tests in copies of the sources, and kills those that are running when it is told to stop."""

    def __init__(self, root, folder):
        self.folder, self.original = Path(folder), Path(folder) / "original"
        self.running, self.lock, self.stopped = set(), threading.Lock(), False
        for name in ("src", "tests"):
            shutil.copytree(root / name, self.original / name)
        shutil.copy2(root / "pyproject.toml", self.original)

    def try_original(self, tests, compiled):
        """Run tests on the sources as they are, which also compiles what they need."""
        return self._test(self.original, tests, compiled, None)

    def try_mutant(self, mutant):
        """Run the tests of a mutant; return the exit code, None if it took too long, and the output, as above."""
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            left = shutil.ignore_patterns(*TEMPORARY)  # by tests: pipes, devices and links among them
            copy = shutil.copytree(self.original, Path(place) / "copy", ignore=left)  # with the times of cached code
            mutant.apply(copy)
            return self._test(copy, mutant.tests, mutant.compiled, MOST_SECONDS)

    def stop(self):
        with self.lock:
            self.stopped = True
            for process in self.running:
                _kill(process)

    def _test(self, copy, tests, compiled, most_seconds):
        temporary = copy / TEMPORARY[compiled]  # originals run both at the same time
        temporary.mkdir(exist_ok=True)
        paths = [f"tests/{name}" for name in tests]
        command = [sys.executable, "-m", "pytest", *OPTIONS, f"--basetemp={temporary / 'pytest'}", *paths]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTEST_"))}
        settings = SETTINGS | {"PYTHONPATH": str(copy / "src"), "TMPDIR": str(temporary)}
        environment = inherited | settings | ({} if compiled else {"NUMBA_DISABLE_JIT": "1"})
        return self._run(command, copy, environment, most_seconds)

    def _run(self, command, folder, environment, most_seconds):
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        with self.lock:
            if self.stopped:
                raise InterruptedError
            process = subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **streams)
            self.running.add(process)
        try:
            output, _ = process.communicate(timeout=most_seconds)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            _kill(process)
            return None, process.communicate()[0]
        finally:
            with self.lock:
                self.running.discard(process)


def _kill(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def check_original(runs, pool, mutants):
    """Run the tests of all mutants on the sources as they are; raise an error unless they pass."""
    by_kind = {kind: {test for one in mutants if one.compiled == kind for test in one.tests} for kind in (False, True)}
    for future in [pool.submit(runs.try_original, sorted(tests), kind) for kind, tests in by_kind.items() if tests]:
        code, output = future.result()
        if code != PASSED:
            raise ValueError(f"{output}\nthe tests have to pass before anything is mutated")


def try_all(runs, pool, mutants):
    """Try mutants, say how each ended as soon as that is known, and return the lines about those that survived."""
    futures = {pool.submit(runs.try_mutant, mutant): mutant for mutant in mutants}
    survived = []
    for done, future in enumerate(as_completed(futures), start=1):
        mutant, (code, output) = futures[future], future.result()
        if code not in (PASSED, FAILED, None):
            raise ValueError(f"{output}\nthe tests of {mutant} cannot be run")
        ending = {PASSED: "SURVIVED", FAILED: "killed", None: "killed, endless"}[code]
        about = f"{mutant.file}:{mutant.find_line(runs.original)}: {_join(mutant.old)} -> {_join(mutant.new)}"
        print(f"{done}/{len(mutants)} {ending}: {about}", flush=True)
        if code == PASSED:
            survived.append(about)
    return survived


def _join(text):
    return " ".join(text.split()) or "(nothing)"


def main(arguments=None, root=ROOT):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", help="only mutants with one of these in the path of the file or in `old`")
    parser.add_argument("--workers", type=int, default=2, help="how many to try at a time; 2 by default")
    options = parser.parse_args(arguments)
    wanted = options.texts or [""]
    mutants = [one for one in read_mutants(root) if any(text in f"{one.file}\n{one.old}" for text in wanted)]
    if not mutants:
        raise ValueError(f"mutants.toml has no mutant with {' or '.join(wanted)}")
    for mutant in mutants:
        mutant.find_line(root)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(options.workers) as pool:
        runs = Runs(root, folder)
        try:
            check_original(runs, pool, mutants)
            print(f"the tests pass on the sources as they are, after {time.monotonic() - began:.0f} s", flush=True)
            survived = try_all(runs, pool, mutants)
        finally:
            runs.stop()
            pool.shutdown(cancel_futures=True)
    print(f"{len(mutants) - len(survived)} of {len(mutants)} mutants killed in {time.monotonic() - began:.0f} s")
    for about in survived:
        print(f"survived: {about}")
    return 1 if survived else 0


def start(root=ROOT):
    """Run as a command: signals end it in order, and what is wrong is said without a traceback."""
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: a shell's background jobs ignore it
        signal.signal(number, signal.default_int_handler)
    try:
        sys.exit(main(root=Path(root)))
    except KeyboardInterrupt:
        sys.exit("interrupted")
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    start()
