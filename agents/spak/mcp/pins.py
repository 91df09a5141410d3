"""What of a server was approved: the lock file of a project, and what differs from it now.

Takes and gives a Server for each name; the file is canonical in its order, so that it can be committed and
reviewed. A pin is the hash of what a model and a law see of a tool: its server, name, title, description,
schemas and annotations. What a server does behind an unchanged definition no pin can see.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from spak import canon
from spak.errors import UsageError, UserError
from spak.inputs import read_at_most
from spak.mcp.definitions import FIELDS, pinned, server_name, tool_id

LOCK = "spak-mcp.lock"
VERSION = 1
"""Of the form of the file. Raise it where an older SPAK would read it wrongly."""
MAX_BYTES = 16 << 20
MAX_DIFFERENCES = 50
State = Literal["changed", "new", "gone", "refused"]


@dataclass(frozen=True, slots=True)
class Server:
    """A server as it was approved."""

    name: str
    argv: tuple[str, ...] = ()
    """Of a server on standard input and output; else it has a URL."""
    url: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    """The hash of the program and of each file that argv names."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """The version of the package that the program comes from."""
    token: str = ""
    """The name of the secret that is sent as a bearer token."""
    secrets: tuple[str, ...] = ()
    """Names of secrets that arguments to it may carry."""
    pure: tuple[str, ...] = ()
    """Tools that their user declared to change nothing."""
    prose: tuple[str, ...] = ()
    """Tools whose texts a model may read."""
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The definition of each, by the server's own name."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why others cannot be used."""
    list_hash: str = ""
    """Of the whole list as it was approved, what was refused too."""

    @property
    def transport(self) -> str:
        """How it is spoken to."""
        return "http" if self.url else "stdio"

    @property
    def identity(self) -> str:
        """The hash of what it is, without what it offers."""
        return canon.content_hash([self.argv, self.url, dict(self.files), dict(self.packages)])

    @property
    def pin(self) -> str:
        """The hash of its identity and of its whole list."""
        return canon.content_hash([self.name, self.identity, self.list_hash])

    def ids(self) -> dict[str, str]:
        """The server's own name of each tool by its id."""
        return {tool_id(self.name, tool): tool for tool in self.tools}


class Difference(NamedTuple):
    """One way in which a server is not what was approved; `tool` is empty for the server itself."""

    tool: str
    state: State
    field: str = ""


def pin(server: str, definition: Mapping[str, Any]) -> str:
    """The pin of one tool. Raises: UserError `canon.value` for what no record could hold."""
    fields = pinned(definition)
    return canon.content_hash({"server": server, **{name: fields.get(name) for name in FIELDS}})


def list_hash(server: str, definitions: Iterable[Mapping[str, Any]]) -> str:
    """The hash of a whole list, whatever its order."""
    return canon.content_hash(sorted(_pin_of(server, one) for one in definitions))


def differences(
    approved: Server, definitions: Sequence[Mapping[str, Any]], identity: str
) -> list[Difference]:
    """What of a server is not as it was approved, field by field; empty where nothing is."""
    found: list[Difference] = []
    if identity != approved.identity:
        found.append(Difference("", "changed", "identity"))
    seen: dict[str, Mapping[str, Any]] = {}
    for one in definitions:
        name = str(one.get("name"))
        if name in seen:
            found.append(Difference(name[:100], "changed", "name"))
        seen[name] = one
    for name, known in approved.tools.items():
        if name not in seen:
            found.append(Difference(name, "gone"))
        elif _pin_of(approved.name, seen[name]) != pin(approved.name, known):
            found += [Difference(name, "changed", place) for place in _places(known, seen[name])]
    known_names = {*approved.tools, *approved.refused}
    found += [Difference(name[:100], "new") for name in seen if name not in known_names]
    return found[:MAX_DIFFERENCES]


def renamed(found: Iterable[Difference]) -> list[tuple[str, str]]:
    """Tools that are gone with the new ones that came: on one server both are one event."""
    found = list(found)
    gone = [one.tool for one in found if one.state == "gone"]
    new = [one.tool for one in found if one.state == "new"]
    return [(old, ", ".join(new)) for old in gone] if new else []


