"""Shards: a child may do a part of what its parent may, whatever it says, states and wishes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy_kit import LAW
from spak.datalog import Fact, Name, PolicyError, Request
from spak.policy.shards import MAX_DEPTH, RESERVED, Shard, allot, child, root

ACTION = Name("/action")
TOOLS = [Name(f"/t{at}") for at in range(4)]
BASE = """
Decl tool(A, T) bound [/name, /name].
Decl uses_path(A, How, Place, Path).
safe(/t0). safe(/t1). safe(/t2).
permitted(A) :- tool(A, T), safe(T).
forbidden(A) :- uses_path(A, _, /outside, _).
quiet(A) :- tool(A, _), !loud(A).
loud(A) :- tool(A, /t2), uses_path(A, _, _, _).
permitted(A) :- tool(A, /t3), quiet(A), !forbidden(A).
"""
FACTS = st.lists(
    st.one_of(
        st.tuples(st.just("tool"), st.tuples(st.just(ACTION), st.sampled_from(TOOLS))),
        st.tuples(
            st.just("uses_path"),
            st.tuples(
                st.just(ACTION),
                st.just(Name("/reads")),
                st.sampled_from([Name("/inside"), Name("/outside")]),
                st.just("f"),
            ),
        ),
    ),
    max_size=4,
)
RULES = st.lists(
    st.sampled_from(
        [
            "forbidden(A) :- tool(A, /t1).",
            "forbidden(A) :- mine{n}(A).",
            "Decl mine{n}(A).",
            "extra{n}(A) :- tool(A, T), !safe(T).",
            "forbidden(A) :- extra{n}(A), !uses_path(A, _, _, _).",
            "extra{n}(/action).",
            "permitted(A) :- tool(A, _).",
            "permitted(/action).",
            "safe(/t3).",
            "quiet(/action).",
            "loud(A) :- tool(A, _).",
            'signed_approval(/action, "me").',
            "tool(/action, /t0).",
        ]
    ),
    max_size=4,
    unique=True,
)
OWN = st.lists(
    st.sampled_from(["mine{n}", "other{n}", "permitted", "safe", "tool", "signed_approval", "role"]),
    max_size=2,
)


@LAW
@given(layers=st.lists(st.tuples(RULES, OWN), min_size=1, max_size=4), facts=FACTS)
def test_a_child_is_permitted_a_part_of_what_its_parent_is(layers: Any, facts: list[Fact]) -> None:
    shard = root({"base.mg": BASE}, {"/steps": 10})
    for number, (rules, own) in enumerate(layers):
        text = "\n".join(rules).replace("{n}", str(number))
        stated: list[Fact] = [(name.replace("{n}", str(number)), (ACTION,)) for name in own]
        try:
            below = child(shard, f"child{number}", text, stated)
        except PolicyError as error:
            assert error.code in ("policy.reserved", "policy.invalid", "policy.type")
            continue
        for world in (facts, facts[:1], [*facts, ("tool", (ACTION, TOOLS[1]))]):
            assert shard.permits(ACTION, world) or not below.permits(ACTION, world)
        shard = below


def chain(depth: int) -> Shard:
    shard = root({"base.mg": BASE}, {})
    for number in range(depth):
        shard = child(shard, f"c{number}", f"forbidden(A) :- tool(A, /t{number}).")
    return shard


def test_each_depth_takes_something_away() -> None:
    shard = chain(3)
    permitted = [
        [at for at, tool in enumerate(TOOLS) if level.permits(ACTION, [("tool", (ACTION, tool))])]
        for level in shard.line
    ]
    assert permitted == [[0, 1, 2, 3], [1, 2, 3], [2, 3], [3]]
    assert shard.refusal(ACTION, [("tool", (ACTION, TOOLS[1]))]) == "c1"
    outside: Fact = ("uses_path", (ACTION, Name("/reads"), Name("/outside"), "f"))
    assert shard.refusal(ACTION, [("tool", (ACTION, TOOLS[3])), outside]) == "run"


def test_the_line_has_an_end() -> None:
    shard = root({"base.mg": BASE}, {})
    for number in range(MAX_DEPTH - 1):
        shard = child(shard, f"c{number}")
    with pytest.raises(PolicyError) as caught:
        child(shard, "one more")
    assert caught.value.code == "policy.budget"


@pytest.mark.parametrize(
    "rules",
    [
        "permitted(A) :- tool(A, _).",
        "permitted(/action).",
        "safe(/t3).",
        "quiet(A) :- tool(A, _).",
        'signed_approval(/action, "me").',
        "role(/me, /admin).",
        *(f"{pred}(/x)." for pred in sorted(RESERVED) if pred not in ("tool", "uses_path")),
    ],
)
def test_a_child_heads_nothing_that_is_not_its_own(rules: str) -> None:
    with pytest.raises(PolicyError) as caught:
        child(root({"base.mg": BASE}, {}), "c", rules)
    assert caught.value.code == "policy.reserved"


@pytest.mark.parametrize("pred", ["permitted", "forbidden", "safe", "quiet", *sorted(RESERVED)])
def test_a_child_states_nothing_that_is_not_its_own(pred: str) -> None:
    with pytest.raises(PolicyError) as caught:
        child(root({"base.mg": BASE}, {}), "c", "", [(pred, (ACTION,))])
    assert caught.value.code == "policy.reserved"


def test_what_a_parent_states_is_seen_below_and_not_above() -> None:
    top = root({"base.mg": BASE}, {})
    middle = child(top, "m", "Decl off(T).\nforbidden(A) :- tool(A, T), off(T).", [("off", (TOOLS[0],))])
    low = child(middle, "l")
    world: list[Fact] = [("tool", (ACTION, TOOLS[0]))]
    assert [shard.permits(ACTION, world) for shard in (top, middle, low)] == [True, False, False]
    with pytest.raises(PolicyError, match="off"):
        child(middle, "x", "", [("off", (TOOLS[1],))])
    with pytest.raises(PolicyError, match="taken"):
        child(middle, "m")


def test_a_child_asks_the_world_and_has_no_permission_before_the_answer() -> None:
    top = root({"base.mg": BASE}, {})
    rules = 'Decl covered(T) descr [external(), mode("+")].\nforbidden(A) :- tool(A, T), !covered(T).'
    below = child(top, "c", rules)
    world: list[Fact] = [("tool", (ACTION, TOOLS[0]))]
    asked = Request("covered", (TOOLS[0],))
    with pytest.raises(PolicyError) as caught:
        below.permits(ACTION, world)
    assert caught.value.code == "policy.incomplete"
    assert below.permits(ACTION, world, [(asked, [(TOOLS[0],)])])
    assert not below.permits(ACTION, world, [(asked, [])])


AMOUNTS = st.dictionaries(st.sampled_from(["/steps", "/tokens"]), st.integers(0, 50))


@LAW
@given(rest=AMOUNTS, wishes=st.lists(AMOUNTS, max_size=4))
def test_children_together_have_at_most_what_was_left(
    rest: dict[str, int], wishes: list[dict[str, int]]
) -> None:
    total = {what: sum(wish.get(what, 0) for wish in wishes) for what in ("/steps", "/tokens")}
    if any(count > rest.get(what, 0) for what, count in total.items()):
        with pytest.raises(PolicyError) as caught:
            allot(rest, *wishes)
        assert caught.value.code == "policy.budget"
        return
    left, *given_ = allot(rest, *wishes)
    assert given_ == wishes
    assert all(left.get(what, 0) + total[what] == rest.get(what, 0) for what in total)


@LAW
@given(data=st.data(), rest=AMOUNTS)
def test_a_whole_tree_spends_at_most_what_its_root_had(data: Any, rest: dict[str, int]) -> None:
    shards = [root({"base.mg": BASE}, rest)]
    left = [dict(rest)]
    for number in range(data.draw(st.integers(0, 5))):
        at = data.draw(st.integers(0, len(shards) - 1))
        wish = data.draw(AMOUNTS)
        try:
            left[at], part = allot(left[at], wish)
            shards.append(child(shards[at], f"c{number}", allowance=part))
            left.append(part)
        except PolicyError as error:
            assert error.code == "policy.budget"
    for what in ("/steps", "/tokens"):
        assert sum(amount.get(what, 0) for amount in left) == rest.get(what, 0)


@pytest.mark.parametrize("wish", [{"/steps": -1}, {"/steps": 1.5}, {"/steps": True}, {3: 1}, {"/other": 1}])
def test_an_amount_that_is_none_is_refused(wish: Any) -> None:
    with pytest.raises(PolicyError) as caught:
        allot({"/steps": 5}, wish)
    assert caught.value.code == "policy.budget"
    with pytest.raises(PolicyError) as caught:
        child(root({"base.mg": BASE}, {"/steps": 5}), "c", allowance=wish)
    assert caught.value.code == "policy.budget"
