"""Runs of one process share the gate of their policy: a decision is of its own facts, whoever else asks."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from kernel_kit import PERMITS
from law_kit import under
from spak.datalog import Session
from spak.kernel.gate import Gate, Judged, ProposedAction, compiled

LAW = PERMITS + '\nforbidden(Action) :- tool(Action, /look), argument(Action, "text", "no").'
FORBIDDEN = ProposedAction("tool", "look", {"text": "no"})
FINE = ProposedAction("tool", "look", {"text": "yes"})
MEANWHILE_S = 0.2
"""How long the other thread may take to get in between, if it can; it needs milliseconds."""


def interrupted(
    monkeypatch: pytest.MonkeyPatch, asked: Callable[[], object], other: Callable[[], object]
) -> object:
    """What `asked` gives when `other` begins in another thread once a session is asked the first time."""
    real, others = Session.holds, list[threading.Thread]()

    def holds(self: Session, pred: str, *args: object) -> bool:
        if not others:
            others.append(threading.Thread(target=other))
            others[0].start()
            others[0].join(MEANWHILE_S)
        return real(self, pred, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "holds", holds)
    found = asked()
    others[0].join()
    return found


def test_a_decision_is_not_made_from_the_facts_of_another_run(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, others = Gate(compiled(under(LAW), "", {})), list[object]()
    found = interrupted(
        monkeypatch, lambda: gate.judge(FORBIDDEN, {}), lambda: others.append(gate.judge(FINE, {}))
    )
    assert isinstance(found, Judged) and (found.allow, found.code) == (False, "policy.forbidden")
    assert isinstance(others[0], Judged) and others[0].allow is True


@pytest.mark.parametrize("way", ["explanation", "text"])
def test_an_explanation_is_of_its_own_decision(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    gate = Gate(compiled(under(LAW), "", {}))
    judged = gate.judge(FORBIDDEN, {})
    assert isinstance(judged, Judged)
    wanted = getattr(Gate(gate.policy), way)(judged)
    found = interrupted(monkeypatch, lambda: getattr(gate, way)(judged), lambda: gate.judge(FINE, {}))
    assert found == wanted
