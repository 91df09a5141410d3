"""The state of folds against a naive evaluator over the full history, and its room."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive_history import Everything
from spak import canon
from spak.datalog.folds import KINDS, Fold, Window
from spak.datalog.values import MAX_INT, encode
from spak.kernel import snapshot
from spak.policy.history import state
from spak.policy.history.state import History, from_data, to_data

KEYS = [(encode(name),) for name in ("a", "b", "c")]


def one(kind: str, **more: Any) -> Fold:
    return Fold("f", kind, 1, **more)


WINDOWS = st.none() | st.builds(Window, st.integers(1, 60), st.booleans())


@st.composite
def traces(draw: Any) -> tuple[Fold, list[Any]]:
    """A fold, and events: requests with what they feed, answers to calls under way, in any order."""
    kind = draw(st.sampled_from(KINDS))
    counts = "held" if kind == "pending" else draw(st.sampled_from(("held", "asked", "done")))
    window = None if kind == "pending" else draw(WINDOWS)
    fold = one(kind, window=window, counts=counts)
    value = st.integers(-9, 9) if kind in ("sum", "last") else st.none()

    def fed() -> Any:
        rows = st.builds(
            lambda key, item: key if item is None else (*key, item), st.sampled_from(KEYS), value
        )
        row = st.tuples(st.just("f"), st.just(False), rows)
        if kind == "open":
            row |= st.tuples(st.just("f"), st.just(True), st.sampled_from(KEYS))
        return draw(st.lists(row, max_size=3, unique=True).map(tuple))

    events: list[Any] = []
    waiting: list[str] = []
    at = 1000
    for number in range(draw(st.integers(1, 24))):
        at += draw(st.integers(-5, 30))
        if waiting and draw(st.booleans()):
            call = waiting.pop(draw(st.integers(0, len(waiting) - 1)))
            events.append(("end", call, at, draw(st.booleans()), fed()))
        else:
            allow = draw(st.booleans())
            events.append(("ask", str(number), at, allow, fed()))
            waiting += [str(number)] if allow else []
    return fold, events


def walked(fold: Fold, events: list[Any], split: bool) -> None:
    """Both evaluators over the same events, compared at every request; `split` takes the state through a
    snapshot before each event, as a run does that is resumed there."""
    folds = {"f": fold}
    history, full = History(), Everything(folds)
    for number, (kind, call, at, yes, fed) in enumerate(events):
        if split:
            history = snapshot.decode(canon.loads(canon.dumps(snapshot.encode(history))))
        if kind == "end":
            history = state.settled(folds, history, call, at, done=yes, record=number, fed=fed)
            full.settled(call, at, yes, fed if yes else ())
            continue
        history = state.begin(history, at)
        full.begin(at)
        compare(fold, history, full)
        history, trouble = state.requested(folds, history, call, fed, allow=yes, record=number)
        assert not trouble
        full.requested(call, fed, yes)
    compare(fold, state.begin(history, 0), _later(full))


def _later(full: Everything) -> Everything:
    full.begin(0)
    return full


def compare(fold: Fold, history: History, full: Everything) -> None:
    folds = {"f": fold}
    if fold.mode is None:
        shown = {tuple(map(encode, row)) for _, row in state.rows(folds, history)}
        assert shown == full.rows(fold)
    else:
        for key in KEYS:
            assert state.answer(folds, history, "f", key) == full.answer(fold, key)


EXAMPLES = int(os.environ.get("SPAK_FUZZ_EXAMPLES", "80"))


@pytest.mark.fuzz
@settings(max_examples=EXAMPLES, deadline=None)
@given(traces(), st.booleans())
def test_a_fold_is_what_the_full_history_says(trace: tuple[Fold, list[Any]], split: bool) -> None:
    walked(*trace, split)


def fed(
    history: History, fold: Fold, row: Any, at: int = 0, allow: bool = True, call: str = "c"
) -> tuple[History, str]:
    history = state.begin(history, at)
    folds = {"f": fold}
    history, trouble = state.requested(
        folds, history, call, (("f", False, row),), allow=allow, record=history.seq
    )
    if allow and not trouble:
        history = state.settled(folds, history, call, at, done=True, record=history.seq)
    return history, trouble


def test_both_ends_belong_to_a_window() -> None:
    fold = one("seen", window=Window(120_000))
    history, _ = fed(History(), fold, KEYS[0], at=1000)
    assert state.rows({"f": fold}, state.begin(history, 121_000)) == [("f", ("a", 120_000))]
    assert state.rows({"f": fold}, state.begin(history, 121_001)) == []


def test_a_clock_that_is_set_back_frees_nothing() -> None:
    fold = one("count", window=Window(1000))
    history, _ = fed(History(), fold, KEYS[0], at=5000)
    history = state.begin(history, 6000)
    assert state.answer({"f": fold}, state.begin(history, 10), "f", KEYS[0]) == 1
    assert state.begin(history, 10).now == 6000


def test_equal_times_are_ordered_by_sequence() -> None:
    fold = one("last")
    first, _ = fed(History(), fold, (*KEYS[0], 1), at=5000)
    history, _ = fed(first, fold, (*KEYS[0], 2), at=5000)
    assert state.rows({"f": fold}, state.begin(history, 5000)) == [("f", ("a", 2))]
    fold = one("open")
    folds = {"f": fold}
    for closes, wanted in (((False, True), []), ((True, False), [("f", ("a",))])):
        history = History()
        for number, close in enumerate(closes):
            history = state.begin(history, 5000)
            row = (("f", close, KEYS[0]),)
            history, _ = state.requested(folds, history, "c", row, allow=True, record=number)
            history = state.settled(folds, history, "c", 5000, done=True, record=number)
        assert state.rows(folds, state.begin(history, 5000)) == wanted


def test_steps_are_requests() -> None:
    fold = one("open", window=Window(2, steps=True))
    history, _ = fed(History(), fold, KEYS[0])
    seen = []
    for _ in range(3):
        history = state.begin(history, 0)
        seen.append(bool(state.rows({"f": fold}, history)))
    assert seen == [True, True, False]


@pytest.mark.parametrize("kind", ["seen", "open", "count", "sum", "last", "pending"])
def test_one_key_too_many_is_denied_by_name(kind: str) -> None:
    fold = one(kind, most_keys=2)
    history = History()
    for number in range(3):
        row = (encode(f"k{number}"), *([1] if kind in ("sum", "last") else []))
        history = state.begin(history, 0)
        history, trouble = state.requested(
            {"f": fold}, history, str(number), (("f", False, row),), allow=True, record=number
        )
        assert trouble == ("" if number < 2 else "the fold f is full: more than 2 keys")
    assert len(history.calls) == 2


@pytest.mark.parametrize("kind", ["seen", "open", "count"])
def test_of_ten_thousand_keys_those_beyond_the_bound_are_denied_and_none_is_dropped(kind: str) -> None:
    fold = one(kind, most_keys=64)
    folds = {"f": fold}
    history, denied = History(), 0
    for number in range(10_000):
        later, trouble = fed(history, fold, (encode(f"k{number}"),), at=number)
        assert trouble in ("", "the fold f is full: more than 64 keys")
        denied += bool(trouble)
        history = history if trouble else later
    assert denied == 10_000 - 64
    assert state.keys(fold, history) == [(encode(f"k{number}"),) for number in range(64)]
    assert state.blocked(folds, history) == ""


def test_keys_that_left_the_window_make_room() -> None:
    fold = one("seen", window=Window(10), most_keys=2)
    history = History()
    for number in range(5):
        history, trouble = fed(history, fold, (encode(f"k{number}"),), at=number * 11)
        assert not trouble
    assert len(history.tables["f"]) <= 2


def test_a_full_window_denies_until_something_leaves_it() -> None:
    fold = one("sum", window=Window(100), most_entries=2)
    history = History()
    for at, wanted in (
        (0, ""),
        (10, ""),
        (20, "the fold f is full: more than 2 entries within 100ms"),
        (101, ""),
    ):
        history, trouble = fed(history, fold, (*KEYS[0], 1), at=at)
        assert trouble == wanted
    assert state.answer({"f": fold}, history, "f", KEYS[0]) == 2


def test_a_sum_beyond_64_bits_is_denied() -> None:
    for window in (None, Window(100)):
        fold = one("sum", window=window)
        history, trouble = fed(History(), fold, (*KEYS[0], MAX_INT))
        assert not trouble
        assert fed(history, fold, (*KEYS[0], 1))[1] == "the fold f is full: its sum passes 64 bits"


def test_a_long_key_is_denied() -> None:
    assert "more than 256 bytes" in fed(History(), one("seen"), (encode("x" * 300),))[1]


def test_what_happened_already_and_finds_no_room_blocks_all_that_follows() -> None:
    """An answer cannot be denied any more, so what comes after it is."""
    fold = one("seen", counts="done", most_keys=1, window=Window(100))
    folds = {"f": fold}
    history = History()
    for number, key in enumerate(KEYS[:2]):
        history = state.begin(history, 0)
        history, trouble = state.requested(folds, history, str(number), (), allow=True, record=number)
        assert not trouble
        history = state.settled(
            folds, history, str(number), 0, done=True, record=number, fed=(("f", False, key),)
        )
    history = state.begin(history, 50)
    _, trouble = state.requested(folds, history, "x", (), allow=True, record=9)
    assert trouble == "the fold f had no room at record 1"
    later = state.begin(history, 101)
    assert state.requested(folds, later, "x", (), allow=True, record=9)[1] == ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("window", [None, Window(1000), Window(50, steps=True)])
def test_the_state_stays_within_its_bound(kind: str, window: Window | None) -> None:
    """2,000 events with hostile keys; `make bench` takes a million."""
    fold = one(kind, window=None if kind == "pending" else window, most_keys=16, most_entries=32)
    history, most = History(), 0
    for number in range(2000):
        key = encode(f"\x01\x02{number % 40}" * 9)
        row = (key, *([number] if kind in ("sum", "last") else []))
        history, _ = fed(history, fold, row, at=number * 7)
        if number % 100 == 0:
            kept = canon.dumps(to_data(history))
            assert from_data(canon.loads(kept)) == history
            most = max(most, len(canon.dumps(to_data(history)["tables"].get("f", []))))
    assert 0 < most <= state.bound(fold) or kind == "pending"
