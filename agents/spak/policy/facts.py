"""From an action to the facts that a policy sees: the only bridge between the two.

Takes an Action and the World; gives facts about it under the name /action. What can not be read becomes an
`unreadable` fact, never silence. Strings of a model stay strings: nothing here becomes a rule or a name
but words of this file and of `spak.policy.commands`.
"""

from __future__ import annotations

import re

from spak.errors import UserError
from spak.patch import PatchRefused, apply
from spak.policy import places, urls
from spak.policy.actions import Action, World
from spak.policy.commands import read_line
from spak.policy.values import Fact, Name

ACTION = Name("/action")
_FILE_TOOLS = {"read_file": "reads", "write_file": "edits", "delete_file": "deletes"}
_METHOD = re.compile(r"[A-Z]{1,16}\Z")
_PLAIN_VALUE = re.compile(
    r"[a-z*-]+(/[a-z*.+-]+)?(; ?q=[01](\.\d)?)?(, ?[a-z*-]+(/[a-z*.+-]+)?(; ?q=[01](\.\d)?)?)*\Z"
)
MAX_TEXT = 400
"""Characters of a string of the action that a fact keeps."""


def facts(action: Action, world: World) -> list[Fact]:
    """All that is known about the action, in a fixed order."""
    build = {
        "shell": _shell,
        "http_request": _request,
        "apply_patch": _patch,
    }.get(action.tool, _file if action.tool in _FILE_TOOLS else None)
    if build is None:
        return [_unreadable("gate.tool", f"the tool {action.tool[:80]!a} is not known")]
    found: list[Fact] = [("tool", (ACTION, Name("/" + action.tool)))]
    found += build(action, world)
    return list(dict.fromkeys(found))


def _unreadable(code: str, message: str) -> Fact:
    return ("unreadable", (ACTION, code, _text(message)))


def _text(text: str) -> str:
    """A string that any store can hold: cut, and without half surrogates."""
    return text[:MAX_TEXT].encode("utf-8", "backslashreplace").decode()


def _argument(action: Action, name: str) -> str | Fact:
    value = action.args.get(name)
    return value if isinstance(value, str) else _unreadable("gate.args", f"`args.{name}` is not a string")


def _uses(how: str, place: str, path: str) -> Fact:
    return ("uses_path", (ACTION, Name("/" + how), Name("/" + place), _text(path)))


def _file(action: Action, world: World) -> list[Fact]:
    path = _argument(action, "path")
    if not isinstance(path, str):
        return [path]
    how = _FILE_TOOLS[action.tool]
    seen = world.look(path)
    return [_uses(how, places.place(seen, how, path), seen.path)]


def _shell(action: Action, world: World) -> list[Fact]:
    command = _argument(action, "command")
    if not isinstance(command, str):
        return [command]
    reading = read_line(command, world)
    if reading.trouble is not None:
        return [_unreadable(*reading.trouble)]
    found: list[Fact] = [
        ("command_does", (ACTION, deed.index, Name("/" + deed.kind), _text(deed.about), _text(deed.why)))
        for deed in reading.deeds
    ]
    return found + [_uses(use.how, use.place, use.path) for use in reading.uses]


def _request(action: Action, world: World) -> list[Fact]:
    text = _argument(action, "url")
    if not isinstance(text, str):
        return [text]
    method = action.args.get("method", "GET")
    if not isinstance(method, str) or not _METHOD.match(method):
        return [_unreadable("gate.args", "`args.method` is not a method in capitals")]
    found: list[Fact] = [("allowed_host", (host,)) for host in sorted(world.hosts)]
    found.append(("asks_method", (ACTION, method)))
    headers = action.args.get("headers") or {}
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        return [*found, _unreadable("gate.args", "`args.headers` is not an object of strings")]
    for name, value in headers.items():
        plain = len(value) < 80 and _PLAIN_VALUE.match(value) is not None
        found.append(
            ("sends_header", (ACTION, _text(name.lower() if plain else name.lower() + " with an odd value")))
        )
    known = {"url", "method", "headers"}
    if any(action.args[name] for name in action.args if name not in known):
        found.append(("sends_body", (ACTION,)))
    url = urls.parse(text)
    if isinstance(url, urls.Trouble):
        return [*found, ("url_trouble", (ACTION, url.code, _text(url.detail)))]
    found.append(("asks_url", (ACTION, url.scheme, url.host, url.port)))
    carried = urls.payload(url)
    if carried is not None:
        found.append(("url_trouble", (ACTION, carried.code, _text(carried.detail))))
    return found


def _patch(action: Action, world: World) -> list[Fact]:
    text = _argument(action, "patch")
    if not isinstance(text, str):
        return [text]
    try:
        changes = apply(text, world.read)
    except UserError as error:
        return [("patch_trouble", (ACTION, error.code, _text(error.message)))]
    if isinstance(changes, PatchRefused):
        return [("patch_trouble", (ACTION, changes.code, _text(changes.message)))]
    found: list[Fact] = []
    for change in changes:
        seen = world.look(change.path)
        found.append(_uses("edits", places.place(seen, "edits", change.path), seen.path))
    return found
