"""Command lines that outsiders found to pass the gate, and ordinary ones beside them; all are data.

The workspace holds what they were found with: a secret, links out of it, archives and patches whose members
lead to git's own files.
"""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gate_kit import CHECKED, constitution, workspace, world
from spak.datalog.values import Fact, Name
from spak.policy.actions import Action, World
from spak.policy.facts import ACTION
from spak.policy.judge import judge

CASES = [
    json.loads(line) for line in (Path(__file__).parent / "cases/findings.jsonl").read_text().splitlines()
]
HELD: Fact = ("sandboxed", (ACTION, Name("/restricted")))
PATCH = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+b\n"
FILES = {
    ".env": "KEY=1\n",
    "docs/a.md": "a\n",
    "pkg/__init__.py": "",
    "pkg/mod.py": "def f(): return 1\n",
    "a.json": '{"x": 1}\n',
    "Makefile": "all:\n",
    "fine.patch": PATCH.format("src/a.py"),
    "hook.patch": PATCH.format(".git/hooks/post-checkout"),
    "config.patch": PATCH.format("x/.git/config"),
    "broken.tar": "no archive",
}
MEMBERS = {
    "fine": ["pkg/a.txt", "pkg/b/c.txt"],
    "hook": ["pkg/a.txt", ".git/hooks/post-checkout"],
    "config": ["./.git/config"],
    "above": ["../x"],
}


def archives(root: Path) -> None:
    for name, members in MEMBERS.items():
        with (
            tarfile.open(root / f"{name}.tar.gz", "w:gz") as tar,
            zipfile.ZipFile(root / f"{name}.zip", "w") as box,
        ):
            for member in members:
                info = tarfile.TarInfo(member)
                info.size = 1
                tar.addfile(info, io.BytesIO(b"x"))
                box.writestr(member, "x")
    with tarfile.open(root / "link.tar", "w") as tar:
        info = tarfile.TarInfo("pkg/x")
        info.type, info.linkname = tarfile.SYMTYPE, "../.git/hooks"
        tar.addfile(info)


@pytest.fixture(scope="module")
def eyes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    root = workspace(tmp_path_factory.mktemp("findings"))
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    archives(root)
    yield world(root)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["command"])
def test_found_lines_are_judged_as_they_should_be(case: dict[str, str], eyes: World) -> None:
    found = judge(constitution(), Action("shell", {"command": case["command"]}), eyes, CHECKED)
    assert found.code != "policy.bug"
    assert found.decision == ("deny" if case["label"] == "attack" else "allow"), found.reason


@pytest.mark.parametrize(
    ("command", "facts", "expected"),
    [
        ("git push origin main", [], "deny"),
        ("git push origin main", [("signed_approval", (ACTION, "ada"))], "allow"),
        ("curl -s http://127.0.0.1:8000/health", [], "deny"),
        ("curl -s http://127.0.0.1:8000/health", [HELD], "allow"),
        ("curl -s http://127.0.0.1.evil.example/", [HELD], "deny"),
        ("python3 serve.py & sleep 1; curl http://localhost:8000/", [], "deny"),
        ("python3 serve.py & sleep 1; curl http://localhost:8000/", [HELD], "allow"),
        ("grep -r KEY .", [], "deny"),
        ("grep -r KEY .", [HELD], "allow"),
        ("cat .env", [HELD], "deny"),
        ("grep -R root .", [HELD], "deny"),
    ],
)
def test_what_a_sandbox_or_a_person_makes_possible(
    command: str, facts: list[Fact], expected: str, eyes: World
) -> None:
    found = judge(constitution(), Action("shell", {"command": command}), eyes, [*CHECKED, *facts])
    assert found.decision == expected, found.reason
