"""Replay notices every commit that is not byte for byte what follows; hostile rules are typed errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from host_kit import TUNING, start
from kernel_kit import World, fresh, rules, tuning
from spak import canon
from spak.errors import SpecError
from spak.kernel.replay import Replay
from spak.kernel.rules import Rules
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
    for tool in genesis["rules"]["catalog"]["tools"].values():
        tool["schema"] = schema
    with pytest.raises(SpecError) as caught:
        Rules.of(genesis)
    assert caught.value.code == "lang.schema"
