"""`spak analyze` on a run, a file and a folder; and what is no trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_calls import HELLO, Cli

READS = """
task Reads {
  step one: tool.read_file { path: "a.txt" }
  step two: tool.read_file { path: "a.txt" }
}
"""


@pytest.mark.sandbox
def test_a_run_a_file_and_a_folder(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "reads.spak").write_text(READS)
    (tmp_path / "given").mkdir()
    (tmp_path / "given/a.txt").write_text("text\n")
    assert cli("run", HELLO).code == 0
    assert cli("run", "reads.spak", "--workspace", "given").code == 0
    found = cli("analyze", "--json").json
    assert [item["code"] for item in found["findings"]] == ["redundant_call"]
    assert found["findings"][0]["edit"] == [{"op": "remove_step", "task": "Reads", "step": "two"}]
    assert cli("export", "latest", "-o", "run.jsonl").code == 0
    again = cli("analyze", "--trace", "run.jsonl", "--json").json
    assert again["findings"][0]["records"] == found["findings"][0]["records"]
    many = cli("analyze", ".spak/runs", "--json").json
    assert (many["runs"], len(many["findings"])) == (2, 1)
    shown = cli("analyze", "latest", "--code", "redundant_call")
    assert "edit: remove_step task=Reads step=two" in shown.out
    assert cli("analyze", "--code", "none", "--json").error == "usage.arguments"


def test_what_is_no_trace_is_an_error(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "prose.jsonl").write_text("hello\n")
    (tmp_path / "folder").mkdir()
    for name in ("empty.jsonl", "prose.jsonl", "folder"):
        done = cli("analyze", name, "--json")
        assert (done.code, done.error) == (2, "outer.empty"), name
    assert cli("analyze", "none.jsonl", "--json").error == "usage.run"
