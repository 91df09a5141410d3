"""Values are found however a program writes them, and nothing is found by chance."""

from __future__ import annotations

import base64
import re
import string
import time

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from disguises_kit import APART, FORMS, How, core
from spak.llm.redact import Redactor

SIGNS = "+/=_-.!$&%@#(){}:;,<>~ '\"\\"
VALUES = st.text(string.ascii_letters + string.digits + SIGNS, min_size=12, max_size=64).filter(
    lambda value: value == value.strip() and len(core(value)) > 11 and not core(value).isalpha()
    and not core(value).isdigit() and len(set(value)) > 5
    and not re.fullmatch("[0-9]{0,2}[a-z]+[0-9]{0,2}", core(value))
)  # fmt: skip
AROUND = st.text(string.ascii_lowercase + "= \n", max_size=9)


def check(value: str, how: How, before: str, after: str) -> None:
    whole = how(f"{before}{value}{after}".encode())
    redactor = Redactor().knowing([value])
    found = redactor.text(f"it says\n{whole}\nand ends")
    assert found.startswith("it says\n") and found.endswith("\nand ends"), found
    alone = how(value.encode())
    assert alone not in found and "[redacted:key]" in found, found
    assert core(alone) not in core(found), found
    assert redactor.text(found) == found


@pytest.mark.parametrize("form", [*FORMS, *APART])
@settings(max_examples=30, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(value=VALUES, before=AROUND, after=AROUND)
def test_no_form_of_a_value_is_left(form: str, value: str, before: str, after: str) -> None:
    check(value, (FORMS | APART)[form], before, after)


@pytest.mark.parametrize("tail", ["%", "%5", "\\", "\\x5", "\\u00e", "\\1", "&", "&#4", "&am", "+0"])
def test_an_escape_does_not_begin_within_a_value(tail: str) -> None:
    for after in ("dab", "7;", "p;", "x41"):
        check(f"correct-9-horse{tail}", FORMS["plain"], "key ", after)
        check(f"correct-9-Horse{tail}", FORMS["capitals"], "key ", after)


NOT_SHORT = {"od", "od -x", "od -tx4", "hexdump", "folded"}


@pytest.mark.parametrize("form", sorted(FORMS.keys() - NOT_SHORT))
@pytest.mark.parametrize("value", ["hunt3r22", "a-B3c_D4", "pa&sw%rd", "x'y\"z\\1w2_3"])
def test_nor_of_one_of_eight_characters(form: str, value: str) -> None:
    check(value, FORMS[form], "", "")


@pytest.mark.parametrize(
    "form", ["plain", "backwards", "rot13", "hex", "HEX", "od -An -tx1", "xxd", "hexdump -C"]
)
def test_nor_some_of_one_of_six(form: str) -> None:
    check("a1-b2c", FORMS[form], "x = ", "\n")


@pytest.mark.parametrize("form", ["hex with colons", "hex with dashes", "an array of C"])
def test_nor_its_hex_with_one_separator(form: str) -> None:
    check("a1-b2c", FORMS[form], "", "")


@pytest.mark.parametrize("form", sorted(FORMS.keys() - NOT_SHORT - {"capitals", "other case"}))
def test_nor_of_a_word_with_a_number(form: str) -> None:
    check("hunter22", FORMS[form], "", "")


@pytest.mark.parametrize("form", ["capitals", "other case", *APART])
def test_nor_of_a_long_one(form: str) -> None:
    check("CorrectHorseBatteryStaple9", (FORMS | APART)[form], "", "")


@pytest.mark.parametrize("form", ["capitals", "other case", "small letters"])
@pytest.mark.parametrize(
    "value", ["redis://Kp3x@db/x", "https://db/x?key=Kp3xQ", "Correct/Horse-9", "2024-01-15-Kp3x"]
)
def test_nor_of_one_that_only_looks_ordinary(form: str, value: str) -> None:
    check(value, FORMS[form], "", "")


OF_BYTES = {"unicode, all", "unicode in braces", "unicode, eight", "html, all", "html in hex, all"}


@pytest.mark.parametrize("value", ["Zürich-in-8-Tagen", "пароль-на-42-дня", "\U0001f511-key-of-the-9"])
@pytest.mark.parametrize("form", sorted(FORMS.keys() - OF_BYTES))
def test_nor_of_one_beyond_ascii(form: str, value: str) -> None:
    check(value, FORMS[form], "", "")


@pytest.mark.parametrize(
    "shown",
    [
        "\\u043f\\u0430\\u0440\\u043e\\u043b\\u044c-\\u043d\\u0430-42",
        "&#1087;&#x430;&#1088;&#1086;&#1083;&#1100;-на-42",
    ],
)
def test_letters_beyond_ascii_by_their_numbers(shown: str) -> None:
    assert Redactor().knowing(["пароль-на-42"]).text(f"<{shown}>") == "<[redacted:key]>"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("abcdefg", "ABCDEFG a b c d e f g"),
        ("inventory", "class Inventory: i-n-v-e-n-t-o-r-y"),
        ("hunter2x", "hunter 2x"),
        ("123456", " ".join(map(str, range(100)))),
        ("12345678", " ".join(map("{:02x}".format, range(256)))),
        ("654321", "36,35,34,33,32,31"),
        ("890123", "38 39 30 31 32 33"),
        ("112233", "31, 31, 32, 32, 33, 33"),
        ("fedcba", "66 65 64 63 62 61"),
        ("a1-b2c", "61 31 2d\n62 32 63"),
        ("a1-b2c", "6131, 2d62 3263"),
        ("a1-b2c", "613 12d 623 263"),
        ("abcdefgh", str(list(range(256)))),
        ("2024010112", "2024-01-01 12:00:00"),
        ("'localhost'", "http://localhost:8000"),
        ("correcthorse", "correct horse"),
        ("python-3.11", "Python 3, 11 of them"),
        ("Europe/Oslo", "EUROPE/OSLO europe/oslo"),
        ("America/Argentina/Buenos_Aires", "america argentina buenos aires"),
        ("http://web:8000", "HTTP://WEB:8000"),
        ("postgres://db.internal:5432/inventory", "Postgres: db, internal, 5432, inventory"),
        ("Summary1", "SUMMARY1 summary1"),
        ("MyProjectDb12", "my_project_db_12 MYPROJECTDB12"),
        ("2024-01-15T10:00", "20240115T1000"),
        ("2024-01-15T10:00:00Z", "20240115T100000Z 2024-01-15t10:00:00z"),
    ],
)
def test_nothing_is_found_by_chance(value: str, text: str) -> None:
    assert Redactor().knowing([value]).text(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        "00000000: 6875 6e74  hu\n",
        "%68%75",
        "\\x68",
        "&#104;",
        "hunter",
        "68 ",
        "\\u0068\\n",
        "0x",
        "[redacted:key]",
        "\x1b[m",
    ],
)
def test_hostile_text_takes_no_longer(piece: str) -> None:
    """Quadratic work on this much would take hours, and the suite's limit end it."""
    redactor = Redactor().knowing(["hunter22-Kp3x"])
    found = redactor.text(piece * 30_000 + "hunter%32%32-Kp3x")
    assert found.count("[redacted:key]") >= 1 and redactor.text(found) == found


