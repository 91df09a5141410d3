"""Inputs of a run that is about to start, against what its spec declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spak.lang.check import examine
from spak.lang.values import Input
from spakweb.ground.errors import Refused
from spakweb.store.specs.facts import catalog
from spakweb.store.specs.models import SpecVersion
from spakweb.store.specs.team_files import TeamFiles

TYPES = {"int": "integer", "float": "number", "string": "string", "bool": "boolean"}


def checked(
    version: SpecVersion, given: Mapping[str, str], known: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """The inputs that are given; an empty one is the spec's default. Undeclared names are left out. `known`
    are the `declared` ones, where somebody has them already.

    Raises: Refused `web.run_input`.
    """
    found: dict[str, str] = {}
    for name, item in (declared(version) if known is None else known).items():
        value = given.get(name, "")
        if value == "" and not item.required:
            continue
        if wanted := item.problem(item.read(value)):
            raise Refused("web.run_input", f"The input {name} wants {wanted}.", "Correct it and start again.")
        found[name] = value
    return found


def require_declared(known: Mapping[str, Any], given: Iterable[str]) -> None:
    """Raises: Refused `web.run_input` for a name that the spec does not declare."""
    for name in sorted(set(given) - known.keys()):
        hint = f"It declares: {', '.join(known) or 'none'}."
        raise Refused("web.run_input", f"The spec has no input {name[:60]!r}.", hint, 422)


def schema(known: Mapping[str, Input]) -> dict[str, Any]:
    """The `declared` inputs as a JSON Schema."""
    properties = {}
    for name, item in known.items():
        kind = {"enum": list(item.choices)} if item.type == "enum" else {"type": TYPES[item.type]}
        properties[name] = kind if item.required else {**kind, "default": item.default}
    required = [name for name, item in known.items() if item.required]
    return {
        "type": "object", "properties": properties, "required": required, "additionalProperties": False
    }  # fmt: skip


def declared(version: SpecVersion) -> Mapping[str, Any]:
    """The inputs that the version's text declares, by name."""
    whole = TeamFiles.of(version.spec).whole(version.text)
    return examine(whole.parsed.spec, catalog()).inputs
