"""A snapshot is the whole state: after each record of any run, what comes out of it is what went in, and the
run goes on from it with the same commits, byte for byte."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kernel_kit import Budgets, World, exited, fresh, measured, program, rules, tool, tuning
from spak import canon
from spak.errors import UserError
from spak.kernel import snapshot
from spak.kernel.replay import Replay
from spak.kernel.rules import Rules
from spak.kernel.snapshot import Unusable, decode, encode, pack, unpack
from spak.kernel.state import Effect, State, change
from spak.ledger.chain import is_record_line
from spak.program import Step, Task
from spak.records import Kind, Record
from spak.records import decode as decoded

GOLDEN = sorted((Path(__file__).resolve().parents[1] / "golden").glob("kernel-*/*.jsonl"))
BESIDE = {"numbers": {"z": 1, "a": 2}, "open": None}


def through(rules: Rules, state: State) -> State:
    """The state as a snapshot gives it back; it is the same, and so is a snapshot of it."""
    data = pack(rules, 7, "head", state, BESIDE)
    found, beside = unpack(data, rules, 7, "head")
    assert (found, beside) == (state, BESIDE)
    assert pack(rules, 7, "head", found, beside) == data
    return found


def replayed_through_snapshots(records: Iterable[Record], rules: Rules | None = None) -> Replay:
    """Replay in which the state is put through a snapshot after each commit that was awaited."""
    found = Replay(rules=rules)
    for record in records:
        found.feed(record)
        if found.rules is not None and not found.missing:
            found.state = through(found.rules, found.state)
    found.finish()
    return found


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_golden_run_goes_on_from_a_snapshot_after_each_record(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    found = replayed_through_snapshots(decoded(line) for line in lines if is_record_line(line))
    assert found.difference is None and found.state.ended


def chance(seed: int) -> Any:
    """Answers drawn at random: results, failures, rollbacks, measurements, misfits, odd values."""
    draw = random.Random(seed)

    def script(effect: Effect, count: int) -> tuple[Kind, Mapping[str, Any]]:
        if draw.random() < 0.6:
            return fresh(effect, count)
        if effect.act == "plan":
            tools = ["write", "look", "mend", "none", 5]
            args = {"text": draw.choice(["a", "b", 2.5, None, "x" * 50])}
            listed = [{"tool": draw.choice(tools), "args": args, "score": draw.choice([1, 0.5, 1e300])}]
            return Kind.PLAN, {"candidates": draw.choice([listed, listed * 2, [], "none"])}
        if effect.act == "validate":
            return measured(
                draw.randint(1, 2000), draw.choice([None, []]), status=draw.choice(["void", "static"])
            )
        if effect.act == "ask":
            return Kind.ACT, {"outcome": "answered", "out": draw.choice(["", "é\n", '{"tool":"look"}'])}
        more = {
            "out": draw.choice(["", "Ω", {"$blob": "b", "size": 99_999, "head": "h"}]),
            "key": str(count % 3),
        }
        outcome = draw.choice(["exited", "timeout", "launcher", "schema"])
        return Kind.ACT, {**exited(draw.choice([0, 1]), **more)[1], "outcome": outcome}

    return script


ASKING = program(
    Task(
        "t",
        tools=("write", "look", "poll"),
        steps=(tool("a"), Step("q", "ask", "coder"), Step("p", "plan"), tool("w", "write", on_fail="retry")),
        edges={"success": "u", "fail": "u"},
        retries=9,
    ),
    Task("u", steps=(tool("b", "poll"),), edges={"success": "t", "fail": "t"}, retries=9),
    budgets=Budgets(steps=120),
)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("made", [tuning(), ASKING], ids=["tuning", "asking"])
def test_a_random_run_goes_on_from_a_snapshot_after_each_record(made: Any, seed: int) -> None:
    world = World(rules(made, seed), chance(seed)).run()
    read = [record._replace(body=canon.loads(canon.dumps(record.body))) for record in world.records]
    found = replayed_through_snapshots(read, world.rules)
    assert found.difference is None
    assert snapshot.equal(found.state, world.state)


def test_no_field_of_a_state_is_left_out() -> None:
    """Of each class that a state is made of, each field counts and comes back."""
    assert {cls.__name__ for cls in snapshot._fields()} >= {"State", "Executive", "Effect", "Mark", "Memory"}
    for cls, names in snapshot._fields().items():
        values = {name: f"value of {name}" for name in names}
        item = cls(**values)
        assert {name: getattr(decode(encode(item)), name) for name in names} == values
        for name in names:
            assert encode(cls(**{**values, name: "another"})) != encode(item), f"{cls.__name__}.{name}"


@pytest.mark.parametrize(
    "value",
    [
        2.0, 2, -0.0, 1e300, 5e-324, True, None, 2**53, -(2**70), "", "Ω\x00", (), [], {}, ((),), [()],
        {"b": 1, "a": 2}, {"é": (1.0,)}, {"t": ["t"]}, ["t", "l"], {"a": [1, (2, [3.5])]},
    ],
    ids=repr,
)  # fmt: skip
def test_a_value_keeps_its_type_and_the_order_of_its_members(value: Any) -> None:
    written = canon.dumps(encode(value))
    found = decode(canon.loads(written))
    assert repr(found) == repr(value) and type(found) is type(value)
    assert canon.dumps(encode(found)) == written


def test_what_is_no_value_of_a_state_is_refused() -> None:
    with pytest.raises(UserError) as caught:
        encode({"x": object()})
    assert caught.value.code == "canon.value"


def damaged(data: bytes) -> Iterable[tuple[str, bytes]]:
    yield "empty", b""
    yield "cut", data[:-1]
    yield "another byte", data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]
    yield "another hash", b"A" + data[1:]
    for text in (b"[]", b"{}", b"null", b'{"format":1}', b"\xff"):
        yield repr(text), canon.digest(text).encode() + b"\n" + text


def test_damage_is_noticed() -> None:
    made = rules(tuning())
    state = World(made, fresh).run().state
    data = pack(made, 3, "head", state, {})
    for name, text in damaged(data):
        with pytest.raises(Unusable):
            unpack(text, made, 3, "head")
            pytest.fail(name)


def resealed(data: bytes, **changes: Any) -> bytes:
    """A snapshot with members that somebody changed, its hash made to fit."""
    text = canon.dumps({**canon.loads(data[44:]), **changes})
    return canon.digest(text).encode() + b"\n" + text


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 1}, {"layout": "x"}, {"rules": "x"}, {"count": 4}, {"head": "x"}, {"state": None},
        {"state": ["State"]}, {"state": ["Nothing", 1]}, {"state": ["m", "odd"]}, {"state": ["i", "x"]},
        {"state": ["f", "x"]}, {"state": []}, {"beside": ["l"]},
    ],
    ids=repr,
)  # fmt: skip
def test_a_snapshot_of_something_else_is_refused(changes: Mapping[str, Any]) -> None:
    made = rules(tuning())
    data = pack(made, 3, "head", State(), {})
    assert unpack(resealed(data), made, 3, "head") == (State(), {})
    with pytest.raises(Unusable):
        unpack(resealed(data, **changes), made, 3, "head")


def test_a_snapshot_of_another_number_of_records_or_head_is_refused() -> None:
    made = rules(tuning())
    data = pack(made, 3, "head", State(), {})
    for count, head in ((4, "head"), (3, "other")):
        with pytest.raises(Unusable):
            unpack(data, made, count, head)


def test_states_that_differ_in_one_type_are_not_equal() -> None:
    one, other = State(), change(State(), r2=False)
    assert one == other and not snapshot.equal(one, other) and snapshot.equal(one, State())
