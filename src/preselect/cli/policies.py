"""`preselect policies`: what there is to choose from."""

import inspect

import click

from preselect.policies import Policy, registry
from preselect.policies.linear import LinearPolicy


@click.command()
@click.argument("name", required=False)
def policies(name: str | None) -> None:
    """List the policies with one line each, or describe the one NAMED.

    \b
    Wherever a policy is asked for, parameters may be given with its name:
        preselect study synthetic --policies "newton(beta=1),cppl(omega=0.5)"
    """
    if name is not None:
        click.echo(_described(name))
        return
    width = max(map(len, registry.POLICIES))
    for key, policy in registry.POLICIES.items():
        default = " The default." if key == registry.DEFAULT else ""
        click.echo(f"{key:<{width}}  {_first_line(policy)}{default}")
    click.echo("\npreselect policies NAME tells more, and the source of each.")


def _first_line(policy: type[Policy]) -> str:
    return (inspect.getdoc(policy) or "").partition("\n")[0]


def _described(name: str) -> str:
    policy, _ = registry.parse(name)
    parameters = inspect.signature(policy).parameters.values()
    shown = [f"  {one.name}" + ("" if one.default is one.empty else f" = {one.default!r}") for one in parameters]
    kinds = [kind for kind in policy.__mro__ if issubclass(kind, Policy) and kind not in (Policy, LinearPolicy)]
    texts = [inspect.cleandoc(kind.__doc__).partition("\n>>>")[0].rstrip() for kind in kinds if kind.__doc__]
    heading = f"{policy.__name__} ({policy.source or 'your own'})"
    return "\n\n".join((heading, *texts, "\n".join(("Parameters:", *shown))))
