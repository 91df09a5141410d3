"""The parser: `parse(text)` gives a Parsed, always; what is wrong with the text are diagnostics.

The fast driver runs the tables of grammar.json over the lexer's tokens and builds nodes in the reductions. A
word spelled like a keyword is one only if the stack can shift it there (decided by walking the reductions,
not by the row alone, whose lookaheads are merged); everywhere else it is a name. Only when the fast driver
fails does the recovering one (recover.py) start anew. Bytes are taken too; size, depth, encoding and NUL are
looked at before anything else.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spak.lang.ast import Agent, Entry, Source, Spec, Start, Task, Tokens
from spak.lang.diagnostics import Diagnostic, Edit, Severity, in_order
from spak.lang.limits import MAX_BYTES, MAX_DEPTH, MAX_NOTS
from spak.lang.lookalike import turns
from spak.lang.parser.automaton import APPEND, BUILD, DROP, NEW, PASS, can_shift, tables
from spak.lang.parser.build import Builder
from spak.lang.parser.lexer import Problem, lex

WARNINGS = frozenset({"lang.escape", "lang.direction"})

_FENCE = re.compile(r"^[ \t]*```", re.MULTILINE)
_MARKDOWN = re.compile(r"\\(?=[_\-\[\]{}>*#.])")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A spec with the text it came from."""

    spec: Spec

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What is wrong with the text, in its order."""
        return self.spec.source.problems

    @property
    def tokens(self) -> Tokens:
        """The tokens of the text."""
        return self.spec.source.tokens

    @property
    def text(self) -> str:
        """The text."""
        return self.spec.source.text

    @property
    def name(self) -> str:
        """The name under which the text was given."""
        return self.spec.source.name

    @property
    def ok(self) -> bool:
        """Whether no diagnostic is an error."""
        return not any(item.severity == Severity.ERROR for item in self.diagnostics)


def parse(text: str | bytes, name: str = "") -> Parsed:
    """The spec of a text; never raises for what a text can hold."""
    text, problems = _readable(text)
    if problems:
        return _parsed(name, text, Tokens([0], [len(text)], [len(text)]), (), problems)
    tokens, problems = lex(text, tables().words)
    if (token := _deepest(tokens)) is not None:
        return _parsed(name, text, tokens, (), [_depth_problem(tokens, token)])
    if problems and (chat := _chat(text, tokens)):
        return _parsed(name, text, tokens, (), [chat])
    problems += _turned(text)
    builder = Builder(text, tokens)
    items = _run(tokens, builder)
    if (items is None or problems) and (alone := _without_prose(name, text)) is not None:
        return alone
    if items is None or _swallows(items, tokens, text):
        from spak.lang.parser.recover import recover

        tokens, items, found, builder = recover(text, tokens)
        reported = {problem[3] for problem in problems}
        open_text = any(text[start:end] == '"""' for *_, start, end, _ in problems)
        problems = problems + [
            problem
            for problem in found
            if problem[3] not in reported and not (open_text and problem[1].startswith("the file ends"))
        ]
    return _parsed(name, text, tokens, items, problems + builder.problems)


def _without_prose(name: str, text: str) -> Parsed | None:
    """The spec of a chat's answer, and one finding for what stands around it; None where there is nothing."""
    from spak.lang.parser.prose import around, blanked

    parts = around(text)
    if not parts:
        return None
    tokens, problems = lex(blanked(text, parts), tables().words)
    builder = Builder(text, tokens)
    items = _run(tokens, builder)
    if items is None or problems:
        return None
    first = text[: parts[0][1]].find(text[slice(*parts[0])].split()[0], parts[0][0])
    message = "prose surrounds the spec, as in the answer of a chat"
    hint = "give the spec alone, or put // before each line of the prose"
    end = text.find("\n", first)
    problem: Problem = (
        "lang.fenced",
        message,
        hint,
        first,
        end if end > 0 else len(text),
        _cuts(text, parts),
    )
    return _parsed(name, text, tokens, items, [problem, *_turned(text), *builder.problems])


def _cuts(text: str, parts: tuple[tuple[int, int], ...]) -> tuple[Edit, ...]:
    return tuple((start, end, "\n" if end == len(text) else "") for start, end in parts)


def _parsed(name: str, text: str, tokens: Tokens, items: Sequence[Any], problems: list[Problem]) -> Parsed:
    source = Source(name, text, tokens)
    if problems:
        source.problems = in_order(_diagnostic(source, problem) for problem in problems)
    return Parsed(Spec(tuple(items), source))


def _diagnostic(source: Source, problem: Problem) -> Diagnostic:
    code, message, hint, start, end, fix = problem
    severity = Severity.WARNING if code in WARNINGS else Severity.ERROR
    return source.diagnostic(severity, code, message, hint, start, end, fix)


def _run(tokens: Tokens, builder: Builder) -> list[Any] | None:
    """The items of the file, or None at the first error."""
    grammar = tables()
    rows, gotos, rules, first_keyword = grammar.rows, grammar.gotos, grammar.rules, grammar.keyword
    name = grammar.words.name
    actions: Any = builder.actions(grammar.builders)
    kinds = tokens.kinds
    states: list[int] = [0]
    values: list[Any] = []
    state, at, settled = 0, 0, -1
    kind = kinds[0]
    while True:
        action = rows[state].get(kind)
        if kind >= first_keyword and at != settled:
            settled = at
            if action is None or (action < 0 and not can_shift(states, kind, grammar)):
                kind = name
                continue
        if action is None:
            return None
        if action >= 0:
            states.append(action)
            values.append(at)
            state = action
            at += 1
            kind = kinds[at]
            continue
        size, origin, code = rules[~action]
        if code == BUILD:
            kids = values[-size:]
            del values[-size:]
            values.append(actions[~action](kids, at))
            del states[-size:]
        elif code == APPEND:
            item = values.pop()
            values[-1].append(item)
            del states[-2:]
        elif code == PASS:
            del states[-1]
        elif code == NEW:
            values.append([])
        elif code == DROP:
            values.pop()
            del states[-2:]
        else:
            return values[0]  # type: ignore[no-any-return]
        state = gotos[states[-1]][origin]
        states.append(state)


