"""`spak gate` as a filter: one line in, one out, in order, whatever the lines hold."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from cli_kit import raw
from gate_kit import workspace
from process_kit import WAIT_S, start
from spak import data

GATE = [sys.executable, "-c", "from spak.cli import main; main()", "gate"]


def gate(lines: bytes, *options: str) -> list[dict[str, Any]]:
    done = subprocess.run([*GATE, *options], input=lines, capture_output=True, check=False, timeout=WAIT_S)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def line(name: str, tool: str, **args: Any) -> bytes:
    return json.dumps({"id": name, "tool": tool, "args": args}).encode() + b"\n"


def test_one_decision_a_line_in_order(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    found = gate(
        line("a", "shell", command="git status | head")
        + line("b", "shell", command="rm -rf /")
        + line("c", "read_file", path="src/a.py")
        + line("d", "read_file", path="link_dir/canary.txt")
        + line("e", "http_request", method="GET", url="https://packages.example/simple/x/")
        + line("f", "http_request", method="GET", url="https://arxiv.org/abs/1706.03762")
        + line("g", "apply_patch", patch="--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x=1\n+x=2\n"),
        "--workspace",
        str(root),
        "--allow-host",
        "packages.example,docs.python.org",
    )
    assert [item["id"] for item in found] == list("abcdefg")
    assert [item["decision"] for item in found] == [
        "allow",
        "ask",
        "allow",
        "deny",
        "allow",
        "deny",
        "allow",
    ]
    assert found[1]["programs"] == ["rm"] and found[1]["paths"] == ["/"]
    assert found[1]["row"] == 'allowed_program("rm").'
    assert all(("proof" if item["decision"] == "allow" else "why_not") in item for item in found)
    assert "--allow-host" in found[5]["reason"]
    assert (root / "src/a.py").read_text() == "x=1\n"


def test_a_program_that_is_named_runs_and_a_question_may_be_a_denial(tmp_path: Path) -> None:
    lines = line("a", "shell", command="pytest -q | tail -3") + line("b", "shell", command="make && pytest")
    where = ("--workspace", str(tmp_path))
    assert [item["decision"] for item in gate(lines, *where)] == ["ask", "ask"]
    named = gate(lines, *where, "--allow-program", "pytest,ruff")
    assert [item["decision"] for item in named] == ["allow", "ask"]
    assert named[1]["row"] == 'allowed_program("make").'
    denied = gate(lines, *where, "--allow-program", "pytest", "--ask-as", "deny")
    assert [item["decision"] for item in denied] == ["allow", "deny"] and denied[1]["programs"]
    law = tmp_path / "own.mg"
    law.write_text('allowed_program("make").\nallowed_program("pytest").\n')
    assert [item["decision"] for item in gate(lines, *where, "--policy", str(law))] == ["allow", "allow"]
    files = [*sorted(data.path("specs/policy").glob("*.mg")), law]  # what ships is there already
    options = [text for file in files for text in ("--policy", str(file))]
    assert [item["decision"] for item in gate(lines, *where, *options)] == ["allow", "allow"]


def test_bad_lines_are_denied_and_the_next_is_judged(tmp_path: Path) -> None:
    bad = [
        b"\n",
        b"{\n",
        b"[]\n",
        b"null\n",
        b'{"tool": 1, "args": {}}\n',
        b'{"tool": "shell", "args": []}\n',
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b'{"id": {"x": NaN}}\n',
        b'{"id": 1e999, "tool": "shell", "args": {"command": "ls"}}\n',
        b'{"id": 1, "tool": "read_file", "args": {"path": "x", "path": "y"}}\n',
        b'{"id": 1, "id": 2, "tool": "shell", "args": {"command": "ls"}}\n',
        b'{"tool": "shell", "args": {"command": "ls", "n": ' + b"9" * 5000 + b"}}\n",
    ]
    found = gate(b"".join(bad) + line("last", "shell", command="ls"), "--workspace", str(tmp_path))
    assert [item["decision"] for item in found] == ["deny"] * (len(bad) - 1) + ["allow"]
    assert all("gate.line" in item["reason"] for item in found[:-1])
    assert found[-1]["id"] == "last"


def test_it_answers_each_line_before_the_next_comes(tmp_path: Path) -> None:
    with start(
        [*GATE, "--workspace", str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for name in ("one", "two"):
            process.stdin.write(line(name, "shell", command="ls"))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == name
        process.stdin.close()
        assert process.wait(timeout=WAIT_S) == 0


def test_a_policy_of_ones_own(tmp_path: Path) -> None:
    policy = tmp_path / "own.mg"
    policy.write_text(
        "Decl tool(A, T) bound [/name, /name].\nDecl forbidden(A) bound [/name].\n"
        "permitted(A) :- tool(A, /read_file).\n"
    )
    found = gate(
        line("a", "read_file", path="x") + line("b", "shell", command="ls"),
        "--policy", str(policy), "--policy-only", "--workspace", str(tmp_path),
    )  # fmt: skip
    assert [item["decision"] for item in found] == ["allow", "deny"]


def test_a_policy_that_does_not_load_stops_it(tmp_path: Path) -> None:
    policy = tmp_path / "own.mg"
    policy.write_text("permitted(A) :- ")
    done = subprocess.run(
        [*GATE, "--policy", str(policy)],
        input=line("a", "shell", command="ls"),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 3 and not done.stdout


def test_an_answer_carries_the_id_as_it_was_given(tmp_path: Path) -> None:
    lines = [
        '{"id": 1, "tool": "shell", "args": {"command": "ls"}}',
        '{"id": null, "tool": "shell", "args": {"command": "ls"}}',
        '{"id": "bad", "tool": 7}',
        "no json",
    ]
    done = raw(tmp_path, "gate", stdin="\n".join(lines) + "\n")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, None, "bad", ""]


GUARDED = "guard(/refactor).\n"


def test_a_guard_is_answered_from_the_workspace(tmp_path: Path) -> None:
    """What rests on a file without a test is seen by the gate as a run sees it."""
    root = tmp_path / "ws"
    root.mkdir()
    (root / "base.py").write_text("")
    (root / "user.py").write_text("import base\n")
    (root / "alone.py").write_text("")
    own = tmp_path / "own.mg"
    own.write_text(GUARDED)
    options = ["--policy", str(own), "--workspace", str(root)]
    lines = b"".join(line(name, "write_file", path=f"{name}.py", content="") for name in ("base", "alone"))
    found = gate(lines, *options)
    assert [item["decision"] for item in found] == ["deny", "allow"]
    assert "user.py" in found[0]["reason"]
    (root / "test_user.py").write_text("import user\n")
    found = gate(lines, *options)
    assert [item["decision"] for item in found] == ["allow", "allow"]


def test_what_nobody_answers_is_denied(tmp_path: Path) -> None:
    own = tmp_path / "own.mg"
    own.write_text(
        'Decl moon(A) descr [external(), mode("+")] bound [/name].\n'
        "Decl tool(A, T) bound [/name, /name].\n"
        "permitted(A) :- tool(A, _), moon(A).\n"
    )
    options = ("--policy", str(own), "--policy-only", "--workspace", str(tmp_path))
    (found,) = gate(line("a", "shell", command="ls"), *options)
    assert found["decision"] == "deny" and "world.unknown" in found["reason"]


def test_a_model_of_the_code_that_can_not_be_made_is_a_denial_with_its_code(tmp_path: Path) -> None:
    (tmp_path / "law.mg").write_text("guard(/symbols).\n")
    (tmp_path / ".spak/code.sqlite").mkdir(parents=True)
    options = ("--policy", str(tmp_path / "law.mg"), "--as", "spec", "--workspace", str(tmp_path))
    (found,) = gate(line("a", "write_file", path="rate.py", content="X = 1\n"), *options)
    assert found["decision"] == "deny" and "world.store" in found["reason"]
