"""IMPORT, POLICY and INPUTS through the command line: findings name their file, a replay needs none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cli_calls import Cli

MAIN = """\
AGENT Composed LEVEL 2 {
  IMPORT "shared/house.spak"
  POLICY "rules.mg"
  INPUTS { word: enum("hi", "ho") = "hi" }
  START -> first
  TASK first { step s: tool.run { cmd: "true" } NEXT { success -> last } }
}
"""
HOUSE = 'SYSTEM_MODEL { AXIOM "x" }\nTASK last { step t: tool.run { cmd: "echo {{input.word}}" } }\n'


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "specs" / "shared").mkdir(parents=True)
    (tmp_path / "specs" / "main.spak").write_text(MAIN)
    (tmp_path / "specs" / "shared" / "house.spak").write_text(HOUSE)
    (tmp_path / "specs" / "rules.mg").write_text("allowed(/run).\n")
    return tmp_path / "specs"


def test_a_run_carries_its_imports_and_its_policy(cli: Cli, runs: Path, spec: Path) -> None:
    done = cli("run", "specs/main.spak", "--input", "word=ho", "--json")
    assert done.json["state"] == "succeeded" and done.json["task"] == "last"
    genesis = json.loads((runs / done.json["run"] / "trace.jsonl").read_text().splitlines()[0])
    assert genesis["body"]["rules"]["policy"]["spec"] == "allowed(/run).\n"
    assert (
        "TASK last" in genesis["body"]["rules"]["spec"] and "IMPORT" not in genesis["body"]["rules"]["spec"]
    )
    shutil.rmtree(spec)
    assert cli("replay", "latest").code == 0


def test_a_finding_names_the_imported_file(cli: Cli, spec: Path) -> None:
    (spec / "shared" / "house.spak").write_text(HOUSE.replace("tool.run", "tool.rum"))
    (found,) = [
        item
        for item in cli("check", "specs/main.spak", "--json").json["files"][0]["diagnostics"]
        if item["severity"] == "error"
    ]
    assert (found["file"], found["line"], found["code"]) == (
        "specs/shared/house.spak",
        2,
        "lang.unknown_tool",
    )
    people = cli("check", "specs/main.spak").err
    assert "specs/shared/house.spak:2:21: error" in people and "tool.rum { cmd" in people


def test_a_missing_file_is_shown_where_it_is_named(cli: Cli, spec: Path) -> None:
    (spec / "shared" / "house.spak").unlink()
    done = cli("check", "specs/main.spak")
    assert done.code == 3
    assert "main.spak:2:10: error: there is no file 'shared/house.spak' [lang.import_missing]" in done.err
    assert '  IMPORT "shared/house.spak"' in done.err
    assert cli("run", "specs/main.spak").code == 3


def test_an_input_outside_of_its_choices_is_refused(cli: Cli, spec: Path) -> None:
    done = cli("run", "specs/main.spak", "--input", "word=hu", "--json")
    assert (done.code, done.json["error"]["code"]) == (3, "lang.input")
    assert "one of hi, ho" in done.json["error"]["hint"]