def _places(known: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Where two definitions differ: the field, and within it the first place."""
    found = [
        f"{name}{_first(known.get(name), now.get(name))}"[:200]
        for name in FIELDS
        if _text(known.get(name)) != _text(now.get(name))
    ]
    return found or ["definition"]


def _first(known: Any, now: Any) -> str:
    """The path to the first difference of two JSON values, empty where they differ as a whole."""
    path = ""
    while True:
        if isinstance(known, Mapping) and isinstance(now, Mapping):
            names = sorted({*known, *now}, key=str)
            key: Any = next(name for name in names if _text(known.get(name)) != _text(now.get(name)))
            path, known, now = f"{path}/{key}", known.get(key), now.get(key)
        elif isinstance(known, list) and isinstance(now, list) and len(known) == len(now):
            key = next(at for at, one in enumerate(known) if _text(one) != _text(now[at]))
            path, known, now = f"{path}/{key}", known[key], now[key]
        else:
            return path


def _text(value: Any) -> str:
    """Equal for equal JSON values, whatever the order of members."""
    try:
        return canon.dumps(value).decode()
    except UserError:
        return json.dumps(value, sort_keys=True)


def _pin_of(server: str, definition: Mapping[str, Any]) -> str:
    """The pin of a definition that may be anything."""
    try:
        return pin(server, definition)
    except UserError:
        return canon.digest(json.dumps(pinned(definition), sort_keys=True).encode())


def read(path: Path) -> dict[str, Server]:
    """The servers of a lock file, none where there is no file. Raises: UsageError `mcp.lock`."""
    try:
        data = read_at_most(path, MAX_BYTES)
        if data is None:
            raise ValueError(f"it has more than {MAX_BYTES} bytes")
        found = canon.loads(data)
        if found["version"] != VERSION:
            raise ValueError(f"it has the form {found['version']}, and this SPAK reads {VERSION}")
        return {name: _server(name, body) for name, body in found["servers"].items()}
    except FileNotFoundError:
        return {}
    except UserError as error:
        raise _bad(path, error.message) from error
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise _bad(path, str(error) or type(error).__name__) from error


def write(path: Path, servers: Mapping[str, Server]) -> None:
    """Write them, aside and then in its place."""
    body = {"version": VERSION, "servers": {name: _json(one) for name, one in servers.items()}}
    aside = path.with_name(f"{path.name}.new")
    aside.write_text(json.dumps(body, sort_keys=True, indent=1) + "\n", encoding="utf-8")
    aside.replace(path)


def _json(server: Server) -> dict[str, Any]:
    made: dict[str, Any] = {
        "identity": server.identity,
        "list": server.list_hash,
        "pin": server.pin,
        "tools": {
            name: {"pin": pin(server.name, one), "definition": pinned(one)}
            for name, one in server.tools.items()
        },
    }
    for key in ("argv", "url", "files", "packages", "token", "secrets", "pure", "prose", "refused"):
        value = getattr(server, key)
        if value:
            made[key] = dict(value) if isinstance(value, Mapping) else value
    return made


def _server(name: str, body: Mapping[str, Any]) -> Server:
    """Raises: UserError, ValueError, KeyError, TypeError for what `write` did not write."""
    made = Server(
        server_name(name),
        argv=tuple(map(str, body.get("argv", ()))),
        url=str(body.get("url", "")),
        files={str(key): str(value) for key, value in body.get("files", {}).items()},
        packages={str(key): str(value) for key, value in body.get("packages", {}).items()},
        token=str(body.get("token", "")),
        secrets=tuple(map(str, body.get("secrets", ()))),
        pure=tuple(map(str, body.get("pure", ()))),
        prose=tuple(map(str, body.get("prose", ()))),
        tools={tool: dict(one["definition"]) for tool, one in body["tools"].items()},
        refused={str(key): str(value) for key, value in body.get("refused", {}).items()},
        list_hash=str(body["list"]),
    )
    if bool(made.argv) == bool(made.url):
        raise ValueError(f"{name} has no command, or a URL besides")
    for tool, one in body["tools"].items():
        if made.tools[tool].get("name") != tool or pin(name, made.tools[tool]) != one["pin"]:
            raise ValueError(f"the pin of {name}.{tool} is not that of its definition")
    if body["identity"] != made.identity or body["pin"] != made.pin:
        raise ValueError(f"the pin of {name} is not that of what it holds")
    return made


def _bad(path: Path, why: str) -> UsageError:
    hint = "restore it, or add the server again: spak mcp add"
    return UsageError("mcp.lock", f"{path.name} cannot be used: {why}", hint)
