"""NEXT BY next_action: the law derives each move, and a walk before the run shows that they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli_kit import spak
from law_kit import under
from spak import config, data
from spak.kernel.executive.prove import MOST, prove
from spak.kernel.foresee import foresee
from spak.lang import parse
from spak.lang.check import examine
from spak.lang.edit import ops
from spak.lang.edit.apply import apply
from spak.lang.format import format_text
from spak.lang.imports import resolve
from spak.runner.genesis import shipped

CATALOG = config.catalog()
TDD = """AGENT Mend LEVEL 3 {
  START -> test
  POLICY \"""RULES\"""
  TASK test {
    step check: tool.run { cmd: "grep -q right a.txt" }
    NEXT BY next_action { /read_error_log -> read, /finish -> done, /escalate_to_user -> give_up }
  }
  TASK read {
    step a: tool.list_files
    NEXT BY next_action { /analyze_root_cause -> think, /escalate_to_user -> give_up }
  }
  TASK think {
    step a: tool.list_files
    NEXT BY next_action { /generate_patch -> patch, /escalate_to_user -> give_up }
  }
  TASK patch {
    step a: tool.write_file { path: "a.txt" content: "TEXT" }
    NEXT BY next_action { /run_tests -> test, /escalate_to_user -> give_up }
  }
  TASK done { GOAL "it passes" }
  TASK give_up { step a: tool.list_files success: false }
}
"""
ONE = """AGENT A LEVEL 2 {{
  START -> a
  POLICY \"""{rules}\"""
  TASK a {{ step s: tool.list_files NEXT BY next_action {{ /again -> a, /on -> b }} }}
  TASK b {{ GOAL "the end" }}
}}
"""


def tdd(rules: str = "guard(/tdd).", text: str = "right") -> str:
    return TDD.replace("RULES", rules).replace("TEXT", text)


def told(text: str, law: str = "") -> list[str]:
    whole = resolve(parse(text, "a.spak"), lambda path: "")
    made = examine(whole.parsed.spec, CATALOG)
    level = shipped() if not law else under(law)
    found = (*whole.parsed.diagnostics, *made.report.found, *foresee(made, whole, level))
    return [f"{item.code}: {item.message}" for item in found]


def one(rules: str) -> list[str]:
    return told(ONE.format(rules=rules))


def run(folder: Path, text: str) -> tuple[int, Any]:
    (folder / "files").mkdir()
    (folder / "files/a.txt").write_text("wrong\n")
    (folder / "a.spak").write_text(text)
    return spak(folder, "run", "a.spak", "--workspace", "files", "--json")


def routes(folder: Path) -> list[str]:
    _, document = spak(folder, "show", "latest", "--json")
    name = document["run"]
    found = []
    for line in (folder / f".spak/runs/{name}/trace.jsonl").read_text().splitlines():
        if '"by":"' in line:
            found.append(line.partition('"by":"')[2].partition('"')[0])
    return found


@pytest.mark.sandbox
def test_the_law_leads_from_the_failing_test_to_the_end(tmp_path: Path) -> None:
    code, seen = run(tmp_path, tdd())
    assert (code, seen["state"], seen["task"]) == (0, "succeeded", "done")
    tour = ["/read_error_log", "/analyze_root_cause", "/generate_patch", "/run_tests", "/finish"]
    assert routes(tmp_path) == tour
    assert spak(tmp_path, "replay", "latest", "--json")[1]["summary_hash"] == seen["summary_hash"]


@pytest.mark.sandbox
def test_three_tries_then_a_person(tmp_path: Path) -> None:
    code, seen = run(tmp_path, tdd(text="still not"))
    assert (code, seen["state"], seen["task"]) == (5, "refused", "give_up")
    assert seen["refusal"]["codes"] == ["tool.exit"]
    assert routes(tmp_path).count("/generate_patch") == 3 and routes(tmp_path)[-1] == "/escalate_to_user"


@pytest.mark.sandbox
def test_two_moves_are_a_refusal_with_both_proofs(tmp_path: Path) -> None:
    """What the walk cannot foresee, since a rule reads a diagnostic, is refused where it happens."""
    more = "guard(/tdd). next_action(/escalate_to_user) :- ended(_, /success), checks_ran(_, _). "
    more += "next_action(/escalate_to_user) :- ended(_, /success), test_state(/log_read), !checks_ran(_, _)."
    code, seen = run(tmp_path, tdd(more))
    assert (code, seen["state"], seen["refusal"]["codes"]) == (5, "refused", ["run.next_action"])
    assert "/analyze_root_cause and /escalate_to_user" in seen["refusal"]["cause"]
    seq = int(seen["refusal"]["cause"].rpartition("record ")[2])
    code, shown = spak(tmp_path, "show", "latest", "--proof", str(seq), "--json")
    assert code == 0 and [len(proof["nodes"]) > 2 for proof in shown["proofs"]] == [True, True]
    assert {shown["signal"], shown["by"]} == {"success", ""}


@pytest.mark.sandbox
def test_a_spec_that_is_not_proved_does_not_run(tmp_path: Path) -> None:
    code, seen = run(tmp_path, tdd("guard(/tdd). next_action(/finish) :- ended(_, /success)."))
    assert code == 3 and "lang.next_action" in seen["error"]["message"]
    assert not (tmp_path / ".spak/runs").exists()


def test_the_shipped_table_is_proved() -> None:
    assert told(tdd()) == []


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ("next_action(/on) :- ended(_, /success).", "no next_action at ended(a, /fail), retry_count(0)"),
        ("next_action(/on) :- ended(_, _). next_action(/again) :- ended(_, /fail).", "/again and /on at"),
        ("next_action(/off) :- ended(_, _).", "/off at ended(a, /success)"),
    ],
)
def test_each_verdict_has_one_move(rules: str, words: str) -> None:
    assert any(item.startswith("lang.next_action") and words in item for item in one(rules))


