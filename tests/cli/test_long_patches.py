"""A patch longer than a record holds is judged by its content, whether a question or a plan brought it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Cli, Done
from spak.policy.facts import read_whole
from spak.policy.urls import secret_in

LINES = [f"line {number} of a long file" for number in range(1_500)]
SPEC = """
task Fix {
  step ask: llm.query { prompt: "A patch?" output_var: fix }
  step apply: tool.apply_patch { patch: fix }
  success: file_contains("PATH", "line 7 ")
}
"""


def new_file(path: str, lines: list[str] = LINES) -> str:
    body = "".join(f"+{line}\n" for line in lines)
    return f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n{body}"


def run(cli: Cli, folder: Path, patch: str, path: str = "a.txt") -> Done:
    assert len(patch) > 32_768
    (folder / "fix.spak").write_text(SPEC.replace("PATH", path))
    (folder / "answer").write_text(patch)
    assert cli("run", "fix.spak", "--seed", "1", "--json").json["state"] == "waiting"
    return cli("step", "--answer-file", "answer", "--json")


def denied(runs: Path, run: str) -> list[dict[str, Any]]:
    records = map(json.loads, (runs / run / "trace.jsonl").read_text().splitlines())
    return [
        record["body"] for record in records if record["kind"] == "permit" and not record["body"]["allow"]
    ]


def test_a_long_patch_is_applied(cli: Cli, tmp_path: Path, runs: Path) -> None:
    done = run(cli, tmp_path, new_file("a.txt"))
    assert done.json["state"] == "succeeded", done.out
    assert (runs / done.json["run"] / "workspace/a.txt").read_text().splitlines() == LINES
    assert cli("replay", "--json").json["equal"] is True


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        (new_file("../a.txt"), "patch.path"),
        (new_file("a.txt").replace("+1,1500", "+1,1600"), "patch.hunk"),
        ("no patch at all " * 4_000, "patch.empty"),
        (new_file(".env"), "policy.denied"),
        (new_file("a.txt", [*LINES, "secret://DEPLOY_KEY"]), "policy.forbidden"),
    ],
    ids=["outside", "count", "text", "secret_file", "secret"],
)
def test_what_a_long_patch_does_is_judged(
    cli: Cli, tmp_path: Path, runs: Path, patch: str, code: str
) -> None:
    done = run(cli, tmp_path, patch)
    assert done.json["state"] == "waiting", done.out
    assert [body["code"] for body in denied(runs, done.json["run"])] == [code]
    assert cli("replay", "--json").json["equal"] is True


def test_a_long_patch_of_a_plan_is_judged_and_applied(cli: Cli, tmp_path: Path, runs: Path) -> None:
    task = 'TASK a { GOAL "Fix." TOOLS [apply_patch] success: file_exists("a.txt") }'
    (tmp_path / "plan.spak").write_text(f"AGENT P LEVEL 2 {{ START -> a {task} }}")
    assert cli("run", "plan.spak", "--mode", "stepwise", "--json").json["state"] == "waiting"
    for patch, state in ((new_file("../a.txt"), "waiting"), (new_file("a.txt"), "succeeded")):
        call = {"tool": "apply_patch", "args": {"patch": patch}}
        answer = {"control_packet": {"tool_calls": [call]}, "surface_response": "A patch."}
        (tmp_path / "answer").write_text(json.dumps(answer))
        done = cli("step", "--answer-file", "answer", "--json")
        assert done.json["state"] == state, done.out
    assert [body["code"] for body in denied(runs, done.json["run"])] == ["patch.path"]
    assert cli("replay", "--json").json["equal"] is True


def test_a_value_of_a_secret_is_seen_in_a_long_patch() -> None:
    value = "AKIA" + "Q7" * 8
    patch = new_file("a.txt", [*LINES, value, "secret://DEPLOY"])
    seen = read_whole(patch)
    assert seen.paths == ("a.txt",) and seen.names == ("DEPLOY",)
    assert seen.secret and seen.secret == secret_in(value)
