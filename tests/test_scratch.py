"""Temporary folders: removed by their owner, and by the next process where their owner was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from spak.files import scratch
from spak.files.disk import Disk
from spak.files.scratch import Scratch

HOLDS = """
import sys, time
from spak.validators.cpu_build import Workshop
workshop = Workshop()
print(workshop.folder, flush=True)
time.sleep(600)
"""
STARTS = "from spak.validators.cpu_build import Workshop; Workshop()"


def _held(top: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS],
        env={**os.environ, "TMPDIR": str(top)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def _end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_what_a_killed_measurement_left_goes_with_the_next_one(tmp_path: Path) -> None:
    process, folder = _held(tmp_path)
    try:
        again = [sys.executable, "-c", STARTS]
        subprocess.run(again, env={**os.environ, "TMPDIR": str(tmp_path)}, check=True)
        assert list(tmp_path.iterdir()) == [folder]  # in use: nobody else's to remove
    finally:
        _end(process)
    assert folder.is_dir()
    subprocess.run(again, env={**os.environ, "TMPDIR": str(tmp_path)}, check=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.findings("F9")
@pytest.mark.sandbox
def test_what_a_killed_probe_left_goes_with_the_next_one(tmp_path: Path) -> None:
    killed = """
import os, signal
from spak.sandbox import Restricted
launcher = Restricted()
launcher.run = lambda job: os.kill(os.getpid(), signal.SIGKILL)
launcher.probe()
"""
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", killed], env=env, check=False).returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    subprocess.run([sys.executable, "-c", STARTS], env=env, check=True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_below_another_one_is_swept_by_the_next(tmp_path: Path) -> None:
    left = tmp_path / f"{scratch.PREFIX}fetch-x"
    left.mkdir()
    with Scratch("fetch", tmp_path) as folder:
        assert list(tmp_path.iterdir()) == [folder]
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(scratch.tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path


def test_folder_is_private_and_goes_at_the_end_of_its_block(top: Path) -> None:
    with Scratch("word") as folder:
        assert folder.parent == top and folder.stat().st_mode & 0o777 == 0o700
        (folder / "file").write_text("text")
    assert list(top.iterdir()) == []


def test_sweep_removes_nothing_but_its_own_folders(top: Path) -> None:
    (top / "other").mkdir()
    (top / f"{scratch.PREFIX}file").write_text("a file of that name")
    (top / f"{scratch.PREFIX}link").symlink_to(top / "other")
    (top / f"{scratch.PREFIX}left").mkdir()
    with Scratch("used") as folder:
        scratch.sweep(top)
        assert folder.is_dir()
    names = {path.name for path in top.iterdir()}
    assert names == {"other", f"{scratch.PREFIX}file", f"{scratch.PREFIX}link"}


def test_sweep_leaves_folders_of_other_users(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (top / f"{scratch.PREFIX}left").mkdir()
    monkeypatch.setattr(scratch.os, "geteuid", lambda: os.getuid() + 1)
    scratch.sweep(top)
    assert (top / f"{scratch.PREFIX}left").is_dir()


def test_sweep_of_a_missing_folder_is_nothing(tmp_path: Path) -> None:
    scratch.sweep(tmp_path / "missing")


def test_folder_that_is_swept_before_its_lock_is_made_again(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = scratch.tempfile.mkdtemp
    lost: list[str] = []

    def first_is_swept(**words: str) -> str:
        name = made(**words)
        if not lost:
            lost.append(name)
            scratch.sweep(top)
        return name

    monkeypatch.setattr(scratch.tempfile, "mkdtemp", first_is_swept)
    with Scratch("word") as folder:
        assert folder.is_dir() and str(folder) not in lost


def test_folders_that_a_sandbox_hides_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, found in (("/dev/shm", "/var/tmp"), ("/tmp/x", "/tmp/x")):
        monkeypatch.setattr(scratch.tempfile, "gettempdir", lambda name=name: name)
        assert scratch.place() == Path(found)


def _deep(top: Path) -> None:
    at = os.open(top, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=at)
        inner = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)


def _unwritable(top: Path) -> None:
    (top / "a/b").mkdir(parents=True)
    (top / "a/b/c").write_text("x")
    (top / "a/b").chmod(0o500)
    (top / "a").chmod(0)


def _linked(top: Path) -> None:
    (top.parent / "kept").mkdir()
    (top.parent / "kept/file").write_text("x")
    (top / "folder").mkdir()
    (top / "folder/link").symlink_to("../../kept")
    (top / "link").symlink_to("../kept")


@pytest.mark.parametrize("made", [_deep, _unwritable, _linked])
def test_whatever_was_made_in_it_goes(top: Path, made: Callable[[Path], None]) -> None:
    with Scratch("test") as folder:
        made(folder)
    (left := top / f"{scratch.PREFIX}left-1").mkdir()
    if made is not _linked:
        made(left)
    scratch.sweep(top)
    assert [path.name for path in top.iterdir()] == (["kept"] if made is _linked else [])
    assert made is not _linked or (top / "kept/file").read_text() == "x"


def test_what_cannot_be_removed_stops_no_later_one(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = [top / f"{scratch.PREFIX}left-{number}" for number in range(3)]
    for folder in left:
        (folder / "in it").mkdir(parents=True)
    real = Disk.rmdir

    def refuse(disk: Disk, name: str, at: int) -> None:
        if name == left[1].name:
            raise PermissionError(1, "no", name)
        real(disk, name, at)

    monkeypatch.setattr(Disk, "rmdir", refuse)
    scratch.sweep(top)
    assert list(top.iterdir()) == [left[1]]


def test_a_forked_process_leaves_what_its_parent_holds(top: Path) -> None:
    """A collection of garbage in the child is not the end of the parent's things."""
    closed: list[int] = []

    class Owner:
        pass

    owner, folder = Owner(), Scratch("test")
    scratch.when_gone(owner, lambda: closed.append(1))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            del owner
            folder.close()
            code = len(closed)
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0 and folder.path.is_dir()
    del owner
    folder.close()
    assert closed == [1] and not list(top.iterdir())
