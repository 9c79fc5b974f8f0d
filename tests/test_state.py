"""State files: what goes in comes out, and what is not one is refused with a sentence."""

import json
import zipfile

import numpy as np
import pytest

import preselect
from preselect import CPPL, MM, MaxTheta, NoWinner, Random, StateFileError, Thompson, Void, Winner, state
from preselect.policies.persistence import collect_state


def learnt(make=CPPL, **parameters):
    policy = make(d=3, seed=5, **parameters)
    generator = np.random.default_rng(0)
    for _ in range(20):
        decision = policy.select(generator.random((8, 3)), 3)
        policy.learn(decision, Winner(decision.arms[generator.integers(3)]))
    return policy


def test_load_finds_the_class_and_the_parameters(tmp_path):
    learnt(omega=0.5, theta_0=[0.0, 1.0, 2.0]).save(tmp_path / "a.npz")
    loaded = preselect.load(tmp_path / "a.npz")
    assert type(loaded) is CPPL
    assert repr(loaded) == "CPPL(d=3, rounds=20, observations=20)"
    assert (loaded.omega, loaded.theta_0, loaded.observations, loaded.rounds) == (0.5, [0.0, 1.0, 2.0], 20, 20)
    for make in (MaxTheta, MM, Random):
        learnt(make).save(tmp_path / "b.npz")
        assert type(preselect.load(str(tmp_path / "b.npz"))) is make


def test_a_policy_of_ones_own_is_loaded_too(tmp_path):
    class Mine(MaxTheta):
        pass

    learnt(Mine).save(tmp_path / "mine.npz")
    assert type(preselect.load(tmp_path / "mine.npz")) is Mine
    with pytest.raises(StateFileError, match=r"holds a test_state:.*Mine, not a MaxTheta"):
        MaxTheta.load(tmp_path / "mine.npz")


def test_a_loaded_policy_goes_on_without_the_file(tmp_path):
    policy = learnt()
    policy.save(tmp_path / "a.npz")
    loaded = CPPL.load(tmp_path / "a.npz")
    (tmp_path / "a.npz").unlink()
    decision = loaded.select(np.eye(3), 2)
    loaded.learn(decision, Winner(decision.arms[0]))
    assert not np.array_equal(loaded.theta, policy.theta)


@pytest.mark.parametrize("seed", [1, None])
def test_counts_and_chance_come_back(tmp_path, seed):
    policy = Thompson(d=3, outside=True, seed=seed)
    X = np.eye(3)
    for outcome in (NoWinner(), Void(), NoWinner(), Winner(0)):
        policy.learn(policy.select(X, 3), outcome)
    policy.save(tmp_path / "a.npz")
    loaded = preselect.load(tmp_path / "a.npz")
    assert [loaded.rounds, loaded.observations, loaded.no_winners, loaded.voids] == [4, 1, 2, 1]
    drawn = [[policy.select(X, 3).scores.tolist() for _ in range(3)] for policy in (policy, loaded)]
    assert drawn[0] == drawn[1]


def test_saving_keeps_links_and_modes(tmp_path):
    target, link = tmp_path / "target.npz", tmp_path / "link.npz"
    target.touch(0o600)
    link.symlink_to(target)
    learnt().save(link)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o600
    assert type(preselect.load(target)) is CPPL
    with pytest.raises(preselect.InputError, match=f"cannot write {tmp_path}: Is a directory"):
        learnt().save(tmp_path)


def test_what_would_have_to_be_pickled_is_not_saved(tmp_path):
    with pytest.raises(TypeError, match="arrays of objects cannot be saved: x"):
        state.write(tmp_path / "a.npz", "Odd", {}, {"x": np.array([None])})
    assert list(tmp_path.iterdir()) == []


