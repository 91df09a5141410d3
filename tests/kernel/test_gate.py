"""The gate in `step`: nothing but looking, asking and waiting happens without a derived permit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_kit import CATALOG, PERMITS, World, fresh, program, rules, tool
from law_kit import under
from spak import canon
from spak.commandline.commands import read_line
from spak.commandline.world import Eyes, Seen
from spak.datalog import PolicyError
from spak.datalog.values import Name
from spak.errors import LedgerError
from spak.kernel.gate import Gate, Judged, ProposedAction, compiled, gate_of
from spak.kernel.observed import Observed, line_json
from spak.kernel.replay import Replay
from spak.kernel.rules import Rules
from spak.kernel.state import Effect
from spak.lang.catalog import Catalog, ToolEntry
from spak.policy import approval
from spak.policy.facts import ACTION
from spak.policy.history import state as past
from spak.policy.history.state import History
from spak.policy.law import Law
from spak.program import Budgets, MetricRule, Ref, Step, Task
from spak.program.semantics import LATEST, Decisions
from spak.records import Kind
from spak.runner.genesis import constitution

PATH = {"type": "object", "properties": {"path": {"type": "string"}}}
FILES = Catalog(
    tools={
        **CATALOG.tools,
        "read_file": ToolEntry("read_file", 1, "reads", PATH, "pure", sandboxed=False, writes=False),
        "write_file": ToolEntry("write_file", 1, "writes", PATH, "effect", sandboxed=False),
    },
    validators=CATALOG.validators,
)
INSIDE = {"a.txt": ["a.txt", "inside", "a.txt", "file", 1, ""]}
OUT = {"a.txt": ["a.txt", "outside", "/etc/passwd", "other", 1, ""]}


def files(made: Any, law: str = PERMITS) -> Rules:
    found = rules(made, law=law)
    return Rules(found.program, FILES, 7, "root-0", "opening", found.wanted, found.gate, found.keys)


def sees(paths: Mapping[str, Any]) -> Any:
    """Answers observations from a table, everything else as `fresh` does."""

    def script(effect: Effect, count: int) -> Any:
        if effect.act == "approve":
            return None
        if effect.act != "observe":
            return fresh(effect, count)
        asked = effect.args["questions"].get("paths", [])
        return Kind.OBSERVE, {"facts": {"paths": [paths[path] for path in asked]}}

    return script


def read(questions: Mapping[str, Any]) -> list[Any]:
    """What the lines that are asked about would do in an empty workspace."""
    eyes = Eyes(lambda path: Seen("inside", path), lambda pattern: ())
    return [line_json(asked, read_line(asked[0], eyes)) for asked in questions.get("lines", ())]


def one(name: str = "look", **args: Any) -> Any:
    return program(Task("t", steps=(tool("s", name, **args),)))


def permits(made: World) -> list[Mapping[str, Any]]:
    return made.bodies("permit")


# ---- what is permitted and what is not


def test_a_tool_that_no_rule_names_is_denied_and_nothing_happens() -> None:
    made = World(rules(one(), law=""), fresh).run()
    assert made.state.status == "refused" and made.state.r7.codes == ("policy.denied",)
    assert made.effects == []
    assert permits(made) == [
        {"act": "tool", "allow": False, "args": {"text": "s"}, "code": "policy.denied", "name": "look"}
    ]


def test_forbidden_beats_permitted() -> None:
    text = PERMITS + '\nforbidden(Action) :- tool(Action, /look), argument(Action, "text", "no").'
    assert World(rules(one(text="yes"), law=text), fresh).run().state.status == "succeeded"
    made = World(rules(one(text="no"), law=text), fresh).run()
    assert made.state.r7.codes == ("policy.forbidden",) and made.effects == []


@pytest.mark.parametrize("act", ["ask", "plan", "check", "validate"])
def test_every_act_is_judged(act: str) -> None:
    task = {
        "ask": Task("t", steps=(Step("s", "ask", "coder", {"prompt": "x"}),)),
        "plan": Task("t", tools=("look",), steps=(Step("s", "plan"),)),
        "check": Task("t", steps=(Step("s", "check"),)),
        "validate": Task("t", steps=(Step("s", "validate", "Tests"),)),
    }[act]
    assert World(rules(program(task)), fresh).run().effects[0].act == act
    made = World(rules(program(task), law=f"forbidden(Action) :- act(Action, /{act})."), fresh).run()
    assert made.state.r7.codes == ("policy.forbidden",) and made.effects == []


def test_what_a_validator_starts_is_judged_like_a_command_line() -> None:
    for cmd, status in ((["true"], "succeeded"), (["sh", "-c", "curl x | sh"], "refused")):
        step = Step("s", "validate", "Tests", {"cmd": tuple(cmd)})
        made = World(rules(program(Task("t", steps=(step,)))), fresh)
        made.script = lambda effect, count: (
            (Kind.OBSERVE, {"facts": {"lines": read(effect.args["questions"])}})
            if effect.act == "observe"
            else (Kind.ACT, {"outcome": "exited", "status": "checked", "checks": []})
        )
        assert made.run().state.status == status, cmd


def test_a_denied_candidate_goes_back_to_whoever_proposed_it() -> None:
    text = PERMITS + '\nforbidden(Action) :- argument(Action, "text", "bad").'

    def script(effect: Effect, count: int) -> Any:
        if effect.act == "plan":
            text = "bad" if effect.turn == 0 else "good"
            return Kind.PLAN, {"candidates": [{"tool": "look", "args": {"text": text}}]}
        return fresh(effect, count)

    made = World(
        rules(program(Task("t", tools=("look",), steps=(Step("p", "plan"),))), law=text), script
    ).run()
    assert made.state.status == "succeeded"
    assert [body["allow"] for body in permits(made)] == [True, False, True, True]
    denied = next(body for body in made.bodies("route") if body["signal"] == "fail")
    assert denied["code"] == "policy.forbidden" and denied["r4"]["code"] == "policy.forbidden"
    assert [effect.act for effect in made.effects] == ["plan", "plan", "tool"]


PATCHES = {
    "patch.empty": "I would change line two.",
    "patch.hunk": "--- a/a.txt\n+++ b/a.txt\n@@ -1,9 +1,2 @@\n one\n-two\n+three\n",
    "patch.syntax": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-two\n+three\nfour\n",
    "patch.path": "--- a/../a.txt\n+++ b/../a.txt\n@@ -1 +1 @@\n-two\n+three\n",
    "patch.binary": "diff --git a/a.bin b/a.bin\nBinary files a/a.bin and b/a.bin differ\n",
    "patch.too_large": "x" * (1 << 23),
}


@pytest.mark.parametrize("code", PATCHES)
def test_a_patch_that_cannot_be_read_is_denied_with_its_own_code(code: str) -> None:
    gate = Gate(compiled(under(), "", {}))
    proposed = ProposedAction(
        "tool", "apply_patch", {"patch": PATCHES[code]}, (("declared_tool", (Name("/apply_patch"),)),)
    )
    found = gate.judge(proposed, {})
    assert isinstance(found, Judged) and found.code == code and f"[{code}]" in found.reason
    older = gate.judge(proposed._replace(decides=replace(LATEST, patch_codes=False)), {})
    assert isinstance(older, Judged) and older.code == "policy.forbidden"


def test_a_patch_that_cannot_be_read_by_a_tool_that_is_not_listed_is_denied_for_that() -> None:
    other = (("declared_tool", (Name("/look"),)),)
    gate = Gate(compiled(under(), "", {}))
    found = gate.judge(ProposedAction("tool", "apply_patch", {"patch": "x"}, other), {})
    assert isinstance(found, Judged) and found.code == "policy.forbidden"


def test_a_proposer_that_insists_ends_the_run() -> None:
    script = lambda effect, count: (Kind.PLAN, {"candidates": [{"tool": "look", "args": {"text": "x"}}]})  # noqa: E731
    made = World(rules(program(Task("t", tools=("look",), steps=(Step("p", "plan"),))), law=""), script)
    assert made.run().state.r7.codes == ("run.rollbacks",)
    assert {effect.act for effect in made.effects} == {"plan"}


def test_fixed_arguments_are_refused_though_somebody_was_asked_before() -> None:
    steps = (Step("q", "ask", "coder", {"prompt": "x"}, output_var="v"), tool("s", text="fixed"))
    made = World(rules(program(Task("t", steps=steps)), law=""), fresh).run()
    assert made.state.status == "refused" and made.state.r7.codes == ("policy.denied",)
    steps = (steps[0], tool("s", text=Ref("v")))
    made = World(rules(program(Task("t", steps=steps)), law=""), fresh).run()
    assert made.state.r7.codes == ("run.rollbacks",)


# ---- facts of the run


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        ('in_task("t")', "succeeded"),
        ('in_task("u")', "refused"),
        ("at_level(4)", "succeeded"),
        ("declared_tool(/look)", "succeeded"),
        ("sandboxed(Action, /restricted)", "succeeded"),
        ("sandboxed(Action, /none)", "refused"),
        ("allowance(/steps, 1000)", "succeeded"),
        ("spent(/steps, 0), spent(/tokens, 0)", "succeeded"),
        ("spent(/steps, N), 0 < N", "refused"),
        ("spent(/cost, 0)", "succeeded"),
        ('signed_approval(Action, "alice")', "refused"),
    ],
)
def test_the_facts_of_a_run_stand_in_its_policy(rule: str, status: str) -> None:
    text = f"permitted(Action) :- tool(Action, /look), {rule}."
    assert World(rules(one(), law=text), fresh).run().state.status == status


def test_what_was_spent_is_told_at_each_step() -> None:
    text = "permitted(Action) :- tool(Action, /look), spent(/steps, N), N < 3."
    task = Task("t", steps=tuple(tool(f"s{n}") for n in range(5)))
    made = World(rules(program(task), law=text), fresh).run()
    assert [body["allow"] for body in permits(made)] == [True, True, True, False]


def test_the_same_action_is_judged_by_what_is_spent_now() -> None:
    gate = Gate(compiled(under("permitted(A) :- tool(A, /look), spent(/steps, N), N < 3."), "", {}))
    found = []
    for steps in (1, 2, 3, 0):
        proposed = ProposedAction("tool", "look", {}, (), (("spent", (Name("/steps"), steps)),))
        judged = gate.judge(proposed, {})
        assert isinstance(judged, Judged)
        found.append(judged.allow)
    assert found == [True, True, False, True]


def test_money_is_told_in_micro_dollars_rounded_up() -> None:
    text = "permitted(Action) :- tool(Action, /look), spent(/cost, N), allowance(/cost, 5), N < 3."
    task = Task("t", steps=tuple(tool(f"s{n}") for n in range(5)))
    made = World(rules(program(task, budgets=Budgets(cost=5)), law=text), fresh)
    made.feed(Kind.GENESIS, {})
    while made.state.r6 is not None:
        made.feed(Kind.ACT, {"of": made.state.r6.id, "outcome": "exited"}, {"cost_nanousd": 1_001})
    assert [body["allow"] for body in permits(made)] == [True, True, False]


def test_requests_and_their_bytes_are_counted_from_records() -> None:
    text = (
        PERMITS
        + "\nforbidden(Action) :- act(Action, _), spent(/requests, N), allowance(/requests, M), M <= N."
    )
    task = Task("t", steps=(tool("a"), tool("b"), tool("c")))
    made = World(rules(program(task, budgets=Budgets(requests=2)), law=text), fresh)
    made.feed(Kind.GENESIS, {})
    for _ in range(2):
        assert made.state.r6 is not None
        made.feed(
            Kind.ACT, {"of": made.state.r6.id, "outcome": "exited"}, {"requests": 1, "request_bytes": 9}
        )
    assert made.state.r7.codes == ("policy.forbidden",)
    assert (made.state.r7.requests, made.state.r7.request_bytes) == (2, 18)


def test_diagnostics_and_checks_are_of_the_present_workspace() -> None:
    text = PERMITS + "\nforbidden(Action) :- tool(Action, /look), diagnostic(/error, _, _, _, _)."
    found = [{"severity": "error", "file": "a.c", "line": 3, "code": "E1", "message": "broken"}]
    task = Task("t", steps=(tool("w", "write"), tool("v", "write"), tool("l")))

    def script(after: int) -> Any:
        def answer(effect: Effect, count: int) -> Any:
            kind, body = fresh(effect, count)
            return kind, {**body, "diagnostics": found} if count == after else body

        return answer

    assert World(rules(program(task), law=text), script(0)).run().state.status == "succeeded"
    made = World(rules(program(task), law=text), script(1)).run()
    assert made.state.r7.codes == ("policy.forbidden",)
    assert made.state.r7.diagnostics == (("error", "a.c", 3, "E1", "broken"),)


BEFORE = replace(LATEST, checks_hold_files=False)
FOUND = [{"severity": "error", "file": "a.c", "line": 3, "code": "E1", "message": "broken"}]


@pytest.mark.parametrize(
    ("decides", "more", "held"),
    [
        (LATEST, {"only_git": True}, True),
        (LATEST, {}, False),
        (LATEST, {"only_git": "yes"}, False),
        (BEFORE, {"only_git": True}, False),
    ],
)
def test_what_was_found_holds_until_a_file_changes(
    decides: Decisions, more: dict[str, Any], held: bool
) -> None:
    """An act that changed nothing but the repository's folder leaves diagnostics and checks as they are."""
    text = PERMITS + "\nforbidden(Action) :- tool(Action, /look), checks_ran(_, /fail)."
    text += "\nforbidden(Action) :- tool(Action, /look), diagnostic(/error, _, _, _, _)."
    check = Task("t", steps=(Step("v", "validate", "Tests"),), edges={"fail": "u"})
    then = Task("u", steps=(tool("w", "write"), tool("l")))

    def script(effect: Effect, count: int) -> Any:
        if effect.act == "validate":
            checks = [{"ok": False, "code": "tests.failed"}]
            return Kind.ACT, {"status": "checked", "checks": checks, "diagnostics": FOUND, "key": ""}
        kind, body = fresh(effect, count)
        return kind, {**body, **more}

    made = World(replace(rules(program(check, then), law=text), decides=decides), script).run()
    assert (made.state.r7.codes == ("policy.forbidden",)) is held
    assert bool(made.state.r7.checks) is held and bool(made.state.r7.diagnostics) is held


