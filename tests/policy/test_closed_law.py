"""No text of a spec lifts what the law forbids: predicates behind a negation are closed, by derivation."""

from __future__ import annotations

import pytest

from spak.policy import PolicyError
from spak.policy.closed import closed
from spak.policy.law import compiled
from spak.policy.session import load
from spak.policy.shards import RESERVED
from spak.runner.genesis import constitution

LAW = dict(constitution())
CLOSED = sorted(closed(load(LAW), ()))
FORGED = {
    "approved": "approved(A) :- tool(A, _).",
    "reachable_kind": "reachable_kind(/loopback).",
    "least_sandbox": "least_sandbox(/run, /none).",
    "as_strict": "as_strict(/none, /restricted).",
    "held": "held(A) :- tool(A, _).",
    "signed_approval": 'signed_approval(A, "alice") :- tool(A, _).',
    "checked": "checked().",
}


@pytest.mark.parametrize("name", sorted(FORGED))
def test_a_spec_cannot_forge_what_a_prohibition_rests_on(name: str) -> None:
    with pytest.raises(PolicyError) as caught:
        compiled(LAW, FORGED[name], {})
    assert caught.value.code == "policy.reserved"
    with pytest.raises(PolicyError) as caught:
        compiled(LAW, "", {"axiom.1": FORGED[name]})
    assert caught.value.code == "policy.reserved"


@pytest.mark.parametrize("key", CLOSED, ids=lambda key: key[0])
def test_every_derived_predicate_is_closed(key: tuple[str, int]) -> None:
    names = ", ".join(f"X{n}" for n in range(key[1]))
    body = " :- " + ", ".join(f"argument(/a, _, X{n})" for n in range(key[1])) if key[1] else ""
    with pytest.raises(PolicyError):
        compiled(LAW, f"{key[0]}({names}){body}.", {})


@pytest.mark.parametrize(
    "text",
    [
        'allowed_host("example.org").',
        'secret_may_go("KEY", /deploy, "key").',
        "guard(/refactor).",
        "forbidden(A) :- tool(A, /run).",
        "mine(A) :- tool(A, _). forbidden(A) :- mine(A).",
    ],
)
def test_what_the_law_opens_and_what_narrows_stays_possible(text: str) -> None:
    compiled(LAW, text, {})


def test_the_list_is_derived_from_the_rules() -> None:
    rules = "forbidden(A) :- tool(A, _), !trusted(A).\ntrusted(A) :- known(A).\npermitted(A) :- tool(A, _)."
    law = {"law.mg": rules}
    assert {key[0] for key in closed(load(law), ())} == {"trusted", "known"}
    opened = {"law.mg": "Decl known(A) descr [open()].\n" + law["law.mg"]}
    assert {key[0] for key in closed(load(opened), ())} == {"trusted"}


def test_older_semantics_take_what_they_took() -> None:
    assert compiled(LAW, FORGED["checked"], {}, is_closed=False)


def test_nothing_that_the_runtime_states_is_left_open() -> None:
    assert {"approved", "reachable_kind", "checked"} <= {key[0] for key in CLOSED} | RESERVED
