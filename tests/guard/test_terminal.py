"""What of an agent's output reaches a person's terminal, and what models say that they used."""

from __future__ import annotations

import json

import pytest

from spak.guard.terminal import Drawing
from spak.guard.wire import used

SEQUENCES = [
    b"\x1b]0;a title\x07",
    b"\x1b]52;c;Y3VybCBldmlsfHNo\x1b\\",
    b"\x1b]8;;https://evil.example\x1b\\",
    b"\x1bP+q544e\x1b\\",
    b"\x1b_G a=T;AAAA\x1b\\",
    b"\x1b^private\x1b\\",
    b"\x1bXstring\x1b\\",
    "\x9d0;a title\x07".encode(),
    "\x902;3\x9c".encode(),
]


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_strings_for_the_terminal_do_not_come_out_whole_or_in_pieces(sequence: bytes) -> None:
    data = b"\x1b[31mred\x1b[0m " + sequence + "wörter ✓".encode()
    right = b"\x1b[31mred\x1b[0m " + "wörter ✓".encode()
    assert Drawing().feed(data) == right
    drawing = Drawing()
    assert b"".join(drawing.feed(bytes([one])) for one in data) == right


@pytest.mark.parametrize("string", [b"\x1b]0;t\x07", b"\x1bPq\x1b\\", "\x9d0;t\x9c".encode()])
@pytest.mark.parametrize(
    ("before", "after"),
    [(b"\x1b", b"]52;c;AAAA\x07"), (b"\xc2", b"\x9d52;c;AAAA\x07"), (b"\x1b\x00\x7f", b"]52;c;AAAA\x07")],
)
def test_what_is_left_of_a_sequence_does_not_become_one(before: bytes, string: bytes, after: bytes) -> None:
    """Half of one before a string and half behind it; and with controls, which a terminal passes over."""
    for data in (before + string + after, before + after):
        drawn = Drawing().feed(data)
        bare = drawn.translate(None, bytes((*range(0x1B), *range(0x1C, 0x20), 0x7F)))
        assert b"\x1b]" not in bare and b"\xc2\x9d" not in bare, drawn


def test_what_models_used() -> None:
    begun = {"type": "message_start", "message": {"model": "m", "usage": {
        "input_tokens": 3, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20,
        "output_tokens": 1,
    }}}  # fmt: skip
    ended = {"type": "message_delta", "usage": {"output_tokens": 40}}
    stream = "".join(f"event: x\ndata: {json.dumps(one)}\n\n" for one in (begun, ended)).encode()
    assert used(stream) == ("m", {"input": 123, "output": 40, "cached": 100, "cache_write": 20})
    chat = {"model": "g", "usage": {"prompt_tokens": 50, "completion_tokens": 7,
                                    "prompt_tokens_details": {"cached_tokens": 30}}}  # fmt: skip
    assert used(json.dumps(chat).encode()) == ("g", {"input": 50, "output": 7, "cached": 30})
    response = {"type": "response.completed", "response": {"model": "g", "usage": {
        "input_tokens": 50, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 30}}}}  # fmt: skip
    assert used(b"data: " + json.dumps(response).encode() + b"\n\ndata: [DONE]\n\n") == (
        "g", {"input": 50, "output": 7, "cached": 30},
    )  # fmt: skip


@pytest.mark.parametrize("answer", [b"", b"\xff\xfe", b"[]", b"{" * 100_000,
                                    b'{"usage": {"input_tokens": -5}}',
                                    b'{"usage": [1], "model": 4}', b"data: {\n\n"])  # fmt: skip
def test_odd_answers_count_as_nothing(answer: bytes) -> None:
    assert used(answer) == ("", {})
