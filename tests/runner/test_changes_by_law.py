"""The law judges what a step changed before it is kept: a step whose changes it forbids is undone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli_calls import SPAK, forked
from cli_kit import spak
from kernel_kit import PERMITS, World, fresh, program, rules
from spak.kernel import permit
from spak.kernel.state import Effect
from spak.program import Step, Task
from spak.records import Kind

SPEC = """
AGENT Changes LEVEL 2 {
  START -> t
  TASK t {
    step first: tool.write_file { path: "src/a.py" content: "x = 2" }
    step second: tool.python_repl { code: "%s" }
  }
}
"""
LAW = "forbidden(A) :- changed(A, _, /runs), runs_code(A).\n"


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("code", "law", "state"),
    [
        ("open('src/b.py', 'w').write('y')", LAW, "succeeded"),
        ("open('conftest.py', 'w').write('y')", LAW, "refused"),
        ("import os; os.unlink('src/a.py')", 'forbidden(A) :- changed(A, "src/a.py", _).', "refused"),
        ("open('conftest.py', 'w').write('y')", "", "succeeded"),
        ("print(1)", LAW, "succeeded"),
        ("open('conftest.py', 'w').write('y')", 'forbidden(A) :- changed(A, "conftest.py", _).', "refused"),
        ("import shutil; shutil.rmtree('src')", "forbidden(A) :- changed(A, _, _), runs_code(A).", "refused"),
        ("open('src/b.py', 'w').write('y')", LAW.replace("/runs", "/ordinary"), "refused"),
    ],
)
def test_a_step_of_the_spec_whose_changes_are_forbidden_is_undone_and_ends_the_run(
    tmp_path: Path, code: str, law: str, state: str
) -> None:
    (tmp_path / "spak.toml").write_text('[policy]\nlaw = ["law.mg"]\n')
    (tmp_path / "law.mg").write_text(law)
    (tmp_path / "work/src").mkdir(parents=True)
    (tmp_path / "work/Makefile").write_text("all:\n")
    (tmp_path / "work/src/a.py").write_text("x = 1\n")
    (tmp_path / "changes.spak").write_text(SPEC % code)
    _, document = spak(tmp_path, "run", "changes.spak", "--workspace", "work", "--json")
    assert document["state"] == state, document
    (copy,) = (path.parent for path in tmp_path.rglob(".spak/runs/*/workspace/Makefile"))
    first = "src/a.py" not in law
    assert (copy / "src/a.py").read_text() == ("x = 2" if first else "x = 1\n"), "the step before is kept"
    assert (copy / "conftest.py").exists() is ("conftest" in code and not law)
    if state == "refused":
        assert "policy.changes" in json.dumps(document) and "law.mg:1" in json.dumps(document), document
    assert spak(tmp_path, "replay", "latest", "--json")[0] == 0


PROBE = """
import sys
from pathlib import Path
from spak.errors import RunError
from spak.workspace.lock import WorkspaceLock
try:
    with WorkspaceLock(Path(sys.argv[1]), 0):
        print("took the workspace")
except RunError as error:
    print(error.code)
"""


@pytest.mark.sandbox
@pytest.mark.parametrize(("forbidden", "code"), [("/runs", 0), ("/ordinary", 5)])
def test_no_other_process_sees_changes_between_the_effect_and_their_judgement(
    tmp_path: Path, forbidden: str, code: int
) -> None:
    """While the law judges a line, another process gets neither the workspace nor what the line wrote."""
    (tmp_path / "spak.toml").write_text('[policy]\nlaw = ["law.mg"]\n')
    (tmp_path / "law.mg").write_text(LAW.replace("/runs", forbidden))
    (tmp_path / "work/src").mkdir(parents=True)
    (tmp_path / "work/src/a.py").write_text("x = 1\n")
    (tmp_path / "changes.spak").write_text(SPEC % "open('src/a.py', 'w').write('x = ' + str(9 ** 9))")

    def before() -> None:
        really = permit.forbids

        def judging(rules: Any, state: Any, effect: Effect, *of: Any) -> str:
            (run,) = (tmp_path / ".spak/runs").iterdir()
            for name, words in {
                "lock": (sys.executable, "-c", PROBE, str(run / "store")),
                "show": (SPAK, "show", run.name, "--json"),
                "export": (SPAK, "export", run.name),
                "apply": (SPAK, "apply", run.name, "--check", "--json"),
            }.items():
                done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False)
                (tmp_path / f"seen-{name}").write_bytes(done.stdout + done.stderr)
            return really(rules, state, effect, *of)

        permit.forbids = judging

    done = forked(tmp_path, ("run", "changes.spak", "--workspace", "work", "--json"), before=before)
    assert done.code == code, (done.out, done.err)
    seen = {path.name: path.read_text() for path in tmp_path.glob("seen-*")}
    assert len(seen) == 4 and seen["seen-lock"] == "workspace.busy\n"
    assert str(9**9) not in str(seen)
    (copy,) = tmp_path.rglob(".spak/runs/*/workspace")
    assert (copy / "src/a.py").read_text() == (f"x = {9**9}" if code == 0 else "x = 2")


def test_whoever_proposed_it_gets_the_rule_and_may_propose_again() -> None:
    def script(effect: Effect, count: int) -> Any:
        if effect.act == "plan":
            text = "bad" if effect.turn == 0 else "good"
            return Kind.PLAN, {"candidates": [{"tool": "write", "args": {"text": text}}]}
        if effect.args == {"text": "bad"}:
            why = "operator/law.mg:1 forbids it"
            return Kind.ACT, {"outcome": "invalid", "code": "policy.changes", "why": why}
        return fresh(effect, count)

    task = Task("t", tools=("write",), steps=(Step("p", "plan"),))
    made = World(rules(program(task), law=PERMITS), script).run()
    assert made.state.status == "succeeded"
    undone = next(body for body in made.bodies("route") if body.get("code") == "policy.changes")
    assert undone["txn"] == "rollback" and undone["to"] == "p"
    assert [effect.act for effect in made.effects] == ["plan", "tool", "plan", "tool"]
    shown = json.dumps([[item.get("text") for item in effect.items] for effect in made.effects])
    assert "operator/law.mg:1 forbids it" in shown
