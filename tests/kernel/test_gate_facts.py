"""What the gate knows: facts of the run at each step, checks and diagnostics, observations of the world."""

from __future__ import annotations

import random
from typing import Any

import pytest

from gate_world_kit import INSIDE, OUT, files, one, permits, sees
from kernel_kit import PERMITS, World, fresh, program, rules, tool
from law_kit import under
from spak import canon
from spak.datalog.values import Name
from spak.kernel.gate import Gate, Judged, ProposedAction, compiled
from spak.kernel.state import Effect
from spak.program import Budgets, MetricRule, Step, Task
from spak.records import Kind


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


AMOUNTS = {
    "more than a limit": "forbidden(A) :- tool(A, _), spent(W, N), allowance(W, M), M < N.",
    "more than a limit, with something": (
        "forbidden(A) :- tool(A, _), spent(/steps, N), allowance(/steps, M), fn:plus(1, N) > M."
    ),
    "more than of another": "forbidden(A) :- tool(A, _), spent(/steps, N), spent(/tokens, M), M < N.",
    "one amount": "forbidden(A) :- tool(A, _), spent(/steps, 20).",
    "less than a limit": "forbidden(A) :- tool(A, _), spent(/steps, N), N < 20.",
    "more, in what another rule denies": (
        "late(W) :- spent(W, N), N >= 50.\nforbidden(A) :- tool(A, _), !late(/steps)."
    ),
}


@pytest.mark.parametrize("name", AMOUNTS)
def test_a_kept_session_says_the_same_of_any_amounts(name: str) -> None:
    law = compiled(under(f"permitted(A) :- tool(A, /look).\n{AMOUNTS[name]}"), "", {})
    gate, draw, found = Gate(law), random.Random(name), []
    run = tuple(("allowance", (Name(f"/{what}"), most)) for what, most in (("steps", 60), ("tokens", 3_000)))
    spent = {"steps": 0, "tokens": 10}
    for turn in range(200):
        spent["steps"] += draw.randrange(4)
        spent["tokens"] += draw.randrange(40)
        if turn % 40 == 39:
            spent = {what: draw.randrange(100) for what in spent}
        moving = tuple(("spent", (Name(f"/{what}"), amount)) for what, amount in spent.items())
        proposed = ProposedAction("tool", "look", {}, run, moving)
        kept, fresh_one = gate.judge(proposed, {}), Gate(law).judge(proposed, {})
        assert isinstance(kept, Judged)
        assert isinstance(fresh_one, Judged)
        assert (kept.allow, kept.code, kept.reason) == (fresh_one.allow, fresh_one.code, fresh_one.reason)
        if turn % 7 == 0:
            assert gate.text(kept) == Gate(law).text(fresh_one)
        found.append(kept.allow)
    assert {*found} == {True, False}


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


FOUND = [{"severity": "error", "file": "a.c", "line": 3, "code": "E1", "message": "broken"}]


@pytest.mark.parametrize("changes", [True, False])
def test_what_was_found_holds_until_a_file_changes(changes: bool) -> None:
    text = PERMITS + "\nforbidden(Action) :- tool(Action, /look), checks_ran(_, /fail)."
    text += "\nforbidden(Action) :- tool(Action, /look), diagnostic(/error, _, _, _, _)."
    check = Task("t", steps=(Step("v", "validate", "Tests"),), edges={"fail": "u"})
    then = Task("u", steps=(tool("w", "write"), tool("l")))

    def script(effect: Effect, count: int) -> Any:
        if effect.act == "validate":
            checks = [{"ok": False, "code": "tests.failed"}]
            return Kind.ACT, {"status": "checked", "checks": checks, "diagnostics": FOUND, "key": ""}
        kind, body = fresh(effect, count)
        return kind, body if changes else {**body, "r3": effect.root}

    made = World(rules(program(check, then), law=text), script).run()
    assert (made.state.r7.codes == ("policy.forbidden",)) is not changes
    assert bool(made.state.r7.checks) is not changes and bool(made.state.r7.diagnostics) is not changes


def test_a_check_with_other_options_is_another_check() -> None:
    text = PERMITS + "\nforbidden(Action) :- tool(Action, /look), checks_ran(_, /fail)."
    steps = [(Step("v", "validate", "Tests", {"path": name}),) for name in ("a", "b")]
    first = Task("t", steps=steps[0], edges={"fail": "u", "success": "u"})
    made = rules(program(first, Task("u", steps=steps[1])), law=text)

    def script(effect: Effect, count: int) -> Any:
        checks = [{"ok": effect.args["path"] == "b", "code": "tests.failed"}]
        return Kind.ACT, {"status": "checked", "checks": checks, "key": ""}

    state = World(made, script).run().state
    assert sorted(signal for _, _, signal in state.r7.checks) == ["fail", "success"]


def test_a_plateau_after_a_failed_check_is_a_failed_check() -> None:
    text = PERMITS + "\nforbidden(Action) :- tool(Action, /look), checks_ran(_, /fail)."
    rule = MetricRule("time_ns", patience=3, evaluations=1)
    loop = Task("t", steps=(Step("v", "validate", "Timer"),), edges={"plateau": "u"}, rule=rule)
    made = rules(program(loop, Task("u", steps=(tool("l"),))), law=text)

    def script(effect: Effect, count: int) -> Any:
        if effect.act != "validate":
            return fresh(effect, count)
        return Kind.ACT, {"status": "measured", "checks": [{"ok": False, "code": "wrong"}], "key": ""}

    world = World(made, script).run()
    assert "plateau" in world.signals()
    assert [found for _, _, found in world.state.r7.checks] == ["fail"]


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


def law(drawn: list[tuple[str, list[str]]]) -> str:
    """A policy of random rules; `odd` rests on facts alone, so that it is stratified."""
    lines = ["odd(Action) :- act(Action, /never)."]
    for head, body in drawn:
        parts = [part for part in body if not (head == "odd" and "odd" in part)]
        if parts:
            anchor = [] if any("Action" in part and "!" not in part for part in parts) else ["act(Action, _)"]
            lines.append(f"{head}(Action) :- {', '.join([*anchor, *parts])}.")
    return "\n".join(dict.fromkeys(lines))
