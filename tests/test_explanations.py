"""Estimates and explanations: they add up, agree with dense linear algebra, and can be read."""

import json

import numpy as np
import pytest

from preselect import InputError, NamedDecision, Newton, Preselector, Winner
from preselect.policies import registry

ARMS = {name: {"price": price} for name, price in zip("abcdef", [3.0, 1.0, 4.0, 1.5, 9.0, None], strict=True)}
QUICK = {"ofu-mnl": "ofu-mnl(K=3)", "ucb-mnl": "ucb-mnl(every=5)", "ts-mnl": "ts-mnl(every=5)"}
POLICIES = [*(QUICK.get(name, name) for name in registry.POLICIES), "newton(outside=True)", "newton(choose='cover')"]
WITHOUT_ERRORS = {"mm", "random", "max-theta", "epsilon-greedy"}
CONTEXT = {"size": 4.0, "age": None}


def play(preselector, rounds=25, seed=1):
    generator = np.random.default_rng(seed)
    for _ in range(rounds):
        decision = preselector.select({"size": 10.0 * generator.normal(), "age": generator.random()}, k=3)
        preselector.learn(decision, winner=decision.names[generator.integers(3)])
    return preselector


def make(policy="newton", arms=ARMS, **options):
    return play(Preselector(arms, ["size", "age"], policy=policy, seed=0, **{"covariance": "full", **options}))


def contrast_errors(preselector, names, all_names, outside):
    """Standard errors by dense matrices: of every arm, in contrast with the mean of `names`."""
    policy = preselector.policy
    shown = preselector._show(np.array([4.0, np.nan]))
    X = np.asarray(shown)[:, : policy.d]
    P = policy.Sigma if hasattr(policy, "Sigma") else policy.P
    centre = 0.0 if outside else X[[all_names.index(name) for name in names]].mean(axis=0)
    return np.sqrt(np.einsum("ia,ab,ib->i", X - centre, P, X - centre))


@pytest.mark.parametrize("policy", POLICIES)
def test_estimates_add_up_and_have_the_errors_of_the_belief(policy):
    preselector = make(policy)
    for among in (None, ["b", "e", "f"]):
        found = preselector.estimates(CONTEXT, among=among)
        compared = among or list(ARMS)
        assert list(found) == list(ARMS)
        assert found.among == tuple(compared)
        assert sum(found[name].chance for name in compared) + (found.nobody or 0.0) == pytest.approx(1.0, abs=1e-12)
        assert all(found[name].chance is None for name in set(ARMS) - set(compared))
        assert (found.nobody is not None) == preselector.policy.outside
        if policy in WITHOUT_ERRORS:
            assert all(one.standard_error is one.lower is one.upper is None for one in found.values())
            continue
        expected = contrast_errors(preselector, compared, list(ARMS), preselector.policy.outside)
        np.testing.assert_allclose([one.standard_error for one in found.values()], expected, rtol=1e-8, atol=1e-12)
        for one in found.values():
            assert one.upper - one.utility == pytest.approx(one.utility - one.lower)
            assert one.upper - one.lower == pytest.approx(2 * 1.96 * one.standard_error)


@pytest.mark.parametrize("policy", POLICIES)
def test_explanations_add_up(policy):
    preselector = make(policy)
    decision = preselector.select(CONTEXT, k=3)
    explanation = preselector.explain(decision)
    estimates = preselector.estimates(CONTEXT, among=decision.names)
    assert tuple(arm.name for arm in explanation.arms) == decision.names
    chances = [arm.estimate.chance for arm in explanation.arms]
    assert sum(chances) + (explanation.nobody or 0.0) == pytest.approx(1.0, abs=1e-9)
    assert explanation.nobody == estimates.nobody or explanation.nobody == pytest.approx(estimates.nobody, abs=1e-9)
    for arm in explanation.arms:
        one, other = arm.estimate, estimates[arm.name]
        assert one.utility == pytest.approx(other.utility, abs=1e-9)
        assert one.chance == pytest.approx(other.chance, abs=1e-9)
        assert one.standard_error == pytest.approx(other.standard_error, abs=1e-9)
        if policy in ("mm", "random"):
            assert arm.contributions is None
        else:
            assert sum(arm.contributions.values()) == pytest.approx(one.utility, abs=1e-9)
            assert list(arm.contributions) == [
                "price",
                "price × size",
                "price × age",
                "itself",
                "itself × size",
                "itself × age",
            ]
            assert arm.contributions["itself × age"] == 0.0  # not known, which counts as what is usual
    assert json.loads(json.dumps(explanation.to_dict()))["arms"][0]["name"] == decision.names[0]
    assert explanation.changes == 0
    assert preselector.to_bytes() == play(Preselector.from_bytes(preselector.to_bytes()), 0).to_bytes()