TOKEN = "Zx9vQ2mLr7Tn4KpW8sYc3HdJ6fBg1Ae5"
PIECES: dict[str, str] = {
    "the beginning": TOKEN[:12],
    "the end": TOKEN[-12:],
    "all but two": TOKEN[1:-1],
    "in columns": "\n".join(f"{number}:{TOKEN[number : number + 13]}" for number in (0, 13)),
    "with spaces": " ".join(TOKEN[3:17]),
    "backwards": TOKEN[4:20][::-1],
    "in capitals": TOKEN[7:21].upper(),
    "hex": TOKEN[5:25].encode().hex(" "),
    "base64": base64.b64encode(f"KEY={TOKEN}".encode()).decode()[8:36],
    "a letter in every row": "\n".join(f"{TOKEN[at : at + 12]}|" for at in range(0, 24, 12)),
}
"""What `cut`, `grep -o`, `head -c` and expansions of shells leave of a value."""


@pytest.mark.parametrize("form", PIECES)
@pytest.mark.parametrize("value", [TOKEN, f"postgres://app:{TOKEN}@db.internal/app", f"sk_live_{TOKEN}"])
def test_nor_is_a_piece_of_one_left(form: str, value: str) -> None:
    found = Redactor().knowing([value]).text(f"it says\n{PIECES[form]}\nand ends")
    assert "[redacted:key]" in found and found.startswith("it says\n") and found.endswith("\nand ends"), found
    for at in range(len(TOKEN) - 11):
        for piece in (TOKEN[at : at + 12], TOKEN[::-1][at : at + 12]):
            assert core(piece) not in core(found)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (TOKEN, f"{TOKEN[:11]} {TOKEN[20:31]}"),
        (f"postgres://app:{TOKEN}@db.internal/app", "the host db.internal/app, postgres://app"),
        ("developmentKey-Zx9vQ2mLr7Tn4KpW8sYc", "a developmentKey of the developmentKeys"),
        ("AnotherPlainWordOfTheProject2", "AnotherPlainWordOfThe"),
        ("correcthorsebatterystaple", "correct horse battery"),
    ],
)
def test_no_piece_is_found_by_chance(value: str, text: str) -> None:
    assert Redactor().knowing([value]).text(text) == text


@pytest.mark.timeout(60)
@pytest.mark.parametrize("row", ["A" * 64, "A" * 20, "aB1" * 200])
def test_a_value_with_a_long_row_of_signs_holds_nothing_up(row: str) -> None:
    """Every place of such a text was compared with every place of the value."""
    found = Redactor().knowing([f"{TOKEN}{row}{TOKEN[::-1]}"])
    text = row[:3] * 200_000
    assert TOKEN[:20] not in found.text(f"{text}\n{TOKEN[:20]}\n{text}")


@pytest.mark.parametrize("text", ["MY2PROJECTDB x\n", "MY2PROJECTDB x "])
def test_many_hits_take_no_longer(text: str) -> None:
    """The whole text was copied for every hit, and a long line searched for its ends."""

    def cpu(times: int) -> float:
        begin = time.process_time()
        found = Redactor().knowing(["My2ProjectDb"]).text(f"46ce63cb State x\n{text * times}")
        end = time.process_time()
        assert found == "46ce63cb State x\n" + text.replace("MY2PROJECTDB", "[redacted:key]") * times
        return end - begin

    few = min(cpu(4_000) for _ in range(3))
    assert cpu(40_000) < 40 * few  # 10 times where it is linear, 100 where it grows by the square


def test_a_row_takes_no_other_lines_with_it() -> None:
    """`git log --oneline` prints what looks like rows of a dump."""
    redactor = Redactor().knowing(["My2ProjectDb"])
    row = "46ce63cb State x"
    assert redactor.text(f'{row}\n{{"db": "MY2PROJECTDB", "n": 1}}\n{row}') == (
        f'{row}\n{{"db": "[redacted:key]", "n": 1}}\n{row}'
    )
