"""What a reduction makes: one method per alias of grammar.lark, from the children to a node of ast.py.

A child is a token's index or what an earlier reduction made; `at` is the index of the token that follows, so
a node's span is known without looking back. Numbers out of range are reported here, where they become values.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from spak.canon import MAX_INT
from spak.lang import ast
from spak.lang.diagnostics import LIMIT
from spak.lang.parser.lexer import Problem

Kids = list[Any]
Action = Callable[[Kids, int], Any]

_ESCAPE = re.compile(r"\\(u\{[0-9A-Fa-f]{1,6}\}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}


class Builder:
    """Builders over one text; `problems` collects what a value's spelling got wrong."""

    def __init__(self, text: str, tokens: ast.Tokens) -> None:
        self.source = text
        self.starts = tokens.starts
        self.ends = tokens.ends
        self.problems: list[Problem] = []

    def actions(self, names: Sequence[str]) -> list[Action | None]:
        """The method of each rule, None where there is nothing to build."""
        return [getattr(self, f"on_{name}") if name else None for name in names]

    def word(self, token: int) -> str:
        """The text of a token."""
        return self.source[self.starts[token] : self.ends[token]]

    # ---- values

    def on_string(self, kids: Kids, at: int) -> ast.Text:
        token = kids[0]
        raw = self.source[self.starts[token] : self.ends[token]]
        if raw.startswith('"""'):
            return ast.Text(_long(raw), token, at, True)
        value = raw[1:-1] if len(raw) > 1 and raw[-1] == '"' else raw[1:]
        if "\\" in value:
            value = _ESCAPE.sub(self._escape(token), value)
        return ast.Text(value, token, at)

    def _escape(self, token: int) -> Callable[[re.Match[str]], str]:
        def unescape(match: re.Match[str]) -> str:
            code = match[1]
            if code in _ESCAPES:
                return _ESCAPES[code]
            point = int(code[2:-1], 16) if len(code) > 1 else 0
            if len(code) > 1 and 0 < point < 0x110000 and not 0xD800 <= point < 0xE000:
                return chr(point)
            if code != "{":
                self._doubt_escape(token, match[0])
            return match[0]

        return unescape

    def _doubt_escape(self, token: int, escape: str) -> None:
        at = self.starts[token] + self.source[self.starts[token] : self.ends[token]].index(escape)
        hint = 'known are \\n \\t \\r \\" \\\\ \\u{...}; it stays as it is: write \\\\ or use """..."""'
        message = f"unknown escape '{escape}'"
        self._note("lang.escape", message, hint, at, at + len(escape))

    def on_colon_string(self, kids: Kids, at: int) -> ast.Text:
        return self.on_string(kids[1:], at)

    def on_number(self, kids: Kids, at: int) -> ast.Number:
        token = kids[0]
        raw = self.word(token)
        try:
            value: int | float = int(raw) if raw.lstrip("-").replace("_", "").isdigit() else float(raw)
        except ValueError:  # reported by the lexer, or a gap that the parser filled
            return ast.Number(0, token, at)
        if abs(value) > MAX_INT and (isinstance(value, int) or value in (float("inf"), float("-inf"))):
            hint = "whole numbers go to 2^53-1, others to 1.79e308; quote larger ones"
            self._note("lang.number", "number out of range", hint, self.starts[token], self.ends[token])
            return ast.Number(0, token, at)
        return ast.Number(value, token, at)

    def _note(self, code: str, message: str, hint: str, start: int, end: int) -> None:
        if len(self.problems) < LIMIT:
            self.problems.append((code, message, hint, start, end, None))

    def on_name(self, kids: Kids, at: int) -> ast.Name:
        token = kids[0]
        return ast.Name(self.source[self.starts[token] : self.ends[token]], token, at)

    def on_first_value(self, kids: Kids, at: int) -> Kids:
        return kids

    def on_more_values(self, kids: Kids, at: int) -> Kids:
        kids[0].append(kids[2])
        return kids[0]  # type: ignore[no-any-return]

    def on_empty_list(self, kids: Kids, at: int) -> ast.ListValue:
        return ast.ListValue((), kids[0], at)

    def on_list(self, kids: Kids, at: int) -> ast.ListValue:
        return ast.ListValue(tuple(kids[1]), kids[0], at)

    def on_empty_call(self, kids: Kids, at: int) -> ast.Call:
        return ast.Call(self.word(kids[0]), (), kids[0], at)

    def on_call(self, kids: Kids, at: int) -> ast.Call:
        return ast.Call(self.word(kids[0]), tuple(kids[2]), kids[0], at)

    def on_map(self, kids: Kids, at: int) -> ast.MapValue:
        return ast.MapValue(tuple(kids[1]), kids[0], at)

    def on_tagged(self, kids: Kids, at: int) -> ast.Tagged:
        return ast.Tagged(self.word(kids[0]), kids[1], kids[0], at)

    def on_entry(self, kids: Kids, at: int) -> ast.Entry:
        token = kids[0]
        return ast.Entry(self.source[self.starts[token] : self.ends[token]], kids[1], None, token, at)

    def on_marked_entry(self, kids: Kids, at: int) -> ast.Entry:
        token = kids[0]
        return ast.Entry(self.source[self.starts[token] : self.ends[token]], kids[2], None, token, at)

    def on_default_entry(self, kids: Kids, at: int) -> ast.Entry:
        return ast.Entry(self.word(kids[0]), kids[1], kids[3], kids[0], at)

    def on_marked_default_entry(self, kids: Kids, at: int) -> ast.Entry:
        return ast.Entry(self.word(kids[0]), kids[2], kids[4], kids[0], at)

    def on_quoted_entry(self, kids: Kids, at: int) -> ast.Entry:
        return ast.Entry(self.on_string(kids, at).value, kids[2], None, kids[0], at)

    # ---- conditions

    def on_logic(self, kids: Kids, at: int) -> ast.Logic:
        op, left, right = self.word(kids[1]).lower(), kids[0], kids[2]
        items = (*left.items, right) if isinstance(left, ast.Logic) and left.op == op else (left, right)
        return ast.Logic(op, items, left.start, at)

    def on_negation(self, kids: Kids, at: int) -> ast.Negation:
        return ast.Negation(kids[1], kids[0], at)

    def on_comparison(self, kids: Kids, at: int) -> ast.Comparison:
        return ast.Comparison(self.word(kids[1]), kids[0], kids[2], kids[0].start, at)

    def on_group(self, kids: Kids, at: int) -> ast.Condition:
        return kids[1]  # type: ignore[no-any-return]

    def on_bare_condition(self, kids: Kids, at: int) -> ast.BareCondition:
        return ast.BareCondition(kids[0], kids[0].start, at)

    def on_bare_comparison(self, kids: Kids, at: int) -> ast.BareCondition:
        return ast.BareCondition(self.on_comparison(kids, at), kids[0].start, at)

    def on_success(self, kids: Kids, at: int) -> ast.Success:
        return ast.Success(kids[2], kids[0], at)

    def on_invariant(self, kids: Kids, at: int) -> ast.Invariant:
        return ast.Invariant(kids[2], kids[0], at)

    # ---- bodies

    def on_bare_step(self, kids: Kids, at: int) -> ast.Step:
        return ast.Step(self.word(kids[1]), self.word(kids[3]), None, kids[0], at)

    def on_step(self, kids: Kids, at: int) -> ast.Step:
        return ast.Step(self.word(kids[1]), self.word(kids[3]), kids[4], kids[0], at)

    def on_bare_check(self, kids: Kids, at: int) -> ast.Check:
        return ast.Check(self.word(kids[1]), self.word(kids[3]), None, kids[0], at)

    def on_check(self, kids: Kids, at: int) -> ast.Check:
        return ast.Check(self.word(kids[1]), self.word(kids[3]), kids[4], kids[0], at)

    def on_evaluation(self, kids: Kids, at: int) -> ast.Evaluation:
        return ast.Evaluation(tuple(kids[2]), kids[0], at)

    def on_edge(self, kids: Kids, at: int) -> ast.Edge:
        return ast.Edge(self.word(kids[0]), self.word(kids[2]), kids[0], at)

    def on_next(self, kids: Kids, at: int) -> ast.Next:
        return ast.Next(tuple(kids[2]), kids[0], at)

    def on_next_by(self, kids: Kids, at: int) -> ast.Next:
        return ast.Next(tuple(kids[4]), kids[0], at, (self.word(kids[1]), self.word(kids[2])))

    def on_task(self, kids: Kids, at: int) -> ast.Task:
        return ast.Task(self.word(kids[1]), tuple(kids[3]), kids[0], at)

    def on_axiom(self, kids: Kids, at: int) -> ast.Axiom:
        return ast.Axiom(kids[1], None, kids[0], at)

    def on_named_axiom(self, kids: Kids, at: int) -> ast.Axiom:
        return ast.Axiom(kids[1], ast.Tagged(self.word(kids[3]), None, kids[3], at), kids[0], at)

    def on_checked_axiom(self, kids: Kids, at: int) -> ast.Axiom:
        return ast.Axiom(kids[1], ast.Tagged(self.word(kids[3]), kids[4], kids[3], at), kids[0], at)

    def on_heuristic(self, kids: Kids, at: int) -> ast.Heuristic:
        return ast.Heuristic(kids[1], None, kids[0], at)

    def on_heuristic_when(self, kids: Kids, at: int) -> ast.Heuristic:
        return ast.Heuristic(kids[1], self.on_name(kids[3:], at), kids[0], at)

    def on_prediction(self, kids: Kids, at: int) -> ast.Prediction:
        return ast.Prediction(kids[1], kids[0], at)

    def on_system_model(self, kids: Kids, at: int) -> ast.SystemModel:
        return ast.SystemModel("", tuple(kids[2]), kids[0], at)

    def on_named_system_model(self, kids: Kids, at: int) -> ast.SystemModel:
        return ast.SystemModel(self.word(kids[1]), tuple(kids[3]), kids[0], at)

    def on_start_at(self, kids: Kids, at: int) -> ast.Start:
        return ast.Start(self.word(kids[-1]), kids[0], at)

    def on_agent(self, kids: Kids, at: int) -> ast.Agent:
        return ast.Agent(self.word(kids[1]), None, tuple(kids[3]), kids[0], at)

    def on_leveled_agent(self, kids: Kids, at: int) -> ast.Agent:
        level = self.on_number(kids[3:], kids[3] + 1)
        return ast.Agent(self.word(kids[1]), level, tuple(kids[5]), kids[0], at)


def _long(raw: str) -> str:
    r"""The value of a text in triple quotes: raw but for \""", first newline and common indent dropped."""
    value = raw[3:-3] if raw.endswith('"""') and len(raw) >= 6 else raw[3:]
    value = value.replace("\r\n", "\n").replace('\\"""', '"""')
    if "\n" not in value:
        return value
    if value.lstrip(" \t").startswith("\n"):
        value = value[value.index("\n") + 1 :]
    return textwrap.dedent(value)
