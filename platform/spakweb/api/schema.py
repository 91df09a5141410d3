"""What the schema says of every operation besides what its view declares: errors are problem documents."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension

JSON = "application/json"


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the schema calls a token."""

    target_class = "spakweb.api.base.ByToken"
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
        "schema": {"type": "string", "maxLength": 200},
        "description": "The same request with the same key is answered once, for a day.",
    },
    "Fields": {
        "name": "fields",
        "in": "query",
        "schema": {"type": "string"},
        "description": "Members of the answer, or of a list's items, with commas between them; else all.",
    },
    "IfNoneMatch": {
        "name": "If-None-Match",
        "in": "header",
        "schema": {"type": "string"},
        "description": "The ETag of an earlier answer: 304 while it is the same.",
    },
}
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
    the header of those that make something."""
    components = result.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = PROBLEM
    components |= {"headers": HEADERS, "responses": ANSWERS, "parameters": PARAMETERS}
    for path in result.get("paths", {}).values():
        for method, operation in path.items():
            answers, parameters = operation["responses"], operation.setdefault("parameters", [])
            for answer in answers.values():
                answer["headers"] = SENT
            if method == "get" and JSON in answers.get("200", {}).get("content", {}):
                parameters += [_parameter("Fields"), _parameter("IfNoneMatch")]
                answers["304"] = {"$ref": "#/components/responses/Unchanged"}
            if "201" in answers and JSON in operation.get("requestBody", {}).get("content", {}):
                parameters.append(_parameter("Key"))
            answers["default"] = {"$ref": "#/components/responses/Problem"}
    return result


def _parameter(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/parameters/{name}"}
