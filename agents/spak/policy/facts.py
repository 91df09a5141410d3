"""From an action to the facts that a policy sees: the only bridge between the two.

Takes an Action, the World and what the run itself knows; gives facts about the action under the name /action.
What can not be read becomes an `unreadable` fact, never silence. Strings of a model stay strings: nothing
here becomes a rule or a name but words of this file, of `spak.policy.toolfacts` and `spak.commandline`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from spak.datalog.values import Fact, Name
from spak.errors import UserError
from spak.patch import FilePatch, PatchRefused, apply, read_patch
from spak.policy import urls
from spak.policy.actions import Action, PatchSeen, TextSeen, World
from spak.policy.toolfacts import (
    ACTION,
    BUILDERS,
    Builder,
    argument,
    arguments,
    declared,
    text,
    unreadable,
    use,
    walk,
)

__all__ = ["ACTION", "MCP", "facts", "is_built"]

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")
_METHOD = re.compile(r"[A-Z]{1,16}\Z")
_PLAIN_VALUE = re.compile(
    r"[a-z*-]+(/[a-z*.+-]+)?(; ?q=[01](\.\d)?)?(, ?[a-z*-]+(/[a-z*.+-]+)?(; ?q=[01](\.\d)?)?)*\Z"
)
SCHEME = "secret://"
MCP = "mcp://"
"""What begins the members of an entry that name a tool of an MCP server: `mcp://SERVER/TOOL` with `pin=HASH`,
`mcp://SERVER` with `stdio=HASH` or `http=HASH`, and `mcp://?HINT`."""
SECRET_NAME = re.compile(r"secret://([^\s'\"]{1,200})")


def facts(action: Action, world: World, known: Iterable[Fact] = ()) -> list[Fact]:
    """All that is known about the action, in a fixed order; `known` are the facts of the run around it."""
    if not _NAME.match(action.tool):
        return [unreadable("gate.tool", f"{action.tool[:80]!a} is no name of a tool")]
    found: list[Fact] = [("tool", (ACTION, Name("/" + action.tool)))]
    whole = action if world.whole is None else Action(action.tool, _whole(action.args, world.whole))
    build = _BUILDERS.get(action.tool)
    if build is not None:
        found += build(action if build is _patch else whole, world)
    elif (uses := world.declared.get(action.tool, {})) and SCHEME not in uses:
        found += declared(whole, world, uses)
    else:
        found += [("unknown_tool", (ACTION,)), *arguments(whole), *_connected(whole, world, uses)]
        found += _served(action.tool, uses)
    found += _secrets(whole, world.declared.get(action.tool, {}))
    return list(dict.fromkeys([*known, *found]))


def _connected(action: Action, world: World, uses: Mapping[str, str]) -> list[Fact]:
    """The hosts that every call of a tool from a file may send to, as its declaration names them."""
    found: list[Fact] = [("allowed_host", (host,)) for host in sorted(world.hosts)] if uses else []
    for name, how in uses.items():
        url = urls.parse(name, bare_hosts=True)
        if name.startswith((SCHEME, MCP)) or isinstance(url, urls.Trouble):
            continue
        found += [
            ("takes", (ACTION, Name("/requests"), int(how.partition("=")[2]))),
            ("takes", (ACTION, Name("/request_bytes"), _bytes(action))),
            ("asks_url", (ACTION, url.scheme, url.host, url.port)),
            ("sends_body", (ACTION,)),
            *_addresses(url.host, world),
        ]
    return found


def _served(tool: str, uses: Mapping[str, str]) -> list[Fact]:
    """What the entry of a tool of an MCP server says of it."""
    found: list[Fact] = []
    for name, how in uses.items():
        if not name.startswith(MCP):
            continue
        server, slash, own = name.removeprefix(MCP).partition("/")
        kind, _, value = how.partition("=")
        if server.startswith("?"):
            found.append(("mcp_hint", (Name(f"/{tool}"), Name(f"/{server[1:]}"))))
        elif slash:
            found.append(("mcp_tool", (Name(f"/{tool}"), server, own, value)))
        else:
            found.append(("mcp_server", (server, Name(f"/{kind}"), value)))
    return found


def _secrets(action: Action, uses: Mapping[str, str]) -> list[Fact]:
    """The secrets that the arguments name, and what in them looks like the value of one."""
    found: list[Fact] = []
    for name, value in walk(action.args):
        if isinstance(value, str):
            names = tuple(SECRET_NAME.findall(value)) if SCHEME in value else ()
            kind = urls.secret_in(value)
        elif isinstance(value, TextSeen):
            names, kind = value.names, value.secret
        else:
            continue
        found += [("names_secret", (ACTION, text(secret), text(name))) for secret in names]
        if SCHEME in uses and (odd := [secret for secret in names if SCHEME + secret not in uses]):
            found.append(unreadable("gate.secret", f"{action.tool} does not declare the secret {odd[0]}"))
        if kind:
            found.append(("looks_secret", (ACTION, kind, text(name))))
    return found


def _whole(value: Any, look: Callable[[Mapping[str, Any]], TextSeen | None]) -> Any:
    """A value with what was seen of a long text in the place of each reference to one."""
    if isinstance(value, Mapping):
        if is_reference(value):
            return look(value)
        return {name: _whole(item, look) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole(item, look) for item in value]
    return value


def is_reference(value: object) -> bool:
    """Whether a value of a permitted action stands for a text that the runner has."""
    return isinstance(value, Mapping) and ("$blob" in value or "$text" in value)


def read_text(whole: str) -> TextSeen:
    """What a law is told of a long text."""
    names = tuple(dict.fromkeys(SECRET_NAME.findall(whole)))
    return TextSeen(len(whole.encode("utf-8", "replace")), names, urls.secret_in(whole))


def _bytes(action: Action) -> int:
    """What the arguments come to, roughly, when they are sent."""
    return sum(
        len(name) + (value.size if isinstance(value, TextSeen) else len(str(value)))
        for name, value in walk(action.args)
    )


def _request(action: Action, world: World) -> list[Fact]:
    whole = argument(action, "url")
    if not isinstance(whole, str):
        return [whole]
    method = action.args.get("method", "GET")
    if not isinstance(method, str) or not _METHOD.match(method):
        return [unreadable("gate.args", "`args.method` is not a method in capitals")]
    found: list[Fact] = [("allowed_host", (host,)) for host in sorted(world.hosts)]
    found.append(("asks_method", (ACTION, method)))
    found += [
        ("takes", (ACTION, Name("/requests"), 1)),
        ("takes", (ACTION, Name("/request_bytes"), _bytes(action))),
    ]
    headers = action.args.get("headers") or {}
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        return [*found, unreadable("gate.args", "`args.headers` is not an object of strings")]
    for name, value in headers.items():
        named = name.lower() in ("user-agent", "if-none-match")
        plain = len(value) < 80 and (named or _PLAIN_VALUE.match(value) is not None)
        plain = plain and not urls.odd_mark(name.lower(), value)
        found.append(
            ("sends_header", (ACTION, text(name.lower() if plain else name.lower() + " with an odd value")))
        )
    known = {"url", "method", "headers", "max_bytes", "timeout_s"}
    if any(action.args[name] for name in action.args if name not in known):
        found.append(("sends_body", (ACTION,)))
    url = urls.parse(whole, bare_hosts=True)
    if isinstance(url, urls.Trouble):
        return [*found, ("url_trouble", (ACTION, url.code, text(url.detail)))]
    if urls.is_bare(url.host):
        found.append(("url_trouble", (ACTION, "host", text(f"{url.host} is an address or a short name"))))
    found.append(("asks_url", (ACTION, url.scheme, url.host, url.port)))
    found += _addresses(url.host, world)
    carried = urls.payload(url)
    if carried is not None:
        found.append(("url_trouble", (ACTION, carried.code, text(carried.detail))))
    return found


def _tunnel(action: Action, world: World) -> list[Fact]:
    """A tunnel to a host and a port: nobody knows what it will carry."""
    host, port = argument(action, "host"), action.args.get("port")
    if not isinstance(host, str):
        return [host]
    found: list[Fact] = [("allowed_host", (name,)) for name in sorted(world.hosts)]
    found += [("takes", (ACTION, Name("/requests"), 1)), ("sends_body", (ACTION,))]
    url = urls.parse(f"tunnel://{f'[{host}]' if ':' in host else host}:{port}", bare_hosts=True)
    if isinstance(url, urls.Trouble) or url.path or url.host != host:
        return [*found, unreadable("gate.args", "`args.host` and `args.port` name no host and port")]
    if urls.is_bare(host):
        found.append(("url_trouble", (ACTION, "host", text(f"{host} is an address or a short name"))))
    return [*found, ("asks_url", (ACTION, url.scheme, host, url.port)), *_addresses(host, world)]


def _push(action: Action, world: World) -> list[Fact]:
    """A push asks its host for the refs and sends it what the workspace has committed."""
    asked = Action("http_request", {"url": action.args.get("url"), "method": "POST"})
    found = [fact for fact in _request(asked, world) if fact[0] != "takes"]
    found += [
        ("takes", (ACTION, Name("/requests"), 2)),
        ("takes", (ACTION, Name("/request_bytes"), _bytes(action))),
    ]
    for name in ("branch", "commit"):
        if isinstance(value := action.args.get(name), str):
            found.append(("argument", (ACTION, name, text(value))))
        elif isinstance(value, TextSeen):
            found.append(unreadable("gate.args", f"`args.{name}` is too long a text"))
    listed = action.args.get("runs", ())
    if isinstance(listed, (list, tuple)) and all(isinstance(path, str) for path in listed):
        found += [("argument", (ACTION, "runs", text(path))) for path in listed]
    else:
        found.append(unreadable("gate.args", "`args.runs` is no list of paths"))
    return [*found, ("sends_body", (ACTION,)), use("tracks", ".", world)]


def _addresses(host: str, world: World) -> list[Fact]:
    """What the host's name stands for now, when somebody looked."""
    if world.resolve is None:
        return []
    found = world.resolve(host)
    if not found:
        return [("unresolved", (ACTION, host))]
    return [("host_address", (ACTION, text(item), Name("/" + urls.kind_of(item)))) for item in sorted(found)]


