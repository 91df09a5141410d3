"""What is kept of answers: bounded by the size of the questions, not by their number."""

from __future__ import annotations

import threading

import pytest

from spak.datalog import session
from spak.datalog.errors import PolicyError
from spak.kept import by_size
from spak.runner.genesis import all_shipped


def test_what_was_asked_least_recently_goes_when_the_questions_get_too_large() -> None:
    asked: list[str] = []

    @by_size(10)
    def answer(text: str, more: tuple[tuple[str, bytes], ...], flag: bool) -> str:
        """Its documentation."""
        asked.append(text)
        return text.upper()

    def computes(text: str, more: tuple[tuple[str, bytes], ...] = (), flag: bool = False) -> bool:
        before = len(asked)
        assert answer(text, more, flag) == text.upper()
        return len(asked) > before

    assert answer.__doc__ == "Its documentation."
    assert computes("aaaa") and computes("bbbb") and not computes("aaaa")  # `b` is the older one now
    assert computes("a", (("x", b"yz"),))  # 4 more: `b` goes
    assert not computes("aaaa") and not computes("a", (("x", b"yz"),)) and computes("bbbb")
    assert computes("x" * 11) and computes("x" * 11)  # never kept, and nothing else goes for it
    assert not computes("bbbb") and computes("bbbb", flag=True)


def test_an_error_is_not_kept() -> None:
    calls: list[int] = []

    @by_size(100)
    def answer(text: str) -> str:
        calls.append(1)
        raise ValueError(text)

    for _ in range(2):
        with pytest.raises(ValueError, match="bad"):
            answer("bad")
    assert len(calls) == 2


def test_threads_that_ask_the_same_at_once_count_it_once() -> None:
    both, computed = threading.Barrier(2), []

    @by_size(10)
    def answer(text: str) -> str:
        if text == "aaaa":
            both.wait(60)
        computed.append(text)
        return text

    threads = [threading.Thread(target=answer, args=("aaaa",)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answer("bbbbbb") == "bbbbbb"  # 10 in all, if the first one is not counted twice
    answer("bbbbbb")
    assert answer("aaaa") == "aaaa" and computed == ["aaaa", "aaaa", "bbbbbb"]


def test_files_of_policies_are_parsed_once_while_they_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the law; a file of 2 MB, which a spec may have, would take 100 MB."""
    parsed: list[str] = []
    real = session.parse

    def parse(text: str, name: str) -> session.Source:
        parsed.append(name)
        return real(text, name)

    monkeypatch.setattr(session, "_read", by_size(session.KEPT_CHARS)(parse))
    law = all_shipped()
    assert sum(map(len, law.values())) < session.KEPT_CHARS / 4
    large = "#" + " " * session.KEPT_CHARS
    for number in range(2):
        session.load({**law, "large": large})
        with pytest.raises(PolicyError):
            session.load({**law, f"wrong_{number}": "this is no rule"})
    assert sorted(parsed) == sorted([*law, "large", "large", "wrong_0", "wrong_1"])
