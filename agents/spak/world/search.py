"""Patterns over syntax trees: `try: $$$A except: $$$B`, found however the text is laid out.

Takes a folder, a pattern of ast-grep (`$A` is one node, `$$$A` any number), a language and a place; gives
matches with their lines and what the variables stand for. Files that the law lets nobody read are passed
over. A pattern that finds nothing and does not parse is an error, and so is a search beyond its bounds.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spak.cancel import Cancel, check
from spak.errors import UsageError
from spak.files import beneath
from spak.files.walk import printable, walk
from spak.world import scan
from spak.world.languages import SUFFIXES, language_of, parser
from spak.world.worker import Parsers

MAX_MATCHES = 1000
MAX_FILES = 20_000
MAX_PATTERN = 2000
LANGUAGES = tuple(dict.fromkeys(SUFFIXES.values()))
_VARIABLE = re.compile(r"\$\$?\$?[A-Z_][A-Z_0-9]*|\$\$\$")
_CLAUSE = re.compile(r"[ \t]+(?=(?:except|finally|else|elif)\b[^\n]*:)")


@dataclass(frozen=True, slots=True)
class Match:
    """One place; `names` has the text of each variable."""

    path: str
    line: int
    end: int
    text: str
    names: dict[str, str]


@dataclass(frozen=True, slots=True)
class Found:
    """All matches, and whether there are more than are given."""

    matches: tuple[Match, ...]
    files: int
    unknown: int
    cut: bool


def search(
    root: Path, pattern: str, language: str = "", where: str = ".", cancel: Cancel | None = None
) -> Found:
    """The matches below a folder, or in a file. Without a language each file is searched in its own.

    Raises: UsageError `world.pattern`, `world.language`, `path.*`; Cancelled.
    """
    if language and language not in LANGUAGES:
        raise UsageError("world.language", f"{language!a} is not searched", f"known: {', '.join(LANGUAGES)}")
    if not pattern.strip() or len(pattern) > MAX_PATTERN:
        raise UsageError("world.pattern", f"a pattern has 1 to {MAX_PATTERN} characters", "such as f($A)")
    matches: list[Match] = []
    files = unknown = 0
    searched: set[str] = set()
    with Parsers() as parsers:
        for path, data in _sources(root, where, language):
            check(cancel)
            if files >= MAX_FILES or len(matches) > MAX_MATCHES:
                return Found(tuple(matches[:MAX_MATCHES]), files, unknown, True)
            files += 1
            searched.add(spoken := language or language_of(path))
            found = parsers.search(spoken, _laid_out(spoken, pattern), data)
            if found is None:
                unknown += 1
                continue
            matches += [Match(printable(path), *row) for row in json.loads(found)]
    if not matches and searched and not any(_parses(name, pattern) for name in searched):
        raise UsageError(
            "world.pattern",
            f"the pattern does not parse as {', '.join(sorted(searched))}",
            "write it as code",
        )
    return Found(tuple(matches[:MAX_MATCHES]), files, unknown, len(matches) > MAX_MATCHES)


def _sources(root: Path, where: str, language: str) -> Iterator[tuple[str, bytes]]:
    fd, parts = beneath.open_beneath(root, where)
    is_folder = stat.S_ISDIR(os.fstat(fd).st_mode)
    os.close(fd)
    if not is_folder:
        yield "/".join(parts), beneath.read_beneath(root, where, scan.MAX_FILE_BYTES)
        return
    for entry in walk(root, where, skip=lambda folder: scan.skipped(root, folder)):
        spoken = language_of(entry.name) if entry.kind == "file" else ""
        if spoken and (not language or spoken == language):
            data = entry.read(scan.MAX_FILE_BYTES)
            if data is not None and b"\0" not in data:
                yield entry.whole, data


def _laid_out(language: str, pattern: str) -> str:
    """A pattern of Python on one line, with its clauses on lines of their own."""
    return _CLAUSE.sub("\n", pattern) if language == "python" and "\n" not in pattern else pattern


def _parses(language: str, pattern: str) -> bool:
    text = _VARIABLE.sub("x", _laid_out(language, pattern))
    if language in ("c", "cpp", "cuda", "go") and text.rstrip().endswith(")"):
        text = f"int f() {{ {text}; }}" if language != "go" else f"func f() {{ {text} }}"
    return not parser(language).parse(text.encode()).root_node.has_error