@pytest.mark.parametrize(("decides", "signals"), [(LATEST, ["fail", "success"]), (BEFORE, ["success"])])
def test_a_check_with_other_options_is_another_check(decides: Decisions, signals: list[str]) -> None:
    text = PERMITS + "\nforbidden(Action) :- tool(Action, /look), checks_ran(_, /fail)."
    steps = [(Step("v", "validate", "Tests", {"path": name}),) for name in ("a", "b")]
    first = Task("t", steps=steps[0], edges={"fail": "u", "success": "u"})
    made = rules(program(first, Task("u", steps=steps[1])), law=text)

    def script(effect: Effect, count: int) -> Any:
        checks = [{"ok": effect.args["path"] == "b", "code": "tests.failed"}]
        return Kind.ACT, {"status": "checked", "checks": checks, "key": ""}

    state = World(replace(made, decides=decides), script).run().state
    assert sorted(signal for _, _, signal in state.r7.checks) == signals


@pytest.mark.parametrize(("decides", "signal"), [(LATEST, "fail"), (BEFORE, "plateau")])
def test_a_plateau_after_a_failed_check_is_a_failed_check(decides: Decisions, signal: str) -> None:
    text = PERMITS + "\nforbidden(Action) :- tool(Action, /look), checks_ran(_, /fail)."
    rule = MetricRule("time_ns", patience=3, evaluations=1)
    loop = Task("t", steps=(Step("v", "validate", "Timer"),), edges={"plateau": "u"}, rule=rule)
    made = rules(program(loop, Task("u", steps=(tool("l"),))), law=text)

    def script(effect: Effect, count: int) -> Any:
        if effect.act != "validate":
            return fresh(effect, count)
        return Kind.ACT, {"status": "measured", "checks": [{"ok": False, "code": "wrong"}], "key": ""}

    world = World(replace(made, decides=decides), script).run()
    assert "plateau" in world.signals()
    assert [found for _, _, found in world.state.r7.checks] == [signal]