@pytest.mark.filterwarnings("ignore:the winner of a set of one")
@pytest.mark.parametrize("policy", ["newton", "thompson", "newton(explore=0.5)"])
@pytest.mark.parametrize(
    "options",
    [
        {"identity": False},
        {"context": []},
        {"arms": list("abcdef")},
        {"arms": list("abcdef"), "context": []},
        {"nobody_may_win": True},
        {"nobody_may_win": True, "covariance": "blocks"},
    ],
    ids=str,
)
def test_explanations_add_up_whatever_arms_and_contexts_have(policy, options):
    """Also those of late decisions, after arms have changed and more has been learnt."""
    chosen, generator = {"arms": ARMS, "context": ["size", "age"], **options}, np.random.default_rng(5)
    preselector, waiting = Preselector(**chosen, policy=policy, seed=0), []
    for turn in range(24):
        waiting.append(preselector.select(generator.normal(size=len(chosen["context"])), k=1 + turn % 3 + (turn < 9)))
        nobody = preselector.policy.outside and turn % 4 == 0
        preselector.learn(waiting[-1], winner=None if nobody else waiting[-1].names[0])
        if turn == 15 and preselector.features:
            preselector.change("a", {"price": 7.0})
    for explanation in map(preselector.explain, waiting[::2]):
        assert (explanation.nobody is not None) == preselector.policy.outside
        assert sum(arm.estimate.chance for arm in explanation.arms) + (explanation.nobody or 0.0) == pytest.approx(
            1.0, abs=1e-9
        )
        for arm in explanation.arms:
            assert sum(arm.contributions.values()) == pytest.approx(arm.estimate.utility, abs=1e-9)


@pytest.mark.parametrize("outside", [False, True])
def test_blocks_are_explained_like_the_belief_that_they_are(outside):
    """Against the dense matrix that the blocks stand for, with a gap where an arm has left."""
    preselector = make(f"newton(outside={outside})", covariance="blocks")
    preselector.remove("b")
    names, policy = preselector.arms, preselector.policy
    found = preselector.estimates(CONTEXT, among=["a", "e"])
    shared, size = policy.blocks
    dense = np.zeros((policy.d, policy.d))
    dense[:shared, :shared] = policy.P.shared
    rows, columns = np.tril_indices(size)
    for slot, lower in enumerate(policy.P.own):
        block = np.zeros((size, size))
        block[rows, columns] = block[columns, rows] = lower
        first = shared + slot * size
        dense[first : first + size, first : first + size] = block
    context = preselector._show(np.array([4.0, np.nan]))
    X = np.zeros((len(names), policy.d))
    for place, row in enumerate(context.rows(np.arange(len(names)))):
        first = shared + context.ids[place] * size
        X[place, :shared], X[place, first : first + size] = row[:shared], row[shared:]
    centre = 0.0 if outside else X[[names.index("a"), names.index("e")]].mean(axis=0)
    expected = np.sqrt(np.einsum("ia,ab,ib->i", X - centre, dense, X - centre))
    np.testing.assert_allclose([found[name].standard_error for name in names], expected, rtol=1e-9)
    np.testing.assert_allclose([found[name].utility for name in names], X @ policy.theta, atol=1e-9)
    decision = preselector.select(CONTEXT, k=2, eligible=["a", "e"])
    for arm in preselector.explain(decision).arms:
        assert arm.estimate.standard_error == pytest.approx(expected[names.index(arm.name)], rel=1e-9)
        assert sum(arm.contributions.values()) == pytest.approx(X[names.index(arm.name)] @ policy.theta, abs=1e-9)


