"""Server-sent events as the standard has them (WHATWG HTML, 9.2.6), however they are cut into chunks."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak.llm import http
from spak.llm.openai_compatible import _events
from spak.llm.retry import Trouble
from spak.llm.settings import Choice

CHOICE = Choice("openai_compatible", model="m", base_url="http://127.0.0.1:9/v1")
PART = {"choices": [{"delta": {"content": "é"}}]}
DATA = f"data: {json.dumps(PART, ensure_ascii=False)}\n\n"


async def chunked(data: bytes, cuts: Sequence[int]) -> AsyncIterator[bytes]:
    at = 0
    for cut in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        yield data[at:cut]
        at = cut


def lines(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    async def read() -> list[bytes]:
        return [line async for line in http.lines_of(CHOICE, chunked(data, cuts))]

    return asyncio.run(read())


def events(text: str, cuts: Sequence[int] = ()) -> list[Any]:
    async def read() -> list[Any]:
        data = chunked(text.encode(), cuts)
        return [part async for part in _events(CHOICE, http.lines_of(CHOICE, data))]

    return asyncio.run(read())


@given(st.text("a:\r\n\ufeffé", max_size=30).map(str.encode), st.lists(st.integers(0, 99), max_size=6))
def test_lines_end_with_either_sign_or_both_wherever_a_chunk_ends(data: bytes, cuts: list[int]) -> None:
    *whole, last = re.split(rb"\r\n|\n|\r", data.removeprefix(b"\xef\xbb\xbf"))
    assert lines(data, cuts) == whole + ([last] if last else [])


FORMS = {
    "lf": DATA,
    "crlf": DATA.replace("\n", "\r\n"),
    "cr": DATA.replace("\n", "\r"),
    "a mark": f"\ufeff{DATA}",
    "no blank": DATA.replace("data: ", "data:"),
    "other fields": f"x-trace: 1\nid: 7\nevent: message\nretry: 9\n: a comment\nnot a field\n{DATA}",
    "a bare field": f"data\n\ndata:\n\n{DATA}",
    "several lines": DATA.replace(", ", ",\ndata: ") if ", " in DATA else DATA.replace(": [", ":\ndata: ["),
}


@pytest.mark.parametrize("end", ["data: [DONE]\n\n", "data: [DONE]", "data:[DONE]\r\r", ""])
@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_what_the_standard_allows_is_read(text: str, end: str) -> None:
    whole = text + end
    assert events(whole) == [PART]
    assert events(whole, range(len(whole.encode()))) == [PART]


def test_an_event_that_is_cut_is_none() -> None:
    with pytest.raises(Trouble, match="before its end"):
        events(DATA.rstrip("\n"))


@pytest.mark.parametrize("text", ['{"error": {"message": "no room"}}\n', 'data: {"error": "no room"}\n\n'])
def test_an_error_in_the_stream_is_told(text: str) -> None:
    with pytest.raises(Trouble, match="no room"):
        events(text)
