"""An approval counts for one action of one run, once, until it expires; anything else is rejected by code."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from spak import canon
from spak.policy import approval
from spak.policy.approval import ADMIN, APPROVER, DENY, Approved, Rejected

ALICE, MALLORY = bytes(range(32)), bytes(range(1, 33))
ARGS = {"cmd": ["make", "deploy"], "n": 3}


def key(private: bytes, name: str, *roles: str) -> dict[str, Any]:
    public = approval.encoded(Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw())
    return {"id": approval.key_id(public), "name": name, "public": public, "roles": list(roles)}


KEYS = [key(ALICE, "alice", APPROVER), key(bytes(32), "charlie", ADMIN, "reader")]
ASKED: dict[str, Any] = {
    "action": approval.action_hash("run", ARGS),
    "of": "O" * 43,
    "run": "run-1",
    "step": "Main/s1",
}
GOOD = approval.make(ALICE, **ASKED, expires=2000)


def judged(body: Any, at: int = 1000, keys: Any = KEYS, **changed: Any) -> Approved | Rejected:
    return approval.verify(body, keys=keys, at=at, **{**ASKED, **changed})


def code(found: Approved | Rejected) -> str:
    assert isinstance(found, Rejected) and found.message
    return found.code


def test_a_good_approval_names_its_signer_and_roles() -> None:
    assert judged(GOOD) == Approved("alice", (APPROVER,))
    found = judged(approval.make(bytes(32), **ASKED, expires=2000))
    assert found == Approved("charlie", (ADMIN,))
    assert isinstance(found, Approved) and found.overrides


def test_the_signed_bytes_are_fixed() -> None:
    """What other implementations sign; a change of these bytes is another VERSION."""
    text = approval.message(action="A", decision="approve", expires=7, of="O", run="r", step="T/s")
    assert text == (b'{"action":"A","decision":"approve","expires":7,"of":"O","run":"r","step":"T/s","v":1}')
    assert approval.action_hash("run", ARGS) == canon.content_hash(["run", ARGS])
    assert approval.make(ALICE, **ASKED, expires=2000) == GOOD, "signing is deterministic"


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({"action": approval.action_hash("run", {**ARGS, "n": 4})}, "policy.approval_signature"),
        ({"action": approval.action_hash("Run", ARGS)}, "policy.approval_signature"),
        ({"of": "P" * 43}, "policy.approval_run"),
        ({"run": "run-2"}, "policy.approval_run"),
        ({"step": "Main/s2"}, "policy.approval_signature"),
        ({"at": 2000}, "policy.approval_expired"),
        ({"at": 10**15}, "policy.approval_expired"),
        ({"keys": []}, "policy.approval_key"),
        ({"keys": [key(ALICE, "alice", "reader")]}, "policy.approval_key"),
        ({"keys": [key(ALICE, "alice")]}, "policy.approval_key"),
        ({"keys": KEYS + KEYS}, "policy.approval_key"),
        ({"keys": [{**KEYS[0], "public": KEYS[1]["public"]}]}, "policy.approval_key"),
        ({"keys": [{**KEYS[0], "public": "!" * 43}]}, "policy.approval_key"),
        ({"keys": [{**KEYS[0], "id": "alice"}]}, "policy.approval_key"),
        ({"keys": [{"id": GOOD["signer"]}, None, 3]}, "policy.approval_key"),
    ],
)
def test_an_approval_for_something_else_is_rejected(changed: dict[str, Any], wanted: str) -> None:
    assert code(judged(GOOD, **changed)) == wanted


def test_a_strangers_signature_is_rejected_under_every_name() -> None:
    forged = approval.make(MALLORY, **ASKED, expires=2000)
    assert code(judged(forged)) == "policy.approval_key"
    for known in KEYS:
        assert code(judged({**forged, "signer": known["id"]})) == "policy.approval_signature"


def test_a_denial_is_signed_too_and_says_who() -> None:
    denial = approval.make(ALICE, **ASKED, expires=2000, decision=DENY)
    found = judged(denial)
    assert code(found) == "policy.approval_denied"
    assert isinstance(found, Rejected) and "alice" in found.message
    assert code(judged({**denial, "decision": "approve"})) == "policy.approval_signature"
    assert code(judged({**GOOD, "decision": "deny"})) == "policy.approval_signature"


def test_an_old_approval_does_not_answer_a_new_question() -> None:
    """The same action asked again is another permit; the old answer cannot be made to name it."""
    assert code(judged(GOOD, of="P" * 43)) == "policy.approval_run"
    assert code(judged({**GOOD, "of": "P" * 43}, of="P" * 43)) == "policy.approval_signature"


@given(st.integers(0, 511))
@settings(max_examples=200)
def test_a_signature_with_any_bit_changed_is_rejected(place: int) -> None:
    raw = approval.decoded(GOOD["signature"], 64)
    assert raw is not None
    turned = bytearray(raw)
    turned[place // 8] ^= 1 << place % 8
    assert code(judged({**GOOD, "signature": approval.encoded(bytes(turned))})) == "policy.approval_signature"


@given(st.sampled_from(sorted(GOOD)), st.data())
@settings(max_examples=300)
def test_a_body_with_any_character_changed_is_rejected(member: str, data: st.DataObject) -> None:
    """Every member is signed, or names the key or the signature: there is no second way to write one."""
    value = GOOD[member]
    if isinstance(value, int):
        changed: Any = data.draw(st.integers(-(2**60), 2**60).filter(lambda other: other != value))
    else:
        at = data.draw(st.integers(0, len(value)))
        kept = data.draw(st.integers(0, 1))
        text = data.draw(st.text(max_size=2))
        changed = value[:at] + text + value[at + kept :]
    found = judged({**GOOD, member: changed})
    assert changed == value or isinstance(found, Rejected)


@given(
    st.fixed_dictionaries(
        {
            "action": st.text(max_size=5).map(lambda text: approval.action_hash("run", {"cmd": [text]})),
            "of": st.text("PQ", min_size=1, max_size=3),
            "run": st.text("rs", min_size=1, max_size=3),
            "step": st.text("ab/", min_size=1, max_size=5),
        }
    ),
    st.integers(1, 10**6),
    st.integers(0, 10**6),
    st.sampled_from(["approve", "deny"]),
)
@settings(max_examples=200)
def test_a_signed_answer_is_good_for_its_question_only(
    asked: dict[str, Any], expires: int, at: int, decision: str
) -> None:
    body = approval.make(ALICE, **asked, expires=expires, decision=decision)
    found = approval.verify(body, keys=KEYS, at=at, **asked)
    assert isinstance(found, Approved) == (at < expires and decision == "approve")
    assert isinstance(judged(body, at=at), Rejected)
    for member in asked:
        other = {**asked, member: asked[member] + "x"}
        assert isinstance(approval.verify(body, keys=KEYS, at=at, **other), Rejected)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.sampled_from([*GOOD, "extra", ""]), st.booleans())
@settings(max_examples=300)
def test_no_body_and_no_keys_raise(value: Any, member: str, gone: bool) -> None:
    assert code(judged(value)) == "policy.approval_malformed"
    body = copy.deepcopy(GOOD)
    body[member] = value
    if gone:
        del body[member]
    assert body == GOOD or isinstance(judged(body), Rejected)
    keys = [{**KEYS[0], name: value} for name in ("id", "name", "public", "roles")]
    assert isinstance(judged(GOOD, keys=keys), Rejected)
    for one in keys:
        judged(GOOD, keys=[one, value])


@pytest.mark.parametrize("size", [0, 31, 32, 64])
def test_keys_and_signatures_are_written_in_one_way(size: int) -> None:
    data = bytes(range(255, 255 - size, -1))
    text = approval.encoded(data)
    assert approval.decoded(text, size) == data
    for other in (text + "=", text + "A", " " + text, text.replace("-", "+") + "\n", "é" + text):
        assert approval.decoded(other, size) is None
    if text[-1:] and size % 3:
        last = chr(ord(text[-1]) + 1)
        assert approval.decoded(text[:-1] + last, size) is None


def test_an_answer_to_an_earlier_permit_of_the_action_counts_where_that_one_was_put_off() -> None:
    later = {"of": ASKED["of"], "decision": approval.LATER}
    assert code(judged(later)) == "policy.approval_later"
    assert code(judged({**later, "of": "P" * 43})) == "policy.approval_malformed"
    assert code(judged(GOOD, of="P" * 43)) == "policy.approval_run"
    assert judged(GOOD, of="P" * 43, earlier=["O" * 43]) == Approved("alice", (APPROVER,))
    forged = {**GOOD, "of": "P" * 43}
    assert code(judged(forged, of="P" * 43, earlier=["O" * 43])) == "policy.approval_signature"
    assert code(judged(GOOD, of="P" * 43, earlier=["O" * 43], at=2000)) == "policy.approval_expired"