def test_the_contribution_of_a_feature_is_what_it_adds():
    """Cheap arms win, and more so on large instances; arms differ in nothing else."""
    generator = np.random.default_rng(0)
    arms = {f"{price}": {"price": float(price)} for price in range(1, 9)}
    preselector = Preselector(arms, ["size"], seed=0)
    for _ in range(300):
        size = float(generator.integers(1, 100))
        decision = preselector.select([size], k=3)
        cheapest = min(decision.names, key=int)
        preselector.learn(decision, winner=cheapest if size > 30 else decision.names[generator.integers(3)])
    for size, sign in ((90.0, 1), (2.0, -1)):
        explanation = preselector.explain(preselector.choose([size], 2, seed=0, eligible=["1", "8"]))
        of = {arm.name: arm.contributions for arm in explanation.arms}
        assert of["1"]["price"] > 0.3 > -0.3 > of["8"]["price"]
        assert sign * (of["1"]["price × size"] - of["8"]["price × size"]) > 0.1


def test_roles():
    def roles(preselector, decision):
        return [arm.role for arm in preselector.explain(decision).arms]

    newton = make()
    assert roles(newton, newton.select(CONTEXT, k=3)) == ["leader", "challenger", "challenger"]
    greedy = make("epsilon-greedy(epsilon=0.5)")
    seen = set()
    for _ in range(20):
        decision = greedy.select(CONTEXT, k=2)
        found = roles(greedy, decision)
        explored = np.random.default_rng(decision.seed).random() < 0.5
        assert found == (["explored"] * 2 if explored else ["leader", "challenger"])
        seen.add(explored)
    assert seen == {False, True}
    epochs = make("epoch-greedy")
    for _ in range(6):
        decision = epochs.select(CONTEXT, k=2)
        assert (roles(epochs, decision)[0] == "explored") == epochs.policy.explores(decision.round)
    random = make("random")
    assert roles(random, random.select(CONTEXT, k=2)) == ["explored"] * 2


def test_an_explanation_says_when_the_state_has_moved_on():
    preselector = make()
    before = preselector.choose(CONTEXT, 3, seed=0)
    assert "changed" not in str(preselector.explain(before))
    decision = preselector.select(CONTEXT, k=3)
    assert preselector.explain(NamedDecision.from_json(decision.to_json())) == preselector.explain(decision)
    assert preselector.explain(decision).note == ""
    preselector.learn(decision, winner=decision.names[0])
    assert "The state has changed 1 time since" in str(preselector.explain(decision))
    preselector.add("z")
    assert preselector.explain(decision).changes == 2
    older = make()
    assert "newer state" in older.explain(preselector.select(CONTEXT, k=2, eligible=list("abc"))).note


def test_text_and_html():
    preselector = make(arms={"<b>": {"p&q": 1.0}, "longer name": {"p&q": 2.0}, "c": {"p&q": 7.0}})
    decision = preselector.select(CONTEXT, k=3)
    explanation, estimates = preselector.explain(decision), preselector.estimates(CONTEXT)
    for text in (str(explanation), repr(estimates)):
        assert all(name in text for name in ("<b>", "longer name", "c"))
        assert max(map(len, text.splitlines())) < 160
    assert "itself × size" in str(explanation)
    for page in (explanation._repr_html_(), estimates._repr_html_()):
        assert "&lt;b&gt;" in page
        assert not any(raw in page for raw in ("<b>", "p&q"))
    assert json.loads(json.dumps(estimates.to_dict()))["among"] == ["<b>", "longer name", "c"]


def test_names_that_would_be_equal_get_a_number():
    preselector = make(arms={"a": {"itself": 1.0, "x": 3.0, "x × size": 2.0}, "b": {"itself": 2.0}, "c": {}})
    arm = preselector.explain(preselector.select(CONTEXT, k=3)).arms[0]
    assert len(arm.contributions) == 4 * 3
    assert {"itself", "itself (2)", "x × size", "x × size (2)"} <= set(arm.contributions)


