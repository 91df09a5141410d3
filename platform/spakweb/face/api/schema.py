"""What the schema says of every operation besides what its view declares: errors are problem documents, and
requests have no members, signs or numbers that are always refused."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from rest_framework import serializers

from spakweb.face.api.reading import LONGEST, MOST

JSON = "application/json"
LARGEST = 2**63 - 1
"""The largest number that the database holds."""
NO_CONTROL = "^[^\\x00-\\x1f\\x7f-\\x9f]*$"
"""What `reading.asked` takes as a text."""
NO_NUL, NO_BLANK = "^[^\\x00]*$", "^[^\\x00]*[^\\x00\\s][^\\x00]*$"


class Schema(AutoSchema):
    """The framework's, with what `View.given` asks of a request."""

    def _map_serializer_field(self, field: Any, direction: str, bypass_extensions: bool = False) -> Any:
        found = super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]
        if direction == "request" and type(field) is serializers.CharField:
            found["pattern"] = NO_NUL
            if not field.allow_blank:
                found["minLength"] = max(1, field.min_length or 0)
                found["pattern"] = NO_BLANK if field.trim_whitespace else NO_NUL
        if direction == "request" and type(field) is serializers.IntegerField:
            found.setdefault("maximum", LARGEST)
            found.setdefault("minimum", -LARGEST)
        return found

    def _map_basic_serializer(self, serializer: Any, direction: str) -> Any:
        found = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        if direction != "request":
            return found
        pairs = [{"required": list(pair)} for pair in getattr(serializer, "not_both", ())]
        return {**found, "additionalProperties": False, **({"not": {"anyOf": pairs}} if pairs else {})}


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the schema calls a token."""

    target_class = "spakweb.face.api.json_view.ByToken"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """A bearer token in a header."""
        return {"type": "http", "scheme": "bearer"}


HEADERS = {
    "RateLimit": {"schema": {"type": "string"}, "description": 'What is left: `"read";r=1199;t=60`.'},
    "RateLimit-Policy": {"schema": {"type": "string"}, "description": 'The limit: `"read";q=1200;w=60`.'},
}
SENT = {name: {"$ref": f"#/components/headers/{name}"} for name in HEADERS}
ANSWERS = {
    "Problem": {
        "description": "A problem; `code` is stable.",
        "headers": SENT,
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    },
    "Unchanged": {"description": "The reader has the answer already.", "headers": SENT},
}
PARAMETERS = {
    "Key": {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"},
        "description": "The same request with the same key is answered once, for a day.",
    },
    "Fields": {
        "name": "fields",
        "in": "query",
        "schema": {"type": "string", "pattern": "^[a-z_]+(,[a-z_]+)*$"},
        "description": "Members of the answer, or of a list's items, with commas between them; else all.",
    },
    "IfNoneMatch": {
        "name": "If-None-Match",
        "in": "header",
        "schema": {"type": "string"},
        "description": "The ETag of an earlier answer: 304 while it is the same.",
    },
}
TAGS = {
    *("teams", "specs", "patches", "runs", "suites", "campaigns", "schedules", "triggers", "sources"),
    *("problems", "runners", "audit", "oidc", "hooks", "places"),
}
"""Groups of operations. `campaigns` of a spec are campaigns, `files` of a run are the run's."""
PROBLEM = {
    "type": "object",
    "description": "An error. Source: RFC 9457.",
    "required": ["type", "title", "status", "detail", "code", "hint"],
    "properties": {
        **{name: {"type": "string"} for name in ("type", "title", "detail", "code", "hint")},
        "status": {"type": "integer"},
    },
}


def problems(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """The schema with a default answer and limits for each operation, the parameters that every read has, and
    the header of those that make something, and a tag by what it is about."""
    components = result.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = PROBLEM
    components |= {"headers": HEADERS, "responses": ANSWERS, "parameters": PARAMETERS}
    for address, path in result.get("paths", {}).items():
        for method, operation in path.items():
            operation["tags"] = [_tag(address)]
            answers, parameters = operation["responses"], operation.setdefault("parameters", [])
            for parameter in parameters:
                if parameter["in"] == "query" and method == "get":  # names of uploads are made to fit
                    _limit(parameter["schema"])
                    parameter["allowEmptyValue"] = True  # and taken for absent
            for answer in answers.values():
                answer["headers"] = SENT
            if method == "get" and JSON in answers.get("200", {}).get("content", {}):
                parameters += [_parameter("Fields"), _parameter("IfNoneMatch")]
                answers["304"] = {"$ref": "#/components/responses/Unchanged"}
            if "201" in answers and JSON in operation.get("requestBody", {}).get("content", {}):
                parameters.append(_parameter("Key"))
            answers["default"] = {"$ref": "#/components/responses/Problem"}
    return result


def _limit(schema: dict[str, Any]) -> None:
    """Say what `reading.asked` takes for a parameter."""
    if schema["type"] == "integer":
        schema |= {"minimum": 0, "maximum": MOST}
    elif "enum" not in schema and "format" not in schema:
        schema |= {"maxLength": LONGEST, "pattern": NO_CONTROL}


def _tag(address: str) -> str:
    """What an operation is about: the last of TAGS in its address."""
    return next(part for part in reversed(address.split("/")) if part in TAGS)


def _parameter(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/parameters/{name}"}
