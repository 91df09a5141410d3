"""What a tool puts out while it runs: the newest end, at any speed, and never a part of a secret."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak.runner import live
from spak.runner.live import LIMIT, MOST_HELD, TAIL, Live
from spak.secrets.redact import Redactor
from spak.secrets.secret import Secret

KEY = "canary-5f1d0c77e0b94a"
PHRASE = "correct horse\nbattery staple"
PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + "QUJDREVG\n" * 8 + "-----END RSA PRIVATE KEY-----\n"
BEARER = "Authorization: Bearer  abcdefgh0123"
TOKEN = "ghp_" + "Ab1" * 12
PAT = "github_pat_" + "Gh2" * 12
URL = "https://joe:opensesame1@host/"
SECRETS = (KEY, PHRASE, PEM, BEARER, TOKEN, PAT, URL)
PARTS = ("canary-5f1d", "horse", "battery", "QUJDREVG", "abcdefgh", "Ab1Ab1", "Gh2Gh2", "opensesame")
"""Of each secret, what may not be seen."""
RED = "\x1b[31m"
REDACTOR = Redactor([Secret(KEY), Secret(PHRASE)])


def shown(*chunks: bytes, redactor: Redactor | None = REDACTOR) -> str:
    """What is to be seen after each chunk was looked at."""
    held = Live(redactor)
    text = ""
    said = REDACTOR.text(b"".join(chunks).decode("utf-8", "replace").replace(RED, ""))
    for chunk in chunks:
        held.heard(1, chunk)
        text = held.look().text
        assert not any(part in text and part not in said for part in PARTS)
    return text


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_that_is_split_at_any_byte(secret: str) -> None:
    data = f"before {secret} after\n".encode()
    for at in range(len(data)):
        text = shown(data[:at], data[at:])
        assert text.startswith("before ") and text.endswith(" after\n") and "[redacted:" in text, at
    assert shown(*(data[at : at + 1] for at in range(len(data)))) == REDACTOR.text(data.decode())


@given(
    st.lists(st.sampled_from((*SECRETS, "word ", "\n", "....", "\r", RED, "-----BEGIN ", "sk-", "é"))),
    st.integers(1, 40),
)
def test_whatever_the_pieces_no_secret_is_seen(parts: list[str], size: int) -> None:
    data = "".join(parts).encode()
    shown(*(data[at : at + size] for at in range(0, len(data), size)))


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_behind_a_gap(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its beginning is dropped, at each of its bytes, and what is left of it is not shown."""
    monkeypatch.setattr(live, "LIMIT", 64 + len(secret))
    for kept in range(1, len(secret)):
        held = Live(REDACTOR)
        rest = secret[-kept:].encode()
        data = b"x" * 2000 + secret[:-kept].encode() + rest
        data += b" there\nand on\n".ljust(live.LIMIT - len(rest), b".")
        held.heard(1, data + b"\nlast\n")
        text = held.look().text
        assert not any(part in text for part in PARTS), kept
        assert "left out" in text and text.endswith("last\n")


@pytest.mark.parametrize("before", ["", PEM.rstrip()])
@pytest.mark.parametrize("redactor", [REDACTOR, None])
def test_a_key_block_that_begins_in_the_line_that_a_gap_leaves_out(
    before: str, redactor: Redactor | None
) -> None:
    held = Live(redactor)
    held.heard(1, (f"{'x' * 3 * LIMIT} {before} {PEM}").encode() + b"end of it\nlast\n")
    text = held.look().text
    assert text.endswith("last\n") and "left out" in text
    assert "QUJDREVG" not in text or redactor is None


def test_an_escape_that_is_none_hides_no_mark_of_a_key_block() -> None:
    assert "QUJDREVG" not in shown(f"\x1b{PEM}\x1b".encode(), b"last\n")


def test_words_and_dots_come_as_they_are_put_out() -> None:
    held = Live(REDACTOR)
    for piece, seen in ((b"..", ".."), (b"F.", "..F."), (b" [ 4", "..F. [ 4"), (b"%]\n", "..F. [ 4%]\n")):
        held.heard(1, piece)
        assert held.look().text == seen


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        (b"10%\r50%\r100%\n", "100%\n"),
        (b"10%\r50%\r", "50%"),
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        (b"\x1b[1;31merror\x1b[0m: no\x1b[K\n", "error: no\n"),
        (b"\x1b]0;a title\x07text\x1b[", "text"),
        (b"a\0b\x01\x7f\xc2\x9bc\td\n", "abc\td\n"),
        (b"|\b/\b-\n", "-\n"),
        (b"<b>&amp;</b>\n", "<b>&amp;</b>\n"),
        (b"\xff\xfe caf\xc3", "\ufffd\ufffd caf"),
    ],
)
def test_as_a_terminal_would_show_it(data: bytes, seen: str) -> None:
    assert shown(data, redactor=None) == seen
    assert shown(*(data[at : at + 1] for at in range(len(data))), redactor=None) == seen


def test_a_character_cut_in_its_middle() -> None:
    assert shown("né".encode()[:2], "né".encode()[2:] + b"\n") == "né\n"


def test_a_flood_is_counted_and_its_end_is_shown() -> None:
    held = Live(REDACTOR)
    chunk = b"".join(b"line %07d\n" % number for number in range(1 << 14))
    for _ in range(400):
        held.heard(1, chunk)
    held.heard(2, b"and an error\n")
    found = held.look()
    assert found.size == 400 * len(chunk) + 13
    assert len(found.text.encode()) < TAIL + 100 and found.text.endswith("line 0016383\nand an error\n")
    first, *lines = found.text.split("\n")
    assert int(first.split()[1].replace(",", "")) == found.size - len("\n".join(lines))
    assert sum(len(source._raw) for source in held._sources.values()) == 0


def test_a_word_without_end_is_left_out_and_the_next_line_is_not() -> None:
    held = Live(REDACTOR)
    for _ in range(8):
        held.heard(1, b"sk-" + b"a" * (MOST_HELD // 2))
        assert "aaa" not in held.look().text
    for line in range(9):  # after as much as the longest secret with spaces in it, looked at line by line
        held.heard(1, b"\nnext %d" % line)
        text = held.look().text
    assert "left out" in text and text.endswith("next 7\nnext 8")


def test_two_streams_do_not_stand_in_one_line() -> None:
    held = Live()
    held.heard(1, b"compiling")
    assert held.look().text == "compiling"
    held.heard(2, b"warning\n")
    held.heard(1, b"done\n")
    assert sorted(held.look().text.splitlines()) == ["compilingdone", "warning"]
    assert held.look().last_line == "warning"


def test_it_wakes_once_for_each_look() -> None:
    calls: list[int] = []
    held = Live(None, lambda: calls.append(1))
    for _ in range(3):
        held.heard(1, b"a")
        held.heard(1, b"b")
        held.look()
    assert len(calls) == 3


def test_noise(tmp_path: Path) -> None:
    """Whatever bytes in whatever pieces: a text comes out, and it is short."""
    chance = random.Random(7)
    held = Live(REDACTOR)
    for _ in range(60):
        held.heard(chance.choice((1, 2)), chance.randbytes(chance.choice((1, 50, LIMIT, 3 * LIMIT))))
        text = held.look().text
        assert len(text.encode()) < TAIL + 100 and "\0" not in text and "\x1b" not in text
