"""State files that were made to do harm, with checksums that are right: refused in a sentence, before they do."""

import copy
import io
import json
import os
import subprocess
import sys
import zipfile
from functools import cache

import numpy as np
import pytest
from hostile import D, N, make_policy, make_preselector
from hypothesis import given
from hypothesis import strategies as st

from preselect import Decision, InputError, Preselector, StateFileError, Winner, state
from preselect.policies import persistence, registry


def pack(header, arrays):
    """Make the content of a state file."""
    file = io.BytesIO()
    np.savez(file, header=np.array(json.dumps(header)), **arrays)
    return file.getvalue()


def unpack(content):
    with np.load(io.BytesIO(content)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return json.loads(str(arrays.pop("header"))), arrays


@cache
def write(name):
    """A state of each policy and of preselectors, by name; nothing is compiled before a test needs it."""
    if name == "preselector":
        return make_preselector().to_bytes()
    if name == "preselector of ids":
        return Preselector(["a", "b", "c"], ["x"], policy="ucb-mnl", seed=0).to_bytes()
    policy = make_policy(name)
    for place in range(6):
        decision = policy.select(np.eye(N, D) + 0.1 * place, 3)
        policy.learn(decision, Winner(decision.arms[place % 3]))
    return state.pack(policy.kind, *persistence.collect_state(policy))


STATES = (*registry.POLICIES, "preselector", "preselector of ids")
PLAIN = [None, True, -1, 0, 1, 3, 10**12, 2**62, 1e308, "", "a", "x" * 100, [], [1], ["a", "a"], {}, {"a": 1}, [[[]]]]


def use(content):
    """Read a state and, if it is accepted, use it: no kernel may read what is not there."""
    file = state.unpack(content, "file")
    if file.kind == "Preselector":
        chooser = Preselector.from_bytes(content)
        decision = chooser.select([1.0] * len(chooser.context), k=2)
        chooser.learn(decision, winner=decision.names[0])
    else:
        policy = persistence.restore(file)
        decision = policy.select(np.eye(N, D), 2)
        policy.learn(decision, Winner(decision.arms[0]))


def change_somewhere(value, draw):
    """Replace one value, at any depth, by another."""
    if isinstance(value, dict) and value and draw(st.integers(0, 4)):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: change_somewhere(value[key], draw)}
    return draw(st.sampled_from(PLAIN))


def make_integers(array):
    with np.errstate(invalid="ignore"):  # another change may have made its numbers infinite
        return array.astype(np.int64)


ARRAYS = {
    "dropped": lambda _: None,
    "longer": lambda array: np.concatenate((array, array)) if array.ndim else array,
    "shorter": lambda array: array[:-1] if array.ndim else array,
    "empty": lambda array: array[:0] if array.ndim else array,
    "of one axis more": lambda array: array[None],
    "flat": lambda array: array.ravel(),
    "single": lambda array: array.astype(np.float32) if array.dtype.kind != "U" else array,
    "integers": lambda array: make_integers(array) if array.dtype.kind != "U" else array,
    "numbers": lambda array: array.astype(np.float64) if array.dtype.kind != "U" else array,
    "big endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "huge": lambda array: np.full_like(array, 2**62 if array.dtype.kind == "i" else 1),
    "negative": lambda array: np.full_like(array, -5 if array.dtype.kind not in "bu" else 1),
    "opposite": lambda array: array[::-1].copy() if array.ndim else array,
    "infinite": lambda array: np.full_like(array, np.inf) if array.dtype.kind == "f" else array,
    "text": lambda array: array.astype("U8"),
    "fortran": lambda array: np.asfortranarray(array),
}


def change(header, arrays, draw):
    if not arrays or draw(st.booleans()):
        return change_somewhere(header, draw), arrays
    name = draw(st.sampled_from(sorted(arrays)))
    changed = ARRAYS[draw(st.sampled_from(sorted(ARRAYS)))](arrays[name])
    return header, {
        key: changed if key == name else array for key, array in arrays.items() if key != name or changed is not None
    }


