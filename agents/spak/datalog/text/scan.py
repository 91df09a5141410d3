"""Policy text to tokens with places.

One regular expression finds the next token; what it does not know is one finding per run of such characters.
The escapes that a markdown page leaves behind (`\\_`, `\\<`, `\\==`) are dropped with a lint note. A name's
dots stay inside it (`/src/a.go`), the dot that ends a clause does not.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from spak.datalog.intervals import DATE, instant
from spak.datalog.syntax import Finding, Place

MAX_CHARS = 2 << 20
MAX_FINDINGS = 50

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f\ufeff]+|\#[^\n]*)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)
    |(?P<name>(?:/\.?[\w~%\-]+(?:\.[\w~%\-]+)*)+)
    |(?P<date>"""
    + DATE
    + r""")
    |(?P<float>-?\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+))
    |(?P<number>-?\d+)
    |(?P<function>fn(?::[A-Za-z]\w*)+)
    |(?P<builtin>:[a-z]\w*(?::[a-z]\w*)*)
    |(?P<variable>(?:[A-Z]|(?:\\?_){1,32}[A-Za-z0-9])(?:\w|\\_)*)
    |(?P<wild>\\?_|\\?\*)
    |(?P<ident>[a-z](?:\w|\\_)*)
    |(?P<mark>:-|⟸|\|>|[<\[][-+](?=\s*\[)|\\?<-(?!\d)|\\?<=|\\?>=|\\?!=|\\?==|\\?[<>=!]|[()\[\]{},.:@|?])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\", "`": "`"}
_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\n|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Date:
    """A date: the number that it stands for, and how it was written."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is a group of the expression above, or `end`; `value` is text, number or what a string holds."""

    kind: str
    value: Any
    place: Place


def scan(text: str, file: str) -> tuple[list[Token], list[Finding]]:
    """All tokens, an `end` last, and what was wrong with the characters."""
    lines = [0]
    lines += [hit.end() for hit in re.finditer("\n", text)]
    tokens: list[Token] = []
    findings: list[Finding] = []

    def place(start: int, end: int) -> Place:
        line = bisect_right(lines, start)
        return Place(file, line, start - lines[line - 1] + 1, start, end)

    if len(text) > MAX_CHARS:
        where = Place(file, 1, 1, 0, 0)
        return [Token("end", "", where)], [Finding("policy.syntax", "error", "the file is too large", where)]
    at, bad = 0, -1
    while at < len(text):
        hit = _TOKEN.match(text, at)
        if hit is None:
            if bad != at and len(findings) < MAX_FINDINGS:
                findings.append(_unknown(text, at, place(at, at + 1)))
            at = bad = _beyond(text, at)
            continue
        end = hit.end()
        kind = hit.lastgroup or ""
        if kind != "space":
            where = place(at, end)
            tokens.append(Token(kind, _value(kind, hit.group(), where, findings), where))
        at = end
    tokens.append(Token("end", "", place(len(text), len(text))))
    return tokens, findings


def comments(text: str) -> list[tuple[int, str]]:
    """Every comment with its place, blanks at its end left out."""
    found = []
    at = 0
    while at < len(text):
        hit = _TOKEN.match(text, at)
        if hit is not None and hit.group()[0] == "#":
            found.append((at, hit.group().rstrip()))
        at = hit.end() if hit is not None else _beyond(text, at)
    return found


def _beyond(text: str, at: int) -> int:
    """Where reading goes on behind what is no token: a string without an end takes its whole line."""
    if text[at] not in "\"'":
        return at + 1
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _unknown(text: str, at: int, where: Place) -> Finding:
    if text[at] in "\"'`":
        return Finding(
            "policy.syntax", "error", "a string that does not end on its line", where, "close the quote"
        )
    return Finding("policy.syntax", "error", f"{text[at]!r} has no place here", where)


def _value(kind: str, raw: str, where: Place, findings: list[Finding]) -> Any:
    if kind == "string":
        return _string(raw, where, findings)
    if kind == "number":
        return int(raw) if len(raw) < 25 else 2**64
    if kind == "float":
        return float(raw)
    if kind == "date":
        number = instant(raw)
        if number is None:
            findings.append(Finding("policy.syntax", "error", f"there is no such time: {raw}", where))
        return Date(number or 0, raw)
    if "\\" in raw:
        plain = raw.replace("\\", "")
        findings.append(Finding("policy.dialect", "warning", f"a markdown escape: {raw}", where, "", plain))
        raw = plain
    if kind == "wild" and raw == "*":
        findings.append(Finding("policy.dialect", "warning", "`*` is read as `_` here", where, "", "_"))
    if raw == "==":
        findings.append(Finding("policy.dialect", "warning", "equality is written `=`", where, "", "="))
        return "="
    return ":-" if raw == "⟸" else raw


def _string(raw: str, where: Place, findings: list[Finding]) -> str:
    if raw[0] == "`":
        return raw[1:-1]

    def one(hit: re.Match[str]) -> str:
        code = hit.group(1)
        if code == "\n":
            return ""
        if code in _ESCAPES:
            return _ESCAPES[code]
        if len(code) > 1:
            number = int(code.strip("ux{}"), 16)
            if number < 0x110000 and not 0xD800 <= number < 0xE000:
                return chr(number)
        findings.append(
            Finding("policy.syntax", "error", f"an unknown escape: \\{code}", where, "write \\\\")
        )
        return code

    value = _ESCAPE.sub(one, raw[1:-1])
    if raw[0] == "'":
        fix = '"' + raw[1:-1].replace('"', '\\"') + '"'
        hint = "strings have double quotes; where a name was meant write it with a slash"
        findings.append(Finding("policy.dialect", "warning", "a string in single quotes", where, hint, fix))
    return value
