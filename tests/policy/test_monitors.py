"""What folds hold, as people are shown it: numbers beside their limits, ages, records."""

from __future__ import annotations

from typing import Any

import pytest

from spak import data
from spak.datalog import Policy, load
from spak.datalog.values import Name, encode
from spak.policy.history import state
from spak.policy.history.deciding import folds_of
from spak.policy.history.monitors import MOST_KEYS, Monitor, monitors
from spak.policy.history.state import History

DECLS = """
Decl event(E) bound [/name].
Decl tool(E, Tool) bound [/name, /name].
Decl argument(E, Name, Value) bound [/name, /string, /any].
Decl most(To, N) bound [/string, /number].
Decl moved(To, Total) bound [/string, /number] descr [fold("sum"), within("24h")].
feed_moved(To, N) :- event(E), tool(E, /transfer), argument(E, "to", To), argument(E, "amount", N).
"""


def policy(rules: str) -> Policy:
    return load({"law.mg": DECLS + rules})


def after(law: Policy, *events: tuple[str, tuple[Any, ...]], step: int = 1000) -> History:
    """The history in which each event fed one row and was done, a step of time apart."""
    history, folds = History(), folds_of(law)
    for number, (name, row) in enumerate(events, 1):
        fed = ((name, False, tuple(map(encode, row))),)
        history = state.begin(history, number * step)
        history, _ = state.requested(folds, history, str(number), fed, allow=True, record=number)
        history = state.settled(folds, history, str(number), number * step, done=True, record=number, fed=fed)
    return history


def one(law: Policy, *events: tuple[str, tuple[Any, ...]]) -> Monitor:
    (found,) = monitors(law, after(law, *events))
    return found


BEFORE = 'forbidden(A) :- tool(A, /transfer), argument(A, "to", To), moved(To, Before), '
LIMITS = [
    (BEFORE + "5000 < Before.", 5000),
    (BEFORE + "5000 <= Before.", 5000),
    (BEFORE + "Before > 5000.", 5000),
    (BEFORE + 'argument(A, "amount", N), 5000 < fn:plus(Before, N).', 5000),
    (BEFORE + "5000 < Before.\n" + BEFORE + "300 < Before.", 300),
    # of a table, by the key
    (BEFORE + 'most(To, Most), Most < Before.\nmost("B", 40).\nmost("C", 7).', 40),
    (BEFORE + 'most(To, Most), Most < Before.\nmost("C", 7).', None),
    # through other predicates, and through a negation
    ('forbidden(A) :- tool(A, /transfer), much().\nmuch() :- moved("B", N), 9 < N.', 9),
    ('forbidden(A) :- tool(A, /transfer), !little().\nlittle() :- moved("B", N), N < 9.', 9),
    ('permitted(A) :- tool(A, /transfer), moved("B", N), N < 9.', 9),
    ('permitted(A) :- tool(A, /transfer), !much().\nmuch() :- moved("B", N), 9 <= N.', 9),
    # a number that has to be reached is no limit
    ('permitted(A) :- tool(A, /transfer), moved("B", N), 9 < N.', None),
    (BEFORE + "Before < 9.", None),
    ('permitted(A) :- tool(A, /transfer).\nforbidden(A) :- tool(A, /pay), moved("X", N), 9 < N.', None),
    ('permitted(A) :- tool(A, /transfer), moved("B", N), N != 9.', None),
]


@pytest.mark.parametrize(("rules", "limit"), LIMITS)
def test_a_limit_is_what_the_rules_hold_the_number_to(rules: str, limit: int | None) -> None:
    found = one(policy(rules), ("moved", ("B", 20)), ("moved", ("B", 12)))
    assert (found.fold, found.key, found.value, found.limit) == ("moved", ('"B"',), 32, limit)
    assert found.records == (1, 2)
    assert found.share == (None if limit is None else 32 / limit)


def test_each_key_has_a_row_and_a_fold_without_one_is_shown() -> None:
    law = policy(BEFORE + "5000 < Before.")
    assert [item.key for item in monitors(law, after(law, ("moved", ("C", 1)), ("moved", ("B", 2))))] == [
        ('"B"',),
        ('"C"',),
    ]
    (nothing,) = monitors(law, History())
    assert (nothing.key, nothing.value, nothing.holds, nothing.share) == ((), None, False, None)


def test_of_very_many_keys_the_newest_are_shown_and_the_others_counted() -> None:
    law = policy(BEFORE + "5000 < Before.")
    events = [("moved", (f"key {number}", 1)) for number in range(120)]
    found = monitors(law, after(law, *events), most=50)
    assert len(found) == 51
    assert {item.key for item in found[:-1]} == {(f'"key {number}"',) for number in range(70, 120)}
    assert (found[-1].key, found[-1].others, found[-1].value) == ((), 70, None)
    assert [item.others for item in monitors(law, after(law, *events))][-1] == 120 - MOST_KEYS


KINDS = """
Decl looked(Path, Ago) bound [/string, /number] descr [fold("seen"), within("1s"), counts("done")].
feed_looked(P) :- event(E), tool(E, /look), argument(E, "path", P).
Decl known(Path) bound [/string] descr [fold("open"), counts("done")].
feed_known(P) :- event(E), tool(E, /look), argument(E, "path", P).
close_known(P) :- event(E), tool(E, /drop), argument(E, "path", P).
Decl newest(Tool) bound [/name] descr [fold("last"), counts("done")].
feed_newest(T) :- event(E), tool(E, T).
forbidden(A) :- tool(A, /transfer), looked(_, _), known(_), newest(/look), moved("B", N), 3 < N.
"""


def test_what_holds_and_how_old_it_is() -> None:
    law = policy(KINDS)
    events = [
        ("looked", ("a",)),
        ("known", ("a",)),
        ("newest", (Name("/look"),)),
        ("newest", (Name("/drop"),)),
    ]
    found = {item.fold: item for item in monitors(law, after(law, *events))}
    looked, known, newest = found["looked"], found["known"], found["newest"]
    assert (looked.holds, looked.age, looked.window, looked.records) == (False, "3 seconds", "1s", (1,))
    assert (known.holds, known.key, known.value, known.age) == (True, ('"a"',), None, "2 steps")
    assert (newest.value, newest.holds, newest.records) == ("/drop", True, (4,))
    assert found["moved"].value is None


def test_the_shipped_law_of_money_shows_what_is_left() -> None:
    text = data.path("specs/laws/money_per_day.mg").read_text(encoding="utf-8")
    added = """
Decl event(E) bound [/name].
Decl act(E, What) bound [/name, /name].
Decl result(E, Name, Value) bound [/name, /string, /any].
money_per_day(/micro_dollars, 5000000).
"""
    law = load({"money.mg": text, "more.mg": added})
    (found,) = monitors(law, after(law, ("spent_today", (Name("/micro_dollars"), 1_250_000))))
    assert (found.value, found.limit, found.share, found.window) == (1_250_000, 5_000_000, 0.25, "1d")