def test_bad_input_is_one_sentence():
    preselector = make()
    for call, message in [
        (lambda: preselector.estimates(CONTEXT, among=["a", "z"]), "there is no arm 'z'"),
        (lambda: preselector.estimates(CONTEXT, among=["a", "a"]), "more than once"),
        (lambda: preselector.estimates(CONTEXT, among=[]), "nothing to compare"),
        (lambda: preselector.estimates({"size": 1.0}), "the context lacks 'age'"),
        (lambda: preselector.explain("x"), "give what select returned"),
    ]:
        with pytest.raises(InputError, match=message):
            call()


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_leader_has_the_largest_score_so_that_scores_rank_arms(k):
    policy = Newton(d=3, mean=[0.5, -0.3, 0.2], seed=0)
    generator = np.random.default_rng(2)
    for _ in range(40):
        X = generator.normal(size=(7, 3))
        decision = policy.select(X, k)
        assert np.all(np.diff(decision.scores) <= 0.0)
        np.testing.assert_allclose(decision.scores - decision.widths, decision.rows @ policy.theta, atol=1e-9)
        assert decision.arms.tolist() == np.argsort(-policy.scores(X))[:k].tolist()
        policy.learn(decision, Winner(decision.arms[-1]))


def test_the_first_leader_has_no_score_of_0_below_its_challengers():
    decision = Preselector(["a", "b", "c"], seed=0).select(k=2)
    assert decision.scores[0] >= decision.scores[1] > 0.0


def test_arms_that_had_to_be_chosen_are_included():
    preselector = make()
    worst = min(preselector.estimates(CONTEXT).items(), key=lambda item: item[1].utility)[0]
    decision = preselector.select(CONTEXT, k=3, include=iter([worst]))
    again = NamedDecision.from_json(decision.to_json())
    assert again.included == NamedDecision.from_record(*decision.to_record()).included == (worst,)
    roles = {arm.name: arm.role for arm in preselector.explain(again).arms}
    assert roles.pop(worst) == "included"
    assert sorted(roles.values()) == ["challenger", "leader"]


@pytest.mark.parametrize("policy", ["newton", "cppl", "thompson", "max-theta", "mm"])
@pytest.mark.parametrize("covariance", [None, "blocks"])
def test_weights_of_features_times_what_is_unusual_about_an_arm_are_contributions(policy, covariance):
    if covariance and policy not in ("newton", "thompson"):
        pytest.skip("has no blocks")
    arms = {
        name: {"price": price, "weight": price**2}
        for name, price in zip("abcde", [3.0, 1.0, 4.0, 1.5, 9.0], strict=True)
    }
    preselector = make(policy, arms, covariance=covariance)
    found = preselector.feature_weights(CONTEXT)
    if policy == "mm":
        assert found == {}
        return
    logs = np.log1p([[one["price"], one["weight"]] for one in arms.values()])
    unusual = dict(zip(arms, (logs - logs.mean(axis=0)) / logs.std(axis=0), strict=True))
    for arm in preselector.explain(preselector.select(CONTEXT, k=3)).arms:
        for place, feature in enumerate(arms["a"]):
            parts = sum(arm.contributions[part] for part in (feature, f"{feature} × size", f"{feature} × age"))
            assert parts == pytest.approx(found[feature].weight * unusual[arm.name][place], abs=1e-9)
    assert all((one.standard_error is None) == (policy in WITHOUT_ERRORS) for one in found.values())


def test_errors_of_the_weights_of_features_are_those_of_the_belief():
    arms = {name: {"price": price, "age": price % 2} for name, price in zip("abcd", [3.0, 1.0, 4.0, 8.0], strict=True)}
    preselector = Preselector(arms, ["size"], seed=0)
    before = preselector.feature_weights({"size": None})
    for number in range(30):
        decision = preselector.select({"size": float(number % 7)}, k=2)
        preselector.learn(decision, winner=decision.names[number % 2])
    after = preselector.feature_weights({"size": None})
    # two features and an identity share a row of length 1, and the prior has precision 1: 0.5 deviations each
    assert [one.standard_error for one in before.values()] == pytest.approx([0.5, 0.5])
    expected = 0.5 * np.sqrt(np.diagonal(preselector.policy.P)[[0, 2]])  # the columns of the constant
    assert [one.standard_error for one in after.values()] == pytest.approx(expected)
    assert [one.weight for one in after.values()] == pytest.approx(0.5 * preselector.policy.theta[[0, 2]])
