"""What docs/serving.md shows, run against a real service."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest
from documents import ROOT, list_blocks

TEXT = (ROOT / "docs" / "serving.md").read_text()
pytest.importorskip("starlette", reason="the web backend of the document needs starlette")


def find_blocks(language, *parts):
    """Find the blocks of the document that contain all of these."""
    found = [block for block in list_blocks(TEXT, language) if all(part in block for part in parts)]
    assert found
    return found


@contextmanager
def start(command, folder):
    """Run a program for as long as the block lasts."""
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def wait_for(url):
    limit = time.monotonic() + 120
    while time.monotonic() < limit:
        try:
            return urllib.request.urlopen(url, timeout=10).read()
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"{url} does not answer")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The service as the document starts it, but at a free port; the text is changed to that."""
    folder = tmp_path_factory.mktemp("served")
    with start([sys.executable, "-m", "preselect", "serve", "--port", "0"], folder) as process:
        url = re.search(r"http://127.0.0.1:\d+", process.stdout.readline())[0]
        wait_for(f"{url}/readyz")
        yield folder, url


def run_shell(served, block):
    folder, url = served
    script = block.replace("http://127.0.0.1:8000", url)
    done = subprocess.run(["sh", "-ec", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert '"status":4' not in done.stdout, done.stdout
    return done.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl(served):
    first, more, rules = find_blocks("sh", "curl")
    said = run_shell(served, first + more)
    assert '"status":"told"' in said
    assert "preselect_requests" in said
    shown = json.loads(run_shell(served, rules))
    assert "moon" in shown["names"]
    assert not {"final", "strike"} <= set(shown["names"])
    description = json.loads(wait_for(f"{served[1]}/v1/preselectors/articles"))
    assert "moon" in description["arms"]
    assert "storm" not in description["arms"]
    assert (description["decisions"], description["told"]) == (2, 1)


def test_the_client(served, capsys):
    (block,) = find_blocks("python", "preselect.Client")
    names = {}
    exec(
        compile(block.replace("8000", served[1].rpartition(":")[2]).replace('"articles"', '"client"'), "doc", "exec"),
        names,
    )
    with names["articles"].client:
        assert names["articles"].describe()["told"] == 1
    assert "storm" in capsys.readouterr().out


def test_the_web_backend_with_four_workers(served):
    folder, url = served
    (block,) = find_blocks("python", "Starlette")
    code = block.replace("http://127.0.0.1:8000", url).replace('preselector("articles")', 'preselector("shop")')
    (folder / "shop.py").write_text(code)
    put(f"{url}/v1/preselectors/shop", {"arms": ["a", "b", "c"], "context": ["age", "evening"]})
    port = find_free_port()
    command = [sys.executable, "-m", "uvicorn", "shop:app", "--port", str(port), "--workers", "4"]
    with start(command, folder):
        wait_for(f"http://127.0.0.1:{port}/articles?age=31")
        for age in range(20):
            shown = json.loads(wait_for(f"http://127.0.0.1:{port}/articles?age={age}"))
            pick = f"http://127.0.0.1:{port}/picks/{shown['decision']}/{shown['articles'][0]}"
            urllib.request.urlopen(urllib.request.Request(pick, method="POST"), timeout=10).close()
    found = json.loads(wait_for(f"{url}/v1/preselectors/shop"))
    assert (found["decisions"], found["told"]) == (21, 20)


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
def test_keys(tmp_path):
    (block,) = find_blocks("sh", "serve key")
    for line in block.splitlines()[:3]:
        command = line.partition("#")[0].split()
        assert command[0] == "preselect"
        subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, check=True, capture_output=True)
    assert len((tmp_path / "preselect.keys").read_text().splitlines()) >= 3


def test_a_copy_is_made_while_the_service_runs(served):
    folder, url = served
    put(f"{url}/v1/preselectors/copied", {"arms": ["a", "b", "c"]})
    (block,) = find_blocks("sh", "journal copy")
    done = subprocess.run(
        [sys.executable, "-m", *block.split()], cwd=folder, check=True, capture_output=True, text=True
    )
    assert "copied: 0 events" in done.stdout
    assert (folder / "backup.journal").stat().st_size > 0


def put(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="PUT")
    urllib.request.urlopen(request, timeout=30).close()


def find_free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
