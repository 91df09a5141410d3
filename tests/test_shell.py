"""Command lines as data: every command shows, and what is accepted means what bash means by it."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from process_kit import WAIT_S
from spak import shell
from spak.errors import UsageError

WORDS = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1)


def programs(text: str) -> list[tuple[str, ...] | None]:
    return [command.argv for command in shell.parse(text).every() if command.words]


@given(WORDS)
def test_argv_reads_what_shlex_quotes(words: list[str]) -> None:
    assert shell.argv("run " + shlex.join(words)) == ("run", *words)


@given(st.text(max_size=200))
def test_any_text_is_a_line_or_a_usage_error(text: str) -> None:
    try:
        shell.parse(text)
    except UsageError as error:
        assert error.code.startswith("shell.") and error.message


SHELLISH = st.text(st.sampled_from(list("ab \t\n'\"\\$`(){}[]|&;<>#!=~*-,.:@%^1")), max_size=24)


@settings(max_examples=400, deadline=None)
@given(SHELLISH)
def test_bash_agrees_with_every_line_that_is_one_command(text: str) -> None:
    try:
        words = shell.argv("printf %s\\\\0 " + text)
    except UsageError:
        return
    done = subprocess.run(
        [shutil.which("bash") or "/bin/bash", "--norc", "-c", "printf %s\\\\0 " + text],
        capture_output=True,
        env={"PATH": "/nowhere", "LC_ALL": "C.UTF-8"},
        timeout=WAIT_S,
    )
    assert done.stdout == (b"".join(word.encode() + b"\0" for word in words[2:]) or b"\0")
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ls", [("ls",)]),
        ("a | b && c || d; e & f\ng", [("a",), ("b",), ("c",), ("d",), ("e",), ("f",), ("g",)]),
        ("(a; b) | c", [("a",), ("b",), ("c",)]),
        ("{ a; b; }", [("a",), ("b",)]),
        ("! a", [("a",)]),
        ("if a; then b; elif c; then d; else e; fi", [("a",), ("b",), ("c",), ("d",), ("e",)]),
        ("while a; do b; done", [("a",), ("b",)]),
        ("for f in *.py; do a; done", [("a",)]),
        ("for f in $(x); do a; done", [("x",), ("a",)]),
        ("a $(b `c`)", [("c",), ("b", None), ("a", None)]),
        ('a "x $(b) y"', [("b",), ("a", None)]),
        ("a <(b) >(c)", [("b",), ("c",), ("a", None)]),
        ("a > $(b)", [("b",), ("a",)]),
        ("a ${x:-$(b)} $((1 + $(c)))", [("b",), ("c",), ("a", None)]),
        ("x=$(b) a", [("b",), ("a",)]),
        ("a <<E | b\n$(c)\nE\nd", [("c",), ("a",), ("b",), ("d",)]),
        ("a <<'E'\n$(c)\nE\n", [("a",)]),
        ("[[ -f x && $(b) ]]", [("b",), ("[[", None)]),
        ("a '$(b)' \\$(c", None),
        ("$'\\x72\\x6d' -rf /", [("rm", "-rf", "/")]),
        ("r''m -rf /", [("rm", "-rf", "/")]),
        ("a \\\n  --b # c; d", [("a", "--b")]),
        ("echo 'a && b; c'", [("echo", "a && b; c")]),
    ],
)
def test_every_command_of_a_line_shows(text: str, expected: list[tuple[str | None, ...]] | None) -> None:
    if expected is None:
        with pytest.raises(UsageError):
            shell.parse(text)
        return
    found = [
        command.argv or (command.words[0].value, None)
        for command in shell.parse(text).every()
        if command.words
    ]
    assert found == expected


def test_a_command_knows_its_surroundings() -> None:
    line = shell.parse("A=1 a 2>&1 >'out file' | (b <in) >log &")
    first, inner, around = line.commands
    assert [(item.name, item.values[0].value) for item in first.assignments] == [("A", "1")]
    assert [(r.fd, r.op, r.target.value) for r in first.redirections] == [
        ("2", ">&", "1"),
        ("", ">", "out file"),
    ]
    assert (inner.operator, inner.within) == ("|", ("(",))
    assert (around.words, [r.target.value for r in around.redirections]) == ((), ["log"])
    assert line.background


def test_a_loop_shows_its_values() -> None:
    loop = shell.parse("for f in a 'b c' *.x; do echo $f; done").commands[0]
    assert [word.value for word in loop.assignments[0].values] == ["a", "b c", None]


@pytest.mark.parametrize(
    "word", ["$x", "${x}", "*.py", "a?", "[ab]", "~", "~/x", "A=~", "{a,b}", "{1..3}", "`a`"]
)
def test_what_a_shell_would_expand_is_no_argument(word: str) -> None:
    with pytest.raises(UsageError) as caught:
        shell.argv(f"echo {word}")
    assert caught.value.code == "shell.expansion" and caught.value.hint
    assert shell.argv(f"echo '{word}'") == ("echo", word)


@pytest.mark.parametrize(
    "text", ["", "#", "a | b", "a; b", "a &", "(a)", "a > b", "A=1 a", "A=1", "> a", "a\nb"]
)
def test_argv_wants_one_simple_command(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        shell.argv(text)
    assert caught.value.code == "shell.not_one_command" and caught.value.hint


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a 'b", "shell.syntax"),
        ('a "b', "shell.syntax"),
        ("a `b", "shell.syntax"),
        ("a $(b", "shell.syntax"),
        ("a |", "shell.syntax"),
        ("a && ; b", "shell.syntax"),
        ("a )", "shell.syntax"),
        ("; a", "shell.syntax"),
        ("a >", "shell.syntax"),
        ("()", "shell.syntax"),
        ("if a; fi", "shell.syntax"),
        ("a <<E\nx", "shell.syntax"),
        ("a\\", "shell.syntax"),
        ("f() { a; }", "shell.syntax"),
        ("case x in x) a;& y) b;; esac", "shell.unsupported"),
        ("case x in x) a;;& y) b;; esac", "shell.unsupported"),
        ("a $(case x in x) b;; esac)", "shell.unsupported"),
        ("a `case x in x) b;; esac`", "shell.unsupported"),
        ("case x in x) a;;", "shell.syntax"),
        ("case x in x a;; esac", "shell.syntax"),
        ("case x in |x) a;; esac", "shell.syntax"),
        ("case x in x||y) a;; esac", "shell.syntax"),
        ("case x x) a;; esac", "shell.syntax"),
        ("case in x) a;; esac", "shell.syntax"),
        ("a;; b", "shell.syntax"),
        ("if a; then b;; fi", "shell.syntax"),
        ("function f { a; }", "shell.unsupported"),
        ("a=(1 2)", "shell.unsupported"),
        ("a[$(b)]=1", "shell.unsupported"),
        ("echo $[1+1]", "shell.unsupported"),
        ("echo ${!x}", "shell.unsupported"),
        ("echo ${x@P}", "shell.unsupported"),
        ("echo $((a); (b))", "shell.unsupported"),
        ("r\\\nm x", "shell.unsupported"),
        ('echo "$\\\n(a)"', "shell.unsupported"),
        ("(( a ))", "shell.unsupported"),
        ("a\0b", "shell.control"),
        ("a" * 70_000, "shell.too_long"),
        ("$(" * 100, "shell.too_deep"),
        ("(" * 100, "shell.unsupported"),
        ("( " * 100, "shell.too_deep"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        shell.parse(text)
    assert caught.value.code == code


def test_a_long_hostile_line_is_read_in_linear_time() -> None:
    for unit in ("{,", "a=~:", "'a'", '"$x"', "a;", "{a..", "\\a", "${x}"):
        text = "echo " + unit * (60_000 // len(unit))
        try:
            list(shell.parse(text).every())
            shell.argv(text)
        except UsageError:
            pass
