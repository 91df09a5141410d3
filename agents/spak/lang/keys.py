"""Keys, values and names of settings: what settings.py and the catalog say, asked of a text.

Takes entries of the tree; gives plain values and Choices, and reports keys that nobody knows, values that do
not fit, and names that the catalog does not have, each with the nearest that would have been right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spak.lang import ast, settings, values
from spak.lang.catalog import Catalog, ToolEntry, backend_name
from spak.lang.lookalike import odd, reading
from spak.lang.near import did_you_mean, nearest
from spak.lang.outline import Choice
from spak.lang.report import Report
from spak.lang.schema import violations

_UNKNOWN = {
    "validators": "lang.unknown_validator",
    "proposers": "lang.unknown_proposer",
    "backends": "lang.unknown_backend",
}
_OWNERS = {
    "agent": "an AGENT",
    "config": "CONFIG",
    "budget": "BUDGET",
    "task": "a TASK",
    "rule": "RULE",
    "task budget": "a TASK's BUDGET",
    "poll": "poll",
}
_BLOCKS = {
    "agent": "the AGENT",
    "config": "CONFIG { }",
    "budget": "CONFIG { BUDGET { } }",
    "task": "a TASK",
    "rule": "RULE { }",
    "task budget": "a TASK's BUDGET { }",
    "poll": "poll { } of a tool step",
}


OF_SERVERS = (
    "a tool of an MCP server is known where the lock file names it (spak mcp list), and on no platform"
)


class Keys:
    """Readers of settings over one catalog and one report."""

    def __init__(self, catalog: Catalog, report: Report) -> None:
        self.catalog = catalog
        self.report = report

    # ---- names of the catalog

    def tool(self, name: str, at: ast.Value | int) -> ToolEntry | None:
        """The tool of a name, else a diagnostic with the nearest one."""
        found = self.catalog.tool(name)
        if found is None:
            names = [
                *self.catalog.tools,
                *(alias for tool in self.catalog.tools.values() for alias in tool.aliases),
            ]
            near = nearest(name, names)
            hint = did_you_mean(name, names) or f"known: {', '.join(sorted(self.catalog.tools)) or 'none'}"
            if "__" in name:
                hint = OF_SERVERS
            fix = self.report.replace(at, f"tool.{near}" if near and isinstance(at, int) else near)
            self.report.error("lang.unknown_tool", f"unknown tool '{name}'", hint, at, fix)
        return found

    def choice(self, entry: ast.Entry, table: str) -> Choice | None:
        """`VALIDATOR name`, `VALIDATOR name { options }`, `VALIDATOR none`."""
        value = entry.value
        if self.missing(entry):
            return None
        if isinstance(value, ast.Tagged):
            name, options = value.name, value.body
        elif isinstance(value, (ast.Name, ast.Text)):
            name, options = value.value, None
        else:
            self.report.error("lang.value", f"{entry.key} wants a name", settings.example(entry.key), value)
            return None
        if name.lower() in ("none", "null"):
            return None
        known: Mapping[str, Any] = getattr(self.catalog, table)
        name = backend_name(name) if table == "backends" else name
        found = known.get(name)
        if found is None:
            code = _UNKNOWN[table]
            what = table.removesuffix("s")
            hint = did_you_mean(name, known) or f"known: {', '.join(sorted(known)) or 'none'}"
            fix = self.report.replace(value.start, nearest(name, known))
            self.report.error(code, f"unknown {what} '{name}'", hint, value.start, fix)
        return Choice(name, options, value, found)

    def sandbox(self, entry: ast.Entry) -> str:
        """The sandbox that SANDBOX names, else a diagnostic."""
        word = self.word(entry)
        names = dict.fromkeys([*settings.SANDBOXES, *(name.upper() for name in self.catalog.launchers)])
        if word and word.upper() not in names:
            hint = did_you_mean(word, names) or f"known: {', '.join(names)}"
            fix = self.report.replace(entry.value, nearest(word, names))
            self.report.error("lang.unknown_launcher", f"unknown sandbox '{word}'", hint, entry.value, fix)
        return word.upper()

    # ---- keys and values of settings

    def known(
        self, entries: list[ast.Entry], place: str, words: tuple[str, ...], opaque: bool = False
    ) -> dict[str, ast.Entry]:
        """The entries of a place by key; unknown ones and second ones are reported."""
        found: dict[str, ast.Entry] = {}
        for entry in entries:
            setting = settings.find(place, entry.key)
            if setting is None and self.report.full:
                break
            if setting is None:
                names = (*words, *settings.PLACES[place])
                block = isinstance(entry.value, (ast.MapValue, ast.Tagged))
                if opaque and block and not nearest(entry.key, names) and not settings.place_of(entry.key):
                    hint = "it means nothing to SPAK and is left alone"
                    self.report.warn("lang.unknown_block", f"unknown block '{entry.key}'", hint, entry.start)
                else:
                    self.unknown_key(entry, names, _OWNERS[place])
            elif setting.key in found:
                hint = f"the first is on {self.report.source.where(found[setting.key].start)}"
                message = f"{setting.key} is given twice"
                self.report.error("lang.duplicate_key", message, hint, entry.start)
            else:
                found[setting.key] = entry
                if entry.default is not None:
                    hint = "defaults belong in INPUTS"
                    self.report.error("lang.value", "a default has no place here", hint, entry.default)
        return found

    def unknown_key(self, entry: ast.Entry, names: Iterable[str], where: str) -> None:
        """Report a key that nothing reads, with the nearest one or the block where it belongs."""
        if self.report.full:
            return
        names = tuple(dict.fromkeys(names))
        near = nearest(entry.key, names)
        place = settings.place_of(entry.key)
        if near:
            hint = f"did you mean {near}?"
            if reading(entry.key).upper() == near.upper():
                hint += f" {odd(entry.key)} only looks alike"
        elif place:
            hint = f"{entry.key} belongs in {_BLOCKS.get(place, place)}"
        else:
            hint = f"known: {', '.join(names)}"
        fix = self.report.replace(entry.start, near)
        self.report.error("lang.unknown_key", f"{where} has no '{entry.key}'", hint, entry.start, fix)

    def block(self, entry: ast.Entry, place: str) -> dict[str, ast.Entry]:
        """The entries of a block by key; anything else is reported."""
        if not isinstance(entry.value, ast.MapValue):
            if not self.missing(entry):
                hint = settings.example(entry.key.upper()) or f"{entry.key} {{ ... }}"
                self.report.error("lang.value", f"{entry.key} wants a block", hint, entry.value)
            return {}
        return self.known(list(entry.value.entries), place, ())

    def plain_block(self, entry: ast.Entry, place: str) -> dict[str, Any]:
        """The values of a block by key."""
        return {key: self.plain_setting(item, place) for key, item in self.block(entry, place).items()}

    def plain_setting(self, entry: ast.Entry, place: str) -> Any:
        """The value of a setting, judged by its schema; its default where it does not fit."""
        setting = settings.find(place, entry.key)
        if setting is None or self.missing(entry):
            return None if setting is None else setting.default
        value = values.json_value(entry.value, self.report, values.as_text)
        choices = setting.schema.get("enum", ())
        if isinstance(value, str) and choices:
            value = next((word for word in choices if word.lower() == value.lower()), value)
        for wrong in violations(setting.schema, value)[:1]:
            wanted = ", ".join(choices) if choices else wrong.expected
            limit = {"schema.minimum": "at least ", "schema.maximum": "at most "}.get(wrong.code, "")
            hint = (did_you_mean(str(value), choices) if choices else "") or f"for example: {setting.example}"
            message = (
                f"{setting.key} wants {'one of ' if choices else ''}{limit}{wanted}, not {wrong.received}"
            )
            self.report.error("lang.value", message, hint, entry.value)
            return setting.default
        return value

    def word(self, entry: ast.Entry) -> str:
        """A value that is one word; empty, and reported, when it is not."""
        if isinstance(entry.value, (ast.Name, ast.Text)):
            return "" if self.missing(entry) else entry.value.value
        self.report.error("lang.value", f"{entry.key} wants a word", settings.example(entry.key), entry.value)
        return ""

    def missing(self, entry: ast.Entry) -> bool:
        """True for the parser's gap filler, and for a value that is the next line's key."""
        value = entry.value
        if not isinstance(value, ast.Name):
            return False
        if not value.value:
            return True
        source = self.report.source
        if value.value not in settings.KEYS or source.line(value.start) == source.line(entry.start):
            return False
        _, end = self.report.offsets(entry.start)
        fix = ((end, end, " none"),) if entry.key.upper() == "VALIDATOR" else None
        self.report.error(
            "lang.missing_value", f"{entry.key} has no value", settings.example(entry.key), entry.start, fix
        )
        return True

    def check_name(self, name: str, token: int, what: str) -> None:
        """Report a name that has a dot, or that is a keyword elsewhere."""
        if "." in name:
            self.report.error("lang.name", f"{what} can not have a dot in its name", "use _", token)
        elif seen := reading(name):
            fix = self.report.replace(token, seen)
            message, hint = (
                f"'{name}' is not '{seen}': {odd(name)} only looks alike",
                f"did you mean '{seen}'?",
            )
            self.report.error("lang.lookalike", message, hint, token, fix)
        elif not name.isascii():
            hint = f"{odd(name)} is none of a-z, 0-9, _, -"
            self.report.error("lang.name", f"'{name}' has letters outside ASCII", hint, token)