@pytest.mark.parametrize(("decides", "code"), [(LATEST, "workspace.repository"), (BEFORE, "tool.invalid")])
def test_a_change_of_the_repository_that_was_undone_is_told_as_such(decides: Decisions, code: str) -> None:
    undone = Kind.ACT, {"outcome": "invalid", "code": "workspace.repository"}
    made = replace(rules(program(Task("t", steps=(tool("w", "write"),)))), decides=decides)
    state = World(made, lambda effect, count: undone).run().state
    assert state.r7.codes == (code,) and state.r4 is not None
    assert ("git_commit" in state.r4["expected"]) is (decides is LATEST)


# ---- the world


def test_a_path_is_looked_at_before_the_permit_and_no_commit_is_made_for_it() -> None:
    made = World(files(one("read_file", path="a.txt")), sees(INSIDE)).run()
    assert made.kinds() == ["genesis", "observe", "permit", "act", "route", "end"]
    look, act = made.effects
    assert (look.act, look.cls, look.args["questions"]) == ("observe", "pure", {"paths": ["a.txt"]})
    wanted = [act.attempt, "read_file", {"path": "a.txt"}, {"paths": ["a.txt"]}]
    assert look.id == canon.content_hash(wanted)
    assert act.observed == {"paths": [INSIDE["a.txt"]]}
    assert made.state.r1.steps == 1, "looking is no step"


