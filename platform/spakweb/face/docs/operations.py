"""The operations of the API as the page at `/api/` shows them: in groups, each with a command.

Takes the document of the schema and the server's address; gives groups of operations with their parameters,
the members of their body and a line of curl with a token's placeholder. It asks nothing else.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

JSON = "application/json"
DEEPEST = 4
"""Objects within objects that an example of a body has."""


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a member of a body; `place` is `path`, `query`, `header` or `body`."""

    name: str
    place: str
    kind: str
    required: bool
    description: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of an address. `key` is the name that the schema gives it, and its anchor on the page."""

    key: str
    method: str
    path: str
    description: str
    fields: tuple[Field, ...]
    answers: str
    curl: str

    @property
    def asked(self) -> list[Field]:
        """What the form that tries it asks for."""
        return [field for field in self.fields if field.place in ("path", "query")]


def groups(schema: Mapping[str, Any], server: str) -> list[tuple[str, list[Operation]]]:
    """The operations of each tag, in the order of the schema."""
    found: dict[str, list[Operation]] = {}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            made = _operation(schema, server, path, method, operation)
            found.setdefault(operation["tags"][0], []).append(made)
    return sorted(found.items())


def _operation(
    schema: Mapping[str, Any], server: str, path: str, method: str, given: Mapping[str, Any]
) -> Operation:
    parameters = [_resolved(schema, one) for one in given.get("parameters", ())]
    fields = [_field(schema, one["name"], one["in"], one) for one in parameters]
    fields.sort(key=lambda field: (("path", "query", "header").index(field.place), not field.required))
    contents: dict[str, Any] = given.get("requestBody", {}).get("content", {})
    kind = next(iter(contents), "")
    body = _resolved(schema, contents[kind].get("schema", {})) if kind else {}
    for name, member in body.get("properties", {}).items():
        about = {"schema": member, "required": name in body.get("required", ())}
        fields.append(_field(schema, name, "body", about))
    answers = ", ".join(
        f"{status} {' or '.join(answer.get('content', {}))}".strip()
        for status, answer in given["responses"].items()
        if status.startswith("2")
    )
    curl = _curl(schema, server, path, method, kind, body, bool(given.get("security")))
    text = str(given.get("description", ""))
    return Operation(given["operationId"], method.upper(), path, text, tuple(fields), answers, curl)


def _field(schema: Mapping[str, Any], name: str, place: str, about: Mapping[str, Any]) -> Field:
    whole = _resolved(schema, about.get("schema", {}))
    text = about.get("description") or about.get("schema", {}).get("description") or ""
    choices = tuple(str(one) for one in whole.get("enum", ()) if one is not None)
    return Field(name, place, _kind(schema, whole), bool(about.get("required")), text, choices)


def _resolved(schema: Mapping[str, Any], part: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part, or the one that it refers to."""
    while "$ref" in part:
        found: Any = schema
        for name in str(part["$ref"]).removeprefix("#/").split("/"):
            found = found[name]
        part = found
    for several in ("allOf", "oneOf", "anyOf"):
        if part.get(several):
            return {**part, **_resolved(schema, part[several][0])}
    return part


def _kind(schema: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    """The type in words, such as `list of string`."""
    kind = part.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {_kind(schema, _resolved(schema, part.get('items', {})))}"
    return str(kind)


def _curl(
    schema: Mapping[str, Any], server: str, path: str, method: str, kind: str, body: Any, token: bool
) -> str:
    """A command that can be pasted, once its capitals are replaced."""
    address = re.sub(r"\{(\w+)\}", lambda part: part[1].upper(), path)
    words = ["curl -fsS"]
    if method != "get":
        words.append(f"-X {method.upper()}")
    if token:
        words.append('-H "Authorization: Bearer $SPAK_TOKEN"')
    if kind:
        words.append(f"-H {shlex.quote(f'Content-Type: {kind}')}")
        example = json.dumps(_example(schema, body, 0)) if kind == JSON else ""
        words.append(f"-d {shlex.quote(example)}" if example else "--data-binary @FILE")
    return " \\\n  ".join([*words, shlex.quote(f"{server.rstrip('/')}{address}")])


def _example(schema: Mapping[str, Any], part: Mapping[str, Any], depth: int) -> Any:
    """A value of the right form: the members that a body must have."""
    part = _resolved(schema, part)
    kind = part.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if "enum" in part:
        return part["enum"][0]
    if kind == "object":
        return dict(_members(schema, part, depth)) if depth < DEEPEST else {}
    if kind == "array":
        return [_example(schema, part.get("items", {}), depth + 1)]
    return {"integer": part.get("minimum", 1), "number": 1.0, "boolean": True, "null": None}.get(kind, "TEXT")


def _members(schema: Mapping[str, Any], part: Mapping[str, Any], depth: int) -> Iterator[tuple[str, Any]]:
    for name in part.get("required", ()):
        yield name, _example(schema, part["properties"][name], depth + 1)