@pytest.mark.parametrize("name", STATES)
@given(st.data())
def test_a_changed_state_is_refused_or_can_be_used(name, data):
    header, arrays = unpack(write(name))
    for _ in range(data.draw(st.integers(1, 2))):
        if isinstance(header, dict):
            header, arrays = change(header, arrays, data.draw)
    content = pack(header, arrays)
    try:
        with np.errstate(all="ignore"):
            use(content)
    except (StateFileError, InputError):
        pass


@pytest.mark.parametrize("name", ["ucb-mnl", "ts-mnl", "colstim", "newton"])
@pytest.mark.parametrize("sizes", [[3 * 10**9, 3 - 3 * 10**9], [2**62, 2**62, 2**62, 2**62], [-3, 6]])
def test_sizes_that_only_add_up_are_refused(name, sizes):
    header, arrays = unpack(write(name))
    total = int(arrays["sizes"].sum())
    arrays["sizes"] = np.array([*sizes, total - sum(sizes[:2]) if len(sizes) == 2 else total], dtype=np.int64)
    arrays["lengths"] = np.minimum(np.ones(len(arrays["sizes"]), dtype=np.int64), arrays["sizes"])
    with pytest.raises(StateFileError, match="lengths has to say for each outcome"):
        use(pack(header, arrays))


def claim(size):
    """The beginning of an array of this many numbers."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (size,)})
    return file.getvalue()


def run_limited(script, tmp_path):
    """Run a script in a process that may have one GB of memory beside what compiled code needs."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
    command = [sys.executable, "-c", f"import preselect\n{limit}{script}"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)


def test_bombs_are_not_expanded(tmp_path):
    header, arrays = unpack(write("newton"))
    with zipfile.ZipFile(tmp_path / "compressed.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("header.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array(member, np.array(json.dumps(header)))
        with archive.open("A.npy", "w", force_zip64=True) as member:
            member.write(claim(768 << 17))
            for _ in range(768):
                member.write(bytes(1 << 20))
    assert (tmp_path / "compressed.npz").stat().st_size < 8 << 20
    with zipfile.ZipFile(tmp_path / "claim.npz", "w") as archive:
        archive.writestr("header.npy", claim(10**11))
    huge = copy.deepcopy(header)
    huge["parameters"]["d"] = 20_000
    (tmp_path / "features.npz").write_bytes(pack(huge, arrays))
    nested = io.BytesIO()
    np.savez(nested, header=np.array("[" * 100_000))
    (tmp_path / "nested.npz").write_bytes(nested.getvalue())
    script = """
for name in ("compressed", "claim", "features", "nested"):
    try:
        preselect.load(f"{name}.npz")
    except preselect.StateFileError as error:
        print(error)
from pathlib import Path
status = Path("/proc/self/status")  # ru_maxrss would count what the parent had
print(int(status.read_text().split("VmHWM:")[1].split()[0]) >> 10 if status.exists() else 0)
"""
    done = run_limited(script, tmp_path)
    assert done.returncode == 0, done.stderr
    *said, memory = done.stdout.splitlines()
    assert said == [
        "compressed.npz is not a preselect-state file: those are not compressed, and this archive expands",
        "claim.npz is not a preselect-state file, or it is truncated or damaged",
        "features.npz is not a complete Newton state: d=20000 makes 800020000 numbers, but the arrays have "
        f"{sum(array.size for array in arrays.values())}",
        "nested.npz is not a preselect-state file: it has no header of that format",
    ]
    assert int(memory) < 600  # MB


def test_a_decision_whose_parts_do_not_fit_is_refused():
    good = make_policy("newton").select(np.eye(N, D), 3)
    arms, rows, bounds = good.arms.copy(), good.rows.copy(), np.zeros(6)
    for parts in (
        (arms, bounds, rows[:1], arms),
        (np.arange(300), np.zeros(600), rows, np.arange(300)),
        (arms, bounds[:5], rows, arms),
        (arms, bounds, rows, arms[:2].copy()),
        (arms, bounds, rows[0], arms),
        (arms, bounds, rows.astype(object), arms),
        (None, bounds, rows, arms),
        (arms.tolist(), bounds, rows, arms),
    ):
        with pytest.raises(InputError, match="arms, bounds, rows and ids do not fit together"):
            Decision(*parts, 1)


def test_what_was_saved_can_be_used():
    for name in STATES:
        use(write(name))