def test_where_a_path_leads_decides() -> None:
    made = World(files(one("read_file", path="a.txt")), sees(OUT)).run()
    assert made.state.r7.codes == ("policy.forbidden",)
    assert [effect.act for effect in made.effects] == ["observe"]


@pytest.mark.parametrize(
    "facts",
    [
        None,
        5,
        [],
        {"paths": 5},
        {"paths": [5]},
        {"paths": [["a.txt"]]},
        {"paths": [["a.txt", "heaven", "a.txt", "file", 1, ""]]},
        {"paths": [["a.txt", "inside", "a.txt", "file", True, ""]]},
        {"paths": [[[], "inside", "a.txt", "file", 1, ""]]},
        {"globs": [["*", "a"]]},
        {"lines": [[["ls", "", {}], 5]]},
        {"lines": [[["ls", "", {}], {"deeds": [[1, "/computes", "ls", ""]]}]]},
        {"lines": [[["ls", "", {}], {"deeds": [[1, "computes", 5, ""]]}]]},
        {"lines": [[["ls", "", {}], {"uses": [[1, "reads", "a", "in side"]]}]]},
        {"lines": [[["ls", "", {}], {"connections": [["ssh"]]}]]},
        {"lines": [[["ls", "", {}], {"trouble": ["a"]}]]},
        {"rows": [["x"]]},
        {"trouble": ["world.too_large"]},
        {"trouble": [{}]},
    ],
)
def test_an_observation_that_makes_no_sense_is_a_denial(facts: Any) -> None:
    script: Any = lambda effect, count: (Kind.OBSERVE, {"facts": facts})  # noqa: E731
    made = World(files(one("read_file", path="a.txt")), script).run(20)
    assert made.state.status == "refused"
    assert made.state.r7.codes[0] in ("policy.observation", "world.too_large", "policy.rounds")
    assert {effect.act for effect in made.effects} == {"observe"}


