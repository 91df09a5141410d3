"""Counting tokens: additive over items, the same every time, bounded for any text."""

from __future__ import annotations

import builtins
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak import tokens
from spak.errors import UnavailableError


def test_known_counts() -> None:
    assert tokens.of_text("") == 0
    assert tokens.of_text("hello world") == 2
    assert tokens.count([{"role": "user", "name": "x", "text": "hello world"}]) == 2 + tokens.FRAME
    assert tokens.count([]) == 0


def test_names_of_special_tokens_are_text() -> None:
    assert tokens.of_text("<|endoftext|>") > 1


def test_the_tokenizer_says_its_version() -> None:
    assert tokens.tokenizer().startswith(f"{tokens.ENCODING}/")


@given(st.text(max_size=60))
def test_a_text_never_has_more_tokens_than_bytes(text: str) -> None:
    assert tokens.of_text(text) <= len(text.encode())


@pytest.mark.parametrize("text", ["a" * 300_000, " " * 300_000, "line\n" * 60_000])
def test_long_texts_are_counted_in_pieces(text: str) -> None:
    pieces = list(tokens._pieces(text))
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= tokens.PIECE
    assert tokens.of_text(text) == sum(map(tokens.of_text, pieces))


def test_without_a_tokenizer_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "tiktoken":
            raise ImportError("no module named tiktoken")
        return kept(name, *args, **kwargs)

    tokens._encoding.cache_clear()
    tokens.of_text.cache_clear()
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(UnavailableError) as raised:
        tokens.of_text("x")
    assert raised.value.code == "unavailable.tokenizer"
    monkeypatch.undo()
    tokens._encoding.cache_clear()
    assert tokens.of_text("x") == 1
