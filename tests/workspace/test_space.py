"""The workspace: snapshots, transactions, recovery, copies, locks."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spak import canon
from spak.errors import BugError, RunError, UsageError
from spak.workspace import Bounds, Workspace
from workspace.trees import fingerprint, identities, plant, remove, vandalise


class TestSnapshot:
    def test_equal_folders_have_equal_roots(self, space: Workspace, tmp_path: Path) -> None:
        other = tmp_path / "other"
        other.mkdir()
        plant(other)
        assert Workspace(other, tmp_path / "store2").snapshot() == space.snapshot() == space.snapshot()

    def test_is_what_its_format_says(self, tmp_path: Path) -> None:
        space = Workspace(tmp_path / "ws", tmp_path / "store")
        assert space.snapshot() == canon.digest(b"spak-tree 1\0")
        (tmp_path / "ws" / "d").mkdir()
        (tmp_path / "ws" / "d" / "x").write_bytes(b"run")
        (tmp_path / "ws" / "d" / "x").chmod(0o700)
        (tmp_path / "ws" / "a").write_bytes(b"text")
        (tmp_path / "ws" / "l").symlink_to("a")
        inner = canon.digest(b"spak-tree 1\0" + f"x {canon.digest(b'run')} 3 x\0".encode())
        lines = [f"f {canon.digest(b'text')} 4 a\0", f"d {inner} 0 d\0", f"l {canon.digest(b'a')} 1 l\0"]
        assert space.snapshot() == canon.digest(b"spak-tree 1\0" + "".join(lines).encode())

    @pytest.mark.parametrize(
        "edit",
        [
            lambda ws: (ws / "src" / "a.c").write_bytes(b"int A;\n"),
            lambda ws: (ws / "src" / "a.c").rename(ws / "src" / "z.c"),
            lambda ws: (ws / "run.sh").chmod(0o644),
            lambda ws: (ws / "empty").rmdir(),
            lambda ws: (ws / "empty" / "inner").mkdir(),
            lambda ws: (ws / "link").unlink() or (ws / "link").symlink_to("src/b.c"),
            lambda ws: (ws / "link").unlink() or (ws / "link").write_bytes(b"src/a.c"),
            lambda ws: (ws / "private").unlink(),
        ],
    )
    def test_sees_every_change_that_counts(
        self, space: Workspace, folder: Path, edit: Callable[[Path], object]
    ) -> None:
        before = space.snapshot()
        edit(folder)
        assert space.snapshot() != before

    def test_ignores_times_other_rights_and_hard_links(self, space: Workspace, folder: Path) -> None:
        before = space.snapshot()
        os.utime(folder / "private", (1, 1))
        (folder / "private").chmod(0o640)
        (folder / "copy").write_bytes((folder / "src" / "a.c").read_bytes())
        twice = space.snapshot()
        (folder / "copy").unlink()
        os.link(folder / "src" / "a.c", folder / "copy")
        assert space.snapshot() == twice != before

    def test_a_change_that_hides_its_mtime_is_seen(self, space: Workspace, folder: Path) -> None:
        time.sleep(0.15)
        space.snapshot()
        before, seen = space.snapshot(), (folder / "private").stat()
        (folder / "private").write_bytes(b"SECRET")
        os.utime(folder / "private", ns=(seen.st_atime_ns, seen.st_mtime_ns))
        assert space.snapshot() != before

    def test_changes_right_after_a_snapshot_are_seen(self, space: Workspace, folder: Path) -> None:
        roots = set()
        for number in range(50):
            (folder / "private").write_bytes(b"%06d" % number)
            roots.add(space.snapshot())
        assert len(roots) == 50

    def test_an_unchanged_tree_is_not_read_again(
        self, space: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        time.sleep(0.15)
        space.snapshot()
        opened = []
        really = space._disk.open_file
        monkeypatch.setattr(
            space._disk, "open_file", lambda name, at: opened.append(name) or really(name, at)
        )
        space.snapshot()
        assert opened == []
        (folder / "private").write_bytes(b"other")
        space.snapshot()
        assert opened == ["private"]

    def test_a_pipe_is_no_part_of_it_and_hangs_nobody(self, space: Workspace, folder: Path) -> None:
        before = space.snapshot()
        os.mkfifo(folder / "pipe")
        assert space.snapshot() == before

    def test_too_many_or_too_big_is_a_typed_error(self, folder: Path, tmp_path: Path) -> None:
        for bounds in (Bounds(entries=5), Bounds(size_bytes=1 << 20)):
            with pytest.raises(RunError) as caught:
                Workspace(folder, tmp_path / "store", bounds=bounds).snapshot()
            assert caught.value.code == "workspace.limit"

    def test_no_limit_is_met_by_a_hole(self, space: Workspace, folder: Path) -> None:
        os.truncate(folder / "big", 1 << 40)
        with pytest.raises(RunError) as caught:
            space.snapshot()
        assert caught.value.code == "workspace.limit"

    def test_too_deep_is_a_typed_error(self, space: Workspace, folder: Path) -> None:
        _dig(folder / "empty", 400)
        with pytest.raises(RunError) as caught:
            space.snapshot()
        assert caught.value.code == "workspace.limit"

    def test_contents_are_stored_once(self, space: Workspace, folder: Path, tmp_path: Path) -> None:
        (folder / "same").write_bytes(b"int a;\n")
        space.begin("e")
        data = (tmp_path / "store" / "pack").read_bytes()
        assert data.count(b"int a;\n") == data.count(b"secret") == 1
        assert Workspace(folder, tmp_path / "store").snapshot() == space.snapshot()
        assert len((tmp_path / "store" / "pack").read_bytes()) == len(data)


class TestTransaction:
    def test_commit_names_what_is_there(self, space: Workspace, folder: Path) -> None:
        before = space.snapshot()
        assert space.begin("e1") == before
        (folder / "src" / "a.c").write_bytes(b"changed")
        (folder / "made" / "inner").mkdir(parents=True)
        (folder / "made" / "inner" / "f").write_bytes(b"")
        (folder / "empty").rmdir()
        assert space.touched() == ["empty", "made", "made/inner", "made/inner/f", "src/a.c"]
        root = space.commit()
        assert root != before and space.touched() == [
            "empty",
            "made",
            "made/inner",
            "made/inner/f",
            "src/a.c",
        ]
        space.settle()
        assert space.snapshot() == root and space.pending() is None

    def test_rollback_undoes_exactly_that(self, space: Workspace, folder: Path) -> None:
        before = identities(folder)
        root = space.begin("e1")
        vandalise(folder)
        paths = space.rollback()
        assert fingerprint(folder) == {path: seen[:3] for path, seen in before.items()}
        after = identities(folder)
        for path in (b"src/b.c", b"private", b"big", b"outward", b"src/deep/er/c.c"):
            assert after[path] == before[path]
        assert (folder.parent / "outside").read_bytes() == b"not ours"
        assert "src/a.c" in paths and "src/b.c" not in paths and "made" in paths
        assert space.snapshot() == root and space.pending() is None

    def test_rollback_of_nothing_touches_nothing(self, space: Workspace, folder: Path) -> None:
        before = identities(folder)
        space.begin("e1")
        assert space.touched() == [] and space.rollback() == []
        assert identities(folder) == before

    def test_rights_alone_are_rolled_back(self, space: Workspace, folder: Path) -> None:
        before = fingerprint(folder)
        (folder / "src").chmod(0o711)
        before[b"src"] = (before[b"src"][0], 0o711, b"")
        space.begin("e1")
        (folder / "private").chmod(0o666)
        (folder / "src").chmod(0o777)
        (folder / "run.sh").chmod(0o4755)
        assert space.touched() == ["private", "run.sh", "src"]
        assert sorted(space.rollback()) == ["private", "run.sh", "src"]
        assert fingerprint(folder) == before

    def test_a_hard_link_made_by_a_tool_leaves_its_other_name_alone(
        self, space: Workspace, folder: Path
    ) -> None:
        outside = folder.parent / "outside"
        space.begin("e1")
        (folder / "private").unlink()
        os.link(outside, folder / "private")
        space.rollback()
        assert outside.read_bytes() == b"not ours" and (folder / "private").read_bytes() == b"secret"
        assert outside.stat().st_nlink == 1

    def test_links_to_the_outside_are_never_followed(self, space: Workspace, folder: Path) -> None:
        victim = folder.parent / "victim"
        victim.mkdir()
        (victim / "a.c").write_bytes(b"keep me")
        space.begin("e1")
        remove(folder / "src")
        (folder / "src").symlink_to(victim)
        (folder / "empty").rmdir()
        (folder / "empty").symlink_to("/etc")
        space.rollback()
        assert (victim / "a.c").read_bytes() == b"keep me" and list(victim.iterdir()) == [victim / "a.c"]
        assert (folder / "src" / "a.c").read_bytes() == b"int a;\n" and not (folder / "src").is_symlink()

    def test_a_tree_of_any_depth_is_removed(self, space: Workspace, folder: Path) -> None:
        before = fingerprint(folder)
        space.begin("e1")
        _dig(folder / "empty", 1200)
        with pytest.raises(RunError, match="deep"):
            space.commit()
        assert space.rollback() == ["empty/ddddd"]
        assert fingerprint(folder) == before

    def test_more_files_than_allowed_are_rolled_back(self, folder: Path, tmp_path: Path) -> None:
        space = Workspace(folder, tmp_path / "store", bounds=Bounds(entries=40))
        before = fingerprint(folder)
        space.begin("e1")
        for number in range(100):
            (folder / f"f{number}").write_bytes(b"")
        with pytest.raises(RunError) as caught:
            space.commit()
        assert caught.value.code == "workspace.limit"
        assert len(space.rollback()) == 100
        assert fingerprint(folder) == before

    def test_special_files_of_a_tool_go_and_those_of_before_stay(
        self, space: Workspace, folder: Path
    ) -> None:
        os.mkfifo(folder / "old")
        root = space.begin("e1")
        os.mkfifo(folder / "src" / "new")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(folder / "socket"))
        assert "src/new" in space.touched()
        assert space.commit() == root
        assert not (folder / "src" / "new").exists() and not (folder / "socket").exists()
        assert stat.S_ISFIFO((folder / "old").stat().st_mode)
        space.settle()
        space.begin("e2")
        os.mkfifo(folder / "src" / "new")
        assert space.rollback() == ["src/new"]
        assert stat.S_ISFIFO((folder / "old").stat().st_mode)

    def test_a_committed_step_may_still_be_rolled_back(self, space: Workspace, folder: Path) -> None:
        before = fingerprint(folder)
        space.begin("e1")
        vandalise(folder)
        space.commit()
        space.rollback()
        assert fingerprint(folder) == before

    def test_order_is_kept(self, space: Workspace) -> None:
        for call in (space.commit, space.touched, space.rollback):
            with pytest.raises(BugError):
                call()
        space.begin("e1")
        for call in (lambda: space.begin("e2"), lambda: space.restore("x")):
            with pytest.raises(BugError):
                call()
        space.commit()
        with pytest.raises(BugError):
            space.begin("e2")

    def test_settle_leaves_a_step_under_way_alone(self, space: Workspace) -> None:
        space.begin("e1")
        space.settle()
        assert space.pending() is not None and space.pending().effect == "e1"

    def test_fsyncs_are_counted(self, space: Workspace, folder: Path) -> None:
        space.begin("e0")
        space.commit()
        space.settle()

        def cost(name: str, edit: Callable[[], object]) -> int:
            before = space.fsyncs
            space.begin(name)
            edit()
            space.commit()
            space.settle()
            return space.fsyncs - before

        def replace() -> None:
            (folder / "aside").write_bytes(b"y")
            (folder / "aside").rename(folder / "private")

        assert cost("e1", lambda: None) == 1  # the record that names the effect
        assert cost("e2", lambda: (folder / "private").write_bytes(b"x")) == 2  # and the file
        assert cost("e3", replace) == 3  # and its folder: it is another file of that name
        assert cost("e4", lambda: (folder / "new").write_bytes(b"x")) == 3
        assert cost("e5", (folder / "new").unlink) == 2
        assert cost("e6", lambda: [(folder / f"{number}").touch() for number in range(100)]) == 2


class TestRestore:
    def test_any_known_root_comes_back(self, space: Workspace, folder: Path) -> None:
        first = space.snapshot()
        vandalise(folder)
        second = space.snapshot()
        for root in (first, second, first):
            space.restore(root)
            assert space.snapshot() == root

    def test_a_fork_reads_its_parents_store(self, space: Workspace, folder: Path, tmp_path: Path) -> None:
        root = space.snapshot()
        fork = Workspace(tmp_path / "fork", tmp_path / "fork-store")
        fork.restore(root, source=tmp_path / "store")
        assert fork.snapshot() == root
        kept = {path: about for path, about in fingerprint(folder).items() if path != b"private"}
        assert kept.items() <= fingerprint(tmp_path / "fork").items()

    def test_an_unknown_root_is_a_typed_error(self, space: Workspace, folder: Path) -> None:
        before = identities(folder)
        with pytest.raises(RunError) as caught:
            space.restore("A" * 43)
        assert caught.value.code == "workspace.object" and identities(folder) == before

    def test_a_copied_store_with_a_step_under_way_serves_a_fork(
        self, space: Workspace, folder: Path, tmp_path: Path
    ) -> None:
        root = space.begin("e1")
        shutil.copytree(tmp_path / "store", tmp_path / "fork-store")
        fork = Workspace(tmp_path / "fork", tmp_path / "fork-store")
        fork.restore(root)
        assert fork.begin("f1") == root and space.pending() is not None


class TestCopyIn:
    def test_copies_all_and_leaves_the_original_alone(self, folder: Path, tmp_path: Path) -> None:
        os.mkfifo(folder / "pipe")
        before = identities(folder)
        space = Workspace(tmp_path / "copy", tmp_path / "store")
        space.copy_in(folder)
        (folder / "pipe").unlink()
        assert fingerprint(tmp_path / "copy") == fingerprint(folder)
        assert (tmp_path / "copy" / "private").stat().st_mtime_ns == before[b"private"][4]
        (tmp_path / "copy" / "private").write_bytes(b"changed")
        after = identities(folder)
        assert after == {path: seen for path, seen in before.items() if path != b"pipe"}

    def test_a_folder_that_holds_the_run_itself(self, folder: Path) -> None:
        run = folder / ".spak" / "runs" / "r1"
        space = Workspace(run / "workspace", run / "store")
        space.copy_in(folder)
        assert not (run / "workspace" / ".spak").exists()
        assert (run / "workspace" / "src" / "a.c").exists()

    def test_a_folder_that_holds_the_run_elsewhere(self, folder: Path) -> None:
        space = Workspace(folder / "runs" / "workspace", folder / "runs" / "store")
        space.copy_in(folder)
        assert sorted(path.name for path in (folder / "runs" / "workspace" / "runs").iterdir()) == []

    def test_refuses_what_is_too_big_and_leaves_nothing(self, folder: Path, tmp_path: Path) -> None:
        space = Workspace(tmp_path / "copy", tmp_path / "store", bounds=Bounds(size_bytes=1 << 20))
        with pytest.raises(RunError) as caught:
            space.copy_in(folder)
        assert caught.value.code == "workspace.limit" and list((tmp_path / "copy").iterdir()) == []

    def test_refuses_what_is_no_folder_and_a_full_workspace(self, space: Workspace, tmp_path: Path) -> None:
        for source in (tmp_path / "missing", tmp_path / "outside"):
            with pytest.raises(UsageError) as caught:
                space.copy_in(source)
            assert caught.value.code == "workspace.source"
        with pytest.raises(RunError) as refused:
            space.copy_in(tmp_path)
        assert refused.value.code == "workspace.not_empty"


def _dig(folder: Path, depth: int) -> None:
    """Folders in folders, deeper than any path may be long."""
    at = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("ddddd", dir_fd=at)
        inner = os.open("ddddd", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)


@pytest.mark.parametrize("mode", [0o4755, 0o2711, 0o6777])
def test_a_step_leaves_no_setuid_or_setgid_file(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "ws"
    (folder / "deep/closed").mkdir(parents=True)
    names = ["old", "kept", "deep/closed/old"]
    for name in names:
        (folder / name).write_text("x")
    (folder / "kept").chmod(mode)
    space = Workspace(folder, tmp_path / "store")
    space.begin("a")
    for name in ["old", "new", "deep/closed/old", "deep/closed/new"]:
        (folder / name).write_text("changed")
        (folder / name).chmod(mode)
    (folder / "deep/closed").chmod(0o311)
    space.commit()
    space.settle()
    for name in ["old", "new", "deep/closed/old", "deep/closed/new"]:
        assert (folder / name).stat().st_mode & 0o7777 == mode & 0o777, name
    assert (folder / "kept").stat().st_mode & 0o7777 == mode, "it was so before the step"
    assert (folder / "deep/closed").stat().st_mode & 0o7777 == 0o311
    assert space.begin("b") == space.commit()
