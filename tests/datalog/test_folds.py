"""Declarations of folds: what is read from one, and what is refused, by code and line."""

from __future__ import annotations

import pytest

from spak.datalog import Name, PolicyError, load
from spak.datalog.folds import Window

EVENTS = "Decl event(E) bound [/name].\nDecl to(E, X) bound [/name, /string].\n"
FED = "feed_f(X) :- event(E), to(E, X).\nforbidden(E) :- to(E, X), f(X, _).\n"


def declared(descr: str, columns: str = "X, N", bound: str = "/string, /number") -> str:
    return f"Decl f({columns}) bound [{bound}] descr [{descr}].\n"


def test_what_a_declaration_says() -> None:
    text = declared('fold("count"), within("90s"), counts("done"), keys(8), entries(16)')
    (fold,) = load({"a.mg": EVENTS + text + FED}).folds.values()
    assert (fold.kind, fold.keys, fold.counts, fold.most_keys, fold.most_entries) == (
        "count",
        1,
        "done",
        8,
        16,
    )
    assert (fold.key, fold.feed, fold.close) == (("f", 2), ("feed_f", 1), ("close_f", 1))
    assert (fold.window, str(fold.window)) == (Window(90_000), "90s")


@pytest.mark.parametrize(
    ("text", "window"),
    [("1 step", Window(1, True)), ("20 steps", Window(20, True)), ("500ms", Window(500)),
     ("24h", Window(86_400_000)), ("7 d", Window(604_800_000)), ("2m", Window(120_000))],
)  # fmt: skip
def test_windows(text: str, window: Window) -> None:
    (fold,) = load({"a.mg": EVENTS + declared(f'fold("seen"), within("{text}")') + FED}).folds.values()
    assert fold.window == window


def test_what_is_counted_is_asked_by_its_key_and_what_is_seen_is_there() -> None:
    made = load({"a.mg": EVENTS + declared('fold("count")') + FED})
    assert made.externals == {("f", 2): ((0,),)}
    event = Name("/e")
    session = made.session([("event", (event,)), ("to", (event, "B"))])
    assert [str(request) for request in session.requests()] == ['f("B", _)']
    made = load({"a.mg": EVENTS + declared('fold("seen")') + FED})
    assert made.externals == {}


def test_a_change_of_a_fold_is_a_change_of_the_policy() -> None:
    hashes = {
        load({"a.mg": EVENTS + declared(text) + FED}).hash
        for text in (
            'fold("count")',
            'fold("seen")',
            'fold("count"), counts("asked")',
            'fold("count"), within("1h")',
            'fold("count"), keys(2)',
        )
    }
    assert len(hashes) == 5


BAD = [
    (declared('fold("sort")'), 3, "fold is one of seen, open"),
    (declared("fold(1)"), 3, "fold is one of seen, open"),
    (declared('fold("seen"), fold("seen")'), 3, "fold is given twice"),
    (declared('within("1h")'), 3, 'there is no fold("...")'),
    (declared('fold("seen"), within("0s")'), 3, "a window of nothing"),
    (declared('fold("seen"), within("1 year")'), 3, "within takes"),
    (declared('fold("seen"), within(5)'), 3, "within takes"),
    (declared('fold("seen"), counts("all")'), 3, "counts is one of held, asked, done"),
    (declared('fold("seen"), keys(0)'), 3, "keys is a number from 1 to"),
    (declared('fold("seen"), keys(10000)'), 3, "keys is a number from 1 to"),
    (declared('fold("seen"), entries(5)'), 3, "entries are what a count or a sum within a window keeps"),
    (declared('fold("pending"), within("1h")'), 3, "what is pending is under way now"),
    (declared('fold("seen"), external(), mode("+", "-")'), 3, "neither external nor temporal"),
    (
        declared('fold("count")', bound="/string, /string"),
        3,
        "the last column of a fold of count is a /number",
    ),
    (
        declared('fold("seen")', bound="fn:List(/string), /number"),
        3,
        "its keys are names, strings or numbers",
    ),
    (declared('fold("seen")', bound="/any, /number"), 3, "its keys are names, strings"),
    (declared('fold("count")', columns="", bound=""), 3, "a fold"),
]


@pytest.mark.parametrize(("text", "line", "message"), BAD)
def test_what_is_no_declaration_of_a_fold(text: str, line: int, message: str) -> None:
    refused(EVENTS + text + FED, line, message)


@pytest.mark.findings("S5.9")
@pytest.mark.parametrize("words", ['within("1h")', 'counts("asked")', "keys(0)"])
def test_a_hint_about_what_is_pending_names_no_window(words: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load({"a.mg": EVENTS + declared(f'fold("pending"), {words}') + FED})
    (found,) = [item for item in caught.value.diagnostics if item.code == "policy.fold" and item.hint]  # type: ignore[attr-defined]
    assert found.hint.startswith('such as descr [fold("pending"), keys(256)]')


WRONG = [
    ("forbidden(E) :- to(E, X), f(X, _).\n", 3, "nothing derives feed_f with 1 column, so f never changes"),
    ("feed_f(X) :- event(E), to(E, X).\n", 3, "nothing reads f"),
    (FED + "f(X, 1) :- to(_, X).\n", 6, "f is a fold: its rows are kept"),
    (FED + 'feed_f("B").\n', 6, "feed_f is a fact, which every event would feed"),
    (FED + "feed_f(X) :- f(X, _).\n", 4, "feed_f rests on the fold f"),
    (FED + "near(X) :- f(X, _).\nfeed_f(X) :- near(X).\n", 4, "feed_f rests on the fold f"),
]


@pytest.mark.parametrize(("rules", "line", "message"), WRONG)
def test_what_feeds_and_reads_a_fold(rules: str, line: int, message: str) -> None:
    refused(EVENTS + declared('fold("seen")') + rules, line, message)


def test_an_open_fold_needs_what_closes_it() -> None:
    text = declared('fold("open")', columns="X", bound="/string")
    rules = "feed_f(X) :- event(E), to(E, X).\nforbidden(E) :- to(E, X), f(X).\n"
    refused(EVENTS + text + rules, 3, "nothing derives close_f with 1 column")


@pytest.mark.parametrize("again", ['fold("sum")', 'fold("count")'])
def test_two_folds_of_one_name_are_refused(again: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load({"a.mg": EVENTS + declared('fold("count")') + FED, "b.mg": declared(again)})
    found = [item for item in caught.value.diagnostics if item.code == "policy.declared"]  # type: ignore[attr-defined]
    assert [(item.place.file, item.place.line, item.message) for item in found] == [
        ("b.mg", 1, "f/2 is declared twice")
    ]


def test_two_rules_that_feed_one_fold_are_both_heard() -> None:
    more = "Decl from(E, X) bound [/name, /string].\nfeed_f(X) :- event(E), from(E, X).\n"
    made = load({"a.mg": EVENTS + declared('fold("count")') + FED + more})
    event = Name("/e")
    session = made.session([("event", (event,)), ("to", (event, "B")), ("from", (event, "C"))])
    session.settle(lambda requests: [[("B", 0)] for _ in requests])
    assert session.query("feed_f") == [("B",), ("C",)]


def refused(text: str, line: int, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load({"a.mg": text})
    found = [item for item in caught.value.diagnostics if item.code == "policy.fold"]  # type: ignore[attr-defined]
    assert any(message in item.message and item.place.line == line for item in found), (
        caught.value.diagnostics
    )
