"""The settings file of an agent with the guard's hooks in it, and without them.

Takes an agent and a project's folder; changes that one file, whole or not at all, and nothing in it but what
is ours: commands that end in MARK. A file that is not JSON of the known shape is left as it is.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from spak.errors import UsageError
from spak.guard import answer
from spak.guard.agents import ASKS, GUARDED
from spak.guard.hook_agents import HookAgent
from spak.ledger.private import STATE

MARK = "# spak-guard"
GUARD = f"{STATE}/guard"
"""In the project: the folder of the socket."""
MOST = 16 << 20


def folder(project: Path) -> Path:
    """Of the socket of a project's guard."""
    return project.resolve() / GUARD


def command(agent: HookAgent, event: str, project: Path) -> str:
    """The command line of a hook, for a shell. Before a call it exits with 2 whatever becomes of it;
    otherwise with 0, since there is nothing to deny. Behind `spak guard` it asks that guard, where the law
    has rules of its own, and else says nothing: the walls hold."""
    line = [sys.executable, "-I", "-S", str(Path(answer.__file__).resolve()), agent.name, event]
    line.append(str(folder(project)))
    if event != "before":
        return f'[ "${GUARDED}" = 1 ] && exit 0; {shlex.join(line)} || exit 0 {MARK}'
    inside = f'[ "${GUARDED}" = 1 ] && eval "exec ${{{ASKS}:-true}} {agent.name} {event}"; '
    say = f"echo {shlex.quote('spak: ' + answer.ABSENT)} >&2"
    return f"{inside}{shlex.join(line)} || {{ [ $? = 2 ] || {say}; exit 2; }} {MARK}"


def install(agent: HookAgent, project: Path) -> bool:
    """Write the hooks; whether anything changed. Raises: UsageError `guard.settings`."""
    events = {agent.before: "before", **dict.fromkeys(agent.after, "after")}
    events |= {agent.turn: "turn", agent.start: "start"}

    def change(settings: dict[str, Any]) -> None:
        _without(settings)
        if not agent.grouped:
            settings.setdefault("version", 1)
        hooks = settings.setdefault("hooks", {})
        for event, kind in events.items():
            ours: dict[str, Any] = {"command": command(agent, kind, project)}
            if agent.grouped:
                ours = {"type": "command", **ours}
            if agent.timeout is not None:
                ours["timeout"] = agent.timeout
            if agent.closed is not None and kind == "before":
                ours[agent.closed[0]] = agent.closed[1]
            hooks.setdefault(event, []).append({"hooks": [ours]} if agent.grouped else ours)

    return _change(agent, project, change)


def remove(agent: HookAgent, project: Path) -> bool:
    """Take the hooks away; whether anything changed. Raises: UsageError `guard.settings`."""
    return _change(agent, project, _without)


def installed(agent: HookAgent, project: Path) -> bool:
    """Whether the file has hooks of the guard of this project."""
    try:
        text = (project / agent.file).read_text()
    except (OSError, UnicodeDecodeError):
        return False
    return json.dumps(command(agent, "before", project), ensure_ascii=False) in text


def _change(agent: HookAgent, project: Path, change: Callable[[dict[str, Any]], None]) -> bool:
    path = (project / agent.file).resolve()
    before = path.read_bytes() if path.exists() else b""
    settings = _read(before, path)
    change(settings)
    if not before and not settings:
        return False
    if before and settings == _read(before, path):
        return False
    if not settings or settings == {"version": 1}:
        path.unlink()
        with suppress(OSError):
            path.parent.rmdir()
        return True
    indented = re.search(rb"\n([ \t]+)\S", before)
    indent = indented[1].decode() if indented else "  "
    data = json.dumps(settings, indent=indent, ensure_ascii=False).encode() + b"\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.name + ".spak-new")
    aside.write_bytes(data)
    if before:
        aside.chmod(path.stat().st_mode & 0o777)
    aside.replace(path)
    return True


def _read(data: bytes, path: Path) -> dict[str, Any]:
    """The settings. Raises: UsageError `guard.settings`."""
    try:
        if len(data) > MOST:
            raise ValueError("it is too large")
        found = json.loads(data.decode(), object_pairs_hook=_once) if data.strip() else {}
        if not isinstance(found, dict):
            raise ValueError("it is not a JSON object")
        hooks = found.get("hooks", {})
        if not isinstance(hooks, dict):
            raise ValueError("`hooks` is not an object")
        for event, listed in hooks.items():
            if isinstance(listed, list) and all(_is_group(one) for one in listed):
                continue
            if event[:1].islower() and not isinstance(listed, list):
                continue  # a setting of hooks, not an event
            raise ValueError(f"`hooks.{event}` is not a list of hooks")
    except (ValueError, RecursionError) as error:
        hint = "the agent may read nothing of it, hooks included: mend the file, then install again"
        raise UsageError("guard.settings", f"{path}: {error}", hint) from error
    return found


def _is_group(one: object) -> bool:
    inner = one.get("hooks", []) if isinstance(one, dict) else None
    return isinstance(inner, list) and all(isinstance(hook, dict) for hook in inner)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found


def _is_ours(hook: dict[str, Any]) -> bool:
    return str(hook.get("command", "")).endswith(MARK)


def _without(settings: dict[str, Any]) -> None:
    """Take ours away, with the lists that are empty without them."""
    hooks = settings.get("hooks", {})
    for event, listed in list(hooks.items()):
        if not isinstance(listed, list):
            continue
        kept = []
        for one in listed:
            inner = [hook for hook in one.get("hooks", []) if not _is_ours(hook)]
            emptied = not inner and bool(one.get("hooks"))
            if not emptied and not _is_ours(one):
                kept.append(one | {"hooks": inner} if "hooks" in one else one)
        if kept != listed:
            hooks[event] = kept
            if not kept:
                del hooks[event]
                if not hooks:
                    del settings["hooks"]
