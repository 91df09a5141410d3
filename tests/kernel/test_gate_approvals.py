"""Approvals in : a denied action waits for a signature, which counts once and for this run alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gate_world_kit import one, permits
from kernel_kit import World, fresh, program, rules, tool
from spak.kernel.rules import Rules
from spak.kernel.state import Effect
from spak.policy import approval
from spak.program import Task
from spak.records import Kind

PRIVATE = bytes(range(32))
LAWS = Path(__file__).parents[2] / "specs/laws"


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


TWO = (LAWS / "two_persons.mg").read_text() + "release_tool(/look)."
BOB = bytes(range(1, 33))
PEOPLE = (*KEYS, key(BOB, "bob", "approver"))


@pytest.mark.findings("S5.1")
def test_a_law_of_two_persons_asks_both_one_after_another() -> None:
    made = asking(law=TWO, keys=PEOPLE)
    first = made.state.r6
    assert first is not None and first.act == "approve"
    made.feed(Kind.APPROVAL, signed(first))
    second = made.state.r6
    assert second is not None and second.act == "approve" and second.id != first.id
    made.feed(Kind.APPROVAL, signed(second))
    third = made.state.r6
    assert third is not None and third.act == "approve", "one person twice is one person"
    made.feed(Kind.APPROVAL, signed(third, private=BOB))
    assert [effect.act for effect in made.effects] == ["approve", "approve", "approve", "tool"]
    assert made.run().state.status == "succeeded"
    assert [permit["allow"] for permit in permits(made)] == ["ask", "ask", "ask", True]


@pytest.mark.findings("S5.1")
def test_a_law_of_two_persons_asks_nobody_where_one_person_may_sign() -> None:
    made = asking(law=TWO)
    assert made.state.status == "refused" and made.state.r7.codes == ("policy.forbidden",)


@pytest.mark.findings("S5.1")
def test_a_no_of_the_second_person_is_a_denial() -> None:
    made = asking(law=TWO, keys=PEOPLE)
    assert made.state.r6 is not None
    made.feed(Kind.APPROVAL, signed(made.state.r6))
    assert made.state.r6 is not None
    made.feed(Kind.APPROVAL, signed(made.state.r6, private=BOB, decision="deny"))
    assert made.state.status == "refused" and made.state.r7.codes == ("policy.approval_denied",)


@pytest.mark.findings("S5.1")
def test_more_approvers_than_are_tried_do_not_make_it_slow() -> None:
    many = tuple({"id": str(n), "name": f"p{n}", "public": "", "roles": ["approver"]} for n in range(400))
    never = TWO + "forbidden(A) :- tool(A, /look), signed_approval(A, _)."
    made = asking(law=never, keys=many)
    assert made.state.status == "refused"
    assert asking(law=TWO, keys=(*PEOPLE, *many)).state.r6 is not None


def law(drawn: list[tuple[str, list[str]]]) -> str:
    """A policy of random rules; `odd` rests on facts alone, so that it is stratified."""
    lines = ["odd(Action) :- act(Action, /never)."]
    for head, body in drawn:
        parts = [part for part in body if not (head == "odd" and "odd" in part)]
        if parts:
            anchor = [] if any("Action" in part and "!" not in part for part in parts) else ["act(Action, _)"]
            lines.append(f"{head}(Action) :- {', '.join([*anchor, *parts])}.")
    return "\n".join(dict.fromkeys(lines))


def test_one_that_is_put_off_is_denied_and_remembered_for_its_action() -> None:
    made = asking()
    wait = made.state.r6
    assert wait is not None
    made.feed(Kind.APPROVAL, {"of": "another", "decision": approval.LATER})
    assert made.state.r6 == wait, "it names no permit that asked"
    made.feed(Kind.APPROVAL, {"of": wait.id, "decision": approval.LATER})
    assert made.state.status == "refused" and made.state.r7.codes == ("policy.approval_later",)
    action = approval.action_hash(wait.name, wait.args["args"])
    assert made.state.r7.put_off == ((wait.id, action),)
