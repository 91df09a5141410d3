"""An outline of C and CUDA sources: includes, macros, types, functions and variables of file scope.

Takes the text; gives symbols with lines. It is no compiler: comments, strings and conditionals are passed
over, braces are counted, and what stands at file scope before a brace or a semicolon is named by its shape.
One pass, each character looked at a fixed number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?"
    r'|"(?:[^"\\\n]|\\.)*"?|\'(?:[^\'\\\n]|\\.)*\'?'
    r"|^[ \t]*\#(?:[^\n\\]|\\\n|\\)*"
    r"|[A-Za-z_]\w*|\s+|[^\w\s]|\d[\w.]*",
    re.M,
)
_DIRECTIVE = re.compile(r"\s*\#\s*(include|define)\s+([<\"][^>\"\n]*[>\"]|[A-Za-z_]\w*)")
_NO_NAMES = frozenset(
    ["if", "for", "while", "switch", "return", "sizeof", "do", "else", "__attribute__", "__launch_bounds__"]
)
_TYPES = ("struct", "union", "enum", "class")


def outline(text: str) -> list[dict[str, object]]:
    """The symbols in order of their lines."""
    return list(_symbols(text))


def _symbols(text: str) -> Iterator[dict[str, object]]:
    depth, line = 0, 1
    head: list[tuple[str, int]] = []
    opened: dict[str, object] | None = None
    for found in _TOKEN.finditer(text):
        token, here = found[0], line
        line += token.count("\n")
        first = token.lstrip(" \t")[:1]
        if first == "#":
            directive = _DIRECTIVE.match(token)
            if directive is not None:
                kind = "include" if directive[1] == "include" else "macro"
                yield {"kind": kind, "name": directive[2].strip('<>"'), "line": here}
        elif token.startswith(("//", "/*")) or token.isspace():
            continue
        elif token == "{":
            if depth == 0 and head and head[0][0] in ("extern", "namespace") and len(head) <= 2:
                head = []
                continue
            if depth == 0:
                opened = _named(head, body=True)
            depth += 1
        elif token == "}":
            depth = max(0, depth - 1)
            if depth == 0:
                if opened is not None:
                    yield {**opened, "end_line": here}
                head, opened = [word for word in head[:1] if word[0] == "typedef"], None
        elif depth == 0 and token == ";":
            symbol = _named(head, body=False)
            if symbol is not None:
                yield symbol
            head = []
        elif depth == 0 and len(head) < 400:
            head.append((token, here))


def _named(head: list[tuple[str, int]], body: bool) -> dict[str, object] | None:
    """What the words before a brace or a semicolon declare."""
    words = [word for word, _ in head]
    if not words:
        return None
    if words[0] == "typedef" and not body:
        names = [word for word in words if re.match(r"[A-Za-z_]", word)]
        return {"kind": "type", "name": names[-1], "line": head[0][1]} if len(names) > 1 else None
    if "=" in words:
        at = words.index("=")
        return _variable(head[:at])
    call = next(
        (
            index
            for index, word in enumerate(words)
            if word == "(" and index and re.match(r"[A-Za-z_]", words[index - 1])
            and words[index - 1] not in _NO_NAMES
        ),
        None,
    )  # fmt: skip
    if call is not None:
        kind = "function" if body else "declaration"
        sign = " ".join(words[call:])[:200]
        return {"kind": kind, "name": words[call - 1], "line": head[call - 1][1], "signature": sign}
    if body:
        for index, word in enumerate(words):
            if word in _TYPES:
                name = next((name for name in words[index + 1 :] if re.match(r"[A-Za-z_]", name)), "")
                return {"kind": word, "name": name, "line": head[index][1]}
        return None
    return _variable(head)


def _variable(head: list[tuple[str, int]]) -> dict[str, object] | None:
    """The name before a `[` or at the end."""
    kept = head
    for index, (word, _) in enumerate(head):
        if word == "[":
            kept = head[:index]
            break
    names = [(word, line) for word, line in kept if re.match(r"[A-Za-z_]", word)]
    if len(names) < 2 or (names[0][0] in _TYPES and len(names) == 2):
        return None
    return {"kind": "variable", "name": names[-1][0], "line": names[-1][1]}