def _swallows(items: list[Any], tokens: Tokens, text: str) -> bool:
    """True when a START or a setting without its value took the TASK of the next line for it.

    `START ->`, then `TASK a { ... }`, parses: as START at a task `TASK`, and a block `a` that nobody knows.
    """
    task, name, brace = (tables().terminals.index(word) for word in ("TASK", "NAME", "{"))
    kinds, starts = tokens.kinds, tokens.starts
    flat = [*items, *(inner for item in items if isinstance(item, Agent) for inner in item.items)]
    for item in flat:
        if not isinstance(item, (Start, Entry)) or kinds[item.end - 1] != task:
            continue
        one_line = "\n" not in text[starts[item.end - 1] : starts[item.end]]
        if one_line and kinds[item.end : item.end + 2] == [name, brace]:
            return not any(isinstance(other, Task) and other.name.upper() == "TASK" for other in flat)
    return False


def _readable(text: str | bytes) -> tuple[str, list[Problem]]:
    """The text, or what keeps it from being read at all."""
    if len(text) > MAX_BYTES or (isinstance(text, str) and len(text.encode("utf-8", "replace")) > MAX_BYTES):
        hint = "split it, or move long texts to files"
        return "", [("lang.too_large", f"the spec is larger than {MAX_BYTES // 1024} KB", hint, 0, 0, None)]
    problems: list[Problem] = []
    if isinstance(text, bytes):
        text, problems = _decoded(text)
    elif not _encodable(text):
        at = next(index for index, char in enumerate(text) if "\ud800" <= char <= "\udfff")
        text = text.encode("utf-8", "replace").decode()
        problems = [_encoding_problem(at)]
    at = text.find("\0")
    if at >= 0 and not problems:
        message = "NUL byte: this is not a text"
        problems = [("lang.character", message, "save the file as UTF-8", at, at + 1, None)]
    return text, problems


def _decoded(data: bytes) -> tuple[str, list[Problem]]:
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError as error:
        return data.decode("utf-8", "replace"), [_encoding_problem(len(data[: error.start].decode("utf-8")))]


def _encoding_problem(at: int) -> Problem:
    return ("lang.encoding", "the text is not UTF-8", "save the file as UTF-8", at, at + 1, None)


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _deepest(tokens: Tokens) -> int | None:
    """The first token that nests one bracket, or one `not`, too deep for whoever walks the tree."""
    words = tables().words
    openers, closers, negation = words.openers, words.closers, words.keywords["not"]
    depth = nots = 0
    for index, kind in enumerate(tokens.kinds):
        if kind in openers:
            depth += 1
            if depth > MAX_DEPTH:
                return index
        elif kind in closers and depth:
            depth -= 1
        elif kind == negation:
            nots += 1
            if nots > MAX_NOTS:
                return index
            continue
        nots = 0
    return None


def _depth_problem(tokens: Tokens, token: int) -> Problem:
    if tokens.kinds[token] in tables().words.openers:
        message, hint = f"brackets nested deeper than {MAX_DEPTH}", "close what is open, or split the value"
    else:
        message, hint = f"more than {MAX_NOTS} times 'not' in a row", "two of them cancel out"
    return ("lang.too_deep", message, hint, tokens.starts[token], tokens.ends[token], None)


def _turned(text: str) -> list[Problem]:
    """Characters that turn the direction of the text; one finding for all of them."""
    places = turns(text)
    if not places:
        return []
    message = (
        f"the text's direction is turned here (U+{ord(text[places[0]]):04X}): it is not what it looks like"
    )
    hint = f"take these characters out ({len(places)} in this file)"
    fix = tuple((at, at + 1, "") for at in places)
    return [("lang.direction", message, hint, places[0], places[0] + 1, fix)]


def _chat(text: str, tokens: Tokens) -> Problem | None:
    """A spec that came through a chat: in a code fence, or with Markdown escapes; one finding for it all."""
    fences = [match for match in _FENCE.finditer(text) if _outside(match.end() - 1, tokens)]
    if fences:
        hint = "give the text between the ``` lines alone"
        message = "a chat answer, not a spec: there is a code fence"
        fix: tuple[Edit, ...] | None = None
        if len(fences) == 2:
            inside = text.find("\n", fences[0].end()) + 1
            fix = ((0, inside, ""), (fences[1].start(), len(text), "")) if inside else None
        return ("lang.fenced", message, hint, fences[0].end() - 3, fences[0].end(), fix)
    escapes = [match.start() for match in _MARKDOWN.finditer(text) if _outside(match.start(), tokens)]
    if escapes:
        first = escapes[0]
        fix = tuple((at, at + 1, "") for at in escapes)
        message = f"Markdown escape '{text[first : first + 2]}'"
        hint = f"remove the backslash ({len(escapes)} in this file)"
        return ("lang.markdown_escape", message, hint, first, first + 2, fix)
    return None


def _outside(offset: int, tokens: Tokens) -> bool:
    """True when no token covers the character."""
    index = bisect_right(tokens.starts, offset) - 1
    return index < 0 or offset >= tokens.ends[index]
