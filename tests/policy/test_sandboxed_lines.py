"""What a line may do in a sandbox and not outside of it (ADR 0035); lines that name copies of secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from gate_kit import CHECKED, constitution, workspace, world
from spak.commandline import places
from spak.commandline.world import Seen
from spak.datalog.values import Fact, Name
from spak.policy.actions import Action
from spak.policy.judge import judge

EDITS_AND_TESTS = (
    "sed -i 's/x/y/' src/a.py && python3 src/a.py",
    "echo 'x = 2' > app.py && python3 app.py README.md",
    "cp README.md src/tool.py; PYTHONPATH=src python3 src/tool.py",
)


def decision(line: str, tmp_path: Path, sandbox: bool) -> str:
    facts: list[Fact] = [
        *CHECKED,
        *([("sandboxed", (Name("/action"), Name("/restricted")))] if sandbox else []),
    ]
    return judge(
        constitution(), Action("shell", {"command": line}), world(workspace(tmp_path)), facts
    ).decision


@pytest.mark.parametrize("line", EDITS_AND_TESTS)
def test_a_line_that_edits_code_and_runs_it_is_allowed_in_a_sandbox_alone(line: str, tmp_path: Path) -> None:
    assert decision(line, tmp_path / "a", True) == "allow"
    assert decision(line, tmp_path / "b", False) == "deny"


@pytest.mark.parametrize(
    "line",
    [
        "sed -i 's/x/y/' src/a.py && cat /etc/passwd",
        "sed -i 's/x/y/' Makefile && make",
        "echo 'x = 2' > json.py && python3 -m json.tool README.md",
        "cp README.md argparse.py; python3 -m json.tool README.md",
        "cp README.md src/json.py && PYTHONPATH=src pytest",
        "git rm -rf src",
        "PYTHONPATH=../outside python3 src/a.py",
        "cat secrets/key",
    ],
)
def test_a_sandbox_permits_no_more_than_that(line: str, tmp_path: Path) -> None:
    assert decision(line, tmp_path, True) == "deny"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("cat prod.env", "deny"), ("cat src/id_rsa.bak", "deny"), ("cp .env~ x.txt", "deny"),
        ("base64 store.p12", "deny"), ("git show HEAD:config.env", "deny"), ("git add .envrc", "deny"),
        ("cat .env.example", "allow"), ("grep -rn process.env src", "allow"), ("cat id_rsa.pub", "allow"),
        ("git log -S process.env", "allow"), ("cp README.md README.md.bak", "allow"),
    ],
)  # fmt: skip
def test_lines_follow_the_names_of_copies(line: str, wanted: str, tmp_path: Path) -> None:
    assert decision(line, tmp_path, True) == wanted


@pytest.mark.parametrize(
    "path",
    ["build.ninja", "CTestTestfile.cmake", ".rspec", "tox.toml", "pytest.toml", ".justfile", "app.csproj",
     "meson.build", "compose.yaml", "BUILD.bazel", "tsconfig.base.json"],
)  # fmt: skip
def test_what_builds_and_tests_look_for_by_themselves_is_control(path: str) -> None:
    assert places.place(Seen("inside", path, "file"), "writes", path) == "control"
