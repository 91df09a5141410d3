"""The definition of a tool as its server sends it: what of it a run can use, and what a person must look at.

Takes the JSON of one definition; gives the id that specs and laws use, a schema of our dialect
(spak.lang.schema), findings (`lint`) and the text for a person, in which nothing is invisible. What does not
fit the dialect refuses the tool, by name: nothing is guessed. It decides nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from spak import unseen
from spak.errors import UsageError, UserError
from spak.lang.schema import KEYWORDS, check_schema

FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
"""What of a definition is pinned."""
MAX_TEXT = 1024
"""Characters of a description that no finding names."""
MAX_DEPTH = 12
MAX_NODES = 2000
"""Schemas within a schema, once its references are resolved."""
MAX_NAME = 64
MAX_SUMMARY = 200
_LEFT_OUT = frozenset(
    "$schema $id $comment $defs definitions format deprecated readOnly writeOnly contentEncoding "  # noqa: SIM905
    "contentMediaType".split()
)
"""Keywords that say nothing about which values fit, and the place of definitions that are referred to."""
_PROSE = frozenset({"title", "description", "examples"})
_NAME = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")
_SERVER = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_MODEL = re.compile(
    r"(?i)\b(?:you (?:must|should|shall|need to|have to|are)|always|never|do not|don't|ignore|instead of|"
    r"before (?:using|calling)|after (?:using|calling)|first (?:read|call|use)|system prompt|instructions?|"
    r"<\/?[a-z_]+>|important|assistant|the user|without (?:telling|asking|mentioning))"
)
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{40,}={0,2}")
_URL = re.compile(r"(?i)\b[a-z][a-z0-9+.-]{1,20}://|\bwww\.")


def server_name(name: str) -> str:
    """The name, where it can be one. Raises: UsageError `mcp.name`."""
    if not _SERVER.fullmatch(name) or len(name) > 24:
        hint = "small letters, digits and single _, beginning with a letter, at most 24"
        raise UsageError("mcp.name", f"{name[:60]!a} is no name of a server", hint)
    return name


def tool_id(server: str, name: str) -> str:
    """The name that specs and laws give a tool: `SERVER__TOOL`. Raises: UsageError `mcp.name`."""
    plain = re.sub(r"_+", "_", re.sub(r"[^a-z0-9]", "_", name.lower())).strip("_")
    made = f"{server}__{plain}"
    if not name.isascii() or not _NAME.fullmatch(plain) or len(made) > MAX_NAME:
        raise UsageError("mcp.name", f"the tool {name[:80]!a} has no name that a law could use")
    return made


def pinned(definition: Mapping[str, Any]) -> dict[str, Any]:
    """What of a definition is pinned: its fields, those that are there."""
    return {name: definition[name] for name in FIELDS if definition.get(name) is not None}


def schema(definition: Mapping[str, Any], prose: bool = True) -> dict[str, Any]:
    """The schema of the arguments in our dialect; without the server's texts unless `prose`.

    Raises: UsageError `mcp.schema` where the dialect cannot say it.
    """
    found = definition.get("inputSchema")
    if not isinstance(found, Mapping) or found.get("type", "object") != "object":
        raise _unfit(definition, "its inputSchema is not that of an object")
    try:
        made = _Conversion(definition, found, prose).converted(found, 0)
        made = {"type": "object", "properties": {}, **made}
        if not isinstance(made.get("additionalProperties"), Mapping):
            made["additionalProperties"] = False
        made.setdefault("required", [])
        check_schema(made)
    except UserError as error:
        if error.code == "mcp.schema":
            raise
        raise _unfit(definition, error.message) from error
    except (RecursionError, TypeError, AttributeError, ValueError) as error:
        raise _unfit(definition, "it is no JSON schema") from error
    return made


class _Conversion:
    """One schema on its way into the dialect."""

    def __init__(self, definition: Mapping[str, Any], whole: Mapping[str, Any], prose: bool) -> None:
        self.definition, self.whole, self.prose = definition, whole, prose
        self.nodes = 0

    def converted(self, item: Any, depth: int) -> dict[str, Any]:
        """A schema whose references are in place. Raises: UsageError `mcp.schema`."""
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise _unfit(self.definition, f"more than {MAX_DEPTH} deep or {MAX_NODES} parts")
        if item is True:
            return {}
        if not isinstance(item, Mapping):
            raise _unfit(self.definition, f"{str(item)[:40]!a} is no schema")
        made: dict[str, Any] = {}
        for key, value in item.items():
            if key in _LEFT_OUT or (key in _PROSE and not self.prose):
                continue
            made |= self._keyword(key, value, depth)
        return made

    def _keyword(self, key: str, value: Any, depth: int) -> dict[str, Any]:
        match key:
            case "$ref":
                return self.converted(self._target(value), depth + 1)
            case "allOf" if isinstance(value, list) and len(value) == 1:
                return self.converted(value[0], depth + 1)
            case "oneOf" | "anyOf" if isinstance(value, list):
                return {"anyOf": [self.converted(one, depth + 1) for one in value]}
            case "properties" if isinstance(value, Mapping):
                return {key: {name: self.converted(one, depth + 1) for name, one in value.items()}}
            case "items":
                return {key: self.converted(value, depth + 1)}
            case "additionalProperties" if isinstance(value, Mapping):
                return {key: self.converted(value, depth + 1)}
        if key not in KEYWORDS and key not in _PROSE and key != "default":
            raise _unfit(self.definition, f"keyword {key[:40]!a} is not in our dialect")
        return {key: value}

    def _target(self, reference: Any) -> Any:
        """What a reference within the schema means; others are not followed."""
        if not isinstance(reference, str) or not reference.startswith("#/"):
            raise _unfit(self.definition, f"the reference {str(reference)[:60]!a} leads out of it")
        found: Any = self.whole
        for part in reference[2:].split("/"):
            part = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or part not in found:
                raise _unfit(self.definition, f"the reference {reference[:60]!a} leads nowhere")
            found = found[part]
        return found


def texts(definition: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every text of a definition that a model could read, with its place."""
    left: list[tuple[str, Any, int]] = [("", pinned(definition), 0)]
    while left:
        where, value, depth = left.pop(0)
        if isinstance(value, str):
            yield where, value
        elif depth > 4 * MAX_DEPTH:
            yield where, ""
        elif isinstance(value, Mapping):
            for name, item in value.items():
                yield f"{where}/{name} (name)".lstrip("/"), str(name)
                left.append((f"{where}/{name}".lstrip("/"), item, depth + 1))
        elif isinstance(value, (list, tuple)):
            left += [(f"{where}/{at}", item, depth + 1) for at, item in enumerate(value)]


