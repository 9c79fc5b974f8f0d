"""Replay races on the CPU time that each solver needs alone, with and without after-races.

On a busy machine the times of live races say little. CPU time hardly depends on the load: every arm of the pool runs
alone on every formula, within a limit of CPU time (singles.csv; after an interruption the same command resumes). Then
races of two are replayed on these times in many shuffled orders: two arms drawn at random, two that a policy chose, and
the same with after-races of several budgets, which follow the rules of the command.
"""

import argparse
import csv
import resource
import subprocess
import zlib
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from measure import Outcome, Way, compare, find_instances, prepare_pool, read_singles, table

from preselect.outcomes import NoWinner
from preselect.policies import registry
from preselect.race import Pool
from preselect.race.budget import Budget
from preselect.race.instance_features import FeatureValues, Instance, measure_features
from preselect.race.pool_journal import make_preselector

K = 2


# --- every arm alone --------------------------------------------------------------------------------------------------


def measure_cpu(pool: Pool, path: Path, arm: str, limit: int) -> tuple[str, str, float, str, float]:
    """Run an arm alone within a limit of CPU time and return its line of the table."""
    racer = pool.make_racer(arm, path, seed=zlib.crc32(path.name.encode()) >> 1)
    before = used_by_children()
    done = subprocess.run(
        racer.command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1)),
    )
    is_solved = done.returncode in (10, 20) or b"SATISFIABLE" in done.stdout  # z3 exits with 0
    return path.name, arm, round(used_by_children() - before, 4), "won" if is_solved else "timeout", limit


def used_by_children() -> float:
    """CPU seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# --- replayed races ---------------------------------------------------------------------------------------------------


class Replayed(NamedTuple):
    """The outcomes by instance, and seconds of cores: of the races, and of after-races."""

    run: dict[str, Outcome]
    used: float
    used_after: float


def race(times: dict[str, Outcome], arms: list[str], limit: float) -> tuple[str | None, float]:
    """Return who wins and when; nobody at the limit."""
    solving = [(times[arm].seconds, arm) for arm in arms if times[arm].solved and times[arm].seconds < limit]
    return (min(solving)[1], min(solving)[0]) if solving else (None, limit)


def replay(pool: Pool, rounds: list[tuple[str, FeatureValues, dict[str, Outcome]]], share: float) -> Replayed:
    """Race on all instances in this order; with a budget, other arms race after the answer."""
    preselector, limit = make_preselector(pool, rounds[0][1]), pool.limits.seconds
    run, used, used_after, budget = {}, 0.0, 0.0, Budget(share)
    for number, (name, features, times) in enumerate(rounds):
        decision = preselector.select(features, k=K)
        winner, seconds = race(times, decision.names, limit)
        run[name] = Outcome(seconds, winner is not None)
        used, also = used + K * seconds, []
        budget.earn(K * seconds, seconds)
        many = budget.count_arms(seconds)
        waiting = list(preselector.suggest(decision, many, seed=number)) if many else []
        while waiting:
            group, waiting = waiting[:K], waiting[K:]
            faster, seconds = race(times, group, seconds)  # at most as long as the best arm so far
            winner = faster or winner
            also += group
            used_after, budget.left = used_after + len(group) * seconds, budget.left - len(group) * seconds
        told = {"outcome": NoWinner(1.0)} if winner is None else {"winner": winner, "after": seconds / limit}
        preselector.learn(decision, also=also, **told)
    return Replayed(run, used, used_after)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--pool", type=Path, default=Path("pool.toml"), help="pool file, written if it does not exist")
    add("--instances", type=Path, default=Path("cnf"), help="folder of formulas (default %(default)s)")
    add("--seconds", type=int, default=3, help="limit of CPU time (default %(default)s)")
    add("--orders", type=int, default=20, help="orders to replay (default %(default)s)")
    add("--policies", default=registry.RACING, help="policies to replay (default %(default)s)")
    add("--budgets", default="0,0.5,1", help="of after-races, as shares of what races use (default %(default)s)")
    add("--out", type=Path, default=Path("replay"), help="folder for all results (default %(default)s)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    pool, singles = prepare_pool(options.pool, options.seconds, 0), options.out / "singles.csv"
    paths = find_instances(options.instances)
    measured = read_singles(singles, options.seconds)
    for path in paths:
        for arm in pool.arms:
            if path.name not in measured.get(arm, {}):
                with singles.open("a", newline="") as file:
                    line = measure_cpu(pool, path, arm, options.seconds)
                    csv.writer(file, lineterminator="\n").writerow(line)
    print(report(pool, paths, read_singles(singles, options.seconds), options))


def report(pool: Pool, paths: list[Path], singles: dict[str, dict[str, Outcome]], options: argparse.Namespace) -> str:
    """Replay all policies and budgets in the same orders, and return a table."""
    features = {path.name: measure_features(pool.features, Instance(path)).values for path in paths}
    by_instance = {path.name: {arm: singles[arm][path.name] for arm in pool.arms} for path in paths}
    orders = [np.random.default_rng((0, order)).permutation(len(paths)) for order in range(options.orders)]
    sequences = [[paths[place].name for place in order] for order in orders]
    policies = [("random", 0.0)] + [
        (policy, float(budget)) for policy in registry.split(options.policies) for budget in options.budgets.split(",")
    ]
    ways, costs = [], []
    for policy, budget in policies:
        found = [
            replay(
                replace(pool, policy=policy, seed=seed),
                [(name, features[name], by_instance[name]) for name in names],
                budget,
            )
            for seed, names in enumerate(sequences)
        ]
        name = f"{policy}, budget {budget:g}" if policy != "random" else "random pair"
        ways.append(Way(name, [one.run for one in found]))
        costs.append(
            f"{name}: after-races used {np.mean([one.used_after / one.used for one in found]):.2f} as much CPU"
        )
    alone = {arm: {path.name: singles[arm][path.name] for path in paths} for arm in pool.arms}
    text = table(compare(alone, ways, options.seconds), options.seconds)
    return text + "\n\n" + "\n".join(costs)


if __name__ == "__main__":
    main()
