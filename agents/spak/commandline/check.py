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
_SECTIONS, _TABLES, _TEXTS = ("verbs", "groups"), ("options", "kinds"), ("operands", "flags")
_SWITCHES = ("stops", "prints", "response", "letters", "inherit")
_SAID = KEYS | WHEN
_IS_TEXT, _IS_SWITCH, _IS_TABLE, _IS_WHEN = "a text", "true or false", "a table", "a list of tables"
DEEDS = lists.names("tables", "deeds")
"""What a table may say that a program does."""


def problems(text: str) -> list[str]:
    """What is wrong with the text of a table."""
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return [f"no TOML: {error}"]
    version = found.pop("version", None)
    wrong = [] if type(version) is int and version == VERSION else [f"no `version = {VERSION}` at the top"]
    heads = {head[1].strip('"') for head in _HEAD.finditer(text)}
    for name, section in found.items():
        if not isinstance(section, Mapping):
            wrong.append(f"{name} is no section")
            continue
        if name not in heads:
            wrong.append(f"[{name}] does not begin a line of its own")
        try:
            wrong += [f"{name}: {item}" for item in [*_mistyped(section)] or _section(section)]
            if not wrong:
                wrong += itertools.chain(*map(_grammar, every(made(name, section))))
        except RecursionError:
            wrong.append(f"{name}: nested too deeply")
        except re.error as error:
            wrong.append(f"{name}: {error.pattern!s}: {error}")
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            wrong.append(f"{name}: {error}")
    return wrong


def _mistyped(said: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """The values that are of another type than their key has, at any depth."""
    for key, value in said.items():
        where = f"{above}{key}"
        if key in (*_SECTIONS, *_TABLES):
            kind, fits = _IS_TABLE, isinstance(value, Mapping)
            for name, inner in value.items() if fits else ():
                if key in _SECTIONS and isinstance(inner, Mapping):
                    yield from _mistyped(inner, f"{name}: ")
                elif key in _SECTIONS or not _is_text(inner):
                    yield f"{where}: {name} has to be {_IS_TABLE if key in _SECTIONS else _IS_TEXT}"
        elif key == "when":
            kind = _IS_WHEN
            fits = isinstance(value, list) and all(isinstance(item, Mapping) for item in value)
            for item in value if fits else ():
                yield from _mistyped(item, f"{above}`when`: ")
        elif key in _SWITCHES:
            kind, fits = _IS_SWITCH, type(value) is bool
        else:
            kind, own = _IS_TEXT, _is_text(value) if key in _TEXTS else isinstance(value, str)
            fits = own or key not in _SAID
        if not fits:
            yield f"{where} has to be {kind}"


def _is_text(value: Any) -> bool:
    """Whether it is a text, or a list of texts."""
    return all(isinstance(item, str) for item in (value if isinstance(value, list) else [value]))


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
        for option in sorted((when.given | when.missing) - set(grammar.options)):
            yield f"{grammar.name}: `when` names {option}, which is no option of it"
    for kind in itertools.chain(*kinds_of(grammar).values(), *(kinds.values() for kinds in changed)):
        if kind.name not in KINDS and kind.name not in named:
            yield f"{grammar.name}: {kind.name} is no kind"
        if kind.name == "match":
            re.compile(kind.detail)
    for option in sorted((grammar.one_of | grammar.needs | grammar.ends) - set(grammar.options)):
        yield f"{grammar.name}: {option} is no option of it"
    for deed in sorted((deeds_of(grammar) | {grammar.otherwise}) - DEEDS):
        yield f"{grammar.name}: {deed} is no deed"
