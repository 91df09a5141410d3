"""What programs and conditions say, as the next prompt has it."""

from __future__ import annotations

from pathlib import Path

from cli_calls import Cli

BAR = """
task Bar {
  step draw: tool.run { cmd: "python draw.py" }
  step ask: llm.query { prompt_template: "It said: {{last_tool_output}}" output_var: word }
  step keep: tool.write_file { path: "word.txt" content: word }
}
"""


def test_a_progress_bar_fills_no_prompt(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bar").mkdir()
    (tmp_path / "bar/draw.py").write_text(
        "for n in range(41_208):\n    print(f'\\r{n} of 41208', end='')\nprint()\n"
    )
    (tmp_path / "bar.spak").write_text(BAR)
    assert cli("run", "bar.spak", "--json").json["state"] == "waiting"
    prompt = cli("show", "--json").json["waiting"]
    assert "41207 of 41208" in str(prompt) and len(str(prompt)) < 2000


LOOP = """
AGENT Ask LEVEL 2 {
  START -> ask
  TASK ask {
    RETRIES 9
    step q: llm.query { prompt: "Age? {{error}}" output_var: age }
    step w: tool.write_file { path: "age.txt" content: age }
    success: age > 0 and not (file_contains("age.txt", "5"))
    NEXT { success -> end, fail -> ask }
  }
  TASK end { GOAL "ok" step l: tool.list_files { } }
}
"""


def test_a_condition_that_does_not_hold_is_told_with_what_was_found(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "ask.spak").write_text(LOOP)
    cli("run", "ask.spak", "--json")
    assert cli("step", "--answer", "-5").code == 4
    error = cli("show", "--json").json["registers"]["R4"]
    assert error["code"] == "run.success_unmet"
    assert error["expected"] == 'age > 0 and not (file_contains("age.txt", "5"))'
    assert error["received"] == 'age is "-5"; file_contains("age.txt", "5") is true'
    assert "run.success_unmet" in str(cli("show", "--json").json["waiting"])