def test_a_world_that_can_not_be_looked_at_is_a_denial_at_once() -> None:
    trouble = (Kind.OBSERVE, {"facts": {"paths": [INSIDE["a.txt"]], "trouble": ["world.too_large"]}})
    made = World(files(one("read_file", path="a.txt")), lambda effect, count: trouble).run()
    assert made.state.r7.codes == ("world.too_large",) and len(made.effects) == 1


def test_an_observation_that_answers_nothing_is_asked_again_and_then_denied() -> None:
    script = lambda effect, count: (Kind.OBSERVE, {"facts": {}})  # noqa: E731
    made = World(files(one("read_file", path="a.txt")), script).run()
    assert made.state.r7.codes == ("policy.rounds",) and len(made.effects) == 4


def test_only_an_observation_answers_a_question_about_the_world() -> None:
    made = World(files(one("read_file", path="a.txt")), lambda effect, count: None).run()
    before = made.state
    assert before.r6 is not None
    for kind in (Kind.ACT, Kind.PLAN, Kind.APPROVAL):
        assert made.feed(kind, {"of": before.r6.id, "outcome": "exited", "exit": 0}) == before


def test_a_world_that_changed_is_an_outcome_with_its_own_code() -> None:
    def script(effect: Effect, count: int) -> Any:
        if effect.act == "tool":
            return Kind.ACT, {"outcome": "invalid", "code": "policy.changed"}
        return sees(INSIDE)(effect, count)

    made = World(files(one("write_file", path="a.txt")), script).run()
    assert made.state.r7.codes == ("policy.changed",)
    assert made.bodies("route")[0]["txn"] == "rollback"


def test_the_world_answers_external_predicates() -> None:
    text = PERMITS + "\nguard(/refactor).\nallowed() :- guard(/refactor)."

    def script(rows: list[Any]) -> Any:
        def answer(effect: Effect, count: int) -> Any:
            if effect.act == "observe" and "rows" in effect.args["questions"]:
                asked = effect.args["questions"]["rows"]
                told = [[one, [row for row in rows if one[0] == row[0]]] for one in asked]
                return Kind.OBSERVE, {
                    "facts": {"rows": [[one, [row[1] for row in mine]] for one, mine in told]}
                }
            return sees(INSIDE)(effect, count)

        return answer

    free = World(files(one("write_file", path="a.txt"), text), script([])).run()
    assert free.state.status == "succeeded", free.state.r7.codes
    assert free.kinds()[:4] == ["genesis", "observe", "observe", "permit"]
    link = ["dependency_link", ["b.py", "a.txt", "a"]]
    bound = World(files(one("write_file", path="a.txt"), text), script([link])).run()
    assert bound.state.r7.codes == ("policy.forbidden",)
    covered = World(
        files(one("write_file", path="a.txt"), text), script([link, ["test_coverage", ["b.py"]]])
    ).run()
    assert covered.state.status == "succeeded"


# ---- failing closed


def test_a_fact_that_breaks_its_declaration_denies() -> None:
    gate = Gate(compiled(under(PERMITS), "", {}))
    broken = ProposedAction("tool", "look", {}, (("in_task", (5,)),))
    found = gate.judge(broken, {})
    assert isinstance(found, Judged) and found.allow is False and found.code == "policy.type"


def test_a_fault_of_ours_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr("spak.kernel.gate.facts", fails)
    made = World(rules(one(text="never judged before")), fresh).run()
    assert made.state.r7.codes == ("policy.bug",) and made.effects == []


def test_a_limit_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    from spak.datalog import PolicyLimit, Session

    def limited(self: Session, *args: Any) -> bool:
        raise PolicyLimit("too many steps")

    monkeypatch.setattr(Session, "holds", limited)
    made = World(rules(one(text="at its limit")), fresh).run()
    assert made.state.r7.codes == ("policy.limit",) and made.effects == []


@pytest.mark.parametrize("policy", [{}, "builtin", None, {"constitution": {}, "spec": "", "axioms": {}}])
def test_a_genesis_without_a_policy_is_refused(policy: Any) -> None:
    with pytest.raises((LedgerError, KeyError)):
        gate_of(policy)


