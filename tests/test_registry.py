"""Policies by name."""

import pytest

from preselect import CPPL, InputError, MaxTheta
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


def test_a_class_of_ones_own(tmp_path, monkeypatch):
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
        ("clever", "unknown policy 'clever'; there are colstim, cppl, epoch-greedy, .*, or yours"),
        ("cppl(speed=9)", "cppl has no parameter speed; it has d, gamma_1"),
        ("cppl(omega=", r"policy must look like name or name\(parameter=value, ...\), got 'cppl\(omega='"),
        ("cppl(1)", "policy must look like"),
        ("cppl(omega=open('x'))", "policy must look like"),
    ],
)
def test_what_is_not_a_policy_is_named(text, message):
    with pytest.raises(InputError, match=message):
        registry.parse(text)
