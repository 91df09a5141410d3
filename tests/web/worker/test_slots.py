"""Slots of a worker: waits for models hold none, and what is to stop is stopped without one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from process_kit import WAIT_S
from spakweb.work.worker import slots
from spakweb.work.worker.slots import Slots

pytestmark = pytest.mark.django_db


@pytest.fixture
def one(monkeypatch: pytest.MonkeyPatch) -> Slots:
    made = Slots(1)
    monkeypatch.setattr(slots, "_slots", made)
    return made


def in_background(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=lambda: slots.use(work))
    thread.start()
    return thread


def test_a_wait_for_a_model_gives_its_slot_to_others(one: Slots) -> None:
    answered, asked, back = threading.Event(), threading.Event(), threading.Event()
    heard: list[str] = []

    def asks() -> None:
        with slots.without_slot(lambda: False):
            asked.set()
            answered.wait(WAIT_S)
        heard.append("asks")
        back.set()

    slots.use(asks)  # comes back while the model thinks
    assert asked.wait(WAIT_S) and heard == []
    slots.use(lambda: heard.append("another"))
    answered.set()
    assert back.wait(WAIT_S) and heard == ["another", "asks"]


def test_back_from_the_model_it_waits_for_a_slot(one: Slots) -> None:
    answered, go, back = threading.Event(), threading.Event(), threading.Event()

    def asks() -> None:
        with slots.without_slot(lambda: False):
            answered.wait(WAIT_S)
        back.set()

    slots.use(asks)
    busy = in_background(lambda: bool(go.wait(WAIT_S)))
    while one._free:
        time.sleep(0.01)
    answered.set()
    assert not back.wait(0.3)
    go.set()
    assert back.wait(WAIT_S)
    busy.join(WAIT_S)


def test_what_is_to_stop_waits_for_no_slot(one: Slots) -> None:
    answered, go, back, leave = (threading.Event() for _ in range(4))

    def asks() -> None:
        with slots.without_slot(leave.is_set):
            answered.wait(WAIT_S)
        back.set()

    slots.use(asks)
    busy = in_background(lambda: bool(go.wait(WAIT_S)))
    answered.set()
    leave.set()
    assert back.wait(WAIT_S)
    go.set()
    busy.join(WAIT_S)
    slots.use(lambda: None)
    assert one._free == 1


def test_only_so_many_are_away(one: Slots, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "MOST_WAITING", 0)
    done: list[int] = []

    def asks() -> None:
        with slots.without_slot(lambda: False):
            time.sleep(0.05)
        done.append(1)

    slots.use(asks)
    assert done == [1], "it kept its slot, and its worker's thread"


def test_what_goes_wrong_is_told_and_leaves_the_slot(one: Slots) -> None:
    def fails() -> None:
        raise ValueError("told")

    for _ in range(2):
        with pytest.raises(ValueError, match="told"):
            slots.use(fails)
    assert one._free == 1


def test_without_slots_work_is_done_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "_slots", None)
    here: list[int] = []

    def work() -> None:
        with slots.without_slot(lambda: False):
            here.append(threading.get_ident())

    slots.use(work)
    assert here == [threading.get_ident()]
