"""Pieces of the tools' JSON schemas, in the pinned dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PATH: dict[str, Any] = {
    "description": "A path relative to the workspace.",
    "type": "string",
    "minLength": 1,
    "maxLength": 4095,
}

PATH_NAMES: Mapping[str, str] = {"file": "path", "filename": "path", "file_path": "path"}
"""What steps of the `task` dialect also call a path."""

WORKING_DIR: dict[str, Any] = {
    "description": "The folder it runs in, relative to the workspace; the workspace itself without one.",
    "type": "string",
    "minLength": 1,
    "maxLength": 4095,
}

ENV: dict[str, Any] = {
    "description": "Variables of the environment besides the usual ones: names and texts.",
    "type": "object",
    "additionalProperties": {"type": "string", "maxLength": 4096},
}

TIMEOUT: dict[str, Any] = {
    "description": "Seconds; only ever shortens the run's own limit.",
    "type": "number",
    "minimum": 0.1,
    "maximum": 3600,
}


def object_of(properties: Mapping[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    """The schema of a tool's arguments: these members and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }
