"""Choices are pure, decisions travel as JSON, and learning goes by name: for many processes with one state."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from preselect import InputError, NamedDecision, Preselector, Thompson, state
from preselect.policies import registry
from preselect.policies.persistence import collect_state
from preselect.store import Learner, verify

ARMS = {name: {"price": price} for name, price in zip("abcdef", [3.0, 1.0, 4.0, 1.5, 9.0, 2.0], strict=True)}
QUICK = {"ofu-mnl": "ofu-mnl(K=3)", "ucb-mnl": "ucb-mnl(every=5)", "ts-mnl": "ts-mnl(every=5)"}
POLICIES = [QUICK.get(name, name) for name in registry.POLICIES]


def make(policy, order="abcdef", seed=0):
    return Preselector({name: ARMS[name] for name in order}, ["size", "age"], policy=policy, seed=seed)


def random_context(generator):
    return {"size": generator.normal() * 10.0, "age": None if generator.random() < 0.1 else generator.random()}


def play(preselector, rounds, seed=1):
    generator = np.random.default_rng(seed)
    for _ in range(rounds):
        decision = preselector.select(random_context(generator), k=3)
        preselector.learn(decision, winner=decision.names[generator.integers(3)])


@pytest.mark.parametrize("policy", [*POLICIES, "newton(choose='cover')", "thompson(draws='slot')"])
def test_a_choice_changes_nothing_and_can_be_repeated(policy):
    preselector, generator = make(policy), np.random.default_rng(2)
    play(preselector, 12)
    before, other = preselector.to_bytes(), Preselector.from_bytes(preselector.to_bytes())
    for seed in range(15):
        arguments = {
            "k": int(generator.integers(1, 5)),
            "seed": seed,
            "eligible": generator.permutation(list("abcdef"))[:5],
        }
        context = random_context(generator)
        one, two = (each.choose(context, **arguments) for each in (preselector, other))
        assert one.to_json() == two.to_json() == preselector.choose(context, **arguments).to_json()
        assert one.version == preselector.version == 6 + 2 * 12
    assert preselector.to_bytes() == other.to_bytes() == before


@pytest.mark.parametrize("policy", ["thompson", "epsilon-greedy(epsilon=0.5)", "random", "ts-mnl"])
def test_what_is_left_to_chance_depends_on_the_seed(policy):
    preselector = make(policy)
    play(preselector, 5)
    assert len({preselector.choose({"size": 1.0, "age": 0.5}, 3, seed=seed).names for seed in range(40)}) > 3


def test_select_is_choose_with_the_next_seed_and_record():
    one, two = make("thompson"), make("thompson")
    for _ in range(10):
        chosen = two.choose([1.0, 2.0], 2, seed=two.policy.next_seed)
        two.record(chosen)
        assert one.select([1.0, 2.0], 2) == chosen
    assert one.to_bytes() == two.to_bytes()


@pytest.mark.parametrize("policy", POLICIES)
def test_decisions_chosen_elsewhere_teach_the_same_wherever_arms_stand(policy):
    """One process alone; and one that chooses with arms in another order, with decisions sent as JSON to a third."""
    alone, chooser, learner = make(policy), make(policy, "fedcba"), make(policy)
    generator = np.random.default_rng(3)
    for _ in range(8):
        context, winner = random_context(generator), int(generator.integers(3))
        text = chooser.choose(context, 3, seed=int(generator.integers(1000))).to_json()
        for each in (alone, learner, chooser):
            decision = NamedDecision.from_json(text)
            each.record(decision)
            each.learn(decision, winner=decision.names[winner])
    assert alone.to_bytes() == learner.to_bytes()
    if policy in ("cppl", "max-theta", "epsilon-greedy"):
        return  # they start from random weights, so that arms in another order begin differently
    utilities = [each.scores({"size": 2.0, "age": 0.3}) for each in (alone, chooser)]
    assert utilities[1] == pytest.approx(utilities[0], rel=1e-6, abs=1e-9)


_LEARN = """
import json, sys
from pathlib import Path
from preselect import NamedDecision, Preselector
told = json.load(sys.stdin)
for policy, lines in told.items():
    path = Path(sys.argv[1]) / policy
    learner = Preselector.load(path)
    for text, winner in lines:
        decision = NamedDecision.from_json(text)
        learner.record(decision)
        learner.learn(decision, winner=winner)
    learner.save(path)
