"""The repository of a workspace around a tool that may change it: what was there before, what may be kept.

Takes a Call and its Opening (spak.policy.repository); `before` looks, the tool runs, `trouble` says why its
change of `.git` must be rolled back, or nothing. Three things are looked at: which files of `.git` differ,
which values of refs are new, and of the commits that new values lead to, whether their trees are those of
the files as they were before the tool ran; a line that may commit moves no branch to another tree either,
as a merge that only takes over a commit does. So a commit holds the files that were checked, whichever
command made it. Repositories below the top obey the same rule: nothing but a line of git changes their refs,
and a commit there holds the files of its folder, none of which that line changed (ADR 0033).

Refs are read on this side; git itself runs in the sandbox with a folder of its own, as for `git_commit`, and
believes no configuration, hook or index of the repository. It changes nothing. Source: ADR 0022.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from spak import canon
from spak.files import beneath
from spak.policy.repository import Opening
from spak.ports import Call
from spak.tools import inside
from spak.tools.git import nested
from spak.tools.git.guest import GUEST

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
MAX_BYTES = 32 << 20
"""Of a file of refs."""
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


def elsewhere(workspace: Path, at: str = GIT) -> str:
    """What makes git keep its objects or refs outside of a plain folder `at`; empty where nothing does."""
    top = workspace / at
    if not os.path.lexists(top):
        return ""
    for name in ("", "objects", "refs", "refs/heads"):
        path = top / name if name else top
        if os.path.lexists(path) and not _is_dir(path):
            return f"{at}/{name}".rstrip("/") + " is no folder"
    for name in ("commondir", "objects/info/alternates", "objects/info/http-alternates"):
        if os.path.lexists(top / name):
            return f"{at}/{name} leads elsewhere"
    return ""


def before(call: Call, opening: Opening) -> Before:
    """What is there now; for a line that may commit, which tree the files make."""
    if other := elsewhere(call.workspace):
        return Before(opening, True, why=other)
    if not _is_folder(call.workspace):
        return Before(opening, False)
    refs = _refs(call.workspace)
    return _with_tree(call, opening, refs, GIT) if opening.commits else Before(opening, True, refs)


def _with_tree(call: Call, opening: Opening, refs: Mapping[str, str], at: str) -> Before:
    """The tree that a commit of the files would have, as they are now."""
    exclude = (beneath.content(call.workspace, f"{at}/info/exclude") or b"")[:65536].decode(errors="replace")
    order = {"tree": True, "parent": refs.get("HEAD", ""), "paths": [], "exclude": exclude}
    found = _ask(call, order, at)
    if "tree" not in found:
        return Before(opening, True, refs, why=found.get("message", "git could not look at the files"))
    return Before(opening, True, refs, str(found["tree"]), str(found["parent"]))


def trouble(
    call: Call,
    known: Before | None,
    touched: Sequence[str],
    was: Callable[[str], bytes | None] = lambda path: None,
) -> str:
    """Why what the tool changed in `.git`, or in a repository below, must be rolled back; empty when it may
    be kept.

    `touched` are all paths of the workspace that it changed, `was` gives what a file held before; `known` is
    None where `.git` was closed.
    """
    below = (
        found
        for at in nested.moved(call.workspace, touched)
        if (found := _below(call, known, touched, was, at))
    )
    return _own(call, known, touched) or next(below, "")


def _own(call: Call, known: Before | None, touched: Sequence[str]) -> str:
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
    return _other_files(call, known, _refs(call.workspace), GIT)


def _below(
    call: Call, known: Before | None, touched: Sequence[str], was: Callable[[str], bytes | None], at: str
) -> str:
    """The same of the repository at `at`, a folder below the top."""
    inner = {path.removeprefix(f"{at}/") for path in touched if path.startswith(f"{at}/")}
    if odd := nested.odd_refs(inner):
        return f"{at}/{odd} was changed"
    now = partial(_read, call.workspace, at)

    def then(name: str) -> str | None:
        if name not in inner:
            return now(name)
        held = was(f"{at}/{name}")
        return None if held is None else held.decode("utf-8", "replace").strip()

    names = set(_loose(call.workspace, at))
    refs = _refs_of(names, now)
    old = _refs_of(names | {name for name in inner if name.startswith("refs/")}, then)
    existed = then("HEAD") is not None
    if refs == old if existed else not refs:
        return ""
    opening = known.opening if known is not None else None
    if opening is None or opening.tool:
        return f"{at}: a branch, a tag or HEAD was changed by something else than git"
    if not existed and not old and not opening.commits:
        return ""  # git clone
    if other := elsewhere(call.workspace, at):
        return other
    own = (*places(call.workspace), at)
    before = Before(opening, True, old, why=f"{at}: the line changes files and commits")
    if opening.commits and all(within(path, own) for path in touched):
        before = _with_tree(call, opening, old, at)
    why = _other_files(call, before, refs, at)
    return why if why.startswith(at) or not why else f"{at}: {why}"


def _other_files(call: Call, known: Before, refs: Mapping[str, str], at: str) -> str:
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
        found = _ask(call, {"list": sorted(values), "moved": sorted(to), "known": sorted(since)}, at)
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


def tips(workspace: Path) -> set[str]:
    """Every commit that a ref or git's log of one names; none where there is no plain repository."""
    if not _is_folder(workspace) or elsewhere(workspace):
        return set()
    found, left = dict.fromkeys(_refs(workspace).values()), MAX_BYTES
    logs = workspace / GIT / "logs"
    for folder, _, files in os.walk(logs, followlinks=False) if _is_dir(logs) else ():
        for file in files:
            text = _read(workspace, GIT, str(Path(folder, file).relative_to(workspace / GIT)), left) or ""
            left -= len(text)
            for line in text.splitlines():
                found |= dict.fromkeys(line.split(" ", 2)[:2])
            if left <= 0 or len(found) > MAX_REFS:
                break
    return {value for value in list(found)[:MAX_REFS] if _HASH.match(value) and value.strip("0")}


