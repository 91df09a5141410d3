"""What the schema says of every operation besides what its view declares: errors are problem documents."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the schema calls a token."""

    target_class = "spakweb.api.base.ByToken"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """A bearer token in a header."""
        return {"type": "http", "scheme": "bearer"}


PROBLEM = {
    "description": "A problem; `code` is stable.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "maxLength": 200},
    "description": "The same request with the same key is answered once, for a day.",
}


def problems(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """The schema with a default answer for each operation, and the header of those that make something."""
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"] = {
        "type": "object",
        "description": "An error. Source: RFC 9457.",
        "required": ["type", "title", "status", "detail", "code", "hint"],
        "properties": {
            **{name: {"type": "string"} for name in ("type", "title", "detail", "code", "hint")},
            "status": {"type": "integer"},
        },
    }
    for path in result.get("paths", {}).values():
        for operation in path.values():
            operation["responses"]["default"] = PROBLEM
            if "201" in operation["responses"] and "application/json" in operation.get("requestBody", {}).get(
                "content", {}
            ):
                operation.setdefault("parameters", []).append(KEY)
    return result
