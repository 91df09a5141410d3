"""A tool that a team or a person declares in a file of their own: what it is, and how it is run.

Takes the path of a TOML file; gives a Tool with the hash of what was read. Its program comes from the
toolchain or is a file beside the declaration. All files are read once, with the declaration, and a call runs
what was read then; where the disk has something else by then, it is refused. A call runs in a sandbox
of its own, which has those files and the call's arguments, but neither the workspace nor a network.

A program whose declaration names hosts asks for requests instead: it ends with status ASKS and its request on
standard output, the host sends it as `http_request` does, to the address that was judged, and the program
starts again with the reply. It can keep nothing between two starts, so that starting again is harmless.

It permits nothing: the facts about a call are its name, its arguments, the hosts and the secrets, and no
shipped law permits those.
"""

from __future__ import annotations

import json
import re
import stat
import time
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from spak import canon
from spak import schema_parts as parts
from spak.cancel import apart
from spak.errors import UsageError, UserError
from spak.files import beneath
from spak.files.scratch import Scratch
from spak.incoming import unmarked
from spak.inputs import read_at_most
from spak.lang.catalog import EffectClass, ToolEntry
from spak.lang.schema import check_schema, violations
from spak.policy import urls
from spak.policy.facts import SCHEME, is_built
from spak.policy.stated import STATED
from spak.ports import Call, ToolResult
from spak.tools import http_request, inside, results
from spak.tools.registry import TOOLS

MAX_BYTES = 1 << 20
"""Of a declaration, and of each file beside it."""
MAX_FILES = 32
MAX_WORD = 64 << 10
MAX_REQUESTS = 16
"""Of a call."""
ASKS = 75
"""The exit status of a program that asks for a request."""
_KEYS: Mapping[str, type] = {
    "name": str,
    "version": int,
    "summary": str,
    "argv": list,
    "effect": str,
    "files": list,
    "optional": list,
    "arguments": dict,
    "hosts": list,
    "requests": int,
    "secrets": list,
}
_REQUIRED = ("name", "version", "summary", "argv")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_SECRET = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_PLACE = re.compile(r"\{([a-z][a-z0-9_]*)\}")


@dataclass(slots=True)
class Declared:
    """A declared tool. `argv` has `{argument}` places; `files` are contents by name."""

    entry: ToolEntry
    hash: str
    """Of the declaration and its files."""
    argv: tuple[str, ...]
    files: Mapping[str, bytes]
    path: Path
    requests: int = 0
    """The most of a call; 0 for a tool without hosts."""

    def run(self, call: Call) -> ToolResult:
        return results.guarded(self._run, call)

    def _unchanged(self) -> None:
        """Raises: UsageError `tool.changed` where the disk has another tool by now."""
        try:
            data, files = _read(self.path), _files(self.path, list(self.files))
        except (OSError, ValueError, UsageError):
            data, files = b"", {}
        if _hash(data, files) != self.hash:
            message = f"{self.entry.name} was changed since the run read it"
            raise UsageError("tool.changed", message, "restore its files, or start a new run")

    def _run(self, call: Call) -> ToolResult:
        self._unchanged()
        program, *words = [_filled(word, call.args) for word in self.argv]
        argv = (f"./{program}", *words) if program in self.files else inside.resolved(call, (program, *words))
        with Scratch("tool") as folder:
            for name, data in self.files.items():
                place = folder / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
                place.chmod(0o755)
            return self._started(replace(call, workspace=folder), argv)

    def _started(self, call: Call, argv: Sequence[str]) -> ToolResult:
        """What the program came to, started again after each reply."""
        ends = time.monotonic() + call.limits.wall_s
        replies: list[dict[str, Any]] = []
        requests = request_bytes = 0
        while True:
            given = {"arguments": dict(call.args), "replies": replies} if self.requests else dict(call.args)
            outcome = inside.run(
                call,
                argv,
                writable=False,
                timeout_s=max(ends - time.monotonic(), 0.1),
                stdin=json.dumps(given).encode(),
                heard=None if self.requests else call.heard,
            )
            if not self.requests or (outcome.status, outcome.exit) != ("exited", ASKS):
                result = results.of_outcome(outcome)
                break
            try:
                args = self._request(outcome.stdout.data, len(replies), ends)
                reply = apart(partial(http_request.ask, replace(call, args=args)), call.cancel)
            except UserError as error:
                result = results.failed(error.code, error.message, error.hint)
                break
            requests, request_bytes = requests + reply.requests, request_bytes + reply.request_bytes
            replies.append(_reply(reply))
        return replace(result, requests=requests, request_bytes=request_bytes)

    def _request(self, asked: bytes, count: int, ends: float) -> dict[str, Any]:
        """The arguments of the request that the program asks for. Raises: UsageError `tool.request`."""
        name = self.entry.name
        if count >= self.requests:
            raise _no_request(f"{name} asks for more than {self.requests} requests")
        try:
            found = json.loads(asked)
        except (ValueError, RecursionError) as error:
            raise _no_request(f"{name} ended with {ASKS}, and its output is not JSON") from error
        if wrong := violations(http_request.HttpRequest.entry.schema, found):
            raise _no_request(f"{name} asks for no request: {wrong[0].path} {wrong[0].hint}")
        if (origin := _origin(found["url"])) not in self.entry.arguments:
            raise _no_request(f"{name} does not declare {origin or 'such a host'}")
        left = max(ends - time.monotonic(), 0.1)
        return {**found, "timeout_s": min(float(found.get("timeout_s", http_request.TIMEOUT_S)), left)}


