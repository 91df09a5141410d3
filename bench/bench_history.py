"""Folds of what happened: what a decision costs after many events, and what is kept of a million.

Decisions go through the gate of a run under the shipped law with four folds. The floor of a decision is the
same gate without folds; of a late decision an early one; of the state its printed bound. CPU time of this
process.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from bench.sizes import sized
from spak import canon
from spak.datalog import load
from spak.kernel.gate import Gate, Judged, ProposedAction
from spak.policy.history import state
from spak.policy.history.deciding import folds_of
from spak.policy.history.state import History
from spak.policy.law import Law, compiled
from spak.runner.genesis import constitution

FOLDS = """
Decl used(To, Total) bound [/string, /number] descr [fold("sum"), within("100 steps"), entries(256)].
feed_used(To, N) :- event(E), tool(E, /transfer), argument(E, "to", To), argument(E, "n", N).
forbidden(A) :- tool(A, /transfer), argument(A, "to", To), used(To, M), 1000000 < M.
Decl often(Tool, N) bound [/name, /number] descr [fold("count")].
feed_often(T) :- event(E), tool(E, T).
forbidden(A) :- tool(A, T), often(T, N), 10000000 < N.
Decl known(To) bound [/string] descr [fold("open"), keys(64)].
feed_known(To) :- event(E), tool(E, /transfer), argument(E, "to", To).
close_known(To) :- event(E), tool(E, /revoke), argument(E, "to", To).
forbidden(A) :- tool(A, /revoke), argument(A, "to", To), !known(To).
Decl lately(To, Ago) bound [/string, /number] descr [fold("seen"), within("1h"), keys(64)].
feed_lately(To) :- event(E), tool(E, /transfer), argument(E, "to", To).
forbidden(A) :- tool(A, /revoke), argument(A, "to", To), lately(To, Ago), Ago < 0.
"""
PERMITS = "permitted(A) :- tool(A, /transfer).\npermitted(A) :- tool(A, /revoke).\n"
EARLY, LATE, MANY, SAMPLE = 100, sized(100_000, 500), sized(1_000_000, 2_000), sized(200, 20)


def rows() -> list[dict[str, Any]]:
    plain, folded = _gate(PERMITS), _gate(PERMITS + FOLDS)
    history = _after(folded, History(), 0, EARLY)
    early = _decisions(folded, history)
    late = _decisions(folded, _after(folded, history, EARLY, LATE))
    without = _decisions(plain, History())
    kept, bound = _million()
    return [
        _row(f"decision after {LATE:,} events, beside {EARLY}", late, early, "ms", "<= 1.2 of floor"),
        _row("what four folds add to a decision", late - without, without, "ms", "<= 1"),
        _row(
            f"state after {MANY:,} events, beside its bound",
            kept / 1024,
            bound / 1024,
            "KiB",
            "<= 1 of floor",
        ),
    ]


def _gate(text: str) -> Gate:
    return Gate(compiled(Law(constitution(), {"bench.mg": text}), "", {}))


def _proposed(at: int, history: History) -> ProposedAction:
    return ProposedAction("tool", "transfer", {"to": f"place {at % 40}", "n": at % 7}, history=history)


def _after(gate: Gate, history: History, begin: int, end: int) -> History:
    """The history after so many requests were permitted and answered; one in 1,000 asks the gate."""
    for at in range(begin, end):
        now = state.begin(history, at * 100)
        judged = gate.judge(_proposed(at, now), {}) if at % 1000 == 0 else None
        fed: state.Fed = (
            ("used", False, (f'"place {at % 40}', at % 7)),
            ("often", False, ("/transfer",)),
            ("known", False, (f'"place {at % 40}',)),
            ("lately", False, (f'"place {at % 40}',)),
        )
        if judged is not None:
            assert isinstance(judged, Judged) and judged.allow is True, judged
            assert sorted(judged.fed) == sorted(fed), judged.fed
        now, trouble = state.requested(gate.folds, now, "c", fed, allow=True, record=at)
        assert not trouble, trouble
        history = state.settled(gate.folds, now, "c", at * 100, done=True, record=at)
    return history


def _decisions(gate: Gate, history: History) -> float:
    """Milliseconds of CPU of the median decision; each is about another place than the one before."""
    found = []
    for at in range(SAMPLE + 20):
        proposed = _proposed(at, state.begin(history, history.now + at))
        before = time.process_time_ns()
        judged = gate.judge(proposed, {})
        found.append((time.process_time_ns() - before) / 1e6)
        assert isinstance(judged, Judged) and judged.allow is True, judged
    return statistics.median(found[20:])


def _million() -> tuple[int, int]:
    """Bytes of JSON that are kept after a million events, and the bound that `spak policy check` prints."""
    decls = "Decl event(E) bound [/name].\nDecl tool(E, T) bound [/name, /name].\n"
    decls += "Decl argument(E, N, V) bound [/name, /string, /any].\n"
    folds = folds_of(load({"bench.mg": decls + PERMITS + FOLDS}))
    history = History()
    for at in range(MANY):
        place = f'"{at % 60}' + "x" * 200
        fed = (
            ("used", False, (place, at % 7)),
            ("often", False, ("/transfer",)),
            ("known", False, (place,)),
            ("lately", False, (place,)),
        )
        history = state.begin(history, at * 100)
        history, trouble = state.requested(folds, history, "c", fed, allow=True, record=at)
        assert not trouble, trouble
        history = state.settled(folds, history, "c", at * 100, done=True, record=at)
    return len(canon.dumps(state.to_data(history)["tables"])), sum(map(state.bound, folds.values()))


def _row(name: str, ours: float, floor: float, unit: str, aim: str) -> dict[str, Any]:
    return {"name": name, "ours": ours, "floor": floor, "unit": unit, "aim": aim}
