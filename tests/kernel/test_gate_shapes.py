"""Actions that differ in values which no rule reads share a session; each decision and proof is its own."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kernel_kit import PERMITS
from law_kit import under
from spak.datalog.evaluate import Evaluation
from spak.datalog.values import Name
from spak.kernel.gate import Gate, Judged, ProposedAction, compiled

READS = PERMITS + '\nforbidden(Action) :- tool(Action, /look), argument(Action, "text", "no").'
JOINS = PERMITS + '\nforbidden(Action) :- argument(Action, "text", Same), argument(Action, "other", Same).'
SHOWS = 'permitted(Action) :- tool(Action, /look), argument(Action, "text", _).'
"""Reads no text, and its proof shows it."""
WORDS = ("no", "yes", "a", "b", "\u00e9", "x" * 500, 7, 8, True, 0.5)


def spent(steps: int) -> tuple[Any, ...]:
    return (("spent", (Name("/steps"), steps)), ("spent", (Name("/tokens"), 0)))


@pytest.mark.parametrize("law", [PERMITS, READS, JOINS], ids=["none reads", "one reads", "a join reads"])
def test_a_gate_that_has_decided_others_decides_and_explains_as_a_new_one(law: str) -> None:
    policy, draw = compiled(under(law), "", {}), random.Random(1)
    used, seen = Gate(policy), set()
    run = (("allowance", (Name("/steps"), 30)),)
    for turn in range(40):
        args = {name: draw.choice(WORDS) for name in ("text", "other") if draw.random() < 0.7}
        asked = ProposedAction("tool", draw.choice(("look", "nothing")), args, run, spent(turn))
        one, two = used.judge(asked, {}), Gate(policy).judge(asked, {})
        assert isinstance(one, Judged) and isinstance(two, Judged)
        assert one._replace(key=None) == two._replace(key=None)
        seen.add((one.allow, one.code))
        if turn % 3:  # those that are not explained at once leave the session to the next
            assert used.explanation(one) == Gate(policy).explanation(two)
            assert used.text(one) == Gate(policy).text(two)
    assert {True, False} <= {allow for allow, _ in seen} and (False, "policy.forbidden") in seen


def test_a_decision_is_explained_when_others_have_come_since() -> None:
    policy = compiled(under(SHOWS), "", {})
    gate = Gate(policy)
    asked = [ProposedAction("tool", "look", {"text": f"t{at}"}, (), spent(at)) for at in range(5)]
    judged = [gate.judge(one, {}) for one in asked]
    for one, found in zip(asked, judged, strict=True):
        assert isinstance(found, Judged)
        alone = Gate(policy)
        fresh = alone.judge(one, {})
        assert isinstance(fresh, Judged) and gate.explanation(found) == alone.explanation(fresh)
        assert str(one.args["text"]).encode() in gate.explanation(found)


def test_what_nobody_reads_costs_no_derivation(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, runs = Gate(compiled(under(PERMITS), "", {})), 0
    real = Evaluation.run

    def counted(self: Evaluation, *args: Any) -> Any:
        nonlocal runs
        runs += 1
        return real(self, *args)

    monkeypatch.setattr(Evaluation, "run", counted)
    for turn in range(50):
        if turn == 1:
            runs = 0
        found = gate.judge(ProposedAction("tool", "look", {"text": f"t{turn}"}, (), spent(0)), {})
        assert isinstance(found, Judged) and found.allow is True
        assert ("argument", (Name("/action"), "text", f"t{turn}")) in found.facts
    assert runs == 0
    gate.judge(ProposedAction("tool", "look", {"text": "t"}, (), spent(1)), {})
    assert 0 < runs <= 8, "what was spent is read, by few rules"
