"""Memory: what settles when, that prefixes stay and nothing grows, that plain JSON loses nothing."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak.kernel import memory
from spak.kernel.memory import (
    GIST,
    LIMIT,
    NAMED,
    UNSEEN,
    Memory,
    compact_json,
    entry,
    gist,
    length,
    literals,
    long,
    settle,
)

POLICIES = ("FIFO", "SUMMARIZE", "FLUSH_ON_TRANSITION", "PRUNE_ON_CONFIRM")
RECORD = json.dumps(
    {
        "order": "ORD77",
        "items": [{"sku": f"S10{n}", "price": n, "note": "soft and green or blue"[n:]} for n in range(20)],
    }
)


def texts(found: Memory) -> list[str]:
    return [item["text"] for item in memory.shown(found)]


def fill(count: int, policy: str, size: int = 2000, every: int = 5) -> list[Memory]:
    """The memory after each of many turns, a transition every few of them."""
    made, found = [], Memory()
    for ref in range(1, count + 1):
        if ref % every == 0:
            found = settle.transition(found, policy)
        found = settle.remember(found, entry(ref, "user", "look", f"id_{ref:06} " + "x" * size), policy)
        made.append(found)
        found = memory.sent(found)
    return made


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("size", "count"), [(0, 3200), (100, 1600), (3000, 800), (16_385, 800), (UNSEEN + 1, 2600)]
)
def test_nothing_grows_with_the_run(policy: str, size: int, count: int) -> None:
    made = fill(count, policy, size)
    lengths = [sum(map(len, texts(item))) for item in made[::9]]
    assert max(lengths) <= LIMIT + size + NAMED + 2 * GIST
    half = len(lengths) // 2
    assert max(lengths[half:]) <= 1.1 * max(lengths[:half])  # a little: the numbers have more digits
    last = made[-1]
    assert len(last.fresh) + sum(map(len, last.blocks)) < 1000


@pytest.mark.parametrize("policy", POLICIES[:3])
def test_the_prompt_before_is_a_prefix_unless_something_settled(policy: str) -> None:
    made = fill(300, policy, 500)
    breaks = 0
    for one, other in pairwise(made):
        before, after = texts(one), texts(other)
        if after[: len(before)] == before:
            continue
        breaks += 1
        assert one.fresh[0] not in other.fresh
        kept = [item for item in before if item.startswith("ref://") or "older" in item]
        assert after[: len(kept)] == kept or other.folded > one.folded
    assert breaks < 80


def test_a_flush_keeps_literals_and_names_the_text() -> None:
    found = settle.remember(Memory(), entry(3, "user", "look", RECORD, '{"id": "ORD77"}'), POLICIES[2])
    found = settle.transition(memory.sent(found), POLICIES[2])
    (text,) = texts(found)
    assert text.startswith(f"ref://3 look {len(RECORD)}B: ORD77 S100")
    assert found.fresh == ()


def test_what_no_prompt_has_shown_never_settles_at_a_transition() -> None:
    found = settle.remember(Memory(), entry(1, "user", "look", RECORD), POLICIES[2])
    assert settle.transition(found, POLICIES[2]) == found


@pytest.mark.parametrize("policy", [*POLICIES[:2], POLICIES[3]])
def test_only_flush_heeds_transitions(policy: str) -> None:
    found = memory.sent(settle.remember(Memory(), entry(1, "user", "look", RECORD), policy))
    assert settle.transition(found, policy) == found


def test_a_confirmed_text_that_a_prompt_has_shown_is_pruned() -> None:
    """Both halves of the condition: a prompt has shown it, and then a result was committed."""
    found = settle.remember(Memory(), entry(1, "user", "look", RECORD), POLICIES[3])
    found = settle.remember(found, entry(2, "user", "look", "id_2000"), POLICIES[3])
    assert [item.ref for item in found.fresh] == [1, 2] and not found.blocks
    found = memory.sent(found)  # its answer did not fit, so that the prompt is made once more
    assert [item.ref for item in found.fresh] == [1, 2] and not found.blocks
    found = settle.remember(found, entry(3, "user", "look", "id_3000"), POLICIES[3])
    assert [item.ref for item in found.fresh] == [3] and found.sent == 0
    assert [[item.ref for item in block] for block in found.blocks] == [[1, 2]]


def test_what_lasts_of_a_pruned_prompt_begins_the_next_one() -> None:
    made = fill(300, POLICIES[3], 500)
    folds = 0
    for one, other in pairwise(made):
        lasting = settle.lasting(one, POLICIES[3])
        assert lasting == (1 if one.folded else 0) + len(one.blocks) < len(texts(one))
        if other.folded > one.folded:
            folds += 1
            continue
        assert texts(other)[:lasting] == texts(one)[:lasting]
    assert 0 < folds < 10
    assert settle.lasting(made[-1], "FIFO") == len(texts(made[-1]))


def test_a_literal_stands_in_one_gist_only() -> None:
    found = Memory()
    for ref in (1, 2):
        found = memory.sent(settle.remember(found, entry(ref, "user", "look", RECORD), POLICIES[2]))
        found = settle.transition(found, POLICIES[2])
    assert " ".join(texts(found)).count("S1011") == 1


def test_a_text_too_long_to_hold_is_a_reference_from_the_start() -> None:
    found = entry(4, "user", "look", "x" * UNSEEN + " id_4711", '{"path": "a/b.c"}')
    assert found.text == "" and len(found.gist) <= GIST
    (call, line) = texts(Memory(fresh=(found,)))
    assert call == "look {path:a/b.c}"
    assert line == f"ref://4 look {UNSEEN + 8}B: a/b.c id_4711"
    blob = long(5, "user", "look", {"$blob": "abc", "size": 10**7, "head": "see id_4711"})
    assert texts(Memory(fresh=(blob,))) == ["ref://5 look 10000000B: id_4711"]


@pytest.mark.parametrize("policy", POLICIES)
def test_what_no_prompt_has_shown_stays_within_its_own_limit(policy: str) -> None:
    """Two reads of 14.5 KB and more before one prompt: all of it is in that prompt."""
    found = Memory()
    for ref in range(1, 7):
        found = settle.remember(found, entry(ref, "user", "read", f"{ref}" + "x" * 14_500), policy)
    assert [item.ref for item in found.fresh] == [1, 2, 3, 4, 5, 6] and not found.blocks
    found = settle.remember(found, entry(7, "user", "read", "7" + "x" * 14_500), policy)
    assert [item.ref for item in found.fresh] == [2, 3, 4, 5, 6, 7]
    found = settle.remember(memory.sent(found), entry(8, "user", "read", "8" + "x" * 14_500), policy)
    assert [item.ref for item in found.fresh] == [8]


@pytest.mark.parametrize("policy", POLICIES[:3])
def test_two_texts_within_the_limit_stay_when_a_prompt_has_shown_them(policy: str) -> None:
    found = Memory()
    for ref in (1, 2):
        found = memory.sent(settle.remember(found, entry(ref, "user", "read", "x" * 14_500), policy))
    assert [item.ref for item in found.fresh] == [1, 2]
    found = settle.remember(found, entry(3, "user", "read", "x" * 14_500), policy)
    assert [item.ref for item in found.fresh] == [3]


def test_what_is_left_differs_by_policy() -> None:
    lines = ["def first():", "    return id_1", *["pass"] * 40, "END = 'end_9'"]
    left = {}
    for policy in POLICIES:
        found = settle.remember(Memory(), entry(1, "user", "read", "\n".join(lines)), policy)
        found = settle.remember(memory.sent(found), entry(2, "user", "read", "short"), policy, 100)
        left[policy] = texts(found)
    size = len("\n".join(lines))
    assert left["FIFO"] == ["1 older texts, up to ref://1: recall lists, searches and reads them", "short"]
    assert left["FLUSH_ON_TRANSITION"] == [f"ref://1 read {size}B: id_1 end_9", "short"]
    assert left["SUMMARIZE"] == [
        f"ref://1 read {size}B: \n  def first():\n  return id_1\n  ... 39 lines ...\n  pass\n  END = 'end_9'",
        "short",
    ]


def test_a_blob_is_shown_by_the_runner_and_held_by_nobody() -> None:
    value = {"$blob": "abc", "size": 40_000, "head": "first id_4711\nsecond"}
    found = settle.remember(Memory(), long(5, "user", "look", value, {"n": 1}, "exit 1\n"), "SUMMARIZE")
    (_, shown) = memory.shown(found)
    assert shown["text"] == {"$text": ["exit 1\n", value]} and length(shown["text"]) == 40_007
    found = settle.remember(memory.sent(found), entry(6, "user", "look", "next"), "SUMMARIZE")
    assert texts(found) == ["ref://5 look 40000B: \n  exit 1\n  first id_4711\n  ...", "next"]


@pytest.mark.parametrize(("excess", "kept"), [(1, [3, 4, 5, 6]), (5000, [4, 5, 6]), (8100, [6]), (10**9, [])])
def test_a_prompt_that_is_too_long_loses_the_oldest_first(excess: int, kept: list[int]) -> None:
    """Of what a prompt has shown (1 to 4) at least half leaves; of the rest no more than needed."""
    found = Memory()
    for ref in range(1, 7):
        found = settle.remember(found, entry(ref, "user", "read", "x" * 2000), "FLUSH_ON_TRANSITION")
        found = memory.sent(found) if ref == 4 else found
    smaller = settle.compact(found, "FLUSH_ON_TRANSITION", excess)
    assert smaller is not None and [item.ref for item in smaller.fresh] == kept


def test_references_past_their_limit_fold_from_the_oldest() -> None:
    found = Memory()
    for ref in range(1, 301):
        text = f"id_{ref:06} " + "x" * 20
        found = memory.sent(settle.remember(found, entry(ref, "user", "look", text), "FLUSH_ON_TRANSITION"))
    found = settle.transition(found, "FLUSH_ON_TRANSITION")
    shown = texts(found)
    assert found.folded and shown[0].startswith(f"{found.folded} older texts, up to ref://{found.folded}:")
    assert shown[1].startswith(f"ref://{found.folded + 1} look")
    assert NAMED // 4 < sum(map(len, shown[1:])) <= NAMED


def test_compacting_ends() -> None:
    found: Memory | None = fill(200, "SUMMARIZE")[-1]
    sizes = []
    while found is not None:
        sizes.append(sum(map(len, texts(found))))
        last, found = found, settle.compact(found, "SUMMARIZE", 10**6)
    assert sizes == sorted(sizes, reverse=True) and len(sizes) <= 3
    assert len(texts(last)) == 1 and last.upto == 200


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Reservation M05KNL for aarav_garcia_1177 on 2024-05-24", "M05KNL aarav_garcia_1177 2024-05-24"),
        ("open src/a/b.py at 1475, total_seconds()", "src/a/b.py 1475 total_seconds"),
        ("plain words and a 12 only", ""),
        ('{"id": "a_1", "user_id": 10234, "deep": [{"x": "y/z"}]}', "10234"),
        ('{"path": "a/b.c", "same": "a/b.c"}', "a/b.c"),
    ],
)
def test_the_gist_is_what_is_copied_and_not_rephrased(text: str, found: str) -> None:
    assert gist(text) == found


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ('[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]', "[a,b|1,x|2,y]"),
        ('[{"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3}}]', "[a=1,b.c|2|3]"),
        ('[[{"a": 1}, {"a": 2}], [{"a": 3}]]', "[a||1|2||3]"),
        ('[{"a": 1}, {"b": 2}]', "[{a:1},{b:2}]"),
        ('{"zip": "80211", "on": "true", "n": null, "t": "a b"}', '{zip:"80211",on:"true",n:null,t:a b}'),
        ('{"n": 12345678901234567890, "m": 1.10, "s": ""}', '{n:12345678901234567890,m:1.10,s:""}'),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ("no json", "no json"),
        ("[" * 100, "[" * 100),
    ],
)
def test_json_is_written_plainly(value: str, written: str) -> None:
    assert compact_json(value) == written


WORDS = st.text(alphabet='ab1.:,|{}[]="\\ \n-é', max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=12,
)


@given(JSON)
def test_plain_is_total_and_keeps_every_literal(value: Any) -> None:
    text = json.dumps(value)
    written = compact_json(text)
    assert len(written) <= len(text)
    for word in literals(text):
        assert word in written


@given(st.lists(st.text(max_size=40), max_size=12), st.sampled_from(POLICIES))
def test_any_texts_make_a_memory_that_can_be_shown(found: list[str], policy: str) -> None:
    made = Memory()
    for ref, text in enumerate(found, start=1):
        made = settle.remember(memory.sent(made), entry(ref, "user", "look", text, text), policy, 200)
        made = settle.transition(made, policy)
    for item in memory.shown(made):
        assert item["role"] in ("user", "assistant") and isinstance(item["text"], str)
