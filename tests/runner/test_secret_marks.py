"""What was masked stays masked for whoever works in the workspace later: another process, another worker, a
fork, a host that has the run's first root alone. Each guard here is one process's."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from cli_kit import raw, spak
from spak.errors import LedgerError, RunError
from spak.runner import Host
from spak.runner.secret_guard import SecretGuard
from spak.workspace import Workspace

VALUE = "hunter2-long-enough"
TREE = {"secrets/key": f"{VALUE}\n", "app/.env": "PASSWORD=hunter3-long-enough\n", "app/main.py": "x = 1\n"}


def laid(folder: Path, tree: dict[str, str]) -> Path:
    for name, text in tree.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def opened(base: Path, store: str = "store", scan: bool = True) -> tuple[Workspace, SecretGuard]:
    """A process that takes the run up."""
    space = Workspace(base / "ws", base / store)
    if scan:
        space.snapshot()
    return space, SecretGuard(Host(), space)


def hidden(guard: SecretGuard) -> set[str]:
    guard.look(fresh=True)
    return set(guard._paths)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    laid(tmp_path / "ws", TREE)
    assert hidden(opened(tmp_path)[1]) == {"secrets/key", "app/.env"}
    return tmp_path


# ---- the next process


@pytest.mark.parametrize("scan", [False, True])
def test_a_folder_renamed_before_a_restart(base: Path, scan: bool) -> None:
    (base / "ws/secrets").rename(base / "ws/s2")
    (base / "ws/sub/.git").mkdir(parents=True)
    (base / "ws/app").rename(base / "ws/sub/.git/app")
    for _ in range(2):
        _, guard = opened(base, scan=scan)
        assert hidden(guard) == {"s2/key", "sub/.git/app/.env"}
        assert VALUE not in guard.clean(f"it is {VALUE}")
        assert hidden(guard) == {"s2/key", "sub/.git/app/.env"}


@pytest.mark.parametrize("scan", [False, True])
def test_a_copy_in_a_new_file(base: Path, scan: bool) -> None:
    """As `git checkout`, an archive or a permitted `cp` make one."""
    shutil.copy(base / "ws/secrets/key", base / "ws/notes.txt")
    shutil.rmtree(base / "ws/secrets")
    assert hidden(opened(base, scan=scan)[1]) == {"notes.txt", "app/.env"}


def test_a_rollback_writes_a_moved_file_anew(base: Path) -> None:
    (base / "ws/secrets").rename(base / "ws/s2")
    space, guard = opened(base)
    assert "s2/key" in hidden(guard)
    with space.transaction("e"):
        shutil.rmtree(base / "ws/s2")
        (base / "ws/filler").write_text("takes the inode that became free\n")
    assert (base / "ws/s2/key").read_text() == f"{VALUE}\n"
    assert "s2/key" in hidden(guard)
    assert "s2/key" in hidden(opened(base)[1])


def test_values_of_what_is_gone_are_known_to_the_next_process(base: Path) -> None:
    shutil.rmtree(base / "ws/secrets")
    _, guard = opened(base)
    assert hidden(guard) == {"app/.env"}
    assert VALUE not in guard.clean(f"it is {VALUE}")


def test_a_file_that_a_step_made_is_remembered(base: Path) -> None:
    space, guard = opened(base)
    with space.transaction("e"):
        (base / "ws/prod.env").write_text("PASSWORD=hunter4-long-enough\n")
        space.commit()
    space.settle()
    guard.look(fresh=True)
    (base / "ws/prod.env").rename(base / "ws/prod.txt")
    assert "prod.txt" in hidden(opened(base)[1])


def test_another_store_knows_the_first_root(base: Path) -> None:
    """A host that shares no disk with the one before."""
    first = Workspace(base / "ws", base / "store")
    root = first.snapshot()
    (base / "ws/secrets").rename(base / "ws/s2")
    space = Workspace(base / "ws", base / "elsewhere")
    space.draw_from(base / "store")
    assert "s2/key" in hidden(SecretGuard(Host(), space, root))
    assert "s2/key" in hidden(opened(base, "elsewhere")[1])


# ---- what is no secret


@pytest.mark.parametrize("scan", [False, True])
def test_what_lies_under_an_ordinary_name_too_is_none(tmp_path: Path, scan: bool) -> None:
    text = "PASSWORD=change-me-please\n"
    laid(tmp_path / "ws", {".env": text, ".env.example": text, "empty.env": "", "__init__.py": ""})
    for _ in range(2):
        assert hidden(opened(tmp_path, scan=scan)[1]) == {".env", "empty.env"}
    (tmp_path / "ws/.env").rename(tmp_path / "ws/env.txt")
    assert hidden(opened(tmp_path)[1]) == {"empty.env"}


def test_another_text_in_its_place_is_none(base: Path) -> None:
    (base / "ws/secrets").rename(base / "ws/s2")
    (base / "ws/s2/key").unlink()
    (base / "ws/s2/key").write_text("another file\n")
    assert hidden(opened(base)[1]) == {"app/.env"}


def test_what_the_operator_shows_is_none(base: Path) -> None:
    (base / "ws/secrets").rename(base / "ws/s2")
    space = Workspace(base / "ws", base / "store")
    assert hidden(SecretGuard(Host(shown_secrets=("s2/*", "secrets/*")), space)) == {"app/.env"}


# ---- the list itself


def test_the_list_is_its_owners_alone_and_holds_no_value(base: Path) -> None:
    file = base / "store/secrets"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert VALUE not in file.read_text() and "hunter3" not in file.read_text()
    assert [json.loads(line)[0] for line in file.read_text().splitlines()] == ["app/.env", "secrets/key"]


def test_what_is_known_is_not_written_again(base: Path) -> None:
    before = (base / "store/secrets").read_bytes()
    assert hidden(opened(base)[1]) == {"secrets/key", "app/.env"}
    assert (base / "store/secrets").read_bytes() == before


def test_a_line_that_was_cut_is_left_out_and_another_is_not_glued_to_it(base: Path) -> None:
    file = base / "store/secrets"
    file.write_bytes(file.read_bytes()[:-9])
    for _ in range(2):
        assert hidden(opened(base)[1]) == {"secrets/key", "app/.env"}
    (base / "ws/secrets").rename(base / "ws/s2")
    assert "s2/key" in hidden(opened(base)[1])


@pytest.mark.parametrize("data", [b"[1]\n", b"\xff\xfe\n", b"{}\n", b'["a", "b"]\n', b'["a", 3, "x"]\n'])
def test_a_damaged_list_stops_the_run(base: Path, data: bytes) -> None:
    (base / "store/secrets").write_bytes(data)
    with pytest.raises(RunError) as caught:
        hidden(opened(base)[1])
    assert caught.value.code == "workspace.object"


def test_a_worker_that_lost_the_run_writes_nothing(base: Path) -> None:
    old, guard = opened(base)
    old.take(1)
    newer = Workspace(base / "ws", base / "store")
    newer.take(2)
    (base / "ws/new.env").write_text("PASSWORD=hunter5-long-enough\n")
    before = (base / "store/secrets").read_bytes()
    with pytest.raises(LedgerError) as caught:
        guard.look(fresh=True)
    assert caught.value.code == "ledger.lost_lease"
    assert (base / "store/secrets").read_bytes() == before


def test_a_list_that_cannot_be_written_stops_the_step(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, guard = opened(base)
    (base / "ws/new.env").write_text("PASSWORD=hunter5-long-enough\n")

    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(RunError) as caught:
            guard.look(fresh=True)
    assert caught.value.code == "workspace.full"
    assert "new.env" in hidden(guard)
    (base / "ws/new.env").rename(base / "ws/new.txt")
    assert "new.txt" in hidden(opened(base)[1])


# ---- two processes of the command


MOVES = """
AGENT Mover LEVEL 5 {
  CONFIG { MODE full_auto }
  START -> move
  TASK move { GOAL "Move a folder."
    step move: tool.run { cmd: "python3 move.py" }
    NEXT { success -> look }
  }
  TASK look { GOAL "Ask, then read what is in it."
    step wait: llm.query { prompt: "Go on?" }
    step read: tool.run { cmd: "python3 read.py" on_fail: continue }
    step file: tool.read_file { path: "s2/key" }
  }
}
"""


@pytest.mark.sandbox
def test_the_second_process_masks_what_a_job_of_the_first_moved(tmp_path: Path) -> None:
    tree = {
        "secrets/key": f"{VALUE}\n",
        "move.py": "import os; os.rename('secrets', 's2')\n",
        "read.py": "print(' '.join(open('s2/key').read()))\n",
    }
    laid(tmp_path / "ws", tree)
    (tmp_path / "a.spak").write_text(MOVES)
    code, found = spak(tmp_path, "run", "a.spak", "--workspace", "ws", "--backend", "manual", "--json")
    assert found["state"] == "waiting", (code, found)
    (tmp_path / "answer.txt").write_text("yes")
    spak(tmp_path, "step", found["run"], "--answer-file", "answer.txt", "--json")
    spak(tmp_path, "resume", found["run"], "--json")
    folder = tmp_path / ".spak/runs" / found["run"]
    trace = (folder / "trace.jsonl").read_text() + raw(tmp_path, "show", found["run"], "--json").stdout
    assert (folder / "workspace/s2/key").read_text() == f"{VALUE}\n"
    assert "m a s k e d" in trace
    assert " ".join(VALUE) not in trace and VALUE not in trace
