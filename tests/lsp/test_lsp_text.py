"""Positions and the text of documents: exact in every encoding, and the same after any edits in steps."""

from __future__ import annotations

import random

import pytest
from lsprotocol import types

from lang_catalog import CATALOG
from lsp_kit import Client, session
from spak.lsp.documents import Documents, UnknownDocument
from spak.lsp.positions import ENCODINGS, Positions

UNITS = {"utf-16": ("utf-16-le", 2), "utf-8": ("utf-8", 1), "utf-32": ("utf-32-le", 4)}
TEXTS = [
    "",
    "plain\nlines\n",
    "no end",
    "carriage\r\nreturn\r\n",
    "old\rmac\r",
    "mixed\r\n\n\r\r\nend",
    "tab\there\n\t\tthere",
    "astral \U0001d54f\U0001f600 and \U0001f469‍\U0001f4bb\n\U0001d54f",
    "combining e\u0301\u0323 x\n\u05e9\u05dc\u05d5\u05dd",
    "separators \u2028 \u2029 \x0b \x0c \x85 \x1c are no ends\nof lines",
    "byte order \ufeff mark",
    "lone \ud800 surrogate\n\udfff",
]


def lines_of(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_an_offset_comes_back(text: str, encoding: str) -> None:
    """Against an independent count: the line before the offset, encoded."""
    codec, size = UNITS[encoding]
    positions = Positions(text, encoding)
    for offset in range(len(text) + 1):
        if text[offset - 1 : offset + 1] == "\r\n":
            assert positions.position(offset) == positions.position(offset - 1)
            continue
        before = lines_of(text[:offset])
        wanted = (len(before) - 1, len(before[-1].encode(codec, "surrogatepass")) // size)
        assert positions.position(offset) == wanted
        assert positions.offset(*wanted) == offset


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_lies_outside_is_the_nearest_end(encoding: str) -> None:
    text = "\U0001d54fab\r\nsecond"
    positions = Positions(text, encoding)
    assert positions.offset(0, 99) == 3
    assert positions.offset(1, 99) == len(text)
    assert positions.offset(9, 0) == len(text)
    assert positions.offset(0, -1) == 0
    assert positions.offset(-1, 5) == 0
    assert positions.position(-5) == (0, 0)
    assert positions.position(999) == (1, 6)


def test_inside_a_character_is_its_start() -> None:
    assert Positions("a\U0001d54fb").offset(0, 2) == 1
    assert Positions("a\U0001d54fb", "utf-8").offset(0, 3) == 1


# ---- documents -----------------------------------------------------------------------------------------


def opened(text: str) -> tuple[Documents, str]:
    documents = Documents(CATALOG)
    documents.open(types.TextDocumentItem("untitled:a", "spak", 1, text))
    return documents, "untitled:a"


def change(documents: Documents, uri: str, *parts: types.TextDocumentContentChangeEvent) -> str:
    named = types.VersionedTextDocumentIdentifier(2, uri)
    return documents.change(types.DidChangeTextDocumentParams(named, list(parts))).text


def part(first: tuple[int, int], last: tuple[int, int], text: str) -> types.TextDocumentContentChangePartial:
    return types.TextDocumentContentChangePartial(
        types.Range(types.Position(*first), types.Position(*last)), text
    )


@pytest.mark.parametrize("seed", range(20))
def test_edits_in_steps_give_the_text_of_a_plain_list(seed: int) -> None:
    """A model that keeps UTF-16 units in a list, one line after the other, against the document."""
    chance = random.Random(seed)
    alphabet = ["a", " ", "\t", "\n", "\r\n", "\U0001d54f", "e\u0301", "\u2028", "\x85", "{", '"']
    text = "".join(chance.choices(alphabet, k=60))
    documents, uri = opened(text)
    for _ in range(30):
        starts = [0, *(index + 1 for index, char in enumerate(text) if char == "\n")]
        cuts = sorted(chance.choices([i for i in range(len(text) + 1) if text[i - 1 : i + 1] != "\r\n"], k=2))
        places = []
        for cut in cuts:
            line = max(index for index, start in enumerate(starts) if start <= cut)
            places.append((line, len(text[starts[line] : cut].encode("utf-16-le")) // 2))
        new = "".join(chance.choices(alphabet, k=chance.randrange(4)))
        text = text[: cuts[0]] + new + text[cuts[1] :]
        assert change(documents, uri, part(places[0], places[1], new)) == text


def test_changes_of_one_notice_follow_each_other() -> None:
    documents, uri = opened("abc")
    assert change(documents, uri, part((0, 0), (0, 1), ""), part((0, 0), (0, 1), "B")) == "Bc"
    whole = types.TextDocumentContentChangeWholeDocument("new")
    assert change(documents, uri, whole, part((0, 3), (0, 3), "!")) == "new!"


def test_a_range_the_wrong_way_round_is_turned() -> None:
    documents, uri = opened("abc")
    assert change(documents, uri, part((0, 2), (0, 1), "-")) == "a-c"


def test_a_document_that_is_not_open_can_not_change() -> None:
    documents, uri = opened("abc")
    assert documents.close(uri)
    assert not documents.close(uri)
    with pytest.raises(UnknownDocument):
        change(documents, uri, part((0, 0), (0, 0), "x"))


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_encoding_is_the_clients_choice(encoding: str) -> None:
    able = types.ClientCapabilities(general=types.GeneralClientCapabilities(position_encodings=[encoding]))
    text = '/* \U0001d54f */ task a { step s: tool.run { cmd: "\U0001d54f" } step t: tool.nothing { } }'
    text = text.replace("/* ", "// ").replace(" */ ", "\n")
    codec, size = UNITS[encoding]

    async def talk(client: Client) -> None:
        uri = client.open(text)
        (found,) = [item for item in await client.diagnostics(uri, 1) if item.code == "lang.unknown_tool"]
        line = text.split("\n")[1]
        assert found.range.start.line == 1
        assert found.range.start.character == len(line[: line.index("tool.nothing")].encode(codec)) // size

    session(talk, able)
