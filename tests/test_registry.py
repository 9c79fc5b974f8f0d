"""Policies by name, and what their documentation says."""

import inspect
import math
import pydoc
import re

import pytest

import preselect
from preselect import CPPL, InputError, MaxTheta, model
from preselect.policies import registry


def test_names_parameters_and_lists():
    assert registry.parse("CPPL") == (CPPL, {})
    assert registry.parse("max-theta( theta_0=[0.0, 1.0], gamma_1 = 1 )") == (
        MaxTheta,
        {"theta_0": [0.0, 1.0], "gamma_1": 1},
    )
    assert registry.split("cppl, mm ,max-theta(theta_0=[1,2], alpha=0.7),") == [
        "cppl",
        "mm",
        "max-theta(theta_0=[1,2], alpha=0.7)",
    ]


def test_your_own_class(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("import preselect\nclass Mine(preselect.MaxTheta): pass\nvalue = 3\n")
    monkeypatch.chdir(tmp_path)
    policy, parameters = registry.parse("mine:Mine(gamma_1=1)")
    assert issubclass(policy, MaxTheta)
    assert parameters == {"gamma_1": 1}
    for text in ("mine:value", "mine:Nobody", "nowhere:Mine"):
        with pytest.raises(InputError, match=text.split("(")[0]):
            registry.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clever", "unknown policy 'clever'; choose colstim, cppl, epoch-greedy, .*, or your own"),
        ("cppl(speed=9)", "cppl has no parameter speed; it has d, gamma_1"),
        ("cppl(omega=", r"cannot read the policy 'cppl\(omega='; write name or name\(parameter=value, ...\)"),
        ("cppl(1)", "cannot read the policy"),
        ("cppl(omega=open('x'))", "cannot read the policy"),
    ],
)
def test_a_bad_policy_is_named(text, message):
    with pytest.raises(InputError, match=message):
        registry.parse(text)


@pytest.mark.parametrize("name", registry.POLICIES)
def test_every_parameter_is_described_with_its_default(name):
    policy = registry.POLICIES[name]
    _, _, section = inspect.cleandoc(policy.__doc__).partition("Parameters\n----------\n")
    described = dict(re.findall(r"^(\w+) : (.+)$", section, flags=re.MULTILINE))
    parameters = inspect.signature(policy).parameters
    assert list(described) == list(parameters)
    for parameter in parameters.values():
        if parameter.default is None:
            assert described[parameter.name].endswith("optional")
        elif parameter.default is not parameter.empty:
            _, _, default = described[parameter.name].partition("default ")
            assert eval(default) == parameter.default


@pytest.mark.parametrize(
    "function",
    [
        *(getattr(preselect.Policy, name) for name in ("select", "scores", "learn", "save", "load", "widen")),
        *(getattr(model, name) for name in model.__all__),
    ],
)
def test_every_argument_of_a_public_function_is_described(function):
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    section = inspect.getdoc(function).partition("Parameters\n----------\n")[2]
    described = re.findall(r"^(\w+(?:, \w+)*) :", section, flags=re.MULTILINE)
    assert [name for group in described for name in group.split(", ")] == names


def test_help_on_select_fits_on_a_screen():
    for select in (preselect.Newton.select, preselect.Preselector.select):
        lines = pydoc.render_doc(select, renderer=pydoc.plaintext).splitlines()
        assert sum(math.ceil((len(line) or 1) / 120) for line in lines) <= 45  # of 120 characters
        assert max(map(len, lines)) <= 300
