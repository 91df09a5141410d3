"""Steps that read only folders in which something changed find what steps that read everything find."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from spak.workspace import Workspace
from spak.workspace.tree import Scanner


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Workspace, Workspace]:
    """A workspace that hears of changes, and another one of the same folder that reads everything."""
    folder = tmp_path / "files"
    for path in ("a/one.txt", "a/deep/two.txt", "b/three.txt", "c/d/e/four.txt", "top.txt"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)
    heard = Workspace(folder, tmp_path / "heard")
    heard.watch()
    heard.begin("first")
    return heard, Workspace(folder, tmp_path / "read")


def kept_open(folder: Path) -> None:
    """A file gets a second name, is written by it through a descriptor, and the name goes first."""
    os.link(folder / "a/one.txt", folder / "b/also")
    with (folder / "b/also").open("a") as file:
        (folder / "b/also").unlink()
        file.write("more")


CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda folder: None,
    "written": lambda folder: (folder / "a/deep/two.txt").write_text("other"),
    "made": lambda folder: (folder / "c/d/new.txt").write_text("new"),
    "removed": lambda folder: (folder / "c/d/e/four.txt").unlink(),
    "mode": lambda folder: (folder / "b/three.txt").chmod(0o755),
    "folder moved": lambda folder: (folder / "a").rename(folder / "c/a"),
    "folder replaced": lambda folder: (
        (folder / "a").rename(folder / "z"), (folder / "c").rename(folder / "a")
    ),
    "moved and written": lambda folder: (
        (folder / "c/d").rename(folder / "d"), (folder / "d/e/four.txt").write_text("x")
    ),
    "written and moved": lambda folder: (
        (folder / "c/d/e/four.txt").write_text("x"), (folder / "c/d").rename(folder / "d")
    ),
    "renamed over": lambda folder: (
        (folder / "b/tmp").write_text("x"), (folder / "b/tmp").rename(folder / "b/three.txt")
    ),
    "new folders": lambda folder: (
        (folder / "n/e/w").mkdir(parents=True), (folder / "n/e/w/file").write_text("x")
    ),
    "link": lambda folder: (folder / "a/link").symlink_to("one.txt"),
    "second name": lambda folder: (
        os.link(folder / "a/one.txt", folder / "b/also"), (folder / "b/also").write_text("x")
    ),
    "second name that is gone": kept_open,
    "folder's mode": lambda folder: (folder / "a/deep").chmod(0o700),
    "pipe": lambda folder: os.mkfifo(folder / "a/pipe"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_what_changed_is_found_without_reading_the_rest(
    name: str, pair: tuple[Workspace, Workspace], tmp_path: Path
) -> None:
    heard, read = pair
    for number in range(2):
        if number == 0:
            CHANGES[name](tmp_path / "files")
        else:
            (tmp_path / "files/top.txt").write_text("again")
        found = heard.commit()
        assert found == read.snapshot()
        heard.settle()
        assert heard.begin("next") == found


def test_what_was_changed_comes_back(pair: tuple[Workspace, Workspace], tmp_path: Path) -> None:
    heard, read = pair
    before = read.snapshot()
    for change in ("second name", "folder moved", "new folders"):
        CHANGES[change](tmp_path / "files")
        heard.commit()
        heard.rollback()
        assert heard.begin("next") == before == read.snapshot()


def test_folders_in_which_nothing_changed_are_not_read(
    pair: tuple[Workspace, Workspace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, _ = pair
    seen: list[str] = []
    file = Scanner.file

    def look(self: Scanner, at: int, filename: str, found: os.stat_result, *, keep: bool) -> object:
        seen.append(filename)
        return file(self, at, filename, found, keep=keep)

    monkeypatch.setattr(Scanner, "file", look)
    (tmp_path / "files/b/three.txt").write_text("other")
    heard.commit()
    assert sorted(seen) == ["three.txt", "top.txt"]
    heard.settle()
    heard.begin("next")
    seen.clear()
    heard.commit(whole=True)
    assert len(seen) == 5
