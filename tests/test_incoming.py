"""Texts that come in from elsewhere: fences, thinking, line ends, and what a terminal would show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak.datalog.text.layout import format_text as policy_text
from spak.incoming import as_shown, ended_as, thought, unfenced
from spak.lang.format import format_text


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("```\nx\n```", "\nx\n"),
        ("Sure.\n~~~json\nx\ny\n~~~\nDone.", "\n\nx\ny\n"),
        ("```\r\nx\r\n```\r\n", "\nx\r\n"),
        ("```\nx\n```\n```\ny\n```", None),
        ("```\nx", None),
        ("```\nx\n```y", None),
        ('{"a": "```\\nx\\n```"}', None),
        ("x", None),
    ],
)
def test_one_fence_is_taken_off(text: str, inner: str | None) -> None:
    assert unfenced(text) == (text if inner is None else inner)


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("<think>a\nb</think>\n\nx", "a\nb", "x"),
        ("\n<think></think>x", "", "x"),
        ("a</think>x", "a", "x"),
        ("<think>a", "a", ""),
        ("x", "", "x"),
        ('{"a": "</think>"}', "", '{"a": "</think>"}'),
        ("x <think>a</think>", "", "x <think>a</think>"),
    ],
)
def test_thinking_before_an_answer(text: str, thinking: str, answer: str) -> None:
    assert thought(text) == (thinking, answer)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("1 %\r2 %\r100 %\ndone\n", "100 %\ndone\n"),
        ("10 %\r100 %\r\ndone\r\n", "100 %\ndone\n"),
        ("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "red link"),
        ("ab\b\bcd", "cd"),
        ("h\0i\0", "hi"),
        ("a\tb\n", "a\tb\n"),
        ("é ü\n", "é ü\n"),
    ],
)
def test_what_a_program_wrote_as_a_terminal_shows_it(written: str, shown: str) -> None:
    assert as_shown(written) == shown


@given(st.text(st.sampled_from("ab\n\r\b\t\0\x1b[0m]8;\\é"), max_size=60))
def test_what_is_shown_is_plain(text: str) -> None:
    shown = as_shown(text)
    assert not set(shown) & set("\r\b\0\x1b") and as_shown(shown) == shown
    assert shown.count("\n") <= text.count("\n")


SPEC = 'task Hello {\n  step look: tool.run { cmd: "ls" }\n  success: exit_code(look) == 0\n}\n'
LAW = "permitted(A) :- tool(A, /read_file).\n"


def test_a_layout_keeps_the_ends_of_lines() -> None:
    for layout, text in ((format_text, SPEC), (policy_text, LAW)):
        for loose in (text, f"\n\n{text}", text.replace(" ", "  ")):
            assert layout(loose).text == text  # type: ignore[operator]
            ended = loose.replace("\n", "\r\n")
            assert layout(ended).text == text.replace("\n", "\r\n")  # type: ignore[operator]
    assert ended_as("a\nb\n", "x\r\ny\n") == "a\nb\n"