def test_a_policy_has_the_hash_that_genesis_names() -> None:
    good = {"constitution": dict(constitution()), "spec": "", "axioms": {}}
    made = {**good, "hash": compiled(under(), "", {}).hash}
    assert gate_of(made).hash == made["hash"]
    with pytest.raises(LedgerError) as caught:
        gate_of({**made, "hash": "x"})
    assert caught.value.code == "ledger.genesis"


@pytest.mark.parametrize(
    "head", ["tool(/action, /look)", 'signed_approval(/action, "me")', "spent(/steps, 0)"]
)
def test_a_spec_states_no_fact_that_the_kernel_states(head: str) -> None:
    for policy, axioms in ((head + ".", {}), ("", {"axiom.1": head + "."})):
        with pytest.raises(PolicyError) as caught:
            compiled(under(), policy, axioms)
        assert caught.value.code == "policy.reserved"
    rule = f"{head} :- act(/action, /tool)."
    with pytest.raises(PolicyError):
        compiled(under(), rule, {})


# ---- proofs


def test_a_decision_has_a_proof_and_a_denial_says_what_is_missing() -> None:
    gate = Gate(compiled(under(PERMITS), "", {}))
    spent = (("spent", (Name("/steps"), 1)),)
    allowed = gate.judge(ProposedAction("tool", "look", {"text": "a"}, (), spent), {})
    assert isinstance(allowed, Judged)
    proof = gate.explanation(allowed)
    assert canon.loads(proof)["decision"] == "allow" and b"operator/kit.mg" in proof
    later = gate.judge(
        ProposedAction("tool", "look", {"text": "a"}, (), (("spent", (Name("/steps"), 2)),)), {}
    )
    assert isinstance(later, Judged) and gate.explanation(later) is proof, "made once"
    denied = gate.judge(ProposedAction("tool", "nothing", {}, (), spent), {})
    assert isinstance(denied, Judged)
    assert canon.loads(gate.explanation(denied))["why_not"]


def test_the_world_of_a_judgement_is_what_was_observed() -> None:
    seen = Observed(
        {"paths": [INSIDE["a.txt"]], "globs": [["*.c", ["x.c"]]], "hosts": [["h", ["192.0.2.1"]]]}
    )
    world = seen.world
    assert world.look("a.txt").kind == "file" and world.spread("*.c") == ("x.c",)
    assert world.resolve is not None and world.resolve("h") == ("192.0.2.1",)
    assert world.read is None and seen.questions() == {}
    world.look("b"), world.spread("*"), world.resolve("g")
    assert seen.questions() == {"paths": ["b"], "globs": ["*"], "hosts": ["g"]}


# ---- approvals

PRIVATE = bytes(range(32))


def key(private: bytes, name: str, *roles: str) -> dict[str, Any]:
    public = approval.encoded(Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw())
    return {"id": approval.key_id(public), "name": name, "public": public, "roles": list(roles)}


KEYS = (key(PRIVATE, "alice", "approver"),)


def asking(law: str = "", keys: Any = KEYS, run: str = "run-1") -> World:
    made = rules(program(Task("t", steps=(tool("s"),)), approvals="ask"), law=law)
    kept = Rules(made.program, made.catalog, 7, "root-0", "opening", made.wanted, made.gate, keys)
    world = World(kept, fresh)
    world.feed(Kind.GENESIS, {"host": {"run": run}})
    return world


def signed(effect: Effect, run: str = "run-1", private: bytes = PRIVATE, **changed: Any) -> dict[str, Any]:
    about: dict[str, Any] = {
        "action": approval.action_hash(effect.name, effect.args["args"]),
        "of": effect.id,
        "run": run,
        "step": f"{effect.task}/{effect.step}",
        "expires": 10_000,
    }
    return approval.make(private, **{**about, **changed})


def test_a_denied_action_waits_for_an_approval_and_then_happens_once() -> None:
    made = asking()
    wait = made.state.r6
    assert wait is not None and (wait.act, wait.cls, wait.name) == ("approve", "ask", "look")
    assert permits(made) == [
        {"act": "tool", "allow": "ask", "args": {"text": "s"}, "code": "policy.denied", "name": "look"}
    ]
    body = signed(wait)
    made.feed(Kind.APPROVAL, body)
    assert [effect.act for effect in made.effects] == ["approve", "tool"]
    assert permits(made)[1]["allow"] is True
    before = made.state
    assert made.feed(Kind.APPROVAL, body) == before, "an approval counts once"
    assert made.run().state.status == "succeeded"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"expires": 1}, "policy.approval_expired"),
        ({"run": "run-2"}, "policy.approval_run"),
        ({"private": bytes(32)}, "policy.approval_key"),
        ({"action": "other"}, "policy.approval_signature"),
        ({"step": "t/u"}, "policy.approval_signature"),
    ],
)
def test_an_approval_that_does_not_fit_asks_anew(changed: dict[str, Any], code: str) -> None:
    made = asking()
    wait = made.state.r6
    assert wait is not None
    made.feed(Kind.APPROVAL, signed(wait, **changed))
    again = made.state.r6
    assert again is not None and again.act == "approve" and again.id != wait.id
    assert permits(made)[1]["code"] == code and permits(made)[1]["allow"] == "ask"
    assert {effect.act for effect in made.effects} == {"approve"}
    made.feed(Kind.APPROVAL, signed(again))
    assert made.effects[-1].act == "tool"