"""


def test_another_process_learns_the_same_bit_for_bit(tmp_path):
    """One process chooses, with arms in another order, and sends decisions as JSON to one that learns."""
    generator, told, alone = np.random.default_rng(4), {policy: [] for policy in POLICIES}, {}
    for policy, lines in told.items():
        alone[policy], chooser = make(policy), make(policy, "cbafed")
        alone[policy].save(tmp_path / policy)
        for _ in range(6):
            decision = chooser.choose(random_context(generator), 3, seed=int(generator.integers(1000)))
            lines.append((decision.to_json(), decision.names[1]))
            for each in (alone[policy], chooser):
                each.record(decision)
                each.learn(decision, winner=decision.names[1])
    subprocess.run([sys.executable, "-c", _LEARN, tmp_path], input=json.dumps(told), text=True, check=True)
    for policy, preselector in alone.items():
        assert Preselector.load(tmp_path / policy).to_bytes() == preselector.to_bytes(), policy


def draw_rules(generator, k, eligible):
    """An arm to include, a limit for two of the arms, both or neither; some set obeys them."""
    include = {"include": eligible[:1]} if generator.random() < 0.5 else {}
    limited = len(eligible) > k and generator.random() < 0.5
    return include | ({"at_most": {"vowels": 1}, "groups": {"a": "vowels", "e": "vowels"}} if limited else {})


def choose_at_random(folder, choices):
    """Return a digest of many choices from the states in a folder, with random contexts, arguments and seeds."""
    generator, digest = np.random.default_rng(7), hashlib.sha256()
    states = [Preselector.load(path) for path in sorted(folder.iterdir())]
    for _ in range(choices):
        preselector, k = states[generator.integers(len(states))], int(generator.integers(1, 6))
        eligible = generator.permutation(list("abcdef"))[: generator.integers(k, 7)].tolist()
        context, seed = random_context(generator), int(generator.integers(1 << 40))
        rules = draw_rules(generator, k, eligible)
        digest.update(preselector.choose(context, k, seed=seed, eligible=eligible, **rules).to_json().encode())
    return digest.hexdigest()


@pytest.mark.soak
def test_ten_thousand_choices_are_the_same_in_two_processes(tmp_path):
    policies = [*POLICIES, "newton(choose='cover')", "thompson(draws='slot')", "newton(outside=True)"]
    for number, policy in enumerate(policies):
        for rounds in (0, 5, 40):
            preselector = make(policy)
            play(preselector, rounds)
            preselector.save(tmp_path / f"{number} {rounds}")
    code = "import sys; from pathlib import Path; from test_pure_choices import choose_at_random\n"
    code += f"print(choose_at_random(Path({str(tmp_path)!r}), 10_000))"
    command = [sys.executable, "-c", code]
    there = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    assert there.stdout.strip() == choose_at_random(tmp_path, 10_000) == choose_at_random(tmp_path, 10_000)


@pytest.mark.soak
def test_a_journal_of_ten_thousand_events_replays_to_the_same_state(tmp_path):
    generator = np.random.default_rng(8)
    with Learner.open(tmp_path / "journal", make=lambda: make("newton"), snapshot_every=3000) as learner:
        for _ in range(5000):
            entry = learner.select(random_context(generator), k=3)
            learner.learn(entry, winner=entry.decision.names[generator.integers(3)])
        state_at_the_end = learner.preselector.to_bytes()
    verification = verify(tmp_path / "journal")
    assert (verification.difference, verification.events) == (None, 10_000)
    with Learner.open(tmp_path / "journal", make=lambda: make("newton")) as learner:
        assert learner.preselector.to_bytes() == state_at_the_end


def test_the_right_arm_learns_though_the_arms_joined_in_another_order():
    a, b = Preselector(["u", "v", "x", "y"], seed=0), Preselector(["u", "v", "y", "x"], seed=0)
    for _ in range(60):
        b.learn(a.select(k=4), winner="x")
    scores = b.scores()
    assert max(scores, key=scores.get) == "x"


def test_decisions_that_the_learner_cannot_understand_are_refused():
    learner = make("newton")
    before = learner.to_bytes()
    strangers = Preselector(["a", "b", "z"], ["size", "age"], seed=0)
    others = Preselector({"a": {"price": 1.0, "weight": 2.0}, "b": {}}, ["size", "age"], seed=0)
    elsewhere = Preselector({"a": {"price": 1.0}, "b": {}}, ["size", "height"], seed=0)
    for decision, message in [
        (strangers.select([1.0, 2.0], 3), "there is no arm 'z'"),
        (others.select([1.0, 2.0], 2), "the decision has 'weight', but the features of the arms are 'price' here"),
        (elsewhere.select([1.0, 2.0], 2), "the decision has 'height', but the features of the context are"),
        ("x", "give what select returned"),
    ]:
        with pytest.raises(InputError, match=message):
            learner.learn(decision, winner="a")
    assert learner.to_bytes() == before


def test_features_are_matched_by_name():
    one = Preselector({"a": {"price": 1.0, "weight": 2.0}, "b": {"price": 3.0, "weight": 5.0}}, ["x", "y"], seed=0)
    two = Preselector({"a": {"weight": 2.0, "price": 1.0}, "b": {"weight": 5.0, "price": 3.0}}, ["y", "x"], seed=0)
    for value in range(20):
        decision = one.select({"x": float(value), "y": 1.0 / (1 + value)}, 2)
        two.record(decision)
        for each in (one, two):
            each.learn(decision, winner="a" if value > 10 else "b")
    for context in ({"x": 3.0, "y": 0.25}, {"x": 15.0, "y": 0.1}):
        assert two.scores(context) == pytest.approx(one.scores(context), abs=1e-9)


def test_files_that_kept_a_generator_give_reproducible_seeds(tmp_path):
    policy = Thompson(d=3, seed=1)
    header, arrays = collect_state(policy)
    del header["root"]
    header["generator"] = np.random.default_rng(5).bit_generator.state
    for name in ("one", "two"):
        state.write(tmp_path / name, "Thompson", header, arrays)
    X = np.random.default_rng(0).normal(size=(6, 3))
    one, two = (type(policy).load(tmp_path / name) for name in ("one", "two"))
    assert [one.select(X, 2).arms.tolist() for _ in range(9)] == [two.select(X, 2).arms.tolist() for _ in range(9)]


@pytest.mark.parametrize("seed", [-1, 1.5, None, "x"])
def test_seeds_are_integers_of_at_least_0(seed):
    with pytest.raises(InputError, match="seed"):
        make("newton").choose([1.0, 2.0], 2, seed=seed)