def test_a_state_that_is_not_finite_is_refused(tmp_path):
    policy = learnt()
    policy.P[0, 0] = np.nan
    policy.save(tmp_path / "a.npz")
    with pytest.raises(StateFileError, match="not a complete CPPL state: P has entries that are not finite"):
        preselect.load(tmp_path / "a.npz")


def test_an_unfinished_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    learnt().save(path)
    before = path.read_bytes()
    monkeypatch.setattr(np, "savez", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        learnt(omega=3.0).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_every_truncation_is_an_error():
    whole = state.pack("CPPL", *collect_state(learnt()))
    for length in [*range(0, len(whole), 97), len(whole) - 1]:
        with pytest.raises(
            StateFileError, match=r"a\.npz is not a preselect-state file, or it is truncated or damaged"
        ):
            state.unpack(whole[:length], "a.npz")


def test_a_flipped_byte_never_passes_unnoticed(tmp_path):
    path = tmp_path / "a.npz"
    policy = learnt()
    policy.save(path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 61):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            loaded = preselect.load(path)
        except StateFileError:
            continue
        assert np.array_equal(loaded.estimate.block, policy.estimate.block)  # a byte that the zip format does not use


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04", b"\x93NUMPY\x01\x00"])
def test_foreign_bytes_are_refused(tmp_path, content):
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(StateFileError, match=r"a\.npz is not a preselect-state file"):
        preselect.load(path)


def test_foreign_archives_are_refused(tmp_path):
    np.savez(tmp_path / "foreign.npz", x=np.zeros(3))
    np.savez(tmp_path / "strange.npz", header=np.array(json.dumps({"format": "other", "version": 1, "kind": "CPPL"})))
    np.savez(tmp_path / "listed.npz", header=np.array("[1, 2]"))
    np.save(tmp_path / "array.npz.npy", np.zeros(3))
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as file:
        file.writestr("readme.txt", "hello")
    for name in ("foreign.npz", "strange.npz", "listed.npz", "array.npz.npy", "text.npz"):
        with pytest.raises(StateFileError, match=f"{name} is not a preselect-state file"):
            preselect.load(tmp_path / name)


def test_pickles_are_never_opened(tmp_path):
    np.savez(tmp_path / "a.npz", header=np.array([{"format": state._FORMAT}], dtype=object))
    with pytest.raises(StateFileError):
        preselect.load(tmp_path / "a.npz")


def rewritten(path, **changes):
    file = state.read(path)
    state.write(path, changes.pop("kind", file.kind), {**file.header, **changes}, file.arrays)


def test_newer_missing_unknown_and_incomplete_files_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    with pytest.raises(StateFileError, match=r"cannot read .*a\.npz: No such file or directory"):
        preselect.load(path)
    learnt().save(path)
    rewritten(path, kind="Oracle")
    with pytest.raises(StateFileError, match="holds a Oracle, a policy whose class has not been imported"):
        preselect.load(path)
    rewritten(path, kind="CPPL", parameters={"d": 4})
    with pytest.raises(
        StateFileError, match=r"not a complete CPPL state: d=4 makes 72 numbers, but the arrays have 42"
    ):
        preselect.load(path)
    rewritten(path, kind="CPPL", parameters={"d": 2})
    with pytest.raises(StateFileError, match=r"not a complete CPPL state: theta_hat has shape \(3,\), expected \(2,\)"):
        preselect.load(path)
    rewritten(path, parameters={"d": 3, "speed": 9})
    with pytest.raises(StateFileError, match=r"not a complete CPPL state: .*speed"):
        preselect.load(path)
    rewritten(path, parameters={"d": 3}, counts={})
    with pytest.raises(StateFileError, match=r"not a complete CPPL state: 'rounds'"):
        preselect.load(path)
    monkeypatch.setattr(state, "VERSION", 2)
    learnt().save(path)
    monkeypatch.setattr(state, "VERSION", 1)
    with pytest.raises(StateFileError, match="has version 2, and this preselect reads up to 1; update preselect"):
        preselect.load(path)
