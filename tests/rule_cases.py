"""Small random cases of rules about sets, and brute force: all sets that obey them."""

import itertools

import numpy as np

from preselect import Rules


def is_feasible(arms, rules):
    """Whether a set obeys the rules, as they are said."""
    taken = [int(rules.groups[arm]) for arm in arms] if len(rules.groups) else []
    return (
        set(rules.include.tolist()) <= set(arms)
        and all(taken.count(group) <= limit for group, limit in enumerate(rules.limits))
        and (rules.budget == np.inf or sum(rules.prices[arm] for arm in arms) <= rules.budget * (1 + 1e-9))
    )


def list_sets(eligible, k, rules):
    """All sets that obey the rules; with a budget those with as many arms as it pays, up to k."""
    free = Rules(include=rules.include, groups=rules.groups, limits=rules.limits)
    if not any(is_feasible(arms, free) for arms in itertools.combinations(eligible, k)):
        return []
    for size in range(k, 0 if rules.budget < np.inf else k - 1, -1):
        sets = [arms for arms in itertools.combinations(sorted(eligible), size) if is_feasible(arms, rules)]
        if sets:
            return sets
    return []


def draw_rules(generator, n, budget=False):
    """Some rules, which may leave no set at all."""
    count = int(generator.integers(0, 3))
    return Rules(
        include=generator.permutation(n)[: generator.choice(3, p=[0.5, 0.3, 0.2])],
        groups=generator.integers(-1, count, n) if count else (),
        limits=generator.integers(0, 3, count),
        prices=generator.integers(0, 6, n) / 10 if budget else (),
        budget=generator.integers(0, 15) / 10 if budget else np.inf,
    )


def draw_case(generator, budget=False):
    """A number of arms, k, which are eligible, rules, and all sets that they leave; at least one."""
    while True:
        n, k = int(generator.integers(2, 8)), int(generator.integers(1, 5))
        eligible = np.flatnonzero(generator.random(n) < 0.85)
        rules = draw_rules(generator, n, budget)
        sets = list_sets(eligible.tolist(), k, rules)
        if sets and k <= len(eligible):
            return n, k, eligible, rules, sets


def draw_refused(generator, budget=False):
    """The same for rules that leave no set."""
    while True:
        n, k = int(generator.integers(2, 8)), int(generator.integers(1, 5))
        eligible = np.flatnonzero(generator.random(n) < 0.85)
        rules = draw_rules(generator, n, budget)
        if k <= len(eligible) and not list_sets(eligible.tolist(), k, rules):
            return n, k, eligible, rules
