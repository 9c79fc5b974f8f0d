"""Files: what is there is never harmed by writing, and what is compressed is read within limits."""

import gzip
import lzma
import os
import re
import stat
import subprocess
import tracemalloc
from contextlib import nullcontext

import pytest

from preselect import CPPL, InputError, files


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.txt"


def test_a_new_file_has_the_mode_that_the_umask_allows(path):
    before = os.umask(0o027)
    try:
        files.write_whole(path, b"new")
    finally:
        os.umask(before)
    assert (path.read_bytes(), path.stat().st_mode & 0o7777) == (b"new", 0o640)


@pytest.mark.parametrize("mode", [0o600, 0o666, 0o755, 0o400])
def test_an_existing_file_keeps_its_mode(path, mode):
    path.write_text("old")
    path.chmod(mode)
    files.write_whole(path, "new")
    assert (path.read_text(), path.stat().st_mode & 0o7777) == ("new", mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_an_existing_file_keeps_its_owner(path):
    path.write_text("old")
    os.chown(path, 12345, 54321)
    files.write_whole(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


def test_a_file_whose_owner_cannot_be_kept_is_written_nevertheless(path, monkeypatch):
    def refuse(*_):
        raise PermissionError

    path.write_text("old")
    path.chmod(0o640)
    monkeypatch.setattr(os, "fchown", refuse)
    files.write_whole(path, "new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o640)


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_a_link(tmp_path, path, there):
    target, middle = tmp_path / "target", tmp_path / "middle"
    if there:
        target.write_text("old")
        target.chmod(0o600)
    middle.symlink_to("target")
    path.symlink_to(middle)
    files.write_whole(path, "new")
    assert path.is_symlink()
    assert middle.is_symlink()
    assert target.read_text() == "new"
    assert not there or target.stat().st_mode & 0o777 == 0o600


def test_pipes_are_written_to(path):
    os.mkfifo(path)
    reader = os.open(path, os.O_RDWR)
    try:
        files.write_whole(path, "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_devices_are_written_to(path):
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))  # another /dev/null
        path.write_bytes(b"x")
    except PermissionError:
        pytest.skip("devices cannot be made here")
    CPPL(d=2).save(path)
    files.write_whole(path, "swallowed")
    assert stat.S_ISCHR(path.stat().st_mode)


def test_an_open_file_without_a_name_is_written_to(path):
    with path.open("w+b") as file:
        path.unlink()
        files.write_whole(f"/dev/fd/{file.fileno()}", "new")
        assert os.pread(file.fileno(), 9, 0) == b"new"
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("mode", ["wb", "ab"])
@pytest.mark.parametrize("name", ["/dev/fd/{}", "/proc/self/fd/{}", "link"])
def test_an_open_file_is_added_to(path, name, mode, monkeypatch):
    monkeypatch.chdir(path.parent)
    with path.open(mode, buffering=0) as file:
        os.symlink(f"/dev/fd/{file.fileno()}", "link")
        file.write(b"before ")
        files.require_ours(name.format(file.fileno()), lambda _: False)
        files.write_whole(name.format(file.fileno()), "new")
        file.write(b" after")
    assert path.read_text() == "before new after"


def test_an_open_file_of_another_process_is_added_to(path):
    path.write_text("before ")
    with path.open("ab") as file, subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=file) as process:
        files.write_whole(f"/proc/{process.pid}/fd/1", "new")
    assert path.read_text() == "before new"


def test_only_files_of_ours_are_replaced(tmp_path, path):
    sentence = f"{path} exists and was not written by preselect; name another file, or remove it"
    for content in (b"", b"ours", b"theirs"):
        path.write_bytes(content)
        with nullcontext() if content != b"theirs" else pytest.raises(InputError, match=re.escape(sentence)):
            files.require_ours(path, lambda beginning: beginning == b"ours")
    for elsewhere in (tmp_path / "nothing", "/dev/null"):
        files.require_ours(elsewhere, lambda _: False)
    for nowhere in (tmp_path, tmp_path / "nothing" / "a"):
        with pytest.raises(InputError, match=f"cannot write {nowhere}: "):
            files.require_ours(nowhere, lambda _: False)


def test_a_folder_is_refused_with_a_sentence(tmp_path):
    for write in (files.write_whole, files.write_bytes):
        with pytest.raises(InputError, match=f"cannot write {tmp_path}: Is a directory"):
            write(tmp_path, b"new")
    with pytest.raises(InputError, match=r"cannot write .*nowhere/a: No such file or directory"):
        files.write_whole(tmp_path / "nowhere" / "a", b"new")
    with pytest.raises(InputError, match=r"cannot write .*nowhere/a: No such file or directory"):
        files.write_new(tmp_path / "nowhere" / "a", b"new")
    for write in (files.write_whole, files.write_new):
        with pytest.raises(InputError, match="the name of the file to write is empty"):
            write("", b"new")


def test_names_may_be_as_long_as_the_system_allows(tmp_path):
    files.write_whole(tmp_path / ("n" * 255), "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["n" * 255]


@pytest.mark.parametrize("failing", ["fsync", "replace", "fchmod"])
@pytest.mark.parametrize(("error", "raised"), [(OSError(28, "No space left"), InputError), (KeyboardInterrupt, None)])
def test_an_interrupted_write_leaves_the_old_file(path, monkeypatch, failing, error, raised):
    def fail(*_):
        raise error

    path.write_text("old")
    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(raised or error):
        files.write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_texts_may_hold_names_of_files_that_are_no_text(path):
    files.write_whole(path, "\udcffé")
    assert path.read_bytes() == b"\\udcff\xc3\xa9"


def test_a_new_file_never_replaces_anything(tmp_path, path):
    files.write_new(path, "new")
    dangling = tmp_path / "dangling"
    dangling.symlink_to("nothing")
    for there in (path, dangling, tmp_path):
        with pytest.raises(InputError, match="exists and is not overwritten"):
            files.write_new(there, "newer")
    assert path.read_text() == "new"
    assert not dangling.exists()


@pytest.mark.parametrize(("error", "raised"), [(OSError(28, "No space left"), InputError), (KeyboardInterrupt, None)])
def test_a_new_file_is_written_whole_or_not_at_all(path, monkeypatch, error, raised):
    def fail(*_):
        raise error

    monkeypatch.setattr(files, "_encode", fail)  # as on a full disk, the file is there when the write fails
    with pytest.raises(raised or error):
        files.write_new(path, "new")
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(("suffix", "magic"), [(".gz", b"\x1f\x8b"), (".xz", b"\xfd7zXZ"), ("", b"content")])
def test_files_are_compressed_by_suffix(tmp_path, suffix, magic):
    path = tmp_path / f"a{suffix}"
    files.write_bytes(path, b"content" * 99)
    assert path.read_bytes().startswith(magic)
    assert files.read_text(path) == "content" * 99


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_what_is_compressed_is_read_up_to_a_limit(path, compress):
    part = compress(bytes(10 << 20))
    path.write_bytes(part * 3)  # gzip and xz files may be joined end to end
    assert files.read_bytes(path, most=30 << 20) == bytes(30 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"has more than 2 MiB when decompressed; if that is right, decompress it"):
            files.read_bytes(path, most=2 << 20)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20  # xz itself needs 8 MiB
    finally:
        tracemalloc.stop()
    with pytest.raises(InputError, match="has more than 1 MiB"):
        files.read_text(path, most=1 << 20)


def test_what_is_not_compressed_has_no_limit(path):
    path.write_bytes(bytes(100))
    assert files.read_bytes(path, most=10) == bytes(100)
