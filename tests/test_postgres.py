"""Journals in PostgreSQL, for several processes: who may write, what is seen when, and what breaks is mended."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from urllib.parse import urlsplit

import psycopg
import pytest

from preselect.cli.serve import _announce
from preselect.errors import InputError, JournalError
from preselect.store.conformance_rows import make_about, make_row
from preselect.store.postgres import PostgresStorage
from preselect.store.storage import open_storage

LEADER = """
import sys, time
from preselect.store.storage import open_storage
storage = open_storage(sys.argv[1], write=True)
print(storage.lead("main", patience=float(sys.argv[2])), flush=True)
while storage.lead("main"):
    time.sleep(0.05)
"""


@pytest.fixture
def storage(postgres):
    with open_storage(postgres, write=True) as storage:
        storage.begin(make_about())
        yield storage


@pytest.fixture
def server(postgres):
    """A connection past the storage."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        yield connection


@pytest.fixture
def start_leader(postgres):
    """Starts another process that leads the journal."""
    processes = []

    def start(patience):
        process = subprocess.Popen(
            [sys.executable, "-c", LEADER, postgres, str(patience)], stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        assert process.stdout.readline() == "True\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def cut(server):
    """End all other sessions of the database, as a restart of the server does."""
    query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> %s"
    assert server.execute(query, (server.info.backend_pid,)).fetchall()


def submit(key, kind="decision"):
    return make_row(None, kind, key=key, digest=None)


def number(rows, after=0):
    return [row._replace(number=after + place + 1, digest=bytes(32)) for place, row in enumerate(rows)]


def take_over(storage):
    """Return after how many seconds the lead was ours."""
    began = time.monotonic()
    while not storage.lead("main"):
        assert time.monotonic() < began + 30
        time.sleep(0.01)
    return time.monotonic() - began


def test_a_row_whose_id_becomes_visible_late_is_not_missed(storage, server, postgres):
    insert = (
        "INSERT INTO preselect.events (journal, at, kind, key, text, block) VALUES ('main', 0, 'decision', %s, '', '')"
    )
    with psycopg.connect(postgres) as slow:
        slow.execute(insert, ("early",))  # has the smaller id, and is not committed
        storage.submit([submit("late")])
        storage.lead("main")
        storage.number(number(storage.pending("main")))
    storage.number(number(storage.pending("main"), after=1))
    assert [(row.number, row.key) for row in storage.read("main")] == [(1, "late"), (2, "early")]
    ids = server.execute("SELECT key FROM preselect.events ORDER BY id").fetchall()
    assert ids == [("early",), ("late",)]  # so whoever had tailed ids would have missed the first


def test_submissions_of_many_writers_wait_once_each(storage, postgres):
    def write(name):
        with open_storage(postgres, write=True) as own:
            for place in range(10):
                own.submit([submit(f"{name}.{place}"), submit(f"{name}.{place}.2")])

    def contend():  # all of them end the same decisions, listed in different orders
        with open_storage(postgres, write=True) as own:
            rows = [submit(f"shared{place}", "outcome") for place in range(50)]
            rejected.append(len(own.submit(rows if len(rejected) % 2 else rows[::-1])))

    rejected = []
    storage.submit([submit(f"shared{place}") for place in range(50)])
    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    threads += [threading.Thread(target=contend) for _ in range(4)]
    for thread in threads:
        thread.start()
    storage.lead("main")
    while any(thread.is_alive() for thread in threads) or storage.pending("main"):
        rows = storage.pending("main", 7)
        last = storage.last("main")
        numbered = number(rows, after=0 if last is None else last.number)
        made = {row.key: row.number for row in numbered if row.kind == "decision"}
        storage.number(
            [
                row._replace(decision=made.get(row.key) or storage.find_key(row.key).number)
                if row.kind == "outcome"
                else row
                for row in numbered
            ]
        )
    assert sorted(rejected) == [0, 50, 50, 50]
    assert [row.number for row in storage.read("main")] == list(range(1, 4 * 20 + 101))
    assert storage.count_unfinished("main") == 80


def test_a_leader_that_is_killed_is_followed_at_once(storage, start_leader):
    leader = start_leader(3)
    assert not storage.lead("main")
    leader.kill()
    assert take_over(storage) < 2


def test_a_leader_that_hangs_is_followed_and_cannot_write_again(storage, start_leader):
    leader = start_leader(0.5)
    os.kill(leader.pid, signal.SIGSTOP)
    assert 0.3 < take_over(storage) < 5
    storage.append([make_row(1)])
    os.kill(leader.pid, signal.SIGCONT)
    assert leader.wait(20) != 0  # its session is gone, and with it the lock
    assert storage.lead("main")


def test_an_idle_leader_without_patience_keeps_the_lead(storage, postgres):
    with open_storage(postgres, write=True) as other:
        assert other.lead("main", patience=0.2)
        assert not storage.lead("main")
        time.sleep(0.5)
        assert storage.lead("main")
        time.sleep(0.5)
        with pytest.raises(JournalError):
            other.lead("main")
        assert not other.lead("main")


def test_connections_that_are_cut_are_opened_again(storage, server):
    storage.append([make_row(1)])
    listener = storage.listen()
    assert listener.wait(1)
    cut(server)
    with pytest.raises(JournalError, match=r"postgresql://.* failed: "):
        storage.last("main")
    assert storage.last("main").number == 1
    with pytest.raises(JournalError):
        storage.append([make_row(2)])
    storage.append([make_row(2)])
    assert [row.number for row in storage.read("main")] == [1, 2]
    with pytest.raises(JournalError):
        listener.wait(1)
    assert listener.wait(1)  # something may have been missed
    listener.close()


def test_who_loses_the_lock_cannot_number(storage, server, postgres):
    storage.submit([submit("a")])
    assert storage.lead("main")
    rows = number(storage.pending("main"))
    cut(server)
    with open_storage(postgres, write=True) as other:
        assert take_over(other) < 2
        with pytest.raises(JournalError):
            storage.number(rows)
        with pytest.raises(JournalError, match="no longer leads the journal"):
            storage.number(rows)
        other.number(rows)
        assert not storage.lead("main")


@pytest.mark.usefixtures("storage")
def test_a_reader_whose_connection_is_cut_does_not_see_another_moment(server, postgres):
    with open_storage(postgres) as reader:
        cut(server)
        for _ in range(2):
            with pytest.raises(JournalError):
                reader.journals()


def test_tables_are_made_once_by_many(postgres):
    failures = []

    def open_and_begin(name):
        try:
            with open_storage(postgres, write=True) as storage:
                storage.begin(make_about(name))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=open_and_begin, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with open_storage(postgres) as storage:
        assert storage.journals() == list("abcd")


def test_numbered_rows_are_never_changed(storage, server):
    storage.append([make_row(1)])
    statements = (
        "UPDATE preselect.events SET text = ''",
        "DELETE FROM preselect.events",
        "TRUNCATE preselect.events",
        "UPDATE preselect.journals SET genesis = ''",
        "DELETE FROM preselect.journals",
    )
    for statement in statements:
        with pytest.raises(psycopg.errors.RaiseException, match="never changed or deleted"):
            server.execute(statement)


def test_commits_are_durable_even_where_the_server_says_off(postgres, server):
    server.execute(f"ALTER DATABASE {urlsplit(postgres).path[1:]} SET synchronous_commit = off")
    with closing(PostgresStorage(postgres, write=True)) as storage:
        assert storage._fetch("SHOW synchronous_commit") == [("on",)]
        storage.begin(make_about())
        storage.lead("main")
        assert storage._leader._connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


@pytest.mark.usefixtures("storage")
def test_a_newer_version_is_refused(server, postgres):
    server.execute("UPDATE preselect.format SET version = 99")
    for write in (True, False):
        with pytest.raises(JournalError, match=r"has version 99, and this preselect reads up to 1; update"):
            open_storage(postgres, write=write)


@pytest.mark.parametrize("url", ["postgresql://[", "postgresql://localhost/x?nonsense=1"])
def test_urls_that_are_none_are_refused(url):
    with pytest.raises(InputError, match="this is not the URL of a database"):
        open_storage(url)


def test_messages_have_no_password():
    with pytest.raises(JournalError) as refusal:
        open_storage("postgresql://me:hunter2@127.0.0.1:1/journals?connect_timeout=2")
    assert str(refusal.value).startswith("postgresql://me@127.0.0.1:1/journals failed: ")
    assert "hunter2" not in str(refusal.value)


def test_the_service_prints_no_password(capsys):
    for url in ("postgresql://me:hunter2@host:1/journals", "postgresql://me@host:1/journals?password=hunter2"):
        _announce("http://127.0.0.1:8000", url, None)
        said = capsys.readouterr().out
        assert "Serving http://127.0.0.1:8000 from postgresql://me@host:1/journals. " in said
        assert "hunter2" not in said


def test_what_a_database_cannot_hold_is_refused(storage):
    with pytest.raises(InputError, match="cannot hold this"):
        storage.find_request("main", "\0")
