"""The schema of the API as short lines: what a program that was written against it relies on.

`facts` gives a line for each operation, parameter, body, answer and member of a document. A program goes on
working while every line that it was written against still holds; new lines are new possibilities.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def kind(schema: dict[str, Any]) -> str:
    """A type in a word: `integer|null`, `[RunShape]`, `{string}`, `string(error,warning)`."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    choices = schema.get("oneOf") or schema.get("anyOf") or schema.get("allOf")
    if choices:
        return "|".join(dict.fromkeys(kind(one) for one in choices))  # texts of two patterns are texts
    types = schema.get("type", "any")
    word = "|".join(types) if isinstance(types, list) else str(types)
    if word.startswith("array"):
        word = word.replace("array", f"[{kind(schema.get('items', {}))}]")
    if isinstance(more := schema.get("additionalProperties"), dict):
        word = word.replace("object", f"{{{kind(more)}}}")
    if "enum" in schema:
        word += f"({','.join(str(one) for one in schema['enum'])})"
    return word + (f":{schema['format']}" if "format" in schema else "")


def facts(document: dict[str, Any]) -> Iterator[str]:
    """The lines, in no order."""
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            yield from _operation(f"{method} {path}", one)
    for name, shape in document["components"]["schemas"].items():
        if "properties" not in shape:
            yield f"{name} is {kind(shape)}"
        for member, schema in shape.get("properties", {}).items():
            always = "always" if member in shape.get("required", ()) else "optional"
            yield f"{name}.{member} {always} {kind(schema)}"


def _operation(address: str, one: dict[str, Any]) -> Iterator[str]:
    name = one["operationId"]
    yield f"{address} is {name}"
    for parameter in one.get("parameters", ()):
        if "$ref" in parameter:
            yield f"{name} takes {kind(parameter)}"
        else:
            place = f"{parameter['in']} {parameter['name']}"
            must = "always" if parameter.get("required") else "optional"
            yield f"{name} takes {place} {must} {kind(parameter['schema'])}"
    for media, content in one.get("requestBody", {}).get("content", {}).items():
        yield f"{name} body {media} {kind(content['schema'])}"
    for status, answer in one["responses"].items():
        yield f"{name} gives {status}"
        for media, content in answer.get("content", {}).items():
            yield f"{name} gives {status} {media} {kind(content['schema'])}"
