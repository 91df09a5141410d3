"""`.spak` and a run's folder are their owner's alone, whatever the umask; the workspace keeps the modes that
tools give, and a folder that somebody named its own."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_kit import EXAMPLES, run_dir, spak
from spak.cli.recording import FILE
from spak.ledger.private import close


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0o000)
    yield
    os.umask(before)


def loose(folder: Path) -> dict[str, str]:
    """Paths in a folder of runs that others could open, the files of workspaces left out."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        inside = path.relative_to(folder).parts
        if "workspace" in inside[:-1]:
            continue
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode & 0o077 and (path.is_file() or path == folder or (path / "trace.jsonl").exists()):
            found["/".join(inside) or "."] = oct(mode)
    return found


def test_a_run_an_import_and_a_fork_are_private(tmp_path: Path, open_umask: None) -> None:
    code, document = spak(tmp_path, "run", str(EXAMPLES / "hello.spak"), "--json")
    assert code == 0
    folder = run_dir(tmp_path, document)
    assert loose(folder) == {}
    assert spak(tmp_path, "export", "latest", "-o", "out.jsonl", "--json")[0] == 0
    arguments = ("import", "out.jsonl", "--runs-dir", "other", "--json")
    assert spak(tmp_path, *arguments)[0] == 0
    assert loose(tmp_path / "other" / document["run"]) == {}
    code, made = spak(tmp_path, "fork", "latest", "--at", "3", "--json")
    assert loose(run_dir(tmp_path, made)) == {}
    assert loose(tmp_path / ".spak") == {} == loose(tmp_path / ".spak/runs")


def test_a_recording_and_its_copy_in_a_fork_are_private(tmp_path: Path, open_umask: None) -> None:
    (tmp_path / "a.spak").write_text('task T { step a: llm.query { prompt: "?" } }\n')
    code, asked = spak(tmp_path, "run", "a.spak", "--backend", "manual", "--json")
    (tmp_path / "answer.txt").write_text("yes")
    assert spak(tmp_path, "step", asked["run"], "--answer-file", "answer.txt", "--json")[0] == 0
    code, again = spak(tmp_path, "run", "a.spak", "--from", asked["run"], "--json")
    assert code == 0 and (run_dir(tmp_path, again) / FILE).is_file()
    code, made = spak(tmp_path, "fork", again["run"], "--at", "2", "--json")
    assert (run_dir(tmp_path, made) / FILE).is_file()
    assert loose(tmp_path / ".spak") == {}


@pytest.mark.parametrize("command", [("runs",), ("run", str(EXAMPLES / "hello.spak"))], ids=["runs", "run"])
def test_what_an_older_version_left_open_is_closed_at_the_next_start(
    tmp_path: Path, open_umask: None, command: tuple[str, ...]
) -> None:
    (tmp_path / ".spak/runs").mkdir(parents=True)
    (tmp_path / ".spak").chmod(0o2755)
    assert spak(tmp_path, *command, "--json")[0] == 0
    assert stat.S_IMODE((tmp_path / ".spak").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / ".spak/runs").stat().st_mode) == 0o700


def test_a_folder_that_somebody_named_keeps_its_mode(tmp_path: Path, open_umask: None) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "real").mkdir()
    (tmp_path / ".spak").symlink_to("real")
    assert spak(tmp_path, "run", str(EXAMPLES / "hello.spak"), "--runs-dir", "shared/a/b", "--json")[0] == 0
    assert spak(tmp_path, "runs", "--runs-dir", ".spak", "--json")[0] == 0
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("shared", "shared/a", "real")}
    assert modes == {"shared": 0o777, "shared/a": 0o700, "real": 0o777}


def test_of_folders_called_so_only_the_innermost_is_ours(tmp_path: Path) -> None:
    place = tmp_path / ".spak/project/.spak/runs"
    place.mkdir(parents=True, mode=0o755)
    close(place)
    modes = [stat.S_IMODE(folder.stat().st_mode) for folder in list(place.parents)[:3]]
    assert modes == [0o700, 0o755, 0o755] and stat.S_IMODE(place.stat().st_mode) == 0o700


def test_campaigns_are_private(tmp_path: Path, open_umask: None) -> None:
    from spak.cli.outer_runs import copy_policy

    (tmp_path / "a.spak").write_text('POLICY "rules.mg"\ntask T { step a: llm.query { prompt: "?" } }\n')
    (tmp_path / "rules.mg").write_text("# none\n")
    (tmp_path / "to").mkdir()
    copy_policy(tmp_path / "a.spak", tmp_path / "to")
    assert stat.S_IMODE((tmp_path / "to/rules.mg").stat().st_mode) == 0o600