def test_a_signed_no_is_a_denial() -> None:
    made = asking()
    assert made.state.r6 is not None
    made.feed(Kind.APPROVAL, signed(made.state.r6, decision="deny"))
    assert made.state.status == "refused" and made.state.r7.codes == ("policy.approval_denied",)


def test_what_no_approval_would_permit_is_denied_at_once() -> None:
    for made in (
        asking(law="forbidden(Action) :- tool(Action, /look)."),
        asking(keys=()),
        World(rules(one(), law=""), fresh).run(),
    ):
        assert made.state.status == "refused"
        assert permits(made)[0]["allow"] is False


def test_the_run_that_an_approval_names_is_in_no_commit() -> None:
    one, other = asking(run="run-1"), asking(run="run-2")
    assert one.state.summary == other.state.summary
    assert one.state.r6 is not None and other.state.r6 is not None
    one.feed(Kind.APPROVAL, signed(one.state.r6, run="run-1"))
    other.feed(Kind.APPROVAL, signed(other.state.r6, run="run-2"))
    assert one.state.summary == other.state.summary


# ---- the property

PREDICATES = st.sampled_from(
    [
        "tool(Action, /look)",
        "tool(Action, /write)",
        "tool(Action, _)",
        "act(Action, /ask)",
        "act(Action, /plan)",
        "act(Action, /validate)",
        "act(Action, /check)",
        "act(Action, _)",
        'in_task("t")',
        'in_task("u")',
        "at_level(4)",
        "at_level(1)",
        "spent(/steps, N), N < 2",
        "!odd(Action)",
        "odd(Action)",
        "uses_path(Action, _, /inside, _)",
        "signed_approval(Action, _)",
        "sandboxed(Action, /none)",
    ]
)
RULES = st.tuples(
    st.sampled_from(["permitted", "forbidden", "odd"]), st.lists(PREDICATES, min_size=1, max_size=3)
)


def law(drawn: list[tuple[str, list[str]]]) -> str:
    """A policy of random rules; `odd` rests on facts alone, so that it is stratified."""
    lines = ["odd(Action) :- act(Action, /never)."]
    for head, body in drawn:
        parts = [part for part in body if not (head == "odd" and "odd" in part)]
        if parts:
            anchor = [] if any("Action" in part and "!" not in part for part in parts) else ["act(Action, _)"]
            lines.append(f"{head}(Action) :- {', '.join([*anchor, *parts])}.")
    return "\n".join(dict.fromkeys(lines))


STEPS = st.lists(
    st.sampled_from(
        [
            ("tool", "look"),
            ("tool", "write"),
            ("tool", "poll"),
            ("tool", "read_file"),
            ("tool", "write_file"),
            ("ask", "coder"),
            ("plan", ""),
            ("check", ""),
            ("validate", "Tests"),
        ]
    ),
    min_size=1,
    max_size=5,
)


@settings(deadline=None)
@given(st.lists(RULES, max_size=5), STEPS, st.sampled_from([INSIDE, OUT]), st.booleans(), st.booleans())
def test_no_effect_without_a_permit_that_the_policy_derives(
    drawn: list[tuple[str, list[str]]],
    kinds: list[tuple[Any, str]],
    world: Mapping[str, Any],
    whole: bool,
    asks: bool,
) -> None:
    text = law(drawn)
    base = constitution() if whole else {"acts.mg": "Decl act(Action, Act) bound [/name, /name]."}
    gate = Gate(compiled(Law(base, {"kit.mg": text}), "", {}))
    steps = tuple(
        Step(
            f"s{n}",
            kind,
            name,
            {"path": "a.txt"} if "file" in name else {"text": f"{n}"} if kind == "tool" else {},
        )
        for n, (kind, name) in enumerate(kinds)
    )
    made = program(Task("t", tools=("look", "write"), steps=steps), approvals="ask" if asks else "deny")
    kept = Rules(made, FILES, 7, "root-0", "opening", frozenset(), gate, KEYS)
    ran = World(kept, sees(world)).run()
    granted = {record.content: record for record in ran.records if record.kind == "permit"}
    again = Gate(compiled(Law(base, {"kit.mg": text}), "", {}))
    for effect in ran.effects:
        if effect.act == "observe":
            continue
        permit = granted[effect.id]
        if effect.act == "approve":
            assert permit.body["allow"] == "ask"
            continue
        assert permit.body["allow"] is True
        assert permit.body["args"] == effect.args or effect.act in ("ask", "plan")
        facts = judged_facts(kept, ran, effect)
        session = again.policy.session(facts)
        assert session.holds("permitted", ACTION) and not session.holds("forbidden", ACTION)
    found = Replay(rules=Rules(made, FILES, 7, "root-0", "opening", frozenset(), again, KEYS))
    for record in ran.records:
        found.feed(record)
    found.finish()
    assert found.difference is None and found.state == ran.state


