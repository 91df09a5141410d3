"""A person's answer to the question of a repair: its form, the test that it becomes, and what contradicts it.

`question` says whether a refusal's question can be answered so, `read` takes the answer's text apart, and
`added` writes it into the text of a file of tests. `told_apart` reads such a file again, and `planted` gives
the text of a function that answers so where a test itself calls it: a passing test that fails then
contradicts the answer. Values are literals, read by `ast.literal_eval` and written from their tree; no text
of an answer or of a question becomes code in another way. Pure.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spak.errors import UsageError
from spak.proposers.repair.functions import Function

MOST = 10_000
"""Characters of an answer, and of a call that can be answered."""
HEAD = '"""What people answered to questions of `spak repair`, each as a test."""\n'
NEAR = "1e-09"
"""How near a floating-point answer has to be: a question shows 12 digits."""
CODE = "repair.answer"
_FORM = "an answer is a value such as 3 or [1, 2], or raises ValueError; or the call, == and the value"
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Question:
    """A call whose result was asked for."""

    module: str
    function: str
    call: str
    """As its syntax tree is written: one text for one call."""
    tests: str
    """A file of tests that runs the function."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call gives: a value as its literal, or the name of an exception."""

    value: str = ""
    raises: str = ""


def question(asked: Mapping[str, Any]) -> Question | None:
    """The question of a refusal; None where its call has no literal form or no test can import its function,
    or where the patches return the same."""
    node = _parsed(str(asked.get("call", "")))
    module, function = str(asked.get("module", "")), str(asked.get("function", ""))
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
        return None
    named = _MODULE.fullmatch(module) and not any(map(keyword.iskeyword, module.split(".")))
    if node.func.id != function or not named or asked.get("differ") != "value":
        return None
    if not all(_is_literal(one) for one in node.args):
        return None
    return Question(module, function, ast.unparse(node), str(asked.get("tests", "")))


def read(text: str, asked: Question) -> Answer:
    """The answer. Raises: UsageError `repair.answer` for a text of another form, `repair.no_question` for
    the call of another question."""
    if len(text) > MOST:
        raise _bad(text, f"it has over {MOST:,} characters")
    stripped, call = text.strip(), ""
    node = _parsed(stripped)
    if isinstance(node, ast.Compare) and isinstance(node.left, ast.Call):
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq):
            raise _bad(text)
        call, node = _text(node.left), node.comparators[0]
    elif node is None and (found := re.fullmatch(r"(.*\))?\s*raises\s+(\w+)", stripped, re.DOTALL)):
        left = _parsed(found[1]) if found[1] else None
        if found[1] and left is None:
            raise _bad(text)
        _same(_text(left) if left else "", asked)
        kind = getattr(builtins, found[2], None)
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise _bad(text, f"{found[2]} is not one of Python's own errors")
        return Answer(raises=kind.__name__)
    if node is None or not _is_literal(node):
        raise _bad(text)
    _same(call, asked)
    return Answer(ast.unparse(node))


def added(text: str, asked: Question, answer: Answer) -> str:
    """The text of a file of answers with one more test; of an empty text a new file."""
    before = text or HEAD
    name = re.sub(r"\W", "_", asked.function, flags=re.ASCII)
    number = before.count("\ndef test_") + 1
    lines = ["", "", f"def test_{name}_{number}():"]
    near = not answer.raises and _approx(ast.literal_eval(answer.value))
    lines += ["    import pytest", ""] if answer.raises or near else []
    lines += [f"    from {asked.module} import {asked.function}", ""]
    if answer.raises:
        lines += [f"    with pytest.raises({answer.raises}):", f"        {asked.call}"]
    elif near:
        lines += [f"    assert {asked.call} == pytest.approx({answer.value}, rel={NEAR})"]
    else:
        lines += [f"    assert {asked.call} == {answer.value}"]
    return before.rstrip("\n") + "\n" + "\n".join(lines) + "\n"


def following(
    before: Mapping[str, Any], path: str, old: str, asked: Question, answer: Answer
) -> dict[str, str]:
    """The inputs of repair_answered.spak that go on with a repair: `before` are its own, `path` the file of
    answers with its text so far, where it does not name one itself."""
    if before.get("file"):
        path, old = str(before["file"]), str(before.get("text", ""))
    inputs = {"test": str(before.get("test", "")), "tests": str(before.get("tests") or ".")}
    inputs["confirm"] = inputs["test"] or inputs["tests"]
    return {**inputs, "file": path, "text": added(old, asked, answer)}


