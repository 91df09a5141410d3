"""Killed before the first record: such a run is not listed, and `spak runs --clean` removes what it left."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli_calls import HELLO, Cli
from spak.cli import run_folders
from spak.errors import LedgerError


def killed_while_copying(cli: Cli, tmp_path: Path) -> None:
    """The copy of its workspace is stopped by a rename of what it copies: it is killed there, by itself."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source/a.txt").write_text("a")

    def before() -> None:
        from spak.workspace import copying

        copying.copy = lambda *ignored: os.kill(os.getpid(), signal.SIGKILL)

    done = cli("run", HELLO, "--workspace", "source", before=before)
    assert done.code == -signal.SIGKILL


def test_what_a_killed_run_left_is_removed(cli: Cli, tmp_path: Path, runs: Path) -> None:
    assert cli("run", HELLO, "--json").code == 0
    (kept,) = runs.iterdir()
    killed_while_copying(cli, tmp_path)
    (left,) = set(runs.iterdir()) - {kept}
    shut = left / "workspace" / "shut"
    shut.mkdir(mode=0o000)
    assert [row["run"] for row in cli("runs", "--json").json["runs"]] == [kept.name]
    assert "1 never began" in cli("runs").err
    assert cli("runs", "--clean", "--json").json == {"removed": [left.name]}
    assert list(runs.iterdir()) == [kept] and "never began" not in cli("runs").err
    assert cli("runs", "--clean", "--json").json == {"removed": []}
    assert cli("replay", kept.name).code == 0


CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.symlink", "os.link", "shutil.rmtree"}


def killed_before(number: int) -> Callable[[], None]:
    """In the child: it is killed right before it changes something below the folder of runs for that time."""
    seen = 0

    def look(event: str, words: tuple[object, ...]) -> None:
        nonlocal seen
        writes = event == "open" and isinstance(words[2], int) and words[2] & (os.O_WRONLY | os.O_CREAT)
        if (event in CHANGES or writes) and not str(words[0]).startswith(("/proc", "/sys", "/dev")):
            seen += 1
            if seen > number:
                os.kill(os.getpid(), signal.SIGKILL)

    return lambda: sys.addaudithook(look)


def test_killed_before_each_change_there_is_a_run_or_nothing_after_a_cleaning(cli: Cli, runs: Path) -> None:
    left = 0
    for number in range(200):
        done = cli("run", HELLO, before=killed_before(number))
        listed = cli("runs", "--json").json["runs"]
        if listed:
            break
        assert done.code == -signal.SIGKILL
        made = list(runs.iterdir()) if runs.exists() else []
        left += len(made)
        for folder in made:
            os.utime(folder, (1, 1))  # one without a lock counts as held for a minute
        assert cli("runs", "--clean", "--json").json == {"removed": [folder.name for folder in made]}
        assert not runs.exists() or not list(runs.iterdir())
    assert left > 5 and [row["problem"] for row in listed] == [""]


def test_a_folder_that_a_process_holds_stays(cli: Cli, runs: Path) -> None:
    folder = runs / "20260101-000000-x"
    with run_folders.making(folder):
        (folder / "workspace").mkdir()
        assert cli("runs", "--clean", "--json").json == {"removed": []}
        assert (folder / "workspace").is_dir()
    assert not (folder / run_folders.LOCK).exists()


def test_what_is_no_folder_of_a_run_stays(cli: Cli, runs: Path) -> None:
    (runs / "notes").mkdir(parents=True)
    (runs / "notes/mine.txt").write_text("x")
    (runs / "file").write_text("x")
    (runs / "link").symlink_to(runs / "notes")
    for name in ("notes", "link"):
        os.utime(runs / name, (0, 0))
    assert cli("runs", "--clean", "--json").json == {"removed": []}
    assert (runs / "notes/mine.txt").exists()


def test_a_folder_of_an_older_version_is_removed_after_a_minute(cli: Cli, runs: Path) -> None:
    (runs / "old/workspace").mkdir(parents=True)
    assert cli("runs", "--clean", "--json").json == {"removed": []}
    os.utime(runs / "old", (1, 1))
    assert cli("runs", "--clean", "--json").json == {"removed": ["old"]}


def test_what_fails_inside_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "r"
    with pytest.raises(ValueError, match="x"), run_folders.making(folder):
        (folder / "workspace/deep").mkdir(parents=True)
        raise ValueError("x")
    assert not folder.exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError), run_folders.making(tmp_path / "file" / "r"):
        pass


def test_a_folder_that_was_cleaned_up_before_its_lock_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, real, quick = tmp_path / "r", fcntl.flock, [True]

    def flock(fd: int, how: int) -> None:
        if quick and how == fcntl.LOCK_EX:
            quick.pop()
            run_folders._remove(folder)
        real(fd, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with run_folders.making(folder):
        assert (folder / run_folders.LOCK).exists()
    assert folder.is_dir()
