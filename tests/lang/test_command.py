"""Command lines and templates: a variable is one argument, and no shell is ever meant."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak.lang.command import ShellSyntax, arguments
from spak.lang.near import nearest
from spak.lang.template import Hole, split


def plain(text: str) -> list[str]:
    return [
        "".join(part if isinstance(part, str) else f"<{part.path}>" for part in argument)
        for argument in arguments(text)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pytest tests/", ["pytest", "tests/"]),
        ("a 'b c' \"d e\" f\\ g", ["a", "b c", "d e", "f g"]),
        ("a '' \"\"", ["a", "", ""]),
        ('a "x \\" \\n"', ["a", 'x " \\n']),
        ("a b\\\n c", ["a", "b", "c"]),
        ("gcc -o{{out}} '{{in}}' {{ x }}", ["gcc", "-o<out>", "<in>", "<x>"]),
        ("a 'b|c;d$e'", ["a", "b|c;d$e"]),
        ("a x#y *.c ~", ["a", "x#y", "*.c", "~"]),
        ("  a  ", ["a"]),
    ],
)
def test_arguments(text, expected):
    assert plain(text) == expected


@pytest.mark.parametrize(
    "text", ["a|b", "a && b", "a;b", "a >x", "a <x", "$(a)", "`a`", 'a "$b"', "(a)", "a\nb", "a 'b", "a # b"]
)
def test_shell_syntax_is_refused(text):
    with pytest.raises(ShellSyntax):
        arguments(text)


@given(
    st.lists(
        st.text(st.characters(min_codepoint=1, max_codepoint=0x2FF, blacklist_characters="{}\r"), min_size=1),
        min_size=1,
    )
)
def test_what_shlex_quotes_comes_back(words):
    assert plain(shlex.join(words)) == words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("a", ("a",)),
        ("{{a}}", (Hole("a", 0, 5),)),
        ("x{{ a.b }}y", ("x", Hole("a.b", 1, 10), "y")),
        ("{{1}} {{a b}} {{}} {{{a}}", ("{{1}} {{a b}} {{}} {", Hole("a", 20, 25))),
        ("\\{{a}}", ("{{a}}",)),
    ],
)
def test_templates(text, expected):
    assert split(text) == expected


@pytest.mark.parametrize(
    ("word", "hit"),
    [("TSAK", "TASK"), ("finalise", "finalize"), ("ru", "run"), ("xyz", ""), ("cpuprofiler", "CpuProfiler")],
)
def test_nearest(word, hit):
    assert nearest(word, ["TASK", "finalize", "run", "CpuProfiler"]) == hit
