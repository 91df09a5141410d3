"""The repository of a workspace around a tool that may change it: what was there before, what may be kept.

Takes a Call and its Opening (spak.policy.repository); `before` looks, the tool runs, `trouble` says why its
change of `.git` must be rolled back, or nothing. Three things are looked at: which files of `.git` differ,
which values of refs are new, and of the commits that new values lead to, whether their trees are those of
the files as they were before the tool ran; a line that may commit moves no branch to another tree either,
as a merge that only takes over a commit does. So a commit holds the files that were checked, whichever
command made it.

Refs are read on this side; git itself runs in the sandbox with a folder of its own, as for `git_commit`, and
believes no configuration, hook or index of the repository. It changes nothing. Source: ADR 0022.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spak import canon
from spak.policy.repository import Opening
from spak.ports import Call
from spak.tools import beneath, inside
from spak.tools.git_guest import GUEST

GIT = ".git"
SANDBOX = "/ws/"
"""The workspace, as jobs see it."""
STASH = "refs/stash"
QUIET: Mapping[str, str] = {
    "GIT_CONFIG_COUNT": "4",
    "GIT_CONFIG_KEY_0": "core.hooksPath",
    "GIT_CONFIG_VALUE_0": "/dev/null",
    "GIT_CONFIG_KEY_1": "core.fsmonitor",
    "GIT_CONFIG_VALUE_1": "false",
    "GIT_CONFIG_KEY_2": "gc.auto",
    "GIT_CONFIG_VALUE_2": "0",
    "GIT_CONFIG_KEY_3": "maintenance.auto",
    "GIT_CONFIG_VALUE_3": "false",
}
"""The environment of a line that opens `.git`: nothing of the workspace is started by git."""

MAX_REFS = 100_000
_HASH = re.compile(r"[0-9a-f]{40}\Z")
_KEPT = re.compile(
    r"(index|HEAD|packed-refs|[A-Z][A-Z_]*"
    r"|objects|objects/[0-9a-f]{2}(/[0-9a-f]{38})?|objects/pack(/pack-[0-9a-f]+\.\w+)?"
    r"|refs|(logs/)?refs/(heads|tags|stash|notes|bisect)(/.*)?|logs|logs/refs|logs/HEAD"
    r"|(rebase-merge|rebase-apply|sequencer)(/.*)?)\Z",
    re.S,
)
"""Files of `.git` that commands of git write; none of them says what git starts or where it works."""


@dataclass(frozen=True, slots=True)
class Before:
    """The repository before the tool ran."""

    opening: Opening
    exists: bool
    refs: Mapping[str, str] = field(default_factory=dict)
    """Names and values of branches, tags and HEAD."""
    tree: str = ""
    """The tree that a commit of all files would have, where the line may make one."""
    parent: str = ""
    """The tree of HEAD, which the index of a stash may have."""
    why: str = ""
    """Why it is not known which."""


def within(path: str, places: Sequence[str] = (GIT,)) -> bool:
    """Whether a path of the workspace is the repository or in it, wherever its parts are."""
    return any(path == place or path.startswith(place + "/") for place in places)


def places(workspace: Path) -> tuple[str, ...]:
    """Where the repository of a workspace is: `.git`, and folders of the workspace that git follows it to."""
    top = workspace / GIT
    if not os.path.lexists(top):
        return (GIT,)
    texts = []
    if top.is_symlink():
        texts.append((workspace, str(top.readlink())))
    elif top.is_file():
        texts.append((workspace, _text(top).removeprefix("gitdir:").strip()))
    for name, base in (("commondir", top), ("objects/info/alternates", top / "objects")):
        texts += [(base, line) for line in _text(top / name).splitlines() if line]
    for name in ("objects", "refs", "refs/heads"):
        if (top / name).is_symlink():
            texts.append(((top / name).parent, str((top / name).readlink())))
    root = os.path.realpath(workspace)
    found = [GIT]
    for base, text in texts:
        inner = text.removeprefix(SANDBOX) if text.startswith(SANDBOX) else ""
        path = os.path.realpath(Path(root, inner) if inner else base / text)
        if path.startswith(root + "/"):
            found.append(os.path.relpath(path, root))
        elif path == root:
            found.append(".")
    return tuple(found)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(65536).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def elsewhere(workspace: Path) -> str:
    """What makes git keep its objects or refs outside of a plain folder `.git`; empty where nothing does."""
    top = workspace / GIT
    if not os.path.lexists(top):
        return ""
    for name in ("", "objects", "refs", "refs/heads"):
        path = top / name if name else top
        if os.path.lexists(path) and not _is_dir(path):
            return f"{GIT}/{name}".rstrip("/") + " is no folder"
    for name in ("commondir", "objects/info/alternates", "objects/info/http-alternates"):
        if os.path.lexists(top / name):
            return f"{GIT}/{name} leads elsewhere"
    return ""


def before(call: Call, opening: Opening) -> Before:
    """What is there now; for a line that may commit, which tree the files make."""
    if other := elsewhere(call.workspace):
        return Before(opening, True, why=other)
    if not _is_folder(call.workspace):
        return Before(opening, False)
    refs = dict(_refs(call.workspace))
    if not opening.commits:
        return Before(opening, True, refs)
    head = refs.get("HEAD", "")
    exclude = (beneath.content(call.workspace, ".git/info/exclude") or b"")[:65536].decode(errors="replace")
    found = _ask(call, {"tree": True, "parent": head, "paths": [], "exclude": exclude})
    if "tree" not in found:
        return Before(opening, True, refs, why=found.get("message", "git could not look at the files"))
    return Before(opening, True, refs, str(found["tree"]), str(found["parent"]))


def trouble(call: Call, known: Before | None, touched: Sequence[str]) -> str:
    """Why what the tool changed in `.git` must be rolled back; empty when it may be kept.

    `touched` are all paths of the workspace that it changed; `known` is None where `.git` was closed.
    """
    of_git = places(call.workspace)
    changed = [path for path in touched if within(path, of_git)]
    if not changed:
        return ""
    if known is not None and (other := elsewhere(call.workspace)):
        return f"{other}, and {changed[0]} was changed"
    if known is None:
        return f"{changed[0]} was changed by something else than git"
    if known.opening.tool:
        return ""
    if known.exists:
        for path in changed:
            name = path.removeprefix(GIT + "/")
            allowed = _KEPT.match(name) or (name == "config" and known.opening.configures) or path == GIT
            if not allowed:
                return f"{path} was changed"
    if not _is_folder(call.workspace):
        return f"{GIT} is no folder any more"
    return _other_files(call, known, dict(_refs(call.workspace)))


def _other_files(call: Call, known: Before, refs: Mapping[str, str]) -> str:
    """Why the commits that lead to new values of refs may not be kept; empty when they may."""
    old = set(known.refs.values())
    new = {value: name for name, value in sorted(refs.items()) if value not in old}
    if not all(map(_HASH.match, new)):
        return "a ref holds no commit"
    stashed = {value for value in new if refs.get(STASH) == value}
    moved = _moved(known, refs) - new.keys()
    if not all(map(_HASH.match, moved)):
        return "a branch holds no commit"
    for values, to, trees in (
        (new.keys() - stashed, moved, {known.tree}),
        (stashed, set[str](), {known.tree, known.parent}),
    ):
        if not values and not to:
            continue
        since = [value for value in old if _HASH.match(value)]
        found = _ask(call, {"list": sorted(values), "moved": sorted(to), "known": sorted(since)})
        if "trees" not in found:
            return str(found.get("message", "git could not look at the new commits"))
        if set(found["trees"]) - (trees - {""}):
            return known.why or "a commit holds other files than those that were checked"
    return ""


def _moved(known: Before, refs: Mapping[str, str]) -> set[str]:
    """Where a line that may commit moved branches to: a merge may take over a commit as it is."""
    if not known.opening.commits:
        return set()
    branches = [name for name in known.refs if name == "HEAD" or name.startswith("refs/heads/")]
    return {refs[name] for name in branches if name in refs and refs[name] != known.refs[name]}


def _is_folder(workspace: Path) -> bool:
    return _is_dir(workspace / GIT)


def _is_dir(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat(follow_symlinks=False).st_mode)
    except OSError:
        return False


def _ask(call: Call, order: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the guest says; without an answer an object that has none of its members."""
    git, python = inside.program(call, "git"), inside.program(call, "python")
    if not git or not python:
        return {"message": "the toolchain has no git"}
    outcome = inside.run(
        call,
        (python, "-I", "-B", "-c", GUEST),
        writable=False,
        stdin=canon.dumps({**order, "git": git, "exclude": order.get("exclude", "")}),
        output_bytes=8 << 20,
        whole=True,
    )
    if outcome.status != "exited" or outcome.stdout.truncated or not outcome.stdout.data:
        return {}
    found = canon.loads(outcome.stdout.data)
    return found if isinstance(found, dict) else {}