def file_for(asked: Question, number: int) -> str:
    """The path of a file of answers beside the tests of the function, the `number`th from 1 on."""
    top, stem = asked.tests.rpartition("/")[0], re.sub(r"\W", "_", asked.function, flags=re.ASCII)
    return f"{top}/" * bool(top) + f"test_answered_{stem}{f'_{number}' * (number > 1)}.py"


def is_ours(text: str) -> bool:
    """Whether a file of tests was begun by `added`."""
    return text.startswith(HEAD)


def told_apart(text: str) -> dict[str, tuple[str, Sequence[ast.expr], Answer]]:
    """By the name of a test of such a file: the function, the arguments and the answer. What people wrote
    in another form is left out."""
    found: dict[str, tuple[str, Sequence[ast.expr], Answer]] = {}
    for one in ast.parse(text).body:
        if not isinstance(one, ast.FunctionDef) or not one.body:
            continue
        last = one.body[-1]
        call: ast.expr | None = None
        answer = Answer()
        if isinstance(last, ast.Assert) and isinstance(last.test, ast.Compare):
            call, right = last.test.left, last.test.comparators[0]
            if isinstance(right, ast.Call) and ast.unparse(right.func) == "pytest.approx" and right.args:
                right = right.args[0]
            answer = Answer(ast.unparse(right)) if _is_literal(right) else answer
        elif isinstance(last, ast.With) and isinstance(last.body[0], ast.Expr):
            call, raised = last.body[0].value, last.items[0].context_expr
            if isinstance(raised, ast.Call) and raised.args and isinstance(raised.args[0], ast.Name):
                answer = Answer(raises=raised.args[0].id)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and answer != Answer():
            found[one.name] = call.func.id, call.args, answer
    return found


def planted(function: Function, args: Sequence[ast.expr], answer: Answer, files: Sequence[str]) -> str | None:
    """The function's text with the answer at its beginning, for calls with these arguments that a test's own
    file makes; None where that cannot be written."""
    node, names = (
        function.node,
        [one.arg for one in (*function.node.args.posonlyargs, *function.node.args.args)],
    )
    odd = node.args.vararg or node.args.kwarg or node.args.kwonlyargs or len(names) != len(args)
    yields = any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(node))
    first = node.body[0]
    if odd or yields or isinstance(node, ast.AsyncFunctionDef) or first.lineno == node.lineno:
        return None
    given = repr(tuple(map(ast.literal_eval, args)))
    here = "__import__('sys')._getframe(1).f_code.co_filename"
    does = f"raise {answer.raises}" if answer.raises else f"return {answer.value}"
    line = f"if repr(({', '.join(names)},)) == {given!r} and {here}.endswith({tuple(files)!r}): {does}\n"
    at = min([first.lineno, *(one.lineno for one in getattr(first, "decorator_list", ()))])
    lines = list(function.lines[function.first - 1 : function.last])
    lines.insert(at - function.first, " " * first.col_offset + line)
    return "".join(lines)


def _approx(value: object) -> bool:
    """Whether an answer is compared within NEAR: a floating-point number, or a flat collection with one."""
    inner = list(value.values()) if isinstance(value, dict) else value
    if isinstance(inner, (list, tuple)):
        return any(isinstance(one, float) for one in inner) and all(
            isinstance(one, (int, float)) for one in inner
        )
    return isinstance(value, float)


def _same(call: str, asked: Question) -> None:
    if call and call != asked.call:
        raise UsageError(
            "repair.no_question",
            f"nothing asked what {call[:200]} gives",
            f"the question is {asked.call[:200]}",
        )


def _parsed(text: str) -> ast.expr | None:
    """The expression of a text; None where it is none."""
    if len(text) > MOST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _text(node: ast.expr) -> str:
    """An expression as its tree is written. Raises: UsageError `repair.answer` for one nested too deep."""
    try:
        return ast.unparse(node)
    except (ValueError, RecursionError) as error:
        raise UsageError(CODE, "the call of the answer cannot be read", _FORM) from error


def _is_literal(node: ast.expr) -> bool:
    try:
        value = ast.literal_eval(node)
        return bool(ast.literal_eval(ast.unparse(node)) == value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False


def _bad(text: str, why: str = "") -> UsageError:
    return UsageError(CODE, f"{text[:200]!r} is not an answer{': ' + why if why else ''}", _FORM)
