"""Whether a table can be read, and names only what exists: findings with the place, for whoever writes one.

Takes the text of a TOML file; gives sentences, none for a table in order. It does not say whether a table is
right about its program: that is for people to review.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from spak.commandline.kinds import KINDS
from spak.commandline.table import _HEAD, VERSION, Grammar, Kind, made
from spak.commandline.words import words

_KEYS = words(
    "names does about why style stops prints response otherwise bare code letters inherit flags options "
    "operands verbs when one_of needs kinds use groups"
)
_WHEN = words("any with not words does about why operands kinds")
_STYLES = ("", "single", "go", "words")
DEEDS = words(
    "computes reads writes builds commits installs_locked talks_to_origin downloads asks_itself connects "
    "publishes executes escalates destroys signals wastes shows_environment sets_environment deletes_widely "
    "installs refused_flag unknown_option unknown_value unknown_word not_understood not_looked_at"
)
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
                wrong += _grammar(made(name, section))
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError, re.error) as error:
            wrong.append(f"{name}: {error}")
    return wrong


def _section(section: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(section.keys() - _KEYS):
        yield f"{key} is no part of a table"
    for when in section.get("when", ()):
        for key in sorted(when.keys() - _WHEN):
            yield f"{key} is no part of a `when`"
    if section.get("style", "") not in _STYLES:
        yield f"style {section['style']} is none of {', '.join(_STYLES[1:])}"
    for verb, inner in section.get("verbs", {}).items():
        yield from (f"{verb}: {item}" for item in _section(inner))


def _grammar(grammar: Grammar) -> Iterator[str]:
    named = set(grammar.kinds) | {key for when in grammar.when for key in when.kinds}
    known = [kind for option in grammar.options.values() for kind in option.kinds]
    known += [slot.kind for slot in grammar.operands]
    for when in grammar.when:
        known += [*when.kinds.values(), *(slot.kind for slot in when.operands or ())]
        for option in (when.given | when.missing) - set(grammar.options):
            yield f"{grammar.name}: `when` names {option}, which is no option of it"
    for kind in (*known, *grammar.kinds.values()):
        yield from (f"{grammar.name}: {item}" for item in _kind(kind, named))
    for option in (grammar.one_of | grammar.needs) - set(grammar.options):
        yield f"{grammar.name}: {option} is no option of it"
    deeds = {grammar.does, grammar.otherwise, *(when.does for when in grammar.when), grammar.bare} - {
        None,
        "",
    }
    for deed in sorted(map(str, deeds - DEEDS)):
        yield f"{grammar.name}: {deed} is no deed"
    for inner in {id(verb): verb for verb in grammar.verbs.values()}.values():
        yield from _grammar(inner)


def _kind(kind: Kind, named: set[str]) -> Iterator[str]:
    if kind.name not in KINDS and kind.name not in named:
        yield f"{kind.name} is no kind"
    if kind.name == "match":
        try:
            re.compile(kind.detail)
        except re.error as error:
            yield f"{kind.detail}: {error}"
