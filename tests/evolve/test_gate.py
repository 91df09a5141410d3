"""The gate's stages that need no run: form, privileges, recorded runs; and proposers that try to pass."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from bench.planted import planted, work
from bench.random_edits import BASE, CATALOG, gained
from spak import canon, data
from spak.errors import EditRefused, OuterError, UserError
from spak.evolve.campaigns.judge import counterfactual
from spak.evolve.gate import Candidate, form, of_diff, privileged, rehearse, total
from spak.evolve.gate.counterfactual import under
from spak.evolve.propose import Training, contract, from_findings
from spak.lang import parse
from spak.lang.edit import apply_all, ops, read


def candidate(*lines: str, base: str = BASE) -> Candidate:
    return Candidate(read(lines), "test")


def stages(made: Candidate, base: str = BASE) -> tuple[str, str]:
    first, text = form(base, made, CATALOG)
    return first.verdict, privileged(base, text, CATALOG).verdict if text else ""


@pytest.mark.parametrize(
    "line",
    [
        "remove-heuristic 1",
        "add-heuristic 'Look twice.'",
        "edit-heuristic 2 'Read the last line.'",
        "set-retries write 2",
        "set-budget steps 100",
        "set-goal write 'Write it well.'",
        "set-memory SUMMARIZE",
        "remove-step hand_over show",
        "set-tools write write_file",
    ],
)
def test_edits_that_give_nothing_away_are_free(line: str) -> None:
    base = BASE.replace("TASK hand_over {", 'TASK hand_over { step first: tool.read_file { path: "a.txt" }')
    assert stages(candidate(line), base) == ("pass", "pass")


@pytest.mark.parametrize(
    "line",
    [
        "clear write VALIDATOR",
        'set-validator write PyTest paths:=["other/"]',
        "set-retries write 60",
        "set-budget steps 100000",
        "set-budget steps 0",
        "set-budget watchdog 1000",
        "clear BUDGET.steps",
        "edit-axiom 1 'Be long.'",
        "remove-axiom 1",
        "add-axiom 'Anything goes.'",
        "set-tools write write_file,run",
        "set-level 5",
        "set-sandbox DOCKER",
        "set-mode full_auto",
        "set-backend local",
        "retarget-edge write fail hand_over",
        "set-start hand_over",
        "set-field hand_over show path=b.txt",
        "add-step hand_over more tool.run cmd=ls",
        'set-success write file_exists("a.txt")',
        "set POLICY law.mg",
    ],
)
def test_edits_that_a_person_has_to_decide_never_pass(line: str) -> None:
    try:
        found = stages(candidate(line))
    except EditRefused:
        return
    assert found in (("pass", "privileged"), ("fail", "")), found


SEARCHES = data.path("specs/examples/attention_tuner.spak").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("key", "value", "verdict"),
    [
        ("PROPOSER.strategy", "random", "pass"),
        ("PROPOSER.starts", 3, "pass"),
        ("PROPOSER.tool", "run", "privileged"),
        ("PROPOSER.args", {"template": "tiled.c", "path": "naive.c"}, "privileged"),
        ("PROPOSER", {"name": "tuner", "options": {"tool": "run", "args": {"cmd": "true"}}}, "privileged"),
        ("PROPOSER", {"name": "evolve", "options": {"path": "naive.c"}}, "privileged"),
    ],
)
def test_how_a_proposer_searches_is_free_and_what_it_calls_is_not(
    key: str, value: object, verdict: str
) -> None:
    made = Candidate((ops.Set(key, value, "tune"),), "hostile")
    text = made.text(SEARCHES)
    assert privileged(SEARCHES, text, CATALOG).verdict == verdict


def test_a_grammar_patch_is_kept_and_its_candidate_refused_with_the_reason() -> None:
    made = Candidate(read(["set-retries write 2"]), "test", grammar_patch="--- a\n+++ b\n")
    refused, text = form(BASE, made, CATALOG)
    assert (refused.verdict, text) == ("fail", "")
    assert "kept for a person and not applied" in refused.why
    assert "[outer.grammar]" in refused.why
    assert Candidate.from_json(made.to_json()) == made


def test_what_changes_nothing_or_breaks_the_graph_is_refused() -> None:
    layout = of_change(BASE, BASE.replace("  START", "\n\n      START"))
    first, text = form(BASE, layout, CATALOG)
    assert (first.verdict, first.why, text) == ("fail", "it changes nothing but layout", "")
    assert stages(candidate("remove-task hand_over"))[0] == "fail"
    assert (
        form(BASE, candidate("remove-edge write success", "remove-edge write fail"), CATALOG)[0].verdict
        == "fail"
    )
    assert form(BASE, candidate("set-retries nowhere 2"), CATALOG)[0].verdict == "fail"


def of_change(old: str, new: str) -> Candidate:
    """A patch that replaces the whole text: what hides in layout has to be found by meaning."""
    return Candidate((ops.Patch((ops.Change(0, len(old), old, new),)),), "test")


def test_a_patch_that_looks_like_formatting_is_judged_by_meaning() -> None:
    hidden = BASE.replace("    GOAL", "\n    GOAL").replace("VALIDATOR PyTest", "VALIDATOR  PyTest")
    hidden = hidden.replace('paths: ["tests/"]', 'paths: ["other/"]')
    assert stages(of_change(BASE, hidden)) == ("pass", "privileged")


def test_a_diff_becomes_typed_edits_or_is_refused() -> None:
    from difflib import unified_diff

    def diff(new: str) -> str:
        return "".join(unified_diff(BASE.splitlines(True), new.splitlines(True), "a/x.spak", "b/x.spak"))

    made = of_diff(BASE, diff(BASE.replace("RETRIES 6", "RETRIES 2")), "model")
    assert [type(op).__name__ for op in made.edits] == ["Set"]
    assert parse(made.text(BASE)).spec.hash == parse(BASE.replace("RETRIES 6", "RETRIES 2")).spec.hash
    other = of_diff(BASE, diff(BASE.replace("step draft", "step other")), "model")
    assert [type(op).__name__ for op in other.edits] == ["RenameStep"]
    for new in (BASE.replace('GOAL "Write a.txt."', 'GOAL "x" )'), BASE.replace("  START", "    START")):
        with pytest.raises(OuterError) as found:
            of_diff(BASE, diff(new), "model")
        assert found.value.code == "outer.untyped"
    with pytest.raises(OuterError):
        of_diff(BASE, "--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-nothing like it\n+x\n", "model")


@pytest.mark.parametrize(
    "answer",
    [
        'Here it is: {"grammar_patch": "", "dsl_patch": [], "rationale": "x"}',
        '{"grammar_patch": "", "dsl_patch": [], "rationale": "x"} Good luck!',
        '```json\n{"grammar_patch": "", "dsl_patch": [], "rationale": "x"}\n```',
        '{"dsl_patch": [], "rationale": "x"}',
        '{"grammar_patch": "", "dsl_patch": [], "rationale": "x", "approve": true}',
        '{"grammar_patch": "", "rationale": "x", '
        '"dsl_patch": [{"op": "set", "key": "RETRIES", "value": NaN, "task": "write"}]}',
        '{"grammar_patch": "", "dsl_patch": 5, "rationale": "x"}',
        '{"grammar_patch": "", "dsl_patch": [{"op": "merge"}], "rationale": "x"}',
        "",
        "[]",
    ],
)
def test_a_models_answer_that_breaks_the_contract_is_refused(answer: str) -> None:
    with pytest.raises(UserError):
        contract(answer, BASE)


def test_a_models_answer_in_the_contract_is_a_candidate() -> None:
    made = contract(
        '{"grammar_patch": "", "rationale": "why", '
        '"dsl_patch": [{"op": "remove_model_item", "kind": "heuristic", "number": 1}]}',
        BASE,
    )
    assert (made.proposer, made.rationale, stages(made)) == ("model", "why", ("pass", "pass"))


def test_numbers_that_are_none_pass_nothing() -> None:
    for value in (float("nan"), float("inf"), -1, True, "2"):
        made = Candidate((ops.Set("RETRIES", value, "write"),), "test")
        assert stages(made)[0] == "fail" or stages(made) == ("pass", "privileged"), value
    with pytest.raises(UserError):
        canon.dumps({"outcome": float("nan")})


def test_random_edits_gain_no_capability_without_privilege() -> None:
    """The short form; `make bench ARGS=outer` has ten thousand."""
    assert gained(Random(9), 300, BASE) == 0


# ---- recorded runs -------------------------------------------------------------------------------------


def test_the_unchanged_spec_replays_and_a_changed_record_makes_a_run_unusable() -> None:
    run = planted("retry_cycle", 1)[0][0]
    base = run[0].body["rules"]["spec"]
    found = under(rehearse("r", run), base)
    assert (found.ended, found.coverage, found.unknown, found.problem) == ("same", 1.0, 0, "")
    act = next(index for index, record in enumerate(run) if record.kind == "route")
    changed = [*run]
    changed[act] = run[act]._replace(body={**run[act].body, "signal": "nothing"})
    broken = rehearse("r", changed)
    assert "not what the unchanged spec gives" in broken.problem
    assert rehearse("r", run[:-3]).problem
    assert rehearse("r", []).problem
    assert under(broken, base).ended == "unknown"
    stage = counterfactual([broken], base)
    assert stage.verdict == "open"


def test_a_run_under_a_patch_is_exact_decided_or_unknown() -> None:
    run = planted("redundant_call", 1)[0][0]
    base = run[0].body["rules"]["spec"]
    whole = under(rehearse("r", run), candidate("remove-step look s3").text(base))
    assert (whole.ended, whole.exact, whole.decided, whole.unknown, whole.steps_saved) == ("same", 4, 2, 0, 1)
    fewer = planted("useless_heuristic", 1)[0]
    text = candidate("remove-heuristic 1").text(fewer[0][0].body["rules"]["spec"])
    found = [under(rehearse(str(number), item), text) for number, item in enumerate(fewer)]
    assert {item.ended for item in found} == {"unknown"}
    assert all(item.unknown > 0 and item.steps_saved == 0 for item in found)


def test_a_patch_under_which_runs_fail_that_succeeded_is_refused() -> None:
    runs = planted("dead_edge", 1)[0]
    base = runs[0][0].body["rules"]["spec"]
    rehearsed = [rehearse(str(number), item) for number, item in enumerate(runs)]
    assert counterfactual(rehearsed, candidate("remove-edge write fail").text(base)).verdict == "fail"
    stays = counterfactual(rehearsed, candidate("remove-edge write timeout").text(base))
    assert (stays.verdict, stays.evidence["coverage"]) == ("open", 1.0), "nothing was gained"


def test_a_saving_in_runs_that_failed_proves_nothing() -> None:
    run = planted("budget_burn", 1)[0][0]
    text = candidate("set-budget steps 5").text(run[0].body["rules"]["spec"])
    assert total([under(rehearse("r", run), text)])["saved"]["steps"] > 0
    assert counterfactual([rehearse("r", run)], text).verdict == "open"


# ---- proposers -----------------------------------------------------------------------------------------


def test_rules_propose_the_edits_of_findings_dearest_first() -> None:
    runs = planted("useless_heuristic", 1)[0]
    base = runs[0][0].body["rules"]["spec"]
    training = Training.of([(f"r{number}", run) for number, run in enumerate(runs)], {})
    made = from_findings(training, base)
    assert [type(op).__name__ for item in made for op in item.edits] == ["RemoveModelItem"]
    assert made[0].records["r0"]
    assert from_findings(training, work()) == [], "runs of another text say nothing"


def test_runs_of_gate_and_sealed_cases_are_withheld_and_asking_is_counted() -> None:
    run = planted("retry_cycle", 1)[0][0]

    def of(case: str) -> list[Any]:
        host = {**run[0].body["host"], "labels": {"case": case}}
        return [run[0]._replace(body={**run[0].body, "host": host}), *run[1:]]

    splits = {"a": "train", "b": "gate", "c": "sealed"}
    training = Training.of(
        [("ra", of("a")), ("rb", of("b")), ("rc", of("c")), ("rd", of("gone")), ("re", run)], splits
    )
    assert training.names() == ["ra", "re"]
    assert training.withheld == {"rb", "rc", "rd"}
    for name in ("rb", "rc"):
        with pytest.raises(OuterError) as found:
            training.records(name)
        assert found.value.code == "outer.split"
    assert training.violations == ["rb", "rc"]
    assert apply_all(BASE, read(["set-retries write 2"])).text != BASE


# ---- patience ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patience", "evaluations", "verdict"),
    [(12, 40, "pass"), (2, 40, "pass"), (12, 30, "pass"), (12, 41, "privileged")],
)
def test_patience_is_free_within_evaluations_that_do_not_rise(
    patience: int, evaluations: int, verdict: str
) -> None:
    from bench.outer_tuner import base

    rule = "RULE { patience: 3, evaluations: 40 }"
    text = base().replace(rule, f"RULE {{ patience: {patience}, evaluations: {evaluations} }}")
    assert privileged(base(), text, CATALOG).verdict == verdict
    by_default = base().replace(rule, "RULE { patience: 12 }")
    assert privileged(base(), by_default, CATALOG).verdict == "privileged", "60 evaluations then"


# ---- judges --------------------------------------------------------------------------------------------

JUDGED = """AGENT A LEVEL 4 {
  CONFIG { MODE full_auto, BUDGET { requests: 20 } }
  SYSTEM_MODEL S { HEURISTIC "Always answer in words." WHEN fail }
  START -> plan
  TASK plan {
    step look: tool.grep { pattern: "TODO" path: "." }
    NEXT { success -> build, fail -> ask }
  }
  TASK build {
    GOAL "Mend it."
    TOOLS [write_file]
    NEXT { success -> ask }
  }
  TASK ask {
    RETRIES 0
    step check: llm.query { prompt: "Is it right? yes or no." output_var: verdict }
    success: verdict == "yes"
  }
}
"""


def changed_by_a_diff(old: str, new: str) -> str:
    from difflib import unified_diff

    text = JUDGED.replace(old, new)
    assert text != JUDGED
    diff = unified_diff(JUDGED.splitlines(True), text.splitlines(True), "a/x.spak", "b/x.spak")
    made = of_diff(JUDGED, "".join(diff), "model").text(JUDGED)
    assert parse(made).spec.hash == parse(text).spec.hash
    return made


@pytest.mark.findings("A3", "A6", "A8")
@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("    NEXT { success -> ask }\n", "", "way"),
        ("success -> build, fail -> ask", "success -> build, fail -> build", ""),
        ('    step look: tool.grep { pattern: "TODO" path: "." }\n', "", "step"),
        ("Is it right? yes or no.", "Answer yes.", "prompt"),
        ('prompt: "Is', 'prompt_template: "Is', "prompt"),
        ("requests: 20", "requests: 0", "budget"),
        ("MODE full_auto", "MODE full_auto, APPROVALS ask", "approvals"),
    ],
)
def test_what_takes_a_judge_away_is_privileged(old: str, new: str, kind: str) -> None:
    stage = privileged(JUDGED, changed_by_a_diff(old, new), CATALOG)
    assert stage.verdict == "privileged"
    found = [item["capability"] for item in stage.evidence["changes"] if "capability" in item]
    assert kind in [*found, ""]


@pytest.mark.findings("S5.4")
def test_the_only_heuristic_is_free() -> None:
    assert stages(candidate("remove-heuristic 1", base=JUDGED), JUDGED) == ("pass", "pass")
    none = JUDGED.replace('  SYSTEM_MODEL S { HEURISTIC "Always answer in words." WHEN fail }\n', "")
    assert stages(candidate("add-heuristic 'Look twice.'", base=none), none) == ("pass", "pass")


@pytest.mark.findings("A10")
def test_a_base_that_does_not_compile_takes_a_patch() -> None:
    bad = JUDGED.replace("LEVEL 4", "LEVEL 1").replace(
        "    GOAL", '    step more: tool.read_file { path: "a" }\n    success: verdict == "yes"\n    GOAL'
    )
    stage = privileged(bad, apply_all(bad, read(["remove-step build more"])).text, CATALOG)
    assert stage.verdict == "pass", "it only reads, and nothing rests on it"
