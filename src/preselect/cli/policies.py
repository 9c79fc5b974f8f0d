"""`preselect policies`: the policies, and a description of each."""

from __future__ import annotations

import inspect
import re

import click

from preselect.policies import Policy, registry


@click.command(short_help="List the policies, or describe one.")
@click.argument("name", required=False)
def policies(name: str | None) -> None:
    """List the policies, or describe the one called NAME with all its parameters.

    \b
    Wherever a command takes a policy, parameters can be given with its name:
        preselect study synthetic --policies "newton(beta=1),cppl(omega=0.5)"
    A policy of your own is named by its module and class: my_module:MyPolicy.
    """
    click.echo(_list() if name is None else _describe(name))


def _list() -> str:
    width = max(map(len, registry.POLICIES))
    lines = [f"{name:<{width}}  {_summarise(name, policy)}" for name, policy in registry.POLICIES.items()]
    return "\n".join((*lines, "", "preselect policies NAME describes one of them, with its source and parameters."))


def _summarise(name: str, policy: type[Policy]) -> str:
    default = " The default." if name == registry.DEFAULT else ""
    return (inspect.getdoc(policy) or "").partition("\n")[0] + default


def _describe(text: str) -> str:
    policy, _ = registry.parse(text)
    name = text.partition("(")[0].strip()
    heading = f"{policy.__name__} ({policy.source or 'your own'})"
    note = "Commands set d and seed themselves."
    return "\n\n".join((heading, _format_call(name, policy), _document(policy), note))


def _format_call(name: str, policy: type[Policy]) -> str:
    """Return the policy as commands write it, with its defaults; they set d and seed themselves."""
    parameters = inspect.signature(policy).parameters.values()
    given = [f"{one.name}={one.default!r}" for one in parameters if one.name not in ("d", "seed")]
    return "    " + _wrap(f"{name}({', '.join(given)})" if given else name, indent=5 + len(name))


def _wrap(text: str, indent: int, width: int = 100) -> str:
    """Break a call after commas, with the following lines below its first argument."""
    lines = [""]
    for part in re.split(r"(?<=, )", text):
        if len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return ("\n" + " " * indent).join(line.rstrip() for line in lines)


def _document(policy: type[Policy]) -> str:
    """Return the docstring of the class itself, without its examples."""
    text = inspect.cleandoc(policy.__doc__ or "")
    return re.split(r"\n(?:Examples\n-+|>>>)", text)[0].strip()
