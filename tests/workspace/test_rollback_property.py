"""Rollback leaves the rest alone: random trees, random edits (claim 8 of seed 001)."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from spak.workspace import Workspace
from workspace.trees import Print, changed, fingerprint, identities

NAMES = st.sampled_from([b"a", b"b", b"c", b"new\nline", b"\xff\xfe", "größe".encode(), b".hidden", b"-rf"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)
DATA = st.binary(max_size=12)
MODES = st.sampled_from([0o644, 0o600, 0o755, 0o700, 0o444, 0o400, 0o555, 0o777])
TARGETS = st.sampled_from([b"a", b"../outside", b"nowhere", b"/", b"b/c", b".", b"\xff"])
EDITS = st.one_of(
    st.tuples(st.just("write"), PATHS, DATA),
    st.tuples(st.just("append"), PATHS, DATA),
    st.tuples(st.just("remove"), PATHS, st.none()),
    st.tuples(st.just("folder"), PATHS, st.none()),
    st.tuples(st.just("link"), PATHS, TARGETS),
    st.tuples(st.just("hard"), PATHS, PATHS),
    st.tuples(st.just("move"), PATHS, PATHS),
    st.tuples(st.just("chmod"), PATHS, MODES),
    st.tuples(st.just("pipe"), PATHS, st.none()),
    st.tuples(st.just("times"), PATHS, st.none()),
)


def _do(root: bytes, edit: tuple[str, bytes, object]) -> None:
    """One edit, as a tool might make it; one that cannot be made is not made."""
    verb, name, more = edit
    path = Path(os.fsdecode(root + b"/" + name))
    if any(parent.is_symlink() for parent in path.parents):
        return  # the edit would leave the workspace
    try:
        match verb:
            case "write" if not path.is_symlink() and not path.is_fifo():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(bytes(more))  # type: ignore[call-overload]
            case "append" if path.is_file() and not path.is_symlink():
                with path.open("ab") as file:
                    file.write(bytes(more))  # type: ignore[call-overload]
            case "remove":
                _remove(path)
            case "folder":
                path.mkdir(parents=True)
            case "link":
                path.symlink_to(os.fsdecode(more))  # type: ignore[arg-type]
            case "hard":
                other = Path(os.fsdecode(root + b"/" + more))  # type: ignore[operator]
                if not any(parent.is_symlink() for parent in other.parents):
                    os.link(path, other, follow_symlinks=False)
            case "move":
                other = Path(os.fsdecode(root + b"/" + more))  # type: ignore[operator]
                if not any(parent.is_symlink() for parent in other.parents):
                    path.rename(other)
            case "chmod" if (
                path.exists() and not path.is_symlink() and not stat.S_ISFIFO(path.stat().st_mode)
            ):
                path.chmod(int(more))  # type: ignore[call-overload]
            case "pipe":
                os.mkfifo(path)
            case "times" if path.is_file() and not path.is_symlink():
                os.utime(path, (1, 1))
            case _:
                pass
    except (FileExistsError, FileNotFoundError, NotADirectoryError, IsADirectoryError, OSError):
        pass


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _without_pipes(seen: Print) -> Print:
    return {path: about for path, about in seen.items() if about[0] != stat.S_IFIFO}


@settings(max_examples=80, deadline=None)
@given(
    before=st.lists(EDITS, max_size=12),
    after=st.lists(EDITS, max_size=10),
    how=st.sampled_from(["same", "another", "committed"]),
)
def test_rollback_restores_the_touched_and_nothing_else(
    before: list[tuple[str, bytes, object]], after: list[tuple[str, bytes, object]], how: str
) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "ws")
        folder.mkdir()
        outside = Path(place, "outside")
        outside.write_bytes(b"not ours")
        root = os.fsencode(folder)
        for edit in before:
            _do(root, edit)
        space = Workspace(folder, Path(place, "store"))
        first = identities(folder)
        pre = space.begin("e1")
        for edit in after:
            _do(root, edit)
        second = identities(folder)
        seen = changed(
            {path: about[:3] for path, about in first.items()},
            {path: about[:3] for path, about in second.items()},
        )
        if not any(about[0] == stat.S_IFIFO for about in [*first.values(), *second.values()]):
            assert {os.fsencode(path) for path in space.touched()} == seen
        if how == "committed":
            space.commit()
        if how == "another":
            paths = Workspace(folder, Path(place, "store")).recover("e1", pre)
        else:
            paths = space.rollback()
        third = identities(folder)

        assert _without_pipes({path: about[:3] for path, about in third.items()}) == _without_pipes(
            {path: about[:3] for path, about in first.items()}
        )
        assert {os.fsencode(path) for path in paths} <= seen
        for path, about in first.items():
            if about[0] == stat.S_IFREG and second.get(path) == about:
                assert third[path] == about, "an untouched file was touched"
            if about[0] == stat.S_IFIFO and second.get(path) == about:
                assert third[path] == about, "a pipe that was there before is gone"
        assert not {path for path, about in third.items() if about[0] == stat.S_IFIFO} - first.keys()
        assert outside.read_bytes() == b"not ours" and {path.name for path in Path(place).iterdir()} == {
            "outside",
            "store",
            "ws",
        }
        again = Workspace(folder, Path(place, "store"))
        assert again.pending() is None and again.snapshot() == pre


@settings(max_examples=25, deadline=None)
@given(states=st.lists(st.lists(EDITS, max_size=6), min_size=2, max_size=4))
def test_any_root_can_be_restored(states: list[list[tuple[str, bytes, object]]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "ws")
        folder.mkdir()
        space = Workspace(folder, Path(place, "store"))
        known = {}
        for edits in states:
            for edit in edits:
                if edit[0] != "pipe":
                    _do(os.fsencode(folder), edit)
            seen = {path: (about[0], about[2]) for path, about in fingerprint(folder).items()}
            known[space.snapshot()] = seen
        for root, seen in known.items():
            space.restore(root)
            assert {path: (about[0], about[2]) for path, about in fingerprint(folder).items()} == seen
            assert space.snapshot() == root
