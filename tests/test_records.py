"""The line of the ledger: its layout, its chain, its name, and garbage."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spak import canon
from spak.errors import LedgerError
from spak.records import (
    AUTHORITIES,
    HASH_FIELD,
    KINDS,
    Authority,
    Kind,
    Record,
    chain_hash,
    content_of,
    decode,
    place,
)

BODIES = st.dictionaries(
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=6),
    st.none()
    | st.booleans()
    | st.integers(-(2**50), 2**50)
    | st.text(st.characters(exclude_categories=["Cs"])),
    max_size=5,
)
RECORDS = st.builds(
    Record,
    kind=st.sampled_from(sorted(KINDS)),
    authority=st.sampled_from(sorted(AUTHORITIES)),
    body=BODIES,
    task=st.sampled_from(["", "Main", "Größe"]),
    step=st.sampled_from(["", "s1"]),
    attempt=st.integers(0, 10**6),
    seq=st.integers(0, 10**9),
    at=st.integers(0, 2**45),
    side=BODIES,
    text=st.just(b""),
)


@settings(max_examples=120, deadline=None)
@given(RECORDS)
def test_a_line_comes_back_as_its_record(record: Record) -> None:
    placed, line = place(record, record.seq, canon.ZERO)
    back = decode(line)
    assert back.hash == placed.hash
    assert place(back, back.seq, canon.ZERO) == (back, line)
    made = record._replace(text=canon.dumps(record.body))
    assert place(made, made.seq, canon.ZERO) == (placed, line)
    assert (back.kind, back.body, back.seq, back.side) == (record.kind, record.body, record.seq, record.side)
    assert back.content == record.content


@settings(max_examples=100, deadline=None)
@given(st.lists(RECORDS, min_size=2, max_size=6))
def test_each_line_hangs_on_the_one_before(records: list[Record]) -> None:
    previous = canon.ZERO
    for record in records:
        placed, line = place(record, record.seq, previous)
        chain = placed.hash
        assert line.startswith(b'{"#":"') and line[HASH_FIELD - 2 : HASH_FIELD] == b'",'
        assert line.endswith(b"\n") and line.count(b"\n") == 1
        assert canon.dumps(canon.loads(line)) + b"\n" == line
        assert chain_hash(line, previous) == chain
        assert chain_hash(line, canon.digest(b"other")) != chain
        previous = chain


def test_empty_members_are_left_out_and_a_body_never() -> None:
    record = Record(kind=Kind.END, authority=Authority.COMMIT, body={}, seq=0)
    assert (
        place(record, 0, canon.ZERO)[1][HASH_FIELD:]
        == b'"authority":"commit","body":{},"kind":"end","seq":0}\n'
    )


def test_content_ignores_place_clock_and_side_notes() -> None:
    one = Record("route", "commit", {"to": "s2"}, "Main", "s1", 3, seq=4, at=5, side={"ms": 6})
    two = Record("route", "commit", {"to": "s2"}, "Main", "s1", 3, seq=9, at=9)
    assert one.content == two.content == content_of("route", "commit", "Main", "s1", 3, {"to": "s2"})
    assert one.content != content_of("route", "commit", "Main", "s1", 4, {"to": "s2"})


GOOD: dict[str, Any] = {"#": "A" * 43, "kind": "act", "authority": "proposal", "body": {}, "seq": 1}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"garbage\n",
        b"null\n",
        b"[]\n",
        b"7\n",
        b'"text"\n',
        b"\x00" * 64,
        b"\xff\xfe",
        b'{"#":',
        *(canon.dumps({n: v for n, v in GOOD.items() if n != gone}) for gone in GOOD),
        *(canon.dumps({**GOOD, name: None}) for name in GOOD),
        canon.dumps({**GOOD, "seq": -1}),
        canon.dumps({**GOOD, "seq": True}),
        canon.dumps({**GOOD, "seq": 1.5}),
        canon.dumps({**GOOD, "body": []}),
        canon.dumps({**GOOD, "side": "x"}),
        canon.dumps({**GOOD, "attempt": "3"}),
        canon.dumps({**GOOD, "at": "now"}),
        canon.dumps({**GOOD, "task": 1}),
    ],
)
def test_garbage_is_a_ledger_error(line: bytes) -> None:
    with pytest.raises(LedgerError) as caught:
        decode(line)
    assert caught.value.code == "ledger.line"
    assert caught.value.hint


@settings(max_examples=120, deadline=None)
@given(st.binary(max_size=60))
def test_random_bytes_never_come_through_untyped(line: bytes) -> None:
    with pytest.raises(LedgerError):
        decode(line)
