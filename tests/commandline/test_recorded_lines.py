"""What a command line would do is in the records of a run: a replay asks no table of programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spak import canon
from spak.commandline.commands import read_line
from spak.kernel.observed import Observed
from spak.kernel.replay import replay
from spak.policy import toolfacts
from spak.records import decode
from spak.runner.observe import observe, unchanged

LEDGERS = Path(__file__).parents[1] / "golden/semantics-3"
LINES = [
    "grep -rn todo . | wc -l",
    "cat .env",
    "tar xf none.tar -C build",
    "a 'b",
    "git clone git@github.com:team/app.git",
    "gcc --nosuch",
]


def silent(*_: Any) -> Any:
    raise AssertionError("the judge of command lines is asked")


def records(file: Path) -> list[Any]:
    return [decode(line.encode()) for line in file.read_text().splitlines() if line.startswith('{"#"')]


@pytest.mark.parametrize("name", ["hello", "build_feature"])
def test_a_replay_does_not_read_command_lines(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolfacts, "read_line", silent)
    found = replay(records(LEDGERS / f"{name}.jsonl"))
    assert found.difference is None
    assert any(
        '"lines"' in str(record.body).replace("'", '"') for record in records(LEDGERS / f"{name}.jsonl")
    )


@pytest.mark.parametrize("line", LINES)
def test_what_is_recorded_says_the_same_as_the_judge(line: str, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=1")
    asked = [line, "", {}]
    facts = canon.loads(canon.dumps(observe({"lines": [asked]}, tmp_path)))
    world = Observed(facts).world
    assert world.line is not None
    found = world.line(line, "", {})
    from spak.tools.observe.paths import Observer

    told = read_line(line, Observer(tmp_path.resolve()).world())
    assert found is not None
    assert (found.deeds, found.uses, found.trouble) == (told.deeds, told.uses, told.trouble)
    assert found.connections == told.connections
    assert unchanged(facts, tmp_path)


def test_a_secret_that_appears_below_a_folder_changes_the_reading(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    facts = canon.loads(canon.dumps(observe({"lines": [["grep -r KEY src", "", {}]]}, tmp_path)))
    assert unchanged(facts, tmp_path)
    (tmp_path / "src/.env").write_text("KEY=1")
    assert not unchanged(facts, tmp_path)
