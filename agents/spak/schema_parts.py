"""Members of a schema in the pinned dialect, each with what it is for: what an editor shows and docs list.

Takes the sentence and the bounds; gives the schema of one member. `members` makes an object of them that
takes no others. It judges no value: lang/schema.py does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Schema = dict[str, Any]


def members(required: Sequence[str], **properties: Mapping[str, Any]) -> Schema:
    """An object of these members and no others."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": list(required),
    }


def whole(about: str, least: int, most: int = 0, default: int | None = None) -> Schema:
    """A whole number; without `most` any one that is large enough."""
    found = _member(about, default, type="integer", minimum=least)
    return found | ({"maximum": most} if most else {})


def seconds(about: str, least: float = 0.1, most: int = 3600, default: float | None = None) -> Schema:
    """Seconds, an hour at most."""
    return _member(about, default, type="number", minimum=least, maximum=most)


def flag(about: str, default: bool | None = None) -> Schema:
    """true or false."""
    return _member(about, default, type="boolean")


def choice(about: str, words: Sequence[str], default: str | None = None) -> Schema:
    """One of some words."""
    return _member(about, default, type="string", enum=list(words))


def text(about: str, most: int, pattern: str = "", default: str | None = None, least: int = 1) -> Schema:
    """A text, not empty unless `least` is 0."""
    found = _member(about, default, type="string", maxLength=most)
    return found | ({"minLength": least} if least else {}) | ({"pattern": pattern} if pattern else {})


def path(about: str = "A path relative to the workspace.", default: str | None = None) -> Schema:
    """A path, which the kernel resolves."""
    return text(about, 4095, default=default)


def mapping(about: str, values: Mapping[str, Any]) -> Schema:
    """An object of any names, each with such a value."""
    return _member(about, type="object", additionalProperties=values)


def listed(about: str, items: Mapping[str, Any], most: int, least: int = 0) -> Schema:
    """A list."""
    found = _member(about, type="array", maxItems=most, items=items)
    return found | ({"minItems": least} if least else {})


def command(about: str) -> Schema:
    """One simple command, as text or as its words."""
    words: Schema = {"minItems": 1, "maxItems": 256, "items": {"type": "string", "maxLength": 8192}}
    return _member(about, type=["string", "array"], minLength=1, maxLength=8192) | words


def _member(about: str, default: object = None, **schema: Any) -> Schema:
    return {"description": about, **schema} | ({} if default is None else {"default": default})


PATH: Schema = {"type": "string", "minLength": 1, "maxLength": 1024, "pattern": "^[^/]"}
"""A path in the workspace."""
TIMEOUT = seconds("Seconds; only ever shortens the run's own limit.")
ROLE = choice(
    "baseline is what the others are compared with; final is measured again on fresh inputs.",
    ("baseline", "candidate", "final"),
    "candidate",
)

WORKING_DIR = path("The folder it runs in, relative to the workspace; the workspace itself without one.")
ENV = mapping(
    "Variables of the environment besides the usual ones: names and texts.",
    {"type": "string", "maxLength": 4096},
)

PATH_NAMES: Mapping[str, str] = {"file": "path", "filename": "path", "file_path": "path"}
"""What steps of the `task` dialect also call a path."""
