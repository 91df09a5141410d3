"""Signs that nobody sees: which they are, and how a terminal and a JSON document show them."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator

import pytest

from spak.unseen import SIGNS, in_json, written_out

SEEN = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
"""Format characters of Arabic, Syriac and Kaithi that are drawn; so are those of hieroglyphs."""
BESIDE_ASCII = "\u200c\u200d\ufe00\ufe0f"


def every() -> Iterator[str]:
    return map(chr, range(0x110000))


def test_every_control_and_format_character_is_one() -> None:
    kept = {"\t", "\n", "\r", "\u200c", "\u200d", *map(chr, SEEN), *map(chr, range(0x13430, 0x13440))}
    wanted = {sign for sign in every() if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - kept
    assert {sign for sign in wanted if not SIGNS.search(sign)} == set()


def test_nothing_that_is_written_is_one() -> None:
    assert not SIGNS.search("".join(sign for sign in every() if unicodedata.category(sign)[0] in "LNPS" and
                                    sign not in "\u115f\u1160\u3164\uffa0\u2800"))  # fmt: skip


@pytest.mark.parametrize("sign", BESIDE_ASCII)
def test_what_joins_letters_is_one_beside_ascii_alone(sign: str) -> None:
    assert SIGNS.search(f"a{sign}b") and not SIGNS.search(f"\u0645{sign}\u062e")


def test_a_terminal_gets_them_written_out() -> None:
    text = "rm\u200b -rf\x1b[2K\r\u202e ok\U000e0041\ta\n\xad"
    assert written_out(text) == "rm\\u200b -rf\\x1b[2K\\x0d\\u202e ok\\U000e0041\ta\n\\xad"


def test_json_with_them_written_out_says_the_same() -> None:
    value = {"a\u202e": ["x\u200by", "\U000e0041\u3164", "a\u200d", "\ufeff"]}
    text = in_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value and not SIGNS.search(text)