def table(paths: Iterable[Path], programs: Collection[str]) -> dict[str, Declared]:
    """The tools that the files declare, by name. Raises: as `load`."""
    found: dict[str, Declared] = {}
    for path in paths:
        tool = load(path, programs)
        if found.setdefault(tool.entry.name, tool) is not tool:
            message = f"{path}: another file declares {tool.entry.name} too"
            raise UsageError("tool.taken", message, "choose another name")
    return found


def load(path: Path, programs: Collection[str]) -> Declared:
    """The tool that a file declares; `programs` are those of the toolchain.

    Raises: UsageError `tool.declaration`, `tool.taken`, `tool.schema`, `tool.program`.
    """
    try:
        data = _read(path)
        found = tomllib.loads(unmarked(data.decode("utf-8")))
    except (OSError, ValueError, RecursionError) as error:
        raise _bad(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    _judge(path, found)
    files = _files(path, found.get("files", []))
    entry = ToolEntry(
        name=free(path, found["name"]),
        version=found["version"],
        summary=found["summary"],
        schema=_schema(path, found),
        effect=found.get("effect", "effect"),
        writes=False,
        arguments=_uses(path, found),
    )
    argv = _argv(path, found["argv"], entry, {*programs, *files})
    requests = found.get("requests", 1) if found.get("hosts") else 0
    return Declared(entry, _hash(data, files), argv, files, path.absolute(), requests)


def _hash(data: bytes, files: Mapping[str, bytes]) -> str:
    digests = {name: canon.digest(content) for name, content in files.items()}
    return canon.content_hash([canon.digest(data), digests])


def _uses(path: Path, found: Mapping[str, Any]) -> dict[str, str]:
    """What every call may use, for the entry. Raises: UsageError `tool.declaration`."""
    requests = found.get("requests", 1)
    if not 1 <= requests <= MAX_REQUESTS or ("requests" in found and not found.get("hosts")):
        raise _bad(path, f"requests is a number from 1 to {MAX_REQUESTS}, of a tool with hosts")
    uses = {SCHEME: "text"}
    for name in found.get("secrets", []):
        if not _SECRET.fullmatch(name):
            raise _bad(path, f"{name!a} is not the name of a secret")
        uses[SCHEME + name] = "text"
    for name in found.get("hosts", []):
        origin = _origin(name if "://" in name else f"https://{name}", bare=True)
        if not origin:
            raise _bad(path, f"{name!a} is not a host", "write api.example.org, or http://127.0.0.1:8080")
        uses[origin] = f"host={requests}"
    return uses


def _origin(text: str, bare: bool = False) -> str:
    """Scheme, host and port of a URL as entries name them; empty for other texts. `bare`: with no path."""
    url = urls.parse(text, bare_hosts=True)
    if isinstance(url, urls.Trouble) or url.scheme not in ("https", "http"):
        return ""
    if bare and (url.path.strip("/") or url.query or url.fragment):
        return ""
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{url.scheme}://{host}:{url.port}"


def _reply(result: ToolResult) -> dict[str, Any]:
    """What a program is given of a reply: its status and its body, or the code of the failure."""
    if "status" not in result.key:
        return {"status": 0, "error": result.key["codes"][0]}
    body = result.output.partition(b"\n\n")[2]
    return {"status": result.key["status"], "body": body.decode("utf-8", "replace")}


def _no_request(message: str) -> UsageError:
    return UsageError("tool.request", message, 'see docs/tools.md, "Requests and secrets"')


def free(source: object, name: str) -> str:
    """The name, where no tool that ships has it. Raises: UsageError `tool.taken`, `tool.declaration`."""
    if not _NAME.fullmatch(name):
        raise _bad(source, f"{name!a} is no name of a tool", "small letters, digits and _, at most 64")
    aliases = {alias for tool in TOOLS.values() for alias in tool.entry.aliases}
    if name in TOOLS or name in aliases or is_built(name) or f"/{name}" in STATED:
        raise UsageError(
            "tool.taken", f"{source}: {name} is the name of a shipped tool", "choose another name"
        )
    return name


def _filled(word: str, args: Mapping[str, Any]) -> str:
    """A word with the arguments in their places. Raises: UsageError `tool.argument`."""
    made = _PLACE.sub(lambda place: _text(args[place[1]]), word)
    if "\0" in made or len(made) > MAX_WORD:
        raise UsageError("tool.argument", "an argument does not fit into a command line", "make it shorter")
    if made.startswith("-") and word.startswith("{") and made != word:
        raise UsageError(
            "tool.argument", f"{made[:40]!a} would be an option of the program", "begin it with another sign"
        )
    return made


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _read(path: Path) -> bytes:
    """Raises: OSError; ValueError for a file that others may write, or that is too long."""
    data = read_at_most(path, MAX_BYTES)
    if path.stat().st_mode & stat.S_IWOTH:
        raise ValueError("every user may write it; take that right away: chmod o-w")
    if data is None:
        raise ValueError(f"it has more than {MAX_BYTES} bytes")
    return data


def _judge(path: Path, found: Mapping[str, Any]) -> None:
    for key, value in found.items():
        if key not in _KEYS:
            raise _bad(path, f"unknown key {key}", f"known: {', '.join(_KEYS)}")
        if type(value) is not _KEYS[key]:
            raise _bad(path, f"{key} can not be {value!r}")
        if isinstance(value, list) and not all(isinstance(item, str) and item for item in value):
            raise _bad(path, f"{key} is not a list of texts")
    if missing := [key for key in _REQUIRED if not found.get(key)]:
        raise _bad(path, f"{missing[0]} is missing")
    if found["version"] < 1:
        raise _bad(path, "version is a whole number from 1")
    if (effect := found.get("effect", "effect")) not in get_args(EffectClass):
        raise _bad(path, f"effect can not be {effect!r}", f"one of: {', '.join(get_args(EffectClass))}")


def _schema(path: Path, found: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of the arguments; those that are not optional are required."""
    arguments, optional = found.get("arguments", {}), found.get("optional", [])
    if unknown := [name for name in optional if name not in arguments]:
        raise UsageError("tool.schema", f"{path}: optional names {unknown[0]}, which is no argument")
    if odd := [name for name in arguments if not _NAME.fullmatch(name)]:
        raise UsageError("tool.schema", f"{path}: {odd[0]!a} is no name of an argument")
    made = parts.members([name for name in arguments if name not in optional], **arguments)
    try:
        check_schema(made)
        canon.dumps(made)
    except (UserError, TypeError) as error:
        text = getattr(error, "message", error)
        raise UsageError("tool.schema", f"{path}: {text}", "see docs/language.md, Schemas") from error
    return made


def _files(path: Path, names: Sequence[str]) -> dict[str, bytes]:
    """The files beside the declaration. Raises: UsageError `tool.program`."""
    if len(names) > MAX_FILES:
        raise _no_program(path, f"more than {MAX_FILES} files")
    folder, found = path.resolve().parent, {}
    for name in names:
        if not _FILE.fullmatch(name):
            raise _no_program(path, f"{name!a} is no plain path below the folder of the declaration")
        try:
            with beneath.locate(folder, name) as place:
                found[name] = _read(folder / place.path)
        except (UserError, OSError, ValueError) as error:
            why = getattr(error, "message", None) or getattr(error, "strerror", None) or error
            raise _no_program(path, f"{name} cannot be used: {why}") from error
    return found


def _argv(path: Path, words: Sequence[str], entry: ToolEntry, known: Collection[str]) -> tuple[str, ...]:
    """Raises: UsageError `tool.program`, `tool.declaration`."""
    if words[0] not in known:
        raise _no_program(path, f"{words[0]!a} is neither in the toolchain nor one of files")
    for name in (name for word in words for name in _PLACE.findall(word)):
        if name not in entry.schema["required"]:
            raise _bad(path, f"argv names {{{name}}}, which is no argument that every call has")
    return tuple(words)


def _bad(path: object, message: str, hint: str = 'see docs/tools.md, "A tool of your own"') -> UsageError:
    return UsageError("tool.declaration", f"{path}: {message}", hint)


def _no_program(path: Path, message: str) -> UsageError:
    hint = "name a program of the toolchain (spak doctor), or list a file beside the declaration in files"
    return UsageError("tool.program", f"{path}: {message}", hint)
