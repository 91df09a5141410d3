"""What a run asks of this side about a file of secrets: no condition and no axiom reads what is in one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spak.kernel.state import Effect
from spak.ledger.memory import MemoryBlobs
from spak.ports import MeasureCall
from spak.runner import Host
from spak.runner.observe import facts
from spak.runner.secret_guard import SecretGuard
from spak.validators.compliance import Compliance
from spak.workspace import Workspace


def written(folder: Path, tree: dict[str, str]) -> Path:
    for name, text in tree.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("path", [".env", "./app/../.env", "link", "hard", "in/.env", "secrets/key", "after"])
def test_a_condition_finds_nothing_in_a_file_of_secrets(tmp_path: Path, path: str) -> None:
    """Else a spec that asks again and again reads it sign by sign."""
    folder = written(tmp_path / "ws", {"secrets/key": "PASSWORD=hunter22\n", "app/main.py": "PASSWORD='x'\n"})
    (folder / ".env").write_text("PASSWORD=hunter22-longer\n")
    (folder / "link").symlink_to(".env")
    (folder / "in").symlink_to(".")
    (folder / "hard").hardlink_to(folder / ".env")
    (folder / "after").symlink_to("hard")
    guard = SecretGuard(Host(), Workspace(folder, tmp_path / "store"))
    guard.look_before(Effect("e", "check", "", "pure", "t", "s", 1, {}, ""))
    asked = [
        {"function": function, "args": [name, "PASSWORD="][: 1 + (function == "file_contains")]}
        for name in (path, "app/main.py")
        for function in ("file_exists", "file_contains")
    ]
    assert facts(asked, folder, MemoryBlobs({}), guard.hides) == [True, False, True, True]


@pytest.mark.parametrize("artifact", [".env", "./.env", "hard.txt", "cites.md"])
def test_no_check_of_this_side_reads_a_file_of_secrets(tmp_path: Path, artifact: str) -> None:
    folder = written(tmp_path / "ws", {".env": "PASSWORD=hunter22\n"})
    (folder / "hard.txt").hardlink_to(folder / ".env")
    (folder / "cites.md").write_text('- It is so [.env: "PASSWORD=hunter22"]\n')
    guard = SecretGuard(Host(), Workspace(folder, tmp_path / "store"))
    guard.look(fresh=True)
    check = "quotes" if artifact == "cites.md" else "contains"
    axiom = {
        "text": "It holds it.",
        "check": check,
        "args": {} if check == "quotes" else {"text": "hunter22"},
    }
    call = MeasureCall("e", "Compliance", {"artifact": artifact, "axioms": [axiom]}, folder, None)
    assert all(one["ok"] for one in Compliance().measure(call).checks), "what anybody else would see"
    found = Compliance().measure(replace(call, hides=guard.hides))
    assert [one["ok"] for one in found.checks] == [False]
