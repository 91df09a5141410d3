"""An imported run goes on only under the law, tools and approvers that a new run would have here."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_calls import Cli

SPEC = """task T {
  step q: llm.answer { prompt: "x?" }
  step s: tool.write_file { path: "a.txt" content: "x" }
}
"""


@pytest.mark.parametrize(("made", "goes_on"), [("alike", True), ("law", False), ("folder", False)])
def test_an_imported_run_goes_on_only_under_our_law(
    cli: Cli, tmp_path: Path, made: str, goes_on: bool
) -> None:
    (tmp_path / "a.spak").write_text(SPEC)
    (tmp_path / "own").mkdir()
    (tmp_path / "law.mg").write_text("permitted(A) :- tool(A, /run).")
    settings = tmp_path / "spak.toml"
    settings.write_text('[policy]\nlaw = ["law.mg"]\n' if made == "law" else "")
    more = ("--workspace", "own", "--in-place") if made == "folder" else ()
    assert cli("run", "a.spak", "--backend", "manual", *more, "--json").code == 4
    assert cli("export", "-o", "run.jsonl").code == 0
    settings.unlink()
    there = ("--runs-dir", "there", "--json")
    assert cli("import", "run.jsonl", *there).code == 0
    if goes_on:
        assert cli("step", "--answer", "y", *there).code == 0
    else:
        for verb in (("step", "--answer", "y"), ("resume",), ("fork", "--at", "1")):
            done = cli(*verb, *there)
            assert (done.code, done.error) == (1, "run.imported"), verb
    assert cli("replay", *there).code == 0
