"""Tables of command lines in the settings: the example of the docs, how a run carries them, and refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cli_calls import Cli
from spak.commandline import custom_tables, table

PAGE = Path(__file__).resolve().parents[2] / "docs/commands.md"
(EXAMPLE,) = re.findall(r"^```toml commands\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
CASES = re.findall(r"^(allow|deny) (.+)$", PAGE.read_text(), re.MULTILINE)


def test_the_example_of_the_docs_is_in_order() -> None:
    assert custom_tables.problems({"schemacheck.toml": EXAMPLE}) == []
    assert len(CASES) > 10


@pytest.mark.parametrize(("decision", "line"), CASES)
def test_the_gate_says_what_the_docs_say(cli: Cli, tmp_path: Path, decision: str, line: str) -> None:
    folder = tmp_path / "specs/policy/commands"
    folder.mkdir(parents=True)
    (folder / "schemacheck.toml").write_text(EXAMPLE)
    (tmp_path / "spak.toml").write_text('[policy]\ncommands = ["specs/policy/commands"]\n')
    (tmp_path / "work/data").mkdir(parents=True)
    (tmp_path / "work/data/a.json").write_text("{}")
    asked = json.dumps({"id": 1, "tool": "shell", "args": {"command": line}}).encode()
    answer = json.loads(cli("gate", "--workspace", "work", stdin=asked).out)
    assert answer["decision"] == decision, answer
    if decision == "allow":  # by nothing else than the table
        (folder / "schemacheck.toml").unlink()
        assert json.loads(cli("gate", "--workspace", "work", stdin=asked).out)["decision"] == "deny"


SPEC = """task T {
  step q: llm.answer { prompt: "x?" }
  step s: tool.run { cmd: "schemacheck a.json" }
}
"""


def test_a_run_keeps_the_tables_that_it_began_with(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.spak").write_text(SPEC)
    settings, file = tmp_path / "spak.toml", tmp_path / "own.toml"
    settings.write_text('[policy]\ncommands = ["own.toml"]\n')
    file.write_text(EXAMPLE)
    assert cli("check", "a.spak").err.count("lang.denied") == 0
    assert cli("run", "a.spak", "--backend", "manual", "--json").code == 4
    (trace,) = (tmp_path / ".spak/runs").glob("*/trace.jsonl")
    rules = json.loads(trace.read_text().partition("\n")[0])["body"]["rules"]
    assert rules["policy"]["commands"] == {"operator/own.toml": EXAMPLE}
    assert rules["commands"] == table.digest({"operator/own.toml": EXAMPLE}) != table.digest()
    settings.unlink()
    file.unlink()
    assert "lang.denied" in cli("check", "a.spak", "--strict").err
    done = cli("step", "--answer", "y", "--json")
    assert "policy.denied" not in trace.read_text() and '"tool.exit"' in trace.read_text(), done
    assert cli("replay", "--json").json["equal"] is True
    cli("run", "a.spak", "--backend", "manual", "--json")
    cli("step", "--answer", "y", "--json")
    (later,) = set((tmp_path / ".spak/runs").glob("*/trace.jsonl")) - {trace}
    assert "policy.denied" in later.read_text(), "a run that begins later has none"


def test_a_wrong_table_stops_everything_that_judges(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.spak").write_text(SPEC)
    (tmp_path / "spak.toml").write_text('[policy]\ncommands = ["own"]\n')
    (tmp_path / "own").mkdir()
    (tmp_path / "own/git.toml").write_text("version = 1\n[git]\n")
    for call in (("run", "a.spak"), ("gate",)):
        done = cli(*call)
        assert done.code == 3 and "operator/git.toml: git: git is in a table that ships" in done.err, done
    found = cli("policy", "commands", "check", "--json")
    assert found.code == 3 and [item["code"] for item in found.json["diagnostics"]] == ["commands.shipped"]
    assert cli("policy", "commands", "check", "own/git.toml", "--json").code == 3
    rows = {row["name"]: row for row in cli("doctor", "--json").json["checks"]}
    assert rows["operator's law"]["ok"] is False


@pytest.mark.parametrize("value", ["[1]", '"own.toml"', '[""]', '["none.toml"]', '["a/x.toml", "x.toml"]'])
def test_a_setting_that_names_no_table_is_refused(cli: Cli, tmp_path: Path, value: str) -> None:
    (tmp_path / "a").mkdir()
    for name in ("a/x.toml", "x.toml"):
        (tmp_path / name).write_text("version = 1\n")
    (tmp_path / "spak.toml").write_text(f"[policy]\ncommands = {value}\n")
    done = cli("gate")
    assert done.code == 2 and "usage.config" in done.err, done


def test_a_run_does_not_change_the_tables_of_later_ones(cli: Cli, tmp_path: Path) -> None:
    """A run that works where a table lies, or where one could be put, could write it anew."""
    (tmp_path / "a.spak").write_text(SPEC)
    (tmp_path / "work/own").mkdir(parents=True)
    (tmp_path / "own.toml").write_text(EXAMPLE)
    for named, place in (("own.toml", "."), ("work/own", "work"), ("work/own", "work/own")):
        (tmp_path / "spak.toml").write_text(f'[policy]\ncommands = ["{named}"]\n')
        done = cli("run", "a.spak", "--backend", "manual", "--workspace", place, "--in-place", "--json")
        assert (done.code, done.error) == (2, "usage.law"), (named, place, done)
