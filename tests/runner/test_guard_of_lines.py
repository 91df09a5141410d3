"""The refactoring guard in a run that a verb of change began: of command lines, and of signed edits."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from cli_calls import Done, forked
from spak.cli import ask, session

pytestmark = pytest.mark.sandbox

SPEC = """
AGENT Lines LEVEL 2 {
  CONFIG { APPROVALS ask }
  START -> t
  TASK t {
    step change: STEP
  }
}
"""
LINE = 'tool.run { cmd: "sed -i s/1/2/ src/rate.py" }'
EDIT = 'tool.write_file { path: "src/rate.py" content: "def rate():\\n    return 2\\n" }'
FILES = {
    "src/rate.py": "def rate():\n    return 1\n",
    "src/bill.py": "from rate import rate\n\n\ndef bill(count):\n    return count * rate()\n",
    "notes.txt": "1\n",
}
TEST = "from bill import bill\n\n\ndef test_bill():\n    assert bill(2) == 2\n"


def start(folder: Path, step: str, tested: bool, guards: tuple[str, ...] = ask.GUARDS) -> Done:
    """A run of one step; `spak ask` begins its runs with `ask.GUARDS`."""
    for name, text in {**FILES, **({"src/test_bill.py": TEST} if tested else {})}.items():
        (folder / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "work" / name).write_text(text)
    (folder / "lines.spak").write_text(SPEC.replace("STEP", step))

    def before() -> None:
        session.begin = partial(session.begin, guards=guards)  # type: ignore[assignment]

    args = ("run", "lines.spak", "--workspace", "work", "--json")
    return forked(folder, args, before=before, env={"XDG_CONFIG_HOME": str(folder / "home")})


@pytest.mark.parametrize(
    ("step", "tested", "guards", "kept"),
    [
        (LINE, False, ask.GUARDS, False),
        (LINE, True, ask.GUARDS, True),
        (LINE, False, (), True),
        (LINE, False, ("refactor",), False),
        (LINE.replace("src/rate.py", "notes.txt"), False, ask.GUARDS, True),
        ('tool.run { cmd: "rm src/rate.py" }', False, ask.GUARDS, False),
    ],
)
def test_a_line_that_changes_what_untested_code_rests_on_is_undone(
    tmp_path: Path, step: str, tested: bool, guards: tuple[str, ...], kept: bool
) -> None:
    """What depended on the file before the line counts: after `rm` nothing does."""
    done = start(tmp_path, step, tested, guards)
    assert done.json["state"] == ("succeeded" if kept else "refused"), done.out
    (copy,) = tmp_path.glob(".spak/runs/*/workspace")
    now = {name: (copy / name).read_text() if (copy / name).exists() else "" for name in FILES}
    assert (now == FILES) is not kept
    if not kept:
        assert "policy.changes" in json.dumps(done.json), done.json
        assert f"guard_{guards[0]}.mg" in json.dumps(done.json), done.json
    assert forked(tmp_path, ("replay", "latest", "--json")).json["equal"]


def test_a_person_may_sign_an_edit_that_names_the_file(tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path / "home")}
    (tmp_path / "spak.toml").write_text(forked(tmp_path, ("keys", "make", "alice"), env=env).out)
    waits = start(tmp_path, EDIT, tested=False)
    assert (waits.code, waits.json["state"]) == (4, "waiting"), waits.out
    signed = forked(tmp_path, ("approve", waits.json["run"], "--json"), env=env)
    assert signed.json["state"] == "succeeded", (signed.out, signed.err)
    (copy,) = tmp_path.glob(".spak/runs/*/workspace")
    assert "return 2" in (copy / "src/rate.py").read_text()
