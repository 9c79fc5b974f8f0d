"""Several threads on one policy or preselector: nothing is lost, nothing is torn, nothing crashes."""

import copy
import itertools
import os
import pickle
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np

from preselect import Preselector, Winner, state
from preselect.policies import registry
from preselect.policies.persistence import collect_state

N, D, K, THREADS, ROUNDS = 6, 4, 3, 4, 40


def run_together(*jobs):
    """Run jobs in threads that are switched as often as possible; raise what any of them raised."""
    raised, start = [], threading.Barrier(len(jobs))

    def run(job):
        start.wait()
        try:
            job()
        except BaseException as error:
            raised.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    if raised:
        raise raised[0]


def use_policy(name):
    """All threads select, learn, score and copy; the counts are exact, and each round has a number of its own."""
    policy, numbers = registry.POLICIES[name](d=D, seed=0), []
    contexts = np.random.default_rng(0).random((THREADS, ROUNDS, N, D))
    sizes = [N, 2 * N]
    decide = registry.POLICIES["random"](seed=1)
    decisions = [decide.select(X, K) for X in contexts[0]] * THREADS

    def play(thread):
        for place, X in enumerate(contexts[thread]):
            shown = np.tile(X, (sizes[place % 2] // N, 1))
            decision = policy.select(shown, K)
            numbers.append(decision.round)
            policy.learn(decision, Winner(decision.arms[place % K]))
            if place % 8 == thread:
                assert np.isfinite(policy.scores(X)).all()
                copied = copy.deepcopy(policy) if place % 16 < 8 else pickle.loads(pickle.dumps(policy))
                copied.learn(decision, Winner(decision.arms[0]))

    def learn(thread):
        for made in decisions[thread::THREADS]:
            policy.learn(made, Winner(made.arms[0]))

    run_together(*(partial(learn, thread) for thread in range(THREADS)))
    assert policy.observations == len(decisions)
    run_together(*(partial(play, thread) for thread in range(THREADS)))
    assert sorted(numbers) == list(range(1, THREADS * ROUNDS + 1))
    assert (policy.rounds, policy.observations) == (THREADS * ROUNDS, THREADS * ROUNDS + len(decisions))
    assert all(np.isfinite(array).all() for array in policy._arrays().values())
    history = getattr(policy.estimate, "history", None) if hasattr(policy, "estimate") else None
    if history is not None and name != "epoch-greedy":
        assert history.outcomes == len(history.arrays()["sizes"]) == policy.observations


def learn_in_some_order(name):
    """Three decisions learnt by three threads: the state is that of one of the six orders."""
    decide = registry.POLICIES["random"](seed=1)
    generator = np.random.default_rng(0)
    decisions = [decide.select(generator.random((N, D)), K) for _ in range(3)]

    def learn(order):
        policy = registry.POLICIES[name](d=D, seed=0)
        for place in order:
            policy.learn(decisions[place], Winner(decisions[place].arms[0]))
        return state.pack("any", *collect_state(policy))

    orders = {learn(order) for order in itertools.permutations(range(3))}
    for _ in range(20):
        policy = registry.POLICIES[name](d=D, seed=0)
        run_together(*(partial(policy.learn, made, Winner(made.arms[0])) for made in decisions))
        assert state.pack("any", *collect_state(policy)) in orders


def use_preselector(policy):
    """Threads select and learn while arms join: everything is counted, and the state can be saved at any time."""
    chooser = Preselector(["a", "b", "c"], ["x"], policy=policy, seed=0)

    def play():
        for place in range(ROUNDS):
            decision = chooser.select([float(place)], k=2)
            chooser.learn(decision, winner=decision.names[place % 2])

    def watch():
        for place in range(10):
            chooser.add(f"new{place}")
            assert Preselector.from_bytes(chooser.to_bytes()).arms == chooser.arms
            assert len(chooser.scores([1.0])) == 4 + place
            copy.copy(chooser)

    run_together(*[play] * THREADS, watch)
    assert chooser.policy.rounds == chooser.policy.observations == THREADS * ROUNDS
    assert len(chooser.arms) == 13
    assert Preselector.from_bytes(chooser.to_bytes()).to_bytes() == chooser.to_bytes()


CASES = [
    *(("use_policy", name) for name in registry.POLICIES),
    *(("learn_in_some_order", name) for name in ("newton", "cppl", "ucb-mnl", "ts-mnl", "colstim", "mm")),
    *(("use_preselector", name) for name in ("newton", "ts-mnl", "random")),
]


def test_threads_in_a_process_of_their_own():
    """In a process of their own, because what goes wrong here may end it."""
    folder = Path(__file__).parent
    script = "import test_threads\nfor case, name in test_threads.CASES:\n    getattr(test_threads, case)(name)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])}
    command = [sys.executable, "-X", "faulthandler", "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_copy_has_a_lock_of_its_own():
    policy, chooser = registry.POLICIES["newton"](d=D, seed=0), Preselector(["a", "b"], seed=0)
    copies = copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))
    for thing, make in itertools.product((policy, chooser), copies):
        with thing._guard:
            made = make(thing)
        assert made._guard is not thing._guard
        run_together(lambda made=made: made.scores(np.eye(D)) if isinstance(made, type(policy)) else made.scores())
