"""The tables of programs: what each word of a command means, as data.

A table is a section of a TOML file below `tables/`, one section for each program. This module reads one
section, when its program is first met, and gives a Grammar; `problems` names what is wrong with a text. An
option that a table does not list does not exist for the interpreter (spak.commandline.interpret).

    [tar]                         # the program; `names` lists others that take the same words
    does = "writes"               # the deed, where no `when` says otherwise
    flags = "-v --verbose"        # options without a value
    operands = "tree*"            # the words that are no options, in order; * any number, ? at most one
    [tar.options]                 # options with a value: spellings = the kind of the value
    "-C --directory" = "writes"
    [[tar.when]]                  # where one of these options is given
    any = "-x --extract"
    operands = "text*"

Spellings: `-o` and `--output` take the next word or what is joined (`-oX`, `--output=X`); `-j?` and
`--color?` only what is joined, if anything; `-std=` only after the sign; `-#` is a number with a dash.
`style = "single"` is for programs whose long options have one dash. Kinds are listed in kinds.py.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from spak import canon
from spak.commandline import lists

VERSION = 1
FOLDER = Path(__file__).resolve().parent / "tables"
_HEAD = re.compile(r"^\[([^\[\].\"]+|\"[^\"]+\")\]\s*(?:#.*)?$", re.MULTILINE)
_NAMES = re.compile(r"^names = \"([^\"]*)\"", re.MULTILINE)
_SPELLING = re.compile(r"(-#|[-+][A-Za-z0-9@:?_.#-]|--?[A-Za-z0-9#][\w.+:-]*)([?=]?)\Z")

_DETAILED = re.compile(rf"({'|'.join(lists.ordered('tables', 'detailed'))})[*?]? ")
"""A single operand whose kind has a detail, in a text that would else be cut at its blanks."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a value or an operand is: `reads`, `match` with its pattern, `choice` with its words."""

    name: str
    detail: str = ""
    count: str = ""
    """How many operands are of it: one, at most one (`?`) or any number (`*`)."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a program's table: its name and the kinds of its values."""

    name: str
    """The first of its spellings."""
    kinds: tuple[Kind, ...] = ()
    """Of its values; none for a flag."""
    form: str = ""
    """`?` when the value is optional and joined, `=` when it is joined by that sign."""


@dataclass(frozen=True, slots=True)
class When:
    """What is different where options are given."""

    given: frozenset[str]
    also: frozenset[str]
    """Of which one is given besides."""
    missing: frozenset[str]
    words: re.Pattern[str] | None
    """What the operands, joined by blanks, begin with."""
    changes: Mapping[str, Any]
    """Members of the Grammar, as they are there."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The words of a program, or of a verb of it."""

    name: str
    does: str = "computes"
    about: str = ""
    why: str = ""
    style: str = ""
    stops: bool = False
    """Options end at the first operand."""
    prints: bool = False
    """Its words are only printed, so that they need not be known."""
    response: bool = False
    """A word that begins with @ names a file of further words."""
    otherwise: str = "unknown_value"
    """The deed of a word that fits nowhere."""
    bare: str = ""
    """The deed without any verb; empty where a verb is needed."""
    code: str = ""
    """The reader of a program whose words are a language (languages.py)."""
    options: Mapping[str, Option] = field(default_factory=dict)
    operands: tuple[Kind, ...] = ()
    verbs: Mapping[str, Grammar] = field(default_factory=dict)
    when: tuple[When, ...] = ()
    one_of: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    ends: frozenset[str] = frozenset()
    """Options after whose value the words are no longer the program's own."""
    only: frozenset[str] = frozenset()
    """The programs that it may run as a command; all where none are named."""
    letters: bool = False
    """The first word may be letters of options without a dash, whose values follow in their order."""
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    """Names of this table for kinds, as `when` changes them."""
    added: bool = False
    """The table does not ship: a word that could be a path is one, whatever kind it names (custom_tables)."""


@cache
def grammar(name: str) -> Grammar | None:
    """The grammar of a program, None where no table has one."""
    text = _sections().get(name)
    return None if text is None else made(name, next(iter(tomllib.loads(text).values())))


def made(name: str, section: Mapping[str, Any], above: Mapping[str, Any] = MappingProxyType({})) -> Grammar:
    """The grammar of a section. `above` holds what a verb has from its program: the groups, and options where
    it inherits them. Raises: KeyError, ValueError, TypeError, AttributeError, re.error."""
    groups = {**above.get("groups", {}), **section.get("groups", {})}
    options: dict[str, Option] = dict(above.get("options", {}))
    members = _members(section)
    for group in map(groups.__getitem__, section.get("use", "").split()):
        options |= _options(group)
        members = _members({"operands": group.get("operands", ())}) | members
    options |= _options(section)
    members["style"] = section.get("style", above.get("style", ""))
    members["added"] = above.get("added", False)
    handed = {**members, "groups": groups, "options": options if section.get("inherit") else {}}
    verbs: dict[str, Grammar] = {}
    for spelled, inner in section.get("verbs", {}).items():
        read = made(name, inner, handed)
        verbs |= {verb: replace(read, name=f"{name} {verb}") for verb in spelled.split()}
    for key in {"one_of", "needs", "ends"} & set(members):
        members[key] = _first(members[key], options)
    when = tuple(_when(item, options) for item in section.get("when", ()))
    return Grammar(name, options=options, verbs=verbs, when=when, **members)


