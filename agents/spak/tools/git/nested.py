"""Repositories below the top of a workspace, or laid out in it under another name: what a step did to them.

Their files are ordinary ones, but for those that say what git starts or where it works: whoever calls git in
such a folder later runs what stands there. One that was there keeps these as they were; a new one may have
the settings that `git init` and `git clone` write, and no hook. Takes the workspace after a step, the paths
that it changed and whether each was there before; gives why the step must be undone, and in which of these
repositories a ref may not be as it was (spak.tools.git.repository looks at them). It changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from spak.commandline import places
from spak.files import beneath

MAX_CONFIG = 64 << 10
_CONTROL = re.compile(
    r"config(\.worktree)?|hooks(/.*)?|info/attributes|commondir|gitdir|objects/info/(http-)?alternates"
    r"|(modules|worktrees)/.*?(config(\.worktree)?|hooks(/.*)?|info/attributes|commondir|gitdir)",
    re.S | re.I,
)
_PLAIN = re.compile(
    r"""\s*(?:[#;].*|\[(?:core|user|init|remote\ "[^"\\]*"|branch\ "[^"\\]*"|submodule)\]
    |(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|name|email
    |defaultbranch|fetch|merge|remote|active)\s*(?:=[^\\]*)?|url\s*=\s*[\w./~@:+-]*)?\s*""",
    re.X | re.I,
)
"""A line of a configuration that starts nothing."""
_REMOTE_HELPER = re.compile(r"::")
_LAID_OUT = ("HEAD", "objects", "refs")
"""What makes a folder a repository for git, whatever its name is."""
_REF = re.compile(r"(.*/)?(HEAD|packed-refs|refs/.*|reftable/.*)", re.S)
_HINT = re.compile(
    r"(^|/)(\.git[. ]*|git~1|hooks|config(\.worktree)?|attributes|commondir|gitdir|(http-)?alternates|HEAD"
    r"|packed-refs|objects|refs|reftable)(/|\Z)",
    re.I,
)


def near(touched: Iterable[str]) -> list[str]:
    """Of these paths those that can be of such a repository, by a look at their names alone: `trouble` and
    `moved` find nothing in others."""
    return [path for path in touched if _HINT.search(path)]


def trouble(workspace: Path, touched: Sequence[str], existed: Callable[[str], bool]) -> str:
    """Why what a step did to a repository that is not the workspace's own must be undone; else empty."""
    for path in near(touched):
        for name in _inner(workspace, path):
            if name == "" and (existed(path) or not _folder(workspace / path)):
                return f"{path} was changed"
            if _CONTROL.fullmatch(name) and (existed(path) or not _harmless(workspace, path, name)):
                return f"{path} was {'changed' if existed(path) else 'made'}"
            if name in _LAID_OUT and (found := _started(workspace, path.removesuffix(name))):
                return f"{path} makes {found} a file of git's"
    return ""


def moved(workspace: Path, touched: Sequence[str]) -> tuple[str, ...]:
    """The repositories below the top in which a ref may not be what it was: `sub/.git`, `store.git`."""
    found: dict[str, None] = {}
    for path in near(touched):
        for name in _inner(workspace, path):
            folder = path.removesuffix(name).rstrip("/")
            if _REF.fullmatch(name) and not name.startswith("logs/") and _folder(workspace / folder):
                found[folder] = None
    return tuple(found)


def of_repository(workspace: Path, path: str) -> bool:
    """Whether a path is a control file or a ref of such a repository: `trouble` or `moved` looks at it."""
    return any(_CONTROL.fullmatch(name) or _REF.fullmatch(name) for name in _inner(workspace, path))


def holds(workspace: Path, path: str) -> bool:
    """Whether a path lies in the working tree of a repository below the top that has a `.git` of its own."""
    return any(_folder(workspace / above / ".git") for above in list(PurePosixPath(path).parents)[:-1])


def odd_refs(names: Iterable[str]) -> str:
    """Of names in a repository one that holds refs as we do not read them: a table, a linked worktree."""
    plain = ("refs/", "logs/")
    wrong = (
        name for name in sorted(names) if not name.startswith(plain) and name not in ("HEAD", "packed-refs")
    )
    return next(filter(_REF.fullmatch, wrong), "")


def _inner(workspace: Path, path: str) -> Iterator[str]:
    """The name of the path within each repository that it is in; empty for a `.git` itself."""
    parts = path.split("/")
    for at, part in enumerate(parts):
        above = workspace.joinpath(*parts[:at])
        if places.of_git(part):
            if at and _there(above / part):  # one that is gone starts nothing
                yield "/".join(parts[at + 1 :])
            return
        below = "/".join(parts[at:])
        is_control = part in _LAID_OUT or _CONTROL.fullmatch(below)
        if is_control and all(_there(above / name) for name in _LAID_OUT):
            yield below


def _started(workspace: Path, folder: str) -> str:
    """A control file of a folder that is a repository now, if one is not harmless."""
    hooks = workspace / folder / "hooks"
    names = [f"hooks/{path.name}" for path in hooks.iterdir()] if _folder(hooks) else []
    names += [name for name in ("config", "config.worktree") if _there(workspace / folder / name)]
    wrong = (folder + name for name in names if not _harmless(workspace, folder + name, name))
    return next(wrong, "")


def _harmless(workspace: Path, path: str, name: str) -> bool:
    """Whether a new control file starts nothing and leads nowhere."""
    if _folder(workspace / path):
        return True
    if name.startswith("hooks/"):
        return name.endswith(".sample")
    if not name.endswith("config"):
        return False
    text = (beneath.content(workspace, path) or b"\\")[: MAX_CONFIG + 1].decode("utf-8", "replace")
    lines = text.splitlines()
    return len(text) <= MAX_CONFIG and all(map(_PLAIN.fullmatch, lines)) and not _REMOTE_HELPER.search(text)


def _folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _there(path: Path) -> bool:
    return path.exists() or path.is_symlink()
