"""Replay notices every commit that is not byte for byte what follows; hostile rules are typed errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from host_kit import TUNING, start
from kernel_kit import World, exited, fresh, program, rules, tool, tuning
from spak import canon
from spak.errors import SpecError
from spak.kernel.replay import Replay
from spak.kernel.rules import Rules
from spak.kernel.state import Effect
from spak.program import Step, Task
from spak.records import Kind, Record


@pytest.mark.parametrize(
    ("kind", "forged"),
    [
        (Kind.PERMIT, {"allow": 1}),
        (Kind.SELECT, {"i": False}),
        (Kind.SELECT, {"n": True}),
        (Kind.ROUTE, {"signal": "plateau"}),
        (Kind.END, {"state": "failed"}),
    ],
)
def test_a_forged_commit_is_a_difference(kind: Kind, forged: Mapping[str, Any]) -> None:
    made = World(rules(tuning()), fresh).run()
    at = next(index for index, record in enumerate(made.records) if record.kind == kind)
    assert _replayed(made, made.records).difference is None
    records = list(made.records)
    records[at] = records[at]._replace(body={**records[at].body, **forged})
    found = _replayed(made, records).difference
    assert found is not None
    assert found.found is not None
    assert {name: found.found["body"][name] for name in forged} == forged


def _replayed(made: World, records: list[Record]) -> Replay:
    found = Replay(rules=made.rules)
    for record in records:
        found.feed(record._replace(body=canon.loads(canon.dumps(record.body))))
    found.finish()
    return found


@pytest.mark.parametrize(
    "schema",
    [{"type": "object", "properties": {"a": {"pattern": "(?=x)"}}}, {"type": ["x"]}, {"$ref": "#"}, 5],
)
def test_a_genesis_with_a_schema_outside_the_dialect_is_refused(tmp_path: Any, schema: Any) -> None:
    run = start(tmp_path, TUNING)
    genesis = canon.loads(canon.dumps(next(iter(run.ledger.read()))[0].body))
    run.close()
    for entry in genesis["rules"]["catalog"]["tools"].values():
        entry["schema"] = schema
    with pytest.raises(SpecError) as caught:
        Rules.of(genesis)
    assert caught.value.code == "lang.schema"


def test_runs_of_one_spec_share_what_is_compiled_and_nothing_of_their_own(tmp_path: Any) -> None:
    run = start(tmp_path, TUNING)
    genesis = canon.loads(canon.dumps(next(iter(run.ledger.read()))[0].body))
    run.close()
    first = Rules.of(genesis)
    other = Rules.of({**genesis, "rules": {**genesis["rules"], "seed": 5, "r3": "another"}})
    assert other.program is first.program
    assert (other.seed, other.r3) == (5, "another") and (first.seed, first.r3) != (5, "another")
    assert other.opening != first.opening == Rules.of(genesis).opening
    assert other.situations is not first.situations
    spec = genesis["rules"]["spec"].replace("AGENT", "// more\nAGENT", 1)
    assert Rules.of({**genesis, "rules": {**genesis["rules"], "spec": spec}}).program is not first.program


class _Scanned(tuple[Step, ...]):
    """Steps that count how often somebody goes through them."""

    scans = 0

    def __iter__(self) -> Iterator[Step]:
        self.scans += 1
        return super().__iter__()

    def __reversed__(self) -> Iterator[Step]:
        self.scans += 1
        return reversed(tuple(super().__iter__()))


@pytest.mark.parametrize("exit", [0, 1])
def test_a_record_of_a_long_task_does_not_go_through_its_steps(exit: int) -> None:
    def script(effect: Effect, count: int) -> Any:
        return (Kind.PLAN, {"candidates": []}) if effect.act == "plan" else exited(exit, key=str(count))

    steps = _Scanned([tool(f"s{place}", "write", "continue", text=str(place)) for place in range(200)])
    made = World(rules(program(Task("t", steps=steps))), script)
    before = steps.scans
    made.run(1000)
    assert len(made.records) > 600
    assert _replayed(made, made.records).difference is None
    assert steps.scans == before


def test_the_question_that_a_step_comes_from_is_the_nearest_before_it() -> None:
    steps = (tool("a"), Step("b", "ask"), tool("c"), Step("d", "plan"), tool("e"), tool("a"))
    task = Task("t", steps=steps)
    assert [task.asker(step) for step in steps[:5]] == [None, steps[1], steps[1], steps[3], steps[3]]
    assert [task.step(name) for name in ("a", "e", "none")] == [steps[0], steps[4], None]
    shorter = replace(task, steps=steps[:3])
    assert [shorter.step("c"), shorter.step("d")] == [steps[2], None]
