"""The gate in `step`: nothing but looking, asking and waiting happens without a derived permit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from gate_world_kit import FILES, INSIDE, OUT, one, permits, sees
from kernel_kit import PERMITS, World, fresh, program, rules, tool
from law_kit import under
from spak import canon
from spak.datalog import PolicyError
from spak.datalog.values import Name
from spak.errors import LedgerError
from spak.kernel.gate import Gate, Judged, ProposedAction, compiled, gate_of
from spak.kernel.observed import Observed
from spak.kernel.replay import Replay
from spak.kernel.rules import Rules
from spak.kernel.state import Effect
from spak.policy import approval
from spak.policy.facts import ACTION
from spak.policy.history import state as past
from spak.policy.history.state import History
from spak.policy.law import Law
from spak.program import Ref, Step, Task
from spak.records import Kind
from spak.runner.genesis import constitution


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


def test_what_a_validator_starts_is_known_to_the_law() -> None:
    law = PERMITS + '\nforbidden(A) :- runs_program(A, _, "curl").'
    for cmd, status in ((["true"], "succeeded"), (["sh", "-c", "curl x | sh"], "refused")):
        step = Step("s", "validate", "Tests", {"cmd": tuple(cmd)})
        made = World(rules(program(Task("t", steps=(step,))), law=law), fresh)
        made.script = lambda effect, count: (
            Kind.ACT, {"outcome": "exited", "status": "checked", "checks": []}
        )  # fmt: skip
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
    "patch.syntax": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-two\n+three\n+four\n",
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
    seen = Observed({"paths": [INSIDE["a.txt"]], "hosts": [["h", ["192.0.2.1"]]]})
    world = seen.world()
    assert world.look("a.txt").kind == "file"
    assert world.resolve is not None and world.resolve("h") == ("192.0.2.1",)
    assert world.read is None and seen.questions() == {}
    world.look("b"), world.resolve("g")
    assert seen.questions() == {"paths": ["b"], "hosts": ["g"]}


PRIVATE = bytes(range(32))


def key(private: bytes, name: str, *roles: str) -> dict[str, Any]:
    public = approval.encoded(Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw())
    return {"id": approval.key_id(public), "name": name, "public": public, "roles": list(roles)}


KEYS = (key(PRIVATE, "alice", "approver"),)
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
