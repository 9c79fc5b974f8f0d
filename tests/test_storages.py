"""Every storage passes the conformance suites."""

import pytest

from preselect.store import conformance, shared_conformance
from preselect.store.storage import open_storage


@pytest.fixture
def place(postgres):
    return lambda: lambda write: open_storage(postgres, write=write)


@pytest.fixture
def file(tmp_path):
    return lambda: lambda write: open_storage(tmp_path / "some.journal", write=write)


@pytest.mark.parametrize("engine", ["file", "place"])
@pytest.mark.parametrize("check", conformance.CHECKS)
def test_storages_conform(check, engine, request):
    conformance.run(check, request.getfixturevalue(engine))


@pytest.mark.parametrize("check", shared_conformance.CHECKS)
def test_shared_storages_conform(check, place):
    shared_conformance.run(check, place)
