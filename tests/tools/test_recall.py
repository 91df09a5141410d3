"""`recall` over an archive in memory: list, slice, search, and what is not there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spak.lang.schema import violations
from spak.ports import Call, Kept, ToolResult
from spak.tools.recall import HITS, LENGTH, LISTED, Recall


class Texts:
    def __init__(self, *texts: str) -> None:
        self.texts = texts

    def refs(self) -> Sequence[Kept]:
        return [Kept(index, "look", len(text)) for index, text in enumerate(self.texts, start=1)]

    def text(self, ref: int) -> str | None:
        return self.texts[ref - 1] if 1 <= ref <= len(self.texts) else None


def recall(archive: Texts | None, **args: Any) -> ToolResult:
    assert not violations(Recall.entry.schema, args)
    return Recall().run(Call("id", "recall", args, Path("/nowhere"), None, archive=archive))


def test_it_lists_what_there_is() -> None:
    assert recall(Texts("a", "bcd")).output == b"ref://1 look 1B\nref://2 look 3B"
    assert recall(Texts()).output == b"nothing yet"


def test_a_long_list_is_read_in_parts() -> None:
    texts = Texts(*("x" for _ in range(LISTED + 7)))
    assert recall(texts).output.decode().endswith(f"[7 more: start {LISTED + 1}]")
    assert recall(texts, start=LISTED + 1).output.count(b"\n") == 6


def test_slices_put_together_are_the_text() -> None:
    text = "".join(chr(97 + index % 26) for index in range(10_000))
    read, start = "", 0
    while start < len(text):
        out = recall(Texts(text), ref=1, start=start).output.decode()
        read += out[:LENGTH] if len(text) - start > LENGTH else out
        start += LENGTH
    assert read == text
    assert recall(Texts(text), ref=1).output.decode().endswith("[6000 characters more: start 4000]")


def test_a_search_shows_each_place_newest_first() -> None:
    found = recall(Texts("an HAT110 here", "no", "HAT110\nand HAT110"), search="HAT110").output.decode()
    assert found.splitlines() == [
        "ref://3 at 0: HAT110 and HAT110",
        "ref://3 at 11: HAT110 and HAT110",
        "ref://1 at 3: an HAT110 here",
    ]
    assert recall(Texts("x HAT110", "HAT110"), search="HAT110", ref=1).output == b"ref://1 at 2: x HAT110"


def test_a_search_is_bounded() -> None:
    assert recall(Texts("a" * 100_000), search="a").output.count(b"\n") == HITS - 1


@pytest.mark.parametrize(
    ("archive", "args", "code"),
    [
        (None, {}, "recall.nothing"),
        (Texts("x"), {"ref": 2}, "recall.unknown"),
        (Texts("x"), {"search": "y"}, "recall.no_match"),
        (Texts("x"), {"search": "x", "ref": 9}, "recall.no_match"),
    ],
)
def test_what_is_not_there_is_said(archive: Texts | None, args: dict[str, Any], code: str) -> None:
    done = recall(archive, **args)
    assert done.exit == 1
    assert done.diagnostics[0]["code"] == code