ONCE = """
Decl wrote(Text, N) bound [/string, /number] descr [fold("count"), within("1h"), keys(64)].
feed_wrote(P) :- event(E), tool(E, /write_file), uses_path(E, /edits, _, P).
forbidden(A) :- tool(A, /write_file), uses_path(A, /edits, _, P), wrote(P, N), N > 0.
"""


def judged_facts(kept: Rules, ran: World, effect: Effect) -> Any:
    """The facts of the permit of an effect, stated anew by stepping to it."""
    from spak.kernel.state import State
    from spak.kernel.step import step

    state = State()
    for record in ran.records:
        if record.authority == "proposal":
            stepped = step(kept, state, record)
            state = stepped.state
            for index, judged in stepped.judged:
                if stepped.commits[index].content == effect.id:
                    return (*judged.facts, *judged.moving)
    raise AssertionError(effect)


@pytest.mark.parametrize("flag", [field.name for field in fields(Decisions)])
def test_what_is_kept_of_an_action_is_of_its_semantics(flag: str) -> None:
    """One process steps runs of several versions under one law."""
    patch = {"$text": [{"$blob": "b", "size": 24_849, "head": "--- a/f\n+++ b/f\n"}]}
    seen = {
        "paths": [["f", "inside", "f", "file", 1, ""]],
        "patches": [[patch, "", "", ["f"], [], ""]],
    }
    gate = Gate(compiled(under(PERMITS), "", {}))
    for value in (True, False, True):
        decides = replace(Decisions(), **{flag: value})
        proposed = ProposedAction("tool", "apply_patch", {"patch": patch}, decides=decides)
        assert gate.judge(proposed, seen) == Gate(gate.policy).judge(proposed, seen)


@given(order=st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=2, max_size=8))
@settings(max_examples=30, deadline=None)
def test_a_kept_session_explains_by_the_past_of_its_own_decision(order: list[tuple[str, bool]]) -> None:
    """Under folds as well, also of a decision before the last one."""
    gate = Gate(compiled(under(f"{PERMITS}\n{ONCE}"), "", {}))
    history, before = History(), None
    for at, (name, asks_first) in enumerate(order):
        history = past.begin(history, 1000 * at)
        wish = ProposedAction("tool", "write_file", {"path": name, "content": "x"}, history=history)
        seen = {"paths": [[name, "inside", name, "file", 1, ""]]}
        found = gate.judge(wish, seen)
        assert isinstance(found, Judged), found
        for judged in [before, found] if asks_first and before is not None else [found]:
            alone = Gate(gate.policy)
            assert gate.explanation(judged) == alone.explanation(judged)
        assert gate._session(found) is gate._session(found)  # the one that decided, and none of its own
        history, _ = past.requested(gate.folds, history, "c", found.fed, allow=found.allow is True, record=at)
        history = past.settled(gate.folds, history, "c", 1000 * at, done=True, record=at)
        before = found


@given(order=st.lists(st.sampled_from(range(12)), min_size=2, max_size=12), steps=st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_a_kept_session_decides_and_explains_as_a_fresh_one(order: list[int], steps: int) -> None:
    """Whatever was judged before, an action has the decision and the proof that it has alone."""
    policy = compiled(under(PERMITS), "", {})
    places = [["inside", "file"], ["outside", "other"], ["secret", "file"], ["git", "file"]]
    kept = Gate(policy)
    for at, number in enumerate(order):
        place, kind = places[number % 4]
        name = f"f{number // 4}.txt"
        proposed = ProposedAction(
            "tool",
            "write_file",
            {"path": name, "content": str(at)},
            moving=(("spent", (Name("/steps"), at)),),
        )
        seen = {"paths": [[name, place, name, kind, 1, ""]]}
        for _ in range(steps):
            found, alone = kept.judge(proposed, seen), Gate(policy).judge(proposed, seen)
            assert isinstance(found, Judged) and isinstance(alone, Judged)
            assert (found.allow, found.code, found.reason) == (alone.allow, alone.code, alone.reason)
            assert kept.explanation(found) == Gate(policy).explanation(alone)
