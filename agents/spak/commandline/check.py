"""Whether a table can be read, and names only what exists: findings with the place, for whoever writes one.

Takes the text of a TOML file; gives sentences, none for a table in order. It does not say whether a table is
right about its program: that is for people to review.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from spak.commandline import lists
from spak.commandline.kinds import KINDS
from spak.commandline.table import _HEAD, KEYS, VERSION, Grammar, deeds_of, every, kinds_of, made, unlisted

WHEN = frozenset(("any", "with", "not", "words", "does", "about", "why", "operands", "kinds"))
"""What a `when` may say."""
_STYLES = ("", "single", "go", "words")
DEEDS = lists.names("tables", "deeds")
"""What a table may say that a program does."""


def problems(text: str) -> list[str]:
    """What is wrong with the text of a table."""
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return [f"no TOML: {error}"]
    wrong = [] if found.pop("version", None) == VERSION else [f"no `version = {VERSION}` at the top"]
    heads = {head[1].strip('"') for head in _HEAD.finditer(text)}
    for name, section in found.items():
        if not isinstance(section, Mapping):
            wrong.append(f"{name} is no section")
            continue
        if name not in heads:
            wrong.append(f"[{name}] does not begin a line of its own")
        try:
            wrong += [f"{name}: {item}" for item in _section(section)]
            if not wrong:
                wrong += itertools.chain(*map(_grammar, every(made(name, section))))
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError, re.error) as error:
            wrong.append(f"{name}: {error}")
    return wrong


def _section(section: Mapping[str, Any]) -> Iterator[str]:
    for key, of_when in unlisted(section, KEYS, WHEN):
        yield f"{key} is no part of a {'`when`' if of_when else 'table'}"
    for style in (inner.get("style", "") for inner in (section, *section.get("verbs", {}).values())):
        if style not in _STYLES:
            yield f"style {style} is none of {', '.join(_STYLES[1:])}"


def _grammar(grammar: Grammar) -> Iterator[str]:
    changed = [when.changes.get("kinds", {}) for when in grammar.when] + [grammar.kinds]
    named = set().union(*changed)
    for when in grammar.when:
        for option in (when.given | when.missing) - set(grammar.options):
            yield f"{grammar.name}: `when` names {option}, which is no option of it"
    for kind in itertools.chain(*kinds_of(grammar).values(), *(kinds.values() for kinds in changed)):
        if kind.name not in KINDS and kind.name not in named:
            yield f"{grammar.name}: {kind.name} is no kind"
        if kind.name == "match" and (why := _wrong(kind.detail)):
            yield f"{grammar.name}: {kind.detail}: {why}"
    for option in (grammar.one_of | grammar.needs | grammar.ends) - set(grammar.options):
        yield f"{grammar.name}: {option} is no option of it"
    for deed in sorted((deeds_of(grammar) | {grammar.otherwise}) - DEEDS):
        yield f"{grammar.name}: {deed} is no deed"


def _wrong(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        return str(error)
    return ""