def _refs(workspace: Path) -> Iterator[tuple[str, str]]:
    """Every ref of the repository with its value; HEAD with the value of its branch."""
    loose = {name: value for name, value in _loose(workspace) if not value.startswith("ref: ")}
    packed = dict(_packed(workspace))
    yield from packed.items()
    yield from loose.items()
    head = _read(workspace, "HEAD")
    name = head.removeprefix("ref: ")
    value = head if name == head else loose.get(name) or packed.get(name, "")
    if value:
        yield "HEAD", value


def _loose(workspace: Path) -> Iterator[tuple[str, str]]:
    count = 0
    top = workspace / GIT
    for folder, _, files in os.walk(top / "refs", followlinks=False):
        for file in files:
            name = str(Path(folder, file).relative_to(top))
            count += 1
            yield name, _read(workspace, name) if count <= MAX_REFS else "too many refs"


def _packed(workspace: Path) -> Iterator[tuple[str, str]]:
    data = beneath.content(workspace, ".git/packed-refs") or b""
    for line in data.decode("utf-8", "replace").splitlines():
        value, _, name = line.partition(" ")
        if name and not line.startswith(("#", "^")):
            yield name, value


def _read(workspace: Path, name: str) -> str:
    """The line of a file of git's; a link or a file that cannot be read holds nothing that is a commit."""
    try:
        fd = os.open(workspace / GIT / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return "unreadable"
    try:
        return os.read(fd, 4096).decode("utf-8", "replace").strip()
    finally:
        os.close(fd)