@pytest.mark.parametrize(
    "rules",
    [
        "next_action(/again) :- ended(_, _).",
        "next_action(/again) :- ended(_, /fail). next_action(/on) :- ended(_, S), S != /fail.",
        "next_action(/again) :- ended(_, /success), retry_count(N), N < 3. "
        "next_action(/on) :- ended(_, /success), retry_count(N), N >= 3. "
        "next_action(/on) :- ended(_, S), S != /success.",
        "next_action(/again) :- retry_count(N), N >= 0.",
        "next_action(/on) :- diagnostic(_, _, _, _, _). next_action(/again) :- !seen(). "
        "seen() :- diagnostic(_, _, _, _, _).",
        "next_action(/again) :- retry_count(N), M = fn:plus(N, 1), M < 5. next_action(/on) :- ended(_, _).",
    ],
)
def test_a_circle_without_a_budget_is_shown(rules: str) -> None:
    found = [item for item in one(rules) if item.startswith("lang.endless")]
    assert len(found) == 1 and "ended(a, /" in found[0]


@pytest.mark.parametrize(
    "rules",
    [
        "next_action(/on) :- ended(_, _).",
        "again() :- ended(_, /fail), retry_count(N), N < 3. next_action(/again) :- again(). "
        "next_action(/on) :- ended(_, _), !again().",
        "again() :- ended(_, S), S != /success, retry_count(N), N <= 2. next_action(/again) :- again(). "
        "next_action(/on) :- ended(_, _), !again().",
    ],
)
def test_failures_that_are_counted_end_a_circle(rules: str) -> None:
    assert [item for item in one(rules) if "dead_trigger" not in item] == []


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("NEXT BY next_action", "NEXT"),
        ("NEXT BY next_action", "NEXT BY other"),
        ("NEXT BY next_action", "NEXT OF next_action"),
        ("/again -> a", "fail -> a"),
        ("/on -> b } }", "/on -> b } NEXT { fail -> b } }"),
    ],
)
def test_the_two_forms_are_kept_apart(was: str, now: str) -> None:
    text = ONE.format(rules="next_action(/on) :- ended(_, _).")
    assert was in text
    assert any(item.startswith("lang.next_by") for item in told(text.replace(was, now)))


def test_a_metric_loop_spends_its_evaluations() -> None:
    text = data.path("specs/examples/attention_tuner.spak").read_text()
    edges = text[text.index("    NEXT {\n      metric_improved") : text.index("  TASK finalize")]
    derived = text.replace(edges, "    NEXT BY next_action { /tune -> tune, /finalize -> finalize }\n  }\n\n")
    rules = "next_action(/tune) :- ended(_, S), S != /plateau. next_action(/finalize) :- ended(_, /plateau)."
    for end, endless in (("/plateau", False), ("/timeout", True)):
        law = rules.replace("/plateau", end)
        with_law = derived.replace("START ->", f'POLICY """{law}"""\n  START ->', 1)
        found = [item for item in told(with_law) if item.startswith(("lang.endless", "lang.next_action"))]
        assert bool(found) == endless, found


def test_a_failure_of_a_metric_loop_is_no_evaluation() -> None:
    """What fails before it is measured, and comes back by another task, goes round for ever."""
    text = data.path("specs/examples/attention_tuner.spak").read_text()
    edges = text[text.index("    NEXT {\n      metric_improved") : text.index("  TASK finalize")]
    routed = "    NEXT BY next_action { /tune -> tune, /rest -> rest, /finalize -> finalize }\n  }\n\n"
    rest = '  TASK rest { GOAL "look again" NEXT { success -> tune } }\n\n'
    law = "next_action(/finalize) :- ended(_, /plateau). next_action(/rest) :- ended(_, /fail). "
    law += "next_action(/tune) :- ended(_, S), S != /plateau, S != /fail."
    derived = text.replace(edges, routed + rest).replace("START ->", f'POLICY """{law}"""\n  START ->', 1)
    found = [item for item in told(derived) if item.startswith(("lang.endless", "lang.next_action"))]
    assert len(found) == 1 and "ended(tune, /fail)" in found[0]


def test_a_tool_of_the_editor_writes_moves() -> None:
    text = ONE.format(rules="next_action(/on) :- ended(_, _).")
    added = apply(text, ops.AddEdge("a", "/off", "b")).text
    assert "/on -> b, /off -> b }" in added and "NEXT BY next_action" in added
    bare = text.replace(" NEXT BY next_action { /again -> a, /on -> b }", "")
    assert "NEXT BY next_action { /on -> b }" in apply(bare, ops.AddEdge("a", "/on", "b")).text
    spaced = text.replace("NEXT BY next_action {", "next   by\n next_action\n{")
    assert "next_action { /again -> a, /on -> b }" in format_text(spaced).text


def test_the_walk_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spak.kernel.executive.prove.MOST", 2)
    assert any("more than 2 situations" in item for item in told(tdd())) and MOST >= 5000
    assert prove.__doc__
