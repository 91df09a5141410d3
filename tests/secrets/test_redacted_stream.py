"""Pieces of a text as they come: what is shown never holds a part of a secret."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spak.secrets.redact import Redactor
from spak.secrets.secret import Secret

KEY = "canary-5f1d0c77e0b94a"
PHRASE = "correct horse battery"
PEM = "-----BEGIN PRIVATE KEY-----\nabcdefgh\nijklmnop\n-----END PRIVATE KEY-----\n"
HEAD = "Authorization: Bearer  abcdefgh0123 "
PARTS = [
    KEY,
    PHRASE,
    PEM,
    HEAD,
    "correct ",
    "word ",
    "\n",
    "a line\n",
    "authorization ",
    "-----BEGIN X----- ",
]


@given(st.lists(st.sampled_from(PARTS), max_size=12), st.integers(1, 40))
def test_whatever_the_pieces_no_secret_is_shown(parts: list[str], size: int) -> None:
    text = "".join(parts)
    shown: list[str] = []
    redactor = Redactor([Secret(KEY), Secret(PHRASE)])
    put = redactor.stream(shown.append)
    for index in range(0, len(text), size):
        put(text[index : index + size])
    said = "".join(shown)
    assert KEY[:12] not in said and "abcdefgh" not in said and "ijklmnop" not in said
    assert "horse" not in said
    assert redactor.text(text).startswith(said)


def test_words_come_before_their_line_is_whole() -> None:
    shown: list[str] = []
    put = Redactor([Secret(KEY)]).stream(shown.append)
    for piece in ('{"surface_', 'response": "Hel', "lo, wo", 'rld"}', "\n"):
        put(piece)
    assert shown == ['{"surface_response": ', '"Hello, ', 'world"}\n']


def test_a_word_without_end_is_not_kept_for_ever() -> None:
    shown: list[str] = []
    put = Redactor([Secret(KEY)]).stream(shown.append)
    for piece in ["x" * 1000] * 100 + ["end ", "more ", "", "again "]:
        put(piece)
    assert shown == ["", "again "]


def test_after_a_retry_the_text_begins_again() -> None:
    shown: list[str] = []
    put = Redactor().stream(shown.append)
    for piece in ("one\ntw", "", "three\n"):
        put(piece)
    assert shown == ["one\n", "", "three\n"]
