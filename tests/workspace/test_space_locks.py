"""Where a workspace may lie, its lock and its fence: one owner at a time, also over hosts."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from process_kit import WAIT_S, start
from spak import canon
from spak.errors import LedgerError, RunError, UsageError
from spak.ledger.memory import MemoryBlobs
from spak.workspace import Workspace
from workspace.trees import fingerprint, vandalise


class TestPlace:
    def test_ours_within_the_folder_is_no_part_of_it(self, folder: Path) -> None:
        run = folder / ".spak" / "runs" / "r1"
        plain = Workspace(folder, folder.parent / "store").snapshot()
        space = Workspace(folder, run / "store")
        assert space.begin("e1") == plain
        (run / "trace.jsonl").write_bytes(b"the ledger")
        (folder / "private").write_bytes(b"changed")
        assert space.touched() == ["private"] and space.rollback() == ["private"]
        assert (run / "trace.jsonl").read_bytes() == b"the ledger"

    def test_store_and_folder_in_one_another_are_refused(self, folder: Path) -> None:
        for directory, store in ((folder, folder / "runs" / "store"), (folder / "src", folder)):
            with pytest.raises(UsageError) as caught:
                Workspace(directory, store)
            assert caught.value.code == "workspace.nested"


class TestLock:
    def test_a_tool_that_outlives_its_runner_keeps_it(self, space: Workspace, tmp_path: Path) -> None:
        with space.lock() as fd:
            tool = start([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(fd,))
        started = time.monotonic()
        with (
            pytest.raises(RunError) as caught,
            Workspace(space.directory, tmp_path / "store", wait_s=0.2).lock(),
        ):
            pass
        assert caught.value.code == "workspace.busy" and "wait_s" in str(caught.value.hint)
        assert f"process {tool.pid} (" in caught.value.message and "after 0.2 s" in caught.value.message
        assert time.monotonic() - started >= 0.2
        with pytest.raises(RunError):
            space.snapshot()
        tool.communicate(b"\n")
        assert space.snapshot()

    def test_waits_for_it(self, space: Workspace, tmp_path: Path) -> None:
        with space.lock() as fd:
            tool = start([sys.executable, "-c", "import time; time.sleep(0.3)"], pass_fds=(fd,))
        assert Workspace(space.directory, tmp_path / "store", wait_s=WAIT_S).snapshot()
        assert tool.wait(WAIT_S) == 0

    def test_its_owner_may_take_it_again(self, space: Workspace) -> None:
        with space.lock() as outer, space.lock() as inner:
            assert outer == inner and os.get_inheritable(outer)
            assert space.snapshot()
        with pytest.raises(OSError, match="Bad file"):
            os.fstat(outer)


def test_what_root_restores_belongs_to_the_workspaces_owner(space: Workspace, folder: Path) -> None:
    owner = (12345, 12345) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, *owner, follow_symlinks=False)
    space.begin("e1")
    vandalise(folder)
    space.rollback()
    for path in [folder, *folder.rglob("*")]:
        seen = path.lstat()
        assert (seen.st_uid, seen.st_gid) == owner, path


def test_a_tool_that_locks_the_folder_does_not_lock_the_next_one_out(space: Workspace, folder: Path) -> None:
    space.begin("first")
    folder.chmod(0)
    space.commit()
    space.settle()
    space.begin("second")
    assert stat.S_IMODE(folder.stat().st_mode) & 0o700 == 0o700
    space.rollback()


def test_the_file_of_the_lock_is_empty_and_its_fence_elsewhere(space: Workspace, tmp_path: Path) -> None:
    space.take(3)
    with space.lock() as fd:
        assert os.fstat(fd).st_size == 0
        (tmp_path / "store/lock").chmod(0o600)
        (tmp_path / "store/lock").write_text("9" * 20)
    space.take(4)
    assert int((tmp_path / "store/fence").read_text()) == 4


class TestFence:
    """A workspace object of a runner whose lease was taken by another one."""

    @pytest.fixture
    def later(self, space: Workspace, folder: Path, tmp_path: Path) -> Workspace:
        space.take(1)
        return Workspace(folder, tmp_path / "store", wait_s=0.2)

    @pytest.mark.parametrize(
        "door",
        [
            lambda space: space.snapshot(),
            lambda space: space.begin("e2"),
            lambda space: space.lock().__enter__(),
            lambda space: space.recover("e1", ""),
            lambda space: space.restore("x"),
            lambda space: space.take(1),
        ],
        ids=["snapshot", "begin", "lock", "recover", "restore", "take"],
    )
    def test_every_door_is_shut(
        self, space: Workspace, later: Workspace, folder: Path, door: Callable[[Workspace], object]
    ) -> None:
        later.take(2)
        later.begin("e1")
        (folder / "new").write_bytes(b"of the later one")
        before = fingerprint(folder)
        with pytest.raises(LedgerError) as lost:
            door(space)
        assert lost.value.code == "ledger.lost_lease"
        assert fingerprint(folder) == before
        assert later.rollback() == ["new"]

    @pytest.mark.parametrize("end", [Workspace.commit, Workspace.rollback, Workspace.settle])
    def test_a_step_under_way_is_not_ended_any_more(
        self, space: Workspace, later: Workspace, folder: Path, end: Callable[[Workspace], object]
    ) -> None:
        space.begin("e1")
        (folder / "new").write_bytes(b"of the first one")
        if end is Workspace.settle:
            space.commit()
        later.take(7)
        assert later.recover("e1", "") == ["new"]
        later.begin("e1")
        with pytest.raises(LedgerError):
            end(space)
        under_way = Workspace(folder, later._store.folder).pending()
        assert under_way is not None and under_way.effect == "e1"

    def test_it_waits_for_whoever_is_in_the_middle(self, space: Workspace, later: Workspace) -> None:
        with space.lock():
            space.begin("e1")
            with pytest.raises(RunError) as busy:
                later.take(2)
            assert busy.value.code == "workspace.busy"
            space.commit()
        later.take(2)

    def test_the_same_and_a_newer_lease_go_on(self, space: Workspace, later: Workspace) -> None:
        later.take(1)
        space.snapshot()
        space.take(30)
        space.take(30)
        with pytest.raises(LedgerError):
            later.snapshot()

    def test_a_fence_is_synced_where_there_is_somebody_to_shut_out(
        self, space: Workspace, later: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        synced: list[Path] = []
        monkeypatch.setattr(os, "fsync", lambda fd: synced.append(Path(f"/proc/self/fd/{fd}").readlink()))
        Workspace(space.directory, space.directory.parent / "new").take(1)
        assert synced == []
        later.take(2)
        assert synced == [space.directory.parent / "store" / "fence"]


class TestAnotherHost:
    """Two stores that share no disk, and blobs that both reach."""

    def test_a_root_goes_over_in_blobs(self, space: Workspace, folder: Path, tmp_path: Path) -> None:
        blobs = MemoryBlobs({}, writable=True)
        root = space.snapshot()
        space.push(root, blobs)
        there = Workspace(tmp_path / "there", tmp_path / "store-there")
        with pytest.raises(RunError) as caught:
            there.recover(None, root)
        assert caught.value.code == "workspace.object"
        shutil.rmtree(tmp_path / "there")
        there.draw_on(blobs)
        there.recover(None, root)
        assert there.snapshot() == root
        (tmp_path / "there" / "new").write_bytes(b"made there")
        there.push(there.snapshot(), blobs)
        space.draw_on(blobs)
        space.restore(there.snapshot())
        assert (folder / "new").read_bytes() == b"made there"

    def test_only_what_is_new_is_put(self, space: Workspace, folder: Path) -> None:
        blobs = MemoryBlobs({}, writable=True)
        space.push(space.snapshot(), blobs)
        before = set(blobs.names())
        (folder / "src" / "a.c").write_bytes(b"int other;\n")
        root = space.snapshot()
        space.push(root, blobs)
        new = set(blobs.names()) - before
        assert {root, canon.digest(b"int other;\n")} <= new and len(new) == 3

    def test_a_list_is_there_only_after_what_it_names(self, space: Workspace) -> None:
        """A push that was cut off is made whole by the next one."""
        kept: dict[str, bytes] = {}

        class Cut(MemoryBlobs):
            left = 3

            def put(self, data: bytes) -> str:
                self.left -= 1
                if self.left < 0:
                    raise LedgerError("ledger.io", "cut", "")
                return super().put(data)

        root = space.snapshot()
        with pytest.raises(LedgerError):
            space.push(root, Cut(kept, writable=True))
        assert root not in kept and len(kept) == 3
        space.push(root, MemoryBlobs(kept, writable=True))
        assert root in kept
