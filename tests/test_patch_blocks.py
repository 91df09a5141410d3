"""Marked blocks: what is read, what is refused, and that nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from spak.errors import UsageError
from spak.patch import blocks

TEXT = """import math
# SPAK-EVOLVE-BEGIN one
x = 1
# SPAK-EVOLVE-END
  // SPAK-EVOLVE-BEGIN two
  y = 2

  // SPAK-EVOLVE-END two
last"""


def test_blocks_are_read_and_put_back() -> None:
    found = blocks.read(TEXT)
    assert found.blocks == {"one": "x = 1\n", "two": "  y = 2\n\n"}
    assert found.filled({}) == TEXT
    assert found.filled({"one": "x = 7\n"}) == TEXT.replace("x = 1", "x = 7")


def test_line_ends_of_windows_stay() -> None:
    text = TEXT.replace("\n", "\r\n")
    assert blocks.read(text).filled({}) == text
    assert blocks.read(text).blocks["one"] == "x = 1\r\n"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("x = 1\n", "missing", 0),
        ("", "missing", 0),
        ("# SPAK-EVOLVE-BEGIN a\nx\n# SPAK-EVOLVE-BEGIN b\ny\n# SPAK-EVOLVE-END\n", "nested", 3),
        (2 * "# SPAK-EVOLVE-BEGIN a\nx\n# SPAK-EVOLVE-END\n", "twice", 4),
        ("# SPAK-EVOLVE-BEGIN a\n# SPAK-EVOLVE-END\n", "empty", 1),
        ("# SPAK-EVOLVE-BEGIN a\n \t\n\n# SPAK-EVOLVE-END\n", "empty", 1),
        ("x\n# SPAK-EVOLVE-BEGIN a\nx\n", "open", 2),
        ("# SPAK-EVOLVE-BEGIN\nx\n# SPAK-EVOLVE-END\n", "marker", 1),
        ("# SPAK-EVOLVE-BEGIN 1a\nx\n# SPAK-EVOLVE-END\n", "marker", 1),
        ("# SPAK-EVOLVE-END\n", "marker", 1),
        ("# SPAK-EVOLVE-BEGIN a\nx\n# SPAK-EVOLVE-END b\n", "marker", 3),
        ("x = 1  # SPAK-EVOLVE-BEGIN a\ny\n# SPAK-EVOLVE-END\n", "marker", 1),
        ("/* SPAK-EVOLVE-BEGIN a */\ny\n// SPAK-EVOLVE-END\n", "marker", 1),
        ("".join(f"# SPAK-EVOLVE-BEGIN a{k}\nx\n# SPAK-EVOLVE-END\n" for k in range(17)), "too_many", 49),
        (TEXT + "\0", "text", 0),
        (TEXT + "\x1b[31m", "text", 0),
        ("x\r" + TEXT, "text", 0),
        (TEXT + "x" * blocks.MAX_TEXT, "text", 0),
    ],
)
def test_a_bad_file_is_refused_with_its_line(text: str, code: str, line: int) -> None:
    with pytest.raises(UsageError) as caught:
        blocks.read(text)
    assert caught.value.code == f"blocks.{code}"
    assert caught.value.message.startswith(f"line {line}: ") is bool(line)


LINES = some.sampled_from(
    [
        "# SPAK-EVOLVE-BEGIN a",
        "// SPAK-EVOLVE-BEGIN b",
        "# SPAK-EVOLVE-END",
        "x",
        "",
        "\u2028",
        "SPAK-EVOLVE",
        "\r",
    ]
)


@given(some.lists(LINES, max_size=12).map("\n".join))
def test_a_text_is_refused_or_put_back_byte_by_byte(text: str) -> None:
    try:
        found = blocks.read(text)
    except UsageError as error:
        assert error.code.startswith("blocks.")
    else:
        assert found.filled({}) == text and all(found.blocks.values())