def _patch(action: Action, world: World) -> list[Fact]:
    whole = action.args.get("patch")
    if isinstance(whole, Mapping) and world.patched is not None:
        return _long_patch(world.patched(whole), world)
    diff = argument(action, "patch")
    if not isinstance(diff, str):
        return [diff]
    try:
        if world.read is None:  # the tool compares the content; here the paths count
            files = read_patch(diff)
            found = files if isinstance(files, PatchRefused) else _named(files)
        else:
            changes = apply(diff, world.read)
            found = changes if isinstance(changes, PatchRefused) else [change.path for change in changes]
    except UserError as error:
        return [("patch_trouble", (ACTION, error.code, text(error.message)))]
    if isinstance(found, PatchRefused):
        return [("patch_trouble", (ACTION, found.code, text(found.message)))]
    return [use("edits", path, world) for path in found]


def _long_patch(seen: PatchSeen | None, world: World) -> list[Fact]:
    """The facts about a patch that somebody else has read."""
    if seen is None:
        return []
    if seen.code:
        return [("patch_trouble", (ACTION, seen.code, text(seen.message)))]
    found: list[Fact] = [use("edits", path, world) for path in seen.paths]
    found += [("names_secret", (ACTION, text(name), "patch")) for name in seen.names]
    return [*found, ("looks_secret", (ACTION, seen.secret, "patch"))] if seen.secret else found


def read_whole(diff: str) -> PatchSeen:
    """What is in a patch: the paths that it would change, and secrets; or why it would not be applied."""
    files = read_patch(diff)
    if isinstance(files, PatchRefused):
        return PatchSeen(files.code, files.message)
    secrets = tuple(dict.fromkeys(SECRET_NAME.findall(diff)))
    return PatchSeen(paths=tuple(_named(files)), names=secrets, secret=urls.secret_in(diff))


def _named(files: Iterable[FilePatch]) -> list[str]:
    """The paths of a patch, old names and new ones."""
    paths = [path for file in files for path in (file.source, file.path) if path]
    return list(dict.fromkeys(paths))


_BUILDERS: dict[str, Builder] = {
    **BUILDERS,
    "git_push": _push,
    "http_request": _request,
    "apply_patch": _patch,
    "tunnel": _tunnel,
}


def is_built(tool: str) -> bool:
    """Whether the facts about the tool's calls are made here rather than by what its entry declares."""
    return tool in _BUILDERS
