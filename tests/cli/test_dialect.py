"""What people write for the prototype of seed 002 runs: its tools, its backend, its evaluation."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_calls import Cli

ASKING = """
task Ask {
  step keep: tool.write { file: "a.txt" text: "one\\ntwo\\n" }
  step load: tool.read { file: "a.txt" output_var: seen }
  step question: llm.query { prompt: "How many lines? {{seen}}" output_var: said }
  success: said == 2
}
"""


@pytest.mark.parametrize("how", ["flag", "config", "spec", "environment"])
def test_the_simulated_command_waits_for_a_person(cli: Cli, tmp_path: Path, how: str) -> None:
    text = ASKING
    if how == "spec":
        text = f"AGENT A LEVEL 3 {{ CONFIG {{ BACKEND gemini_cli_sim }} START -> Ask {ASKING} }}"
    if how == "config":
        (tmp_path / "spak.toml").write_text('[llm]\nmode = "gemini_cli_sim"\n')
    (tmp_path / "ask.spak").write_text(text)
    flags = ("--backend", "gemini_cli_sim") if how == "flag" else ()
    env = {"SPAK_LLM_MODE": "gemini_cli_sim"} if how == "environment" else {}
    begun = cli("run", "ask.spak", *flags, "--json", env=env)
    assert (begun.code, begun.json["state"]) == (4, "waiting"), begun.err
    assert begun.json["waiting"]["prompt"] == "How many lines? one\ntwo\n"
    done = cli("step", "--answer", " 2 ", "--backend", "gemini_cli_sim", "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded")


@pytest.mark.parametrize(
    ("answer", "code", "shown"),
    [("2 lines", "run.not_a_number", '"2 lines"'), ("3", "run.success_unmet", "")],
)
def test_an_answer_that_is_no_number_is_reported(
    cli: Cli, tmp_path: Path, answer: str, code: str, shown: str
) -> None:
    (tmp_path / "ask.spak").write_text(ASKING)
    cli("run", "ask.spak", "--json")
    done = cli("step", "--answer", answer, "--json")
    refusal = done.json["refusal"]
    assert (done.code, refusal["codes"]) == (1, [code])
    if shown:
        assert refusal["error"]["received"] == shown and "said == 2" in refusal["error"]["hint"]
        told = cli("show", "latest")
        assert shown in told.err + told.out and "said == 2" in told.err + told.out


@pytest.mark.sandbox
def test_an_evaluation_counts_lines(cli: Cli, tmp_path: Path) -> None:
    spec = """
task Count {
  step keep: tool.write { path: "a" content: "one\\ntwo\\n" }
  evaluation {
    check lines: tool.run { cmd: "wc -l a" output_var: counted }
    check again: tool.run { cmd: "echo {{counted}}" }
  }
  success: lines == 2
}
"""
    (tmp_path / "count.spak").write_text(spec)
    done = cli("run", "count.spak", "--json")
    assert done.json["refusal"]["codes"] == ["run.not_a_number"]
    assert done.json["refusal"]["error"]["received"] == '"2 a"'
    assert done.json["metrics"]["again"].strip() == "2 a"
    (tmp_path / "count.spak").write_text(spec.replace("wc -l a", "grep -c . a"))
    done = cli("run", "count.spak", "--json")
    assert (done.json["state"], done.json["metrics"]["lines"]) == ("succeeded", 2)
