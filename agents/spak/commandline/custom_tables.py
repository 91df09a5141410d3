"""Tables of programs that do not ship: an operator's or a team's, for programs of their own.

Takes their texts, by names that findings give; gives the grammars that the judge reads after the shipped
ones, or what is wrong. Such a table describes a program that no shipped table knows. It may not replace or
widen one, name a program that runs what it is given, or grant what only shipped tables grant: an option that
hands over code has to say so by its kind, and a program that runs files of the workspace says `builds`.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from spak.commandline import check, lists, table
from spak.commandline.table import Grammar, Kind, made

MAX_TEXT = 1 << 16
"""Characters of one table's text."""
MAX_TEXTS = 64
MAX_PATTERN = 200

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}\Z")
_VERSION = re.compile(r"[-_.]?v?\d[\d.]*\Z")
_KEYS = table.KEYS - {"about", "stops", "prints", "code", "ends", "only", "kinds"}
_WHEN = check.WHEN - {"words", "about", "kinds"}
_DEEDS, _KINDS = lists.names("tables", "own"), lists.names("tables", "kinds")
_DENIED = check.DEEDS - _DEEDS - lists.names("tables", "granted")
_ADDED = {"added": True}
_PATTERNS = ("match", "like")
_USES = {"", "reads", "writes", "runs", "deletes"}
_DETAILS = {"word": _USES, "paths": _USES, "local": _USES, "deletes_all": {"", "deletes_tree"}}
_HANDS_OVER = lists.pattern("tables", "hands_over", re.IGNORECASE)
_OTHER_KINDS = "a `line`, `command`, `script`, `choice`, number, path or narrow `match`"


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a table: `commands.table`, `commands.shipped` or `commands.grants`."""

    code: str
    file: str
    message: str


def grammars(texts: Mapping[str, str]) -> Mapping[str, Grammar]:
    """The grammars of texts without problems, by the names of programs. Their parts are not checked again, so
    that a run keeps the tables that it began with."""
    return _grammars(tuple(sorted(texts.items())))


@lru_cache(maxsize=16)
def _grammars(texts: tuple[tuple[str, str], ...]) -> Mapping[str, Grammar]:
    sections = (item for _, text in texts for item in _sections(text))
    return {name: made(name, section, _ADDED) for head, section in sections for name in _named(head, section)}


def problems(texts: Mapping[str, str]) -> list[Problem]:
    """What is wrong with added tables, each by itself and all of them together."""
    return _problems(tuple(texts.items()))


@lru_cache(maxsize=16)
def _problems(texts: tuple[tuple[str, str], ...]) -> list[Problem]:
    if len(texts) > MAX_TEXTS:
        return [Problem("commands.table", texts[0][0], f"more than {MAX_TEXTS} tables")]
    seen: dict[str, str] = {}
    return [Problem(code, file, item) for file, text in texts for code, item in _wrong(file, text, seen)]


def _wrong(file: str, text: str, seen: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The codes and messages for one text; `seen` are the files of the programs in those before it."""
    if len(text) > MAX_TEXT:
        yield "commands.table", f"a table of more than {MAX_TEXT} characters"
        return
    wrong = check.problems(text)
    yield from (("commands.table", item) for item in wrong)
    for head, section in () if wrong else _sections(text):
        yield from (("commands.grants", item) for item in _granted(head, section))
        for name in _named(head, section):
            if why := _taken(name):
                yield "commands.shipped", f"{head}: {why}"
            if name in seen:
                yield "commands.table", f"{head}: {name} is in {seen[name]} too"
            seen[name] = file


def _sections(text: str) -> list[tuple[str, Mapping[str, Any]]]:
    return [(head, section) for head, section in tomllib.loads(text).items() if head != "version"]


def _named(head: str, section: Mapping[str, Any]) -> list[str]:
    return [head, *str(section.get("names", "")).split()]


def _taken(name: str) -> str:
    """Why no added table may describe a program of this name."""
    if not _NAME.match(name):
        return f"{name} is no plain name of a program"
    known = {other.casefold() for other in table.programs()} | lists.names("tables", "words_of_shells")
    forms = {name.casefold()}
    while (last := _VERSION.sub("", min(forms, key=len))) and last not in forms:
        forms.add(last)
    if taken := sorted(forms & known):
        same = "" if taken[0] == name else f", of which {name} is a form"
        return f"{taken[0]} is in a table that ships{same}"
    return f"{name} is a module of python" if name.startswith("python-m-") else ""


def _granted(name: str, section: Mapping[str, Any]) -> Iterator[str]:
    """What only a shipped table may say."""
    for key, _ in table.unlisted(section, _KEYS, _WHEN):
        yield f"{name}: {key} is only for tables that ship"
    for inner in table.every(made(name, section, _ADDED)):
        yield from (f"{inner.name}: {item}" for item in _of(inner))


def _of(grammar: Grammar) -> Iterator[str]:
    named = table.kinds_of(grammar)
    kinds = list(dict.fromkeys(itertools.chain(*named.values())))
    yield from itertools.chain(*map(_kind, kinds))
    for deed in sorted((table.deeds_of(grammar) | {grammar.bare or grammar.does}) - _DEEDS - _DENIED):
        yield f"the deed {deed} is only for tables that ship"
    if grammar.otherwise not in _DENIED:
        yield "`otherwise` would permit words that the table does not list"
    if grammar.style == "words":
        yield "the style words would permit options that the table does not list"
    runs = any({"runs", "program"} & {kind.name, *kind.detail.split()} for kind in kinds)
    if runs and not table.deeds_of(grammar) - {grammar.bare} <= _DENIED | {"builds"}:
        yield "it runs files of the workspace, so what it does is `builds`"
    verb = grammar.name.rpartition(" ")[2] if " " in grammar.name else ""
    for spelled, taken in {f"--{verb}": [], **named}.items():
        # what is called like code, as an option or as a verb, with a kind that would let any text through
        asked = spelled.rstrip("=")
        flag = spelled == f"--{verb}" or (not taken and len(spelled) > 2)
        if _HANDS_OVER.match(asked) and any(map(_takes_code, named[""] if flag else taken)):
            shown = verb if spelled == f"--{verb}" else asked
            yield f"{shown} may hand over code: what follows is to be {_OTHER_KINDS}"


def _kind(kind: Kind) -> Iterator[str]:
    """What a kind grants that only a table that ships may grant."""
    if kind.name not in _KINDS:
        yield f"the kind {kind.name} is only for tables that ship"
    elif kind.name == "script" and kind.detail not in lists.sections()["scripts"]:
        yield f"script {kind.detail} is no language that is read"
    elif kind.detail not in _DETAILS.get(kind.name, {kind.detail}):
        yield f"the kind {kind.name} {kind.detail} is only for tables that ship"
    elif kind.name in _PATTERNS and len(kind.detail) > MAX_PATTERN:
        yield f"a pattern of more than {MAX_PATTERN} characters"
    elif kind.name in _PATTERNS and _matches(kind.detail, "") is None:
        yield f"{kind.detail} is no RE2 pattern"


def _matches(pattern: str, text: str) -> bool | None:
    """Whether a pattern fits the whole text; None for what is no pattern of RE2, which takes linear time."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.fullmatch(pattern, text, options) is not None
    except re2.error:
        return None


def _takes_code(kind: Kind) -> bool:
    """Whether a word of the kind could be code."""
    if kind.name in _PATTERNS:
        return any(_matches(kind.detail, code) is not False for code in lists.sections()["tables"]["code"])
    return kind.name in ("text", "word", "plain", "name", "include", "exclude")
