"""What a step changed is judged before anybody else sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Cli
from cli_kit import spak
from spak.errors import RunError
from spak.runner import changes
from spak.workspace import Workspace

pytestmark = pytest.mark.sandbox

SPEC = """AGENT Changes LEVEL 2 {
  START -> t
  TASK t { step a: tool.run { cmd: "sh -c 'echo x > src/late.py'" } }
}
"""
LAW = 'forbidden(A) :- changed(A, "src/never.py", _).\n'


def test_no_other_process_sees_changes_before_they_are_judged(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work/src").mkdir(parents=True)
    (tmp_path / "work/src/a.py").write_text("x = 1\n")
    (tmp_path / "spak.toml").write_text('[policy]\nlaw = ["law.mg"]\n')
    (tmp_path / "law.mg").write_text(LAW)
    (tmp_path / "changes.spak").write_text(SPEC)
    seen, judge = tmp_path / "seen.json", changes.leaving

    def judged(*args: Any, **named: Any) -> Any:
        (folder,) = (tmp_path / ".spak/runs").iterdir()
        assert (folder / "workspace/src/late.py").exists(), "the step has changed it"
        with pytest.raises(RunError) as busy:
            Workspace(folder / "workspace", folder / "store", wait_s=0).snapshot()
        code, found = spak(tmp_path, "apply", "latest", "--check", "--json")
        seen.write_text(json.dumps([busy.value.code, code, found.get("applied")]))  # this is a fork
        return judge(*args, **named)

    monkeypatch.setattr(changes, "leaving", judged)
    done = cli("run", "changes.spak", "--workspace", "work", "--json")
    assert done.code == 0 and json.loads(seen.read_text()) == ["workspace.busy", 0, []], done.out
    code, found = spak(tmp_path, "apply", "latest", "--check", "--json")
    assert (code, [row["path"] for row in found["applied"]]) == (0, ["src/late.py"])