def every(grammar: Grammar) -> Iterator[Grammar]:
    """The grammar and those of its verbs, at any depth."""
    yield grammar
    for inner in {id(verb): verb for verb in grammar.verbs.values()}.values():
        yield from every(inner)


def kinds_of(grammar: Grammar) -> dict[str, list[Kind]]:
    """The kinds of words that a grammar names, by the option whose value is of them, "" for operands."""
    changed = (when.changes.get("operands", ()) for when in grammar.when)
    operands = [replace(kind, count="") for kinds in (grammar.operands, *changed) for kind in kinds]
    return {**{key: [*option.kinds] for key, option in grammar.options.items()}, "": operands}


def deeds_of(grammar: Grammar) -> set[str]:
    """The deeds of a command that a grammar names."""
    bare = {grammar.bare} - set(grammar.verbs)
    return {grammar.does, *bare, *(when.changes.get("does", "") for when in grammar.when)} - {""}


def unlisted(section: Mapping[str, Any], keys: Set[str], of_when: Set[str]) -> Iterator[tuple[str, bool]]:
    """The keys of a section that are not among these, after its verbs; True for those of a `when`."""
    yield from ((key, False) for key in sorted(section.keys() - keys))
    yield from ((key, True) for when in section.get("when", ()) for key in sorted(when.keys() - of_when))
    for verb, inner in section.get("verbs", {}).items():
        yield from ((f"{verb}: {key}", at_when) for key, at_when in unlisted(inner, keys, of_when))


def programs() -> tuple[str, ...]:
    """Every name that a table knows."""
    return tuple(sorted(_sections()))


def digest(added: Mapping[str, str] = MappingProxyType({})) -> str:
    """The hash of all tables in use, which the first record of a run names: those that ship with the lists
    that code reads, and the texts that were added, by names with a folder (custom_tables.py)."""
    return _digest(lists.text(), tuple(added.items()))


@lru_cache(maxsize=64)
def _digest(listed: str, added: tuple[tuple[str, str], ...]) -> str:
    return canon.content_hash({**_shipped(), lists.FILE.name: listed, **dict(added)})


@cache
def _shipped() -> Mapping[str, str]:
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob("*.toml"))}


@cache
def _sections() -> dict[str, str]:
    """The text of each program's section, found by its head, so that one can be read without the others."""
    found: dict[str, str] = {}
    for text in _shipped().values():
        heads = list(_HEAD.finditer(text))
        for head, after in zip(heads, [*heads[1:], None], strict=True):
            section = text[head.start() : after.start() if after else len(text)]
            names = _NAMES.search(section.partition("\n[")[0])
            for name in (head[1].strip('"'), *(names[1].split() if names else ())):
                found[name] = section
    return found


def _options(section: Mapping[str, Any]) -> dict[str, Option]:
    found: dict[str, Option] = {}
    flags = section.get("flags", "")
    for spelled in flags.split() if isinstance(flags, str) else flags:
        same = spelled.split("|")
        found |= {name: Option(same[0]) for name in same}
    for spelled, kinds in section.get("options", {}).items():
        names = [_spelling(item) for item in spelled.split()]
        values = tuple(_kind(kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))
        for name, form in names:
            key = name + form if form == "=" and name in found else name
            found[key] = Option(names[0][0], values, form)
    return found


def _spelling(text: str) -> tuple[str, str]:
    found = _SPELLING.match(text)
    if found is None:
        raise ValueError(f"{text} is no spelling of an option")
    return found[1], found[2]


def _kind(text: str) -> Kind:
    name, _, detail = text.partition(" ")
    return Kind(name, detail)


def _operands(found: Any) -> tuple[Kind, ...]:
    one = isinstance(found, str) and _DETAILED.match(found)
    kinds = map(_kind, [found] if one else found.split() if isinstance(found, str) else found)
    return tuple(
        Kind(kind.name.rstrip("*?"), kind.detail, kind.name[len(kind.name.rstrip("*?")) :]) for kind in kinds
    )


def _first(names: Iterable[str], options: Mapping[str, Option]) -> frozenset[str]:
    """The first spellings of options that a table may name by any of theirs."""
    return frozenset(options[name].name if name in options else name for name in names)


def _when(item: Mapping[str, Any], options: Mapping[str, Option]) -> When:
    given, also, missing = (_first(item.get(key, "").split(), options) for key in ("any", "with", "not"))
    return When(given, also, missing, re.compile(item["words"]) if "words" in item else None, _members(item))


def _members(section: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a Grammar that a section, or a `when` of it, says."""
    return {key: _MEMBERS[key](value) for key, value in section.items() if key in _MEMBERS}


_PLAIN = ("does", "about", "why", "stops", "prints", "response", "otherwise", "bare", "code", "letters")
_MEMBERS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_PLAIN, lambda value: value),
    **dict.fromkeys(("one_of", "needs", "ends", "only"), lambda value: frozenset(value.split())),
    "operands": _operands,
    "kinds": lambda value: {key: _kind(text) for key, text in value.items()},
}
"""Members of a Grammar that a section says: how the value of each key is read."""
KEYS = {*_MEMBERS, "names", "style", "inherit", "flags", "options", "verbs", "when", "use", "groups"}
"""What a section may say."""
