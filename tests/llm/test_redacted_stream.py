"""Pieces of a text as they come: what is shown never holds a part of a secret."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spak.llm.redact import Redactor
from spak.llm.settings import Secret

KEY = "canary-5f1d0c77e0b94a"
PEM = "-----BEGIN PRIVATE KEY-----\nabcdefgh\nijklmnop\n-----END PRIVATE KEY-----\n"


@given(st.lists(st.sampled_from([KEY, PEM, "word ", "\n", "a line\n"]), max_size=12), st.integers(1, 40))
def test_whatever_the_pieces_no_secret_is_shown(parts: list[str], size: int) -> None:
    text = "".join(parts)
    shown: list[str] = []
    put = Redactor([Secret(KEY)]).stream(shown.append)
    for index in range(0, len(text), size):
        put(text[index : index + size])
    said = "".join(shown)
    assert KEY[:12] not in said and "abcdefgh" not in said and "ijklmnop" not in said
    assert Redactor([Secret(KEY)]).text(text).startswith(said)


def test_after_a_retry_the_text_begins_again() -> None:
    shown: list[str] = []
    put = Redactor().stream(shown.append)
    for piece in ("one\ntw", "", "three\n"):
        put(piece)
    assert shown == ["one\n", "", "three\n"]
