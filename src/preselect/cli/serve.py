"""`preselect serve`: run the service, and make keys for it."""

import ipaddress
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from preselect.errors import InputError

_STORE = "preselect.journal"
_KEYS = "preselect.keys"
_ABOVE_0 = click.FloatRange(min=0, min_open=True)


@click.group(invoke_without_command=True, short_help="Choose and learn over HTTP, from any language.")
@click.option(
    "--store",
    default=_STORE,
    show_default=True,
    metavar="URL",
    help="A file, postgresql://... for replicas, or memory: to keep nothing.",
)
@click.option(
    "--journal",
    type=click.Path(dir_okay=False),
    help="Only show this journal, which a race or a service may be writing; instead of --store.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; any other needs --keys.")
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 for any free one.",
)
@click.option("--keys", type=click.Path(path_type=Path), help="File of keys; every call then needs a key.")
@click.option(
    "--expires", type=_ABOVE_0, help="Seconds after which a decision without an outcome expires.  [default: a day]"
)
@click.option("--max-body", type=click.IntRange(1), help="Largest body, in bytes.  [default: 1048576]")
@click.option("--max-arms", type=click.IntRange(1), help="Most arms of a preselector.  [default: 10000]")
@click.option(
    "--max-features", type=click.IntRange(1), help="Most features of a context, or of an arm.  [default: 1000]"
)
@click.option("--max-k", type=click.IntRange(1), help="Most arms to choose at once.  [default: 100]")
@click.option("--max-rate", type=_ABOVE_0, help="Most requests per second with one key.  [default: 5000]")
@click.option("--max-queue", type=click.IntRange(1), help="Most requests that wait to be written.  [default: 2048]")
@click.option(
    "--max-waiting", type=click.IntRange(1), help="Most decisions that wait for outcomes.  [default: 1000000]"
)
@click.option("--max-streams", type=click.IntRange(0), help="Most open streams.  [default: 200]")
@click.option("--patience", type=_ABOVE_0, help="Seconds to wait for a slow client.  [default: 30]")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="warning",
    show_default=True,
    help="The severity from which lines are logged, as JSON, to standard error.",
)
@click.pass_context
def serve(context: click.Context, /, **options: Any) -> None:
    """Decide, show, report the pick: over HTTP, from any language.

    \b
    Serve this machine only, and keep everything in preselect.journal:
        preselect serve
    Make a key, and serve other machines, too:
        preselect serve key --role client
        preselect serve --keys preselect.keys --host 0.0.0.0
    Show races, or another service's journal, without writing to it:
        preselect serve --journal pool.journal

    When a request is answered, its result is on disk. Stop with Ctrl-C or SIGTERM: accepted requests are answered
    first.
    """
    if context.invoked_subcommand is None:
        _serve(**options)


def _serve(
    *, store: str, journal: str | None, host: str, port: int, keys: Path | None, log_level: str, **given: Any
) -> None:
    from preselect.serve import launch

    if keys is None and not _is_loopback(host):
        raise InputError(
            f"without keys only this machine is served, not {host}; make a key with preselect serve key, then use --keys"
        )
    limits = launch.make_limits(
        {name.removeprefix("max_"): value for name, value in given.items() if value is not None}
    )

    def announce(url: str) -> None:
        _announce(url, store, keys) if journal is None else _announce_journal(url, journal)

    launch.serve(store, host, port, keys, limits, journal=journal, log_level=log_level, announce=announce)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _announce_journal(url: str, journal: str) -> None:
    known = "is only read" if Path(journal).exists() else "does not exist yet"
    click.echo(f"Serving {url} from {journal}, which {known}. Open it in a browser. Ctrl-C stops.")
    sys.stdout.flush()


def _announce(url: str, store: str, keys: Path | None) -> None:
    key = "" if keys is None else " -H 'Authorization: Bearer KEY'"
    json = " -H 'Content-Type: application/json'"
    shown = _hide_password(store)
    click.echo(
        f"Serving {url} from {shown}. Make a preselector, choose two of its arms, say which one won:\n\n"
        f"""  curl -X PUT {url}/v1/preselectors/demo{key}{json} -d '{{"arms": ["a", "b", "c"]}}'\n"""
        f"""  curl {url}/v1/preselectors/demo/decisions{key}{json} -d '{{"k": 2}}'\n"""
        f"""  curl -X PUT {url}/v1/decisions/ID/outcome{key}{json} -d '{{"winner": "a"}}'\n\n"""
        f"Dashboard: {url}. All calls: {url}/openapi.json. Ctrl-C stops."
    )
    sys.stdout.flush()


def _hide_password(store: str) -> str:
    """Return a URL to print: without its password, and without options, because one of them may be a password."""
    found = urlsplit(store)
    if not found.scheme.startswith("postgres"):
        return store
    return found._replace(netloc=re.sub(":[^@]*@", "@", found.netloc), query="").geturl()


@serve.command()
@click.option(
    "--role", required=True, type=click.Choice(["reader", "client", "admin"]), help="What the key's owner may do."
)
@click.option("--preselector", metavar="NAME", help="The only preselector that the key is for.  [default: all]")
@click.option(
    "--keys", type=click.Path(path_type=Path), default=_KEYS, show_default=True, help="File to add the key's digest to."
)
def key(role: Any, preselector: str | None, keys: Path) -> None:
    """Make a key, print it, and add its digest to a file.

    The key is printed once and kept nowhere. A reader looks, a client also decides and reports, an admin also makes
    preselectors and changes arms. To revoke a key, delete its line and start the service again.
    """
    from preselect.serve.keys import add_key, make_key

    if preselector == "":
        raise click.BadParameter("--preselector is empty; name a preselector, or leave the option out for all")
    made, token = make_key(role, preselector)
    add_key(keys, made)
    click.echo(f"added to {keys}; keep this key, which is shown only once:", err=True)
    click.echo(token)
