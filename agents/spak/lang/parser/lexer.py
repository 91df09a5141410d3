"""The lexer: text to tokens, as three lists side by side (kind, start, end), plus what no token can hold.

One regular expression walks blanks, comments and one token at a time. A word spelled like a keyword gets the
keyword's kind; whether it is one or a name is decided by the parser, which knows what can stand there. What
cannot be lexed is reported and left out, or closed where it stands (a string without its end), so that the
parser sees a sane stream.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from spak.lang.ast import Tokens
from spak.lang.diagnostics import LIMIT

Problem = tuple[str, str, str, int, int, tuple[tuple[int, int, str], ...] | None]
"""Code, message, hint, start, end, fix."""

MAX_MENDED = 1000
"""A text with more stray characters is no spec: the rest of it is left unread."""

_TOKEN = re.compile(
    r"""
    (?>[\s\ufeff]+|//[^\n]*|\#[^\n]*)*+
    (?:
      ([^\W\d]\w*+(?:[.-]\w++)*+|/[^\W\d]\w*+(?=\s*+->))           # 1 word, or a name of NEXT BY
    | (\"\"\"(?:[^"\\]++|\\\"\"\"|\\(?!\"\"\")|"(?!""))*\"\"\")    # 2 long string; see below
    | ("(?!"")(?:[^"\\\n]++|\\[^\n])*+")                           # 3 string
    | (-?[0-9][0-9_]*+(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.])) # 4 number
    | (->)                                                         # 5
    | (==|!=|<=|>=|=>|--+>|[<>→])                                  # 6 comparison, or a wrong arrow
    | ([{}\[\](),:=])                                              # 7
    | (\Z)                                                         # 8
    | (\"\"\"|"[^\n]*+)                                            # 9 string without its end
    | ('(?:[^'\\\n]++|\\[^\n])*+')                                 # 10 single quotes
    | (-?[0-9][\w.]*+)                                             # 11 wrong number
    | (.)                                                          # 12
    )
    """,
    re.VERBOSE | re.DOTALL,
)
# The long string's repeat is not possessive: up to Python 3.11.4 a negative lookahead inside one goes wrong
# (cpython issue 100061). Its alternatives exclude each other, so going back finds nothing new.
_WORD, _LONG, _SHORT, _NUMBER, _ARROW, _CMP, _PUNCTUATION, _END, _OPEN, _SINGLE, _BAD_NUMBER = range(1, 12)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The numbers of the terminals, as the tables have them."""

    keywords: dict[str, int]
    punctuation: dict[str, int]
    name: int
    string: int
    number: int
    compare: int
    arrow: int
    openers: frozenset[int]
    closers: frozenset[int]


def vocabulary(terminals: Sequence[str], first_keyword: int) -> Vocabulary:
    """The numbers of keywords and punctuation among the grammar's terminals."""
    number = {name: index for index, name in enumerate(terminals)}
    return Vocabulary(
        keywords={name.lower(): number[name] for name in terminals[first_keyword:]},
        punctuation={char: number[char] for char in "{}[](),:="},
        name=number["NAME"],
        string=number["STRING"],
        number=number["NUMBER"],
        compare=number["CMP"],
        arrow=number["->"],
        openers=frozenset(number[char] for char in "{[("),
        closers=frozenset(number[char] for char in "}])"),
    )


def lex(text: str, words: Vocabulary) -> tuple[Tokens, list[Problem]]:
    """The tokens, `$END` (0) last, and what had to be left out or mended."""
    kinds: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    problems: list[Problem] = []
    keyword, name, punctuation = words.keywords.get, words.name, words.punctuation
    table = [0, 0, words.string, words.string, words.number, words.arrow, words.compare, 0, 0]
    resume = mended = 0
    while True:
        for match in _TOKEN.finditer(text, resume):
            group = match.lastindex or 0
            start, end = match.span(group)
            if group == _WORD:
                kinds.append(keyword(text[start:end].lower(), name))
            elif group == _PUNCTUATION:
                kinds.append(punctuation[text[start]])
            elif group < _END and (group != _CMP or (text[start:end] not in _ARROWS and text[start] != "-")):
                kinds.append(table[group])
            else:
                break
            starts.append(start)
            ends.append(end)
        if group == _END:
            break
        kind, resume = _mend(text, group, start, end, words, problems)
        mended += 1
        if mended > MAX_MENDED:
            break
        del problems[LIMIT:]
        if kind >= 0:
            kinds.append(kind)
            starts.append(start)
            ends.append(resume)
    kinds.append(0)
    starts.append(len(text))
    ends.append(len(text))
    return Tokens(kinds, starts, ends), problems


_ARROWS = ("=>", "→")


def _mend(
    text: str, group: int, start: int, end: int, words: Vocabulary, problems: list[Problem]
) -> tuple[int, int]:
    """Report what no token can hold; the kind that stands in for it (-1: none) and where to go on."""
    found = text[start:end]
    if group == _CMP:
        hint = "an arrow is written ->"
        problems.append(("lang.syntax", f"unknown arrow '{found}'", hint, start, end, ((start, end, "->"),)))
        return words.arrow, end
    if group == _OPEN and found == '"""':
        hint = 'close it with """'
        problems.append(("lang.unclosed_string", 'text opened with """ never ends', hint, start, end, None))
        return words.string, len(text)
    if group == _OPEN:
        end = start + len(found.rstrip())
        hint = 'a text in "..." ends on its line; write several lines in """..."""'
        problems.append(
            ("lang.unclosed_string", "text without its closing quote", hint, start, end, ((end, end, '"'),))
        )
        return words.string, end
    if group == _SINGLE:
        hint = 'write a text in "..."'
        fix = ((start, end, '"' + found[1:-1].replace('"', '\\"') + '"'),)
        problems.append(("lang.syntax", "text in single quotes", hint, start, end, fix))
        return words.string, end
    if group == _BAD_NUMBER:
        hint = "numbers look like 12, -3, 0.5, 1e-4; anything else needs quotes"
        problems.append(("lang.number", f"'{_short(found)}' is not a number", hint, start, end, None))
        return words.number, end
    end = _stray_end(text, start)
    found = text[start:end]
    hint = 'write text in "..."; comments begin with // or #'
    problems.append(
        ("lang.character", f"unexpected {_describe(found)}", hint, start, end, ((start, end, ""),))
    )
    return -1, end


def _stray_end(text: str, start: int) -> int:
    """The end of a run of one stray character."""
    end = start + 1
    while end < len(text) and text[end] == text[start]:
        end += 1
    return end


def _describe(found: str) -> str:
    char = found[0]
    shown = f"'{_short(found)}'" if char.isprintable() else "character"
    return shown if char.isascii() and char.isprintable() else f"{shown} (U+{ord(char):04X})"


def _short(text: str) -> str:
    return text if len(text) <= 24 else text[:21] + "..."
