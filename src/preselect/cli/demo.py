"""`preselect demo`: a web page on which you pick posters, and the service learns your taste."""

import sys
import threading
import webbrowser

import click

_SOON = 5.0  # seconds to wait before explaining why the start takes so long
_WHY = "Starting takes about a minute the first time, because functions are compiled, and a few seconds after that."


@click.command()
@click.option(
    "--port", default=0, show_default=True, type=click.IntRange(0, 65535), help="Port to listen on; 0 for any free one."
)
@click.option("--no-browser", is_flag=True, help="Print the address, but open no browser.")
@click.option(
    "--store",
    default="memory:",
    show_default=True,
    metavar="URL",
    help="Where to keep what is learnt: a file, or memory: to forget it.",
)
def demo(port: int, no_browser: bool, store: str) -> None:
    """Pick posters in the browser, and watch it learn your taste.

    Starts the service on this machine with several hundred generated posters, and opens a page in the browser that shows
    three of them at a time. Ctrl-C stops it.
    """
    from preselect.serve import launch
    from preselect.serve.picking.pages import make_picking_routes

    def announce(url: str) -> None:
        threading.Thread(target=_invite, args=(url, no_browser), daemon=True).start()

    launch.serve(
        store,
        "127.0.0.1",
        port,
        None,
        launch.make_limits({}),
        log_level="warning",
        announce=announce,
        routes=make_picking_routes(),
    )


def _invite(url: str, no_browser: bool) -> None:
    """Make the preselector as soon as the service is ready, then show the page."""
    from preselect.client import Client
    from preselect.serve.picking.catalogue import NAME, make_definition

    notice = threading.Timer(_SOON, click.echo, [_WHY], {"err": True})
    notice.daemon = True
    notice.start()
    try:
        with Client(url, patience=600.0) as client:
            client.create(NAME, **make_definition())
    finally:
        notice.cancel()
    click.echo(f"Pick posters at {url}/pick, and see what is learnt at {url}/preselectors/{NAME}. Ctrl-C stops.")
    sys.stdout.flush()
    if not no_browser:
        webbrowser.open(f"{url}/pick")