def ask(call: Call, order: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the guest (spak.tools.git.guest) says of the repository; without an answer an empty object."""
    return _ask(call, order, GIT)


def _is_folder(workspace: Path) -> bool:
    return _is_dir(workspace / GIT)


def _is_dir(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat(follow_symlinks=False).st_mode)
    except OSError:
        return False


def _ask(call: Call, order: Mapping[str, Any], at: str) -> Mapping[str, Any]:
    """What the guest says of the repository `at`; without an answer an object without its members."""
    git, python = inside.program(call, "git"), inside.program(call, "python")
    if not git or not python:
        return {"message": "the toolchain has no git"}
    work = at.removesuffix(GIT).rstrip("/")
    if order.get("tree") and work == at:
        return {"message": "a repository without files takes no commit"}
    outcome = inside.run(
        call,
        (python, "-I", "-B", "-c", GUEST),
        writable=False,
        stdin=canon.dumps({"exclude": "", **order, "git": git, "at": at, "work": work}),
        output_bytes=8 << 20,
        whole=True,
    )
    if outcome.status != "exited" or outcome.stdout.truncated or not outcome.stdout.data:
        return {}
    found = canon.loads(outcome.stdout.data)
    return found if isinstance(found, dict) else {}


def _refs(workspace: Path, at: str = GIT) -> dict[str, str]:
    """Every ref of the repository with its value; HEAD with the value of its branch."""
    return _refs_of(_loose(workspace, at), partial(_read, workspace, at))


def _refs_of(names: Iterable[str], read: Callable[[str], str | None]) -> dict[str, str]:
    """The same, of loose refs of these names; `read` gives what a file of the repository holds."""
    loose = {}
    for count, name in enumerate(sorted(names)):
        value = read(name) if count < MAX_REFS else "too many refs"
        if value is not None and not value.startswith("ref: "):
            loose[name] = value
    packed = dict(_packed(read("packed-refs") or ""))
    head = read("HEAD") or ""
    name = head.removeprefix("ref: ")
    value = head if name == head else loose.get(name) or packed.get(name, "")
    return {**packed, **loose, **({"HEAD": value} if value else {})}


def _loose(workspace: Path, at: str) -> Iterator[str]:
    top = workspace / at
    for folder, _, files in os.walk(top / "refs", followlinks=False):
        for file in files:
            yield str(Path(folder, file).relative_to(top))


def _packed(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        value, _, name = line.partition(" ")
        if name and not line.startswith(("#", "^")):
            yield name, value


def _read(workspace: Path, at: str, name: str, most: int = MAX_BYTES) -> str | None:
    """What a file of git's holds, or None where there is none; no commit, where it is a link or cannot be
    read."""
    try:
        fd = os.open(workspace / at / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:
        return "unreadable"
    try:
        with open(fd, "rb", closefd=False) as file:
            return file.read(max(0, most)).decode("utf-8", "replace").strip()
    except OSError:
        return "unreadable"
    finally:
        os.close(fd)