def lint(definition: Mapping[str, Any], others: Collection[str] = ()) -> list[str]:
    """What a person should look at before they approve a definition; `others` are names of other tools.

    It finds what shows in a text. A lie in plain words is not found.
    """
    found: list[str] = []
    for where, text in texts(definition):
        if unseen.SIGNS.search(text):
            found.append(f"{where}: invisible characters, or characters that turn the direction of the text")
        if len(text) > MAX_TEXT:
            found.append(f"{where}: more than {MAX_TEXT} characters")
        if where.endswith(" (name)") or where == "name":
            continue
        if (order := _MODEL.search(text)) is not None:
            found.append(f"{where}: speaks to a model ({order[0][:40]!a})")
        if _ENCODED.search(text):
            found.append(f"{where}: text that is encoded")
        if _URL.search(text):
            found.append(f"{where}: a URL")
        words = {word.strip(".-") for word in re.findall(r"[A-Za-z0-9_.-]{4,}", text)}
        found += [f"{where}: names the tool {name}" for name in sorted(words & set(others))]
    return found


def summary(server: str, definition: Mapping[str, Any], prose: bool) -> str:
    """One line for models: the beginning of the description where its text may be shown, else only names."""
    plain = f"The tool {definition.get('name')} of the MCP server {server}."
    if not prose:
        return plain
    text = " ".join(visible(str(definition.get("description") or "")).split())
    return text[:MAX_SUMMARY] or plain


def visible(text: str) -> str:
    """The text without what nobody sees."""
    return unseen.SIGNS.sub("", text)


def shown(definition: Mapping[str, Any]) -> str:
    """A definition for a person, everything in it visible."""
    lines = [f"tool {unseen.written_out(str(definition.get('name')))}"]
    for field in FIELDS[1:]:
        value = definition.get(field)
        if value is None:
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        body = "\n".join(f"    {line}" for line in unseen.written_out(text).split("\n"))
        lines.append(f"  {field}:\n{body}")
    return "\n".join(lines)


def _unfit(definition: Mapping[str, Any], why: str) -> UsageError:
    name = str(definition.get("name"))[:80]
    return UsageError("mcp.schema", f"{name!a}: {why}", "the server's other tools can be used")
