"""Values that no caller means, and every public call with its arguments: what the fuzz tests put together."""

import datetime
import decimal
import fractions
import inspect
import json

import numpy as np

import preselect
from preselect import logs, model, state
from preselect.policies import registry
from preselect.policies.persistence import collect_state

D, N, K = 4, 5, 3
FEATURES = ("x", "y")
OPAQUE = object()


def nest(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


VALUES = {
    **{
        repr(value): value
        for value in (None, True, -1, 0, 1, 2, 7, 2.5, -0.0, 1e308, 1e-320, float("nan"), float("inf"))
    },
    **{repr(value): value for value in ("", "a", "z", "\0", "\ud800", "newton", b"", b"a", (), [], {}, set(), 1j, ...)},
    **{repr(value): value for value in ([[]], [0], ["a"], ["a", "a"], [1, [2]], [None], [""], [b"a"], [1.0, "a"])},
    **{repr(value): value for value in ({"a": None}, {"a": {}}, {"a": {"x": "1"}}, {1: 2}, {None: None}, {"x": []})},
    **{
        repr(value): value
        for value in ({"a": [1.0], "b": [1.0, 2.0]}, {"": {}}, {"a": {1: 2}}, {"x": 1.0, "y": 10**400})
    },
    "10**400": 10**400,
    "-10**400": -(10**400),
    "10**5000": 10**5000,
    "[10**5000]": [10**5000],
    "2**63": 2**63,
    "2**62": 2**62,
    "deep list": nest(3000),
    "zeros": np.zeros((N, D)),
    "integers": np.arange(N),
    "one-element array": np.array([1.0]),
    "one-element integers": np.array([1]),
    "0-d array": np.array(1.0),
    "0-d integer": np.array(1),
    "array of names": np.array(["a", "b"]),
    "array of objects": np.array([None, OPAQUE]),
    "array of bytes": np.array([b"a"]),
    "empty array": np.empty((0, D)),
    "cube": np.zeros((2, 2, 2)),
    "dates": np.array(["2020-01-01"], dtype="M8[D]"),
    "complex array": np.ones((N, D), dtype=complex),
    "masked": np.ma.masked_array([1.0, 2.0], [True, False]),
    "structured": np.zeros(3, dtype=[("a", "f8")]),
    "infinite array": np.full((N, D), np.inf),
    "huge array": np.full((N, D), 1e308),
    "object": OPAQUE,
    "class": preselect.Newton,
    "policy": preselect.Newton(d=D, seed=0),
    "preselector": preselect.Preselector(["a", "b"], seed=0),
    "decision": preselect.Random(d=D, seed=0).select(np.eye(N, D), K),
    "outcome": preselect.Winner(0),
    "ranking": preselect.Ranking([0, 1]),
    "context": preselect.StructuredContext(np.ones((N, 2)), [1.0, 2.0]),
    "function": len,
    "fraction": fractions.Fraction(1, 3),
    "decimal": decimal.Decimal("NaN"),
    "date": datetime.date(2020, 1, 1),
    "float32": np.float32(0.5),
    "NaT": np.datetime64("NaT"),
    "generator": np.random.default_rng(0),
    "rules": preselect.Rules(include=[4], groups=[0, 0, 0, 0, -1], limits=[1]),
    "iterator": iter(()),
    "groups": {"a": "g", "b": None, "c": "h"},
    "limits": {"g": 1},
    "limit that is no number": {"g": None},
    "group that is no name": {"a": 1},
    "minus": f"newton(beta={'-' * 5000}1)",
    "brackets": f"newton(beta={'(' * 300}1{')' * 300})",
    "list of policy": "newton(mean=[1, 'a'])",
    "open": "newton(beta=",
    "stars": "newton(**{})",
    "no module": "nowhere:Nothing",
    "module": ":",
}


def describe(thing):
    """The state of a thing as bytes, by which a refused call must have changed nothing."""
    if isinstance(thing, preselect.Preselector):
        return thing.to_bytes()
    if isinstance(thing, preselect.Policy):
        return state.pack("any", *collect_state(thing))
    return repr(sorted((name, repr(value)) for name, value in getattr(thing, "__dict__", {}).items()))


def make_preselector(policy="newton", **options):
    arms = {name: {"x": float(place), "y": 1.0} for place, name in enumerate("abcde")}
    terms = {"groups": {"a": "g", "b": "g"}, "prices": dict.fromkeys("abcde", 1.0)}
    chooser = preselect.Preselector(arms, FEATURES, policy=policy, seed=0, **terms, **options)
    chooser.learn(chooser.select([1.0, 2.0], N), winner="a")
    return chooser


def use_decision(decision):
    """Everything that may be done with a named decision."""
    for preselector in (make_preselector(), make_preselector(covariance="blocks")):
        preselector.explain(decision).to_dict()
        preselector.record(decision)
        preselector.learn(decision, winner="a")
    return decision.to_json(), decision.to_record(), repr(decision), hash(decision)


def read_fields(kind, good, **given):
    """Read a decision from JSON of which some fields were replaced; what JSON cannot say becomes a text."""
    try:
        text = json.dumps({**good, **given}, default=str, skipkeys=True)
    except (RecursionError, ValueError):  # too deep, too many digits
        text = json.dumps({**good, **dict.fromkeys(given, "what JSON cannot say")})
    return kind.from_json(text)


def make_policy(name):
    policy = registry.POLICIES[name](d=D, seed=0)
    policy.learn(policy.select(np.eye(N, D), N), preselect.Winner(1))
    return policy


def decision_of(thing):
    if isinstance(thing, preselect.Preselector):
        return thing.select([1.0, 2.0], N)
    return thing.select(np.eye(N, D), N)


def good_arguments():
    """Public calls by name: what makes the object that the call may change, the call on it, and good arguments.

    Decisions among the arguments are made by the policy random, which compiles nothing: this runs at import.
    """
    X, theta = np.eye(N, D), np.ones(D)
    calls = {}
    for name, policy in registry.POLICIES.items():
        optional = dict.fromkeys(inspect.signature(policy).parameters, inspect.Parameter.empty)
        calls[f"{policy.__name__}"] = (
            lambda: None,
            lambda _, policy=policy, **given: policy(**given),
            optional | {"d": D},
        )
        make = lambda name=name: make_policy(name)  # noqa: E731
        chosen = {"X": X, "k": K, "eligible": [0, 1, 2, 3], "rules": preselect.Rules(include=[1])}
        for method, arguments in {
            "select": chosen,
            "decide": chosen | {"seed": 1},
            "propensities": chosen | {"draws": 3, "seed": 1},
            "scores": {"X": X},
            "suggest": {"X": X, "among": [2, 3], "many": 1, "seed": 1},
            "widen": {"d": D + 1},
            "save": {"path": "/nonexistent/folder/file"},
            "load": {"path": "/nonexistent/file"},
        }.items():
            calls[f"{name}.{method}"] = make, lambda p, m=method, **given: getattr(p, m)(**given), arguments
        calls[f"{name}.extend"] = (
            make,
            lambda p, **given: p.extend(**{"decision": decision_of(make_policy("random")), "X": X} | given),
            {"decision": inspect.Parameter.empty, "X": X, "arms": []},
        )
        calls[f"{name}.learn"] = (
            make,
            lambda p, **given: p.learn(**{"decision": decision_of(make_policy("random")), **given}),
            {"outcome": preselect.Winner(1), "decision": inspect.Parameter.empty},
        )
    parts = {name: np.arange(K) for name in ("arms", "ids", "scores", "widths")} | {"rows": np.eye(K, D), "round": 1}
    whole = {"arms": np.arange(K), "bounds": np.ones(2 * K), "rows": np.eye(K, D), "ids": np.arange(K)}
    named = {
        "names": ("a", "b"),
        "bounds": np.ones(4),
        "context": np.ones(2),
        "features": np.ones((2, 2)),
        "labels": (FEATURES, FEATURES),
        "round": 1,
        "seed": 2,
        "version": 3,
        "included": ("a",),
        "propensities": (0.5, 0.5),
        "departures": 0,
    }
    rules = {"eligible": ["a", "b", "c"], "include": ["a"], "at_most": {"g": 2}, "budget": 4.0, "groups": {"c": "g"}}
    chosen = {"context": [1.0, 2.0], "k": 2, **rules}
    in_json = json.loads(preselect.NamedDecision(**named).to_json())
    by_position = json.loads(make_policy("random").select(X, K).to_json())
    calls |= {
        "Preselector": (
            lambda: None,
            lambda _, **given: preselect.Preselector(**given),
            {"arms": ["a", "b"], "context": ["x"], "policy": "newton", "identity": True, "nobody_may_win": False}
            | {"covariance": "full", "groups": {"a": "g"}, "prices": {"a": 1.0}, "seed": 0},
        ),
        "Preselector.fit": (
            lambda: None,
            lambda _, **given: preselect.Preselector.fit(**given),
            {
                "logs": logs.read({"round": [1, 1], "arm": ["a", "b"], "place": [1, None]}),
                "policy": "newton",
                "identity": True,
                "nobody_may_win": False,
                "seed": 0,
            },
        ),
        "Preselector.load": (lambda: None, lambda _, **given: preselect.Preselector.load(**given), {"path": "/none"}),
        "Preselector.from_bytes": (
            lambda: None,
            lambda _, **given: preselect.Preselector.from_bytes(**given),
            {"content": make_preselector("random").to_bytes(), "source": "content"},
        ),
        **{
            f"Preselector.{method}": (make_preselector, lambda p, m=method, **given: getattr(p, m)(**given), arguments)
            for method, arguments in {
                "select": {**chosen, "propensities": False},
                "choose": {**chosen, "seed": 3, "propensities": True},
                "scores": {"context": {"x": 1.0, "y": None}},
                "add": {"name": "new", "features": {"x": 1.0}, "group": "g", "price": 1.0},
                "arm": {"name": "a"},
                "remove": {"name": "a"},
                "change": {"name": "a", "features": {"x": 2.0}, "group": None, "price": 2.0},
                "add_context": {"feature": "new"},
                "record": {"decision": decision_of(make_preselector("random"))},
                "estimates": {"context": [1.0, 2.0], "among": ["a", "b"]},
                "feature_weights": {"context": [1.0, 2.0]},
                "explain": {"decision": decision_of(make_preselector("random"))},
                "suggest": {
                    "decision": decision_of(make_preselector("random")),
                    "many": 1,
                    "seed": 1,
                    "eligible": ["c"],
                },
                "save": {"path": "/nonexistent/folder/file"},
            }.items()
        },
        "Preselector.propensities": (
            lambda: make_preselector("thompson"),
            lambda p, **given: p.propensities(**given),
            {**chosen, "draws": 3},
        ),
        **{
            f"Preselector.learn{about}": (
                lambda options=options: make_preselector(**options),
                lambda p, **given: p.learn(**{"decision": decision_of(make_preselector()), **given}),
                dict.fromkeys(("decision", "ranking", "ratings", "outcome", "after", "also"), inspect.Parameter.empty)
                | {"winner": "a"},
            )
            for about, options in {
                "": {},
                " with nobody": {"nobody_may_win": True},
                " with blocks": {"covariance": "blocks"},
            }.items()
        },
        "Decision": (
            lambda: make_policy("newton"),
            lambda p, **given: p.learn(preselect.Decision(**given), preselect.Winner(1)),
            {**whole, "round": 1, "seed": 2},
        ),
        "Decision.from_json, by field": (
            lambda: make_policy("newton"),
            lambda p, **given: p.learn(read_fields(preselect.Decision, by_position, **given), preselect.Winner(1)),
            by_position,
        ),
        "NamedDecision": (
            lambda: None,
            lambda _, **given: use_decision(preselect.NamedDecision(**given)),
            named,
        ),
        "NamedDecision.from_json, by field": (
            lambda: None,
            lambda _, **given: use_decision(read_fields(preselect.NamedDecision, in_json, **given)),
            in_json,
        ),
        "Decision.from_json": (
            lambda: None,
            lambda _, **given: preselect.Decision.from_json(**given),
            {"text": decision_of(make_policy("random")).to_json()},
        ),
        "NamedDecision.from_json": (
            lambda: None,
            lambda _, **given: preselect.NamedDecision.from_json(**given),
            {"text": decision_of(make_preselector("random")).to_json()},
        ),
        "Rules": (
            lambda: None,
            lambda _, **given: make_policy("newton").select(X, K, rules=preselect.Rules(**given)),
            {"include": [0], "groups": [0, 0, 1, -1, -1], "limits": [2, 1], "prices": [1.0] * N, "budget": 4.0}
            | dict.fromkeys(("names", "group_names"), inspect.Parameter.empty),
        ),
        "load": (lambda: None, lambda _, **given: preselect.load(**given), {"path": "/nonexistent/file"}),
        **{
            f"{type(outcome).__name__}.positions": (
                lambda: None,
                lambda _, outcome=outcome, **given: outcome.positions(**given),
                {"arms": np.array([1, 0, 2])},
            )
            for outcome in (preselect.Winner(0), preselect.Ranking([[0, 1], 2]), preselect.NoWinner(), preselect.Void())
        },
        "Decision.of": (lambda: None, lambda _, **given: preselect.Decision.of(**given), parts),
        "Winner": (lambda: None, lambda _, **given: repr(preselect.Winner(**given)), {"arm": 0, "after": 0.5}),
        "Ranking": (lambda: None, lambda _, **given: repr(preselect.Ranking(**given)), {"arms": [0, 1]}),
        "NoWinner": (lambda: None, lambda _, **given: repr(preselect.NoWinner(**given)), {"after": 0.5}),
        "registry.parse": (lambda: None, lambda _, **given: registry.parse(**given), {"text": "newton"}),
        "registry.split": (lambda: None, lambda _, **given: registry.split(**given), {"texts": "newton,mm"}),
        "StructuredContext": (
            lambda: None,
            lambda _, **given: preselect.StructuredContext(**given),
            {"arms": np.ones((N, 2)), "context": [1.0, 2.0], "ids": np.arange(N)},
        ),
        "Kronecker": (
            lambda: None,
            lambda _, main_effects=False, **given: preselect.Kronecker(main_effects=main_effects)(**given),
            {"arms": np.ones((N, 2)), "context": [1.0, 2.0], "ids": np.arange(N), "main_effects": False},
        ),
        "Concatenation": (
            lambda: None,
            lambda _, **given: preselect.Concatenation()(**given),
            {"arms": np.ones((N, 2)), "context": [1.0, 2.0], "ids": np.arange(N)},
        ),
        "Identity": (
            lambda: None,
            lambda _, **given: preselect.Identity()(**given),
            {"arms": np.ones((N, 2)), "ids": np.arange(N)},
        ),
        "OneHot": (
            lambda: None,
            lambda _, n_arms=N, main_effects=False, **given: preselect.OneHot(n_arms, main_effects=main_effects)(
                **given
            ),
            {"n_arms": N, "main_effects": False, "context": [1.0, 2.0], "ids": np.arange(N)},
        ),
        "Reduction": (
            lambda: None,
            lambda _, **given: preselect.Reduction(**given),
            {"variance": 0.01, "correlation": 0.9},
        ),
        "Reduction.fit": (
            lambda: preselect.Reduction(),
            lambda r, **given: r.fit(**given),
            {"X": np.eye(N, 2), "names": ["a", "b"]},
        ),
        "Reduction.transform": (
            lambda: preselect.Reduction().fit(np.eye(N, 2)),
            lambda r, **given: r.transform(**given),
            {"X": [1.0, 2.0]},
        ),
        "Scaling": (lambda: None, lambda _, **given: preselect.Scaling(**given), {"size": 2}),
        "Scaling.of": (lambda: None, lambda _, **given: preselect.Scaling.of(**given), {"seen": np.ones((3, 2))}),
        "Scaling.fit": (lambda: None, lambda _, **given: preselect.Scaling.fit(**given), {"rows": np.ones((3, 2))}),
        "Scaling.learn": (lambda: preselect.Scaling(2), lambda s, **given: s.learn(**given), {"values": [1.0, 2.0]}),
        "Scaling.call": (lambda: preselect.Scaling(2), lambda s, **given: s(**given), {"values": [1.0, 2.0]}),
        "Scaling.change_to": (
            lambda: preselect.Scaling(2),
            lambda s, **given: s.change_to(**given),
            {"other": preselect.Scaling(2)},
        ),
        "epoch-greedy.explores": (
            lambda: make_policy("epoch-greedy"),
            lambda p, **given: p.explores(**given),
            {"t": 3},
        ),
        "ofu-mnl.radius": (lambda: make_policy("ofu-mnl"), lambda p, **given: p.radius(**given), {"t": 3}),
    }
    for name, arguments in {
        "utilities": {"X": X, "theta": theta},
        "winner_probabilities": {"u": [0.0, 1.0]},
        "log_likelihood": {"u": [0.0, 1.0], "ranking": [1]},
        "ranking_probability": {"u": [0.0, 1.0], "ranking": [1, 0]},
        "gradient": {"X": X, "theta": theta, "ranking": [1]},
        "curvature": {"X": X, "theta": theta, "ranking": [1]},
        "curvature_factor": {"X": X, "theta": theta, "ranking": [1]},
        "sample_winner": {"u": [0.0, 1.0], "generator": np.random.default_rng(0)},
        "sample_ranking": {"u": [0.0, 1.0], "generator": np.random.default_rng(0), "m": 1},
    }.items():
        calls[f"model.{name}"] = lambda: None, lambda _, name=name, **given: getattr(model, name)(**given), arguments
    return calls


CALLS = good_arguments()


def attempt(thing, act, given):
    """The exception that is raised, if any; a refusal has to leave the thing as it was."""
    before = describe(thing)
    try:
        act(thing, **given)
    except preselect.PreselectError as error:
        if describe(thing) != before:
            raise AssertionError("a refused call changed something") from error
