"""Which files are secret: by the name, by that of a folder above, or by what is in them.

Takes paths from the workspace, and the bytes at the beginning of a file; the list is data
(`confidential.toml`). It reads no file (spak.secrets.files does).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from spak.secrets import contents
from spak.secrets.lists import LISTS

_BEFORE = LISTS.pattern("names", "copy_before").pattern
_AFTER = LISTS.pattern("names", "copy_after").pattern


def _with_copies(pattern: str, before: str = "") -> str:
    """The pattern for one name of a path, and for what programs and people call a second copy: `.env~`,
    `id_rsa.bak`. No two parts of a copy's ending begin alike, so that no name takes long."""
    return rf"{before}(?:{pattern})(?:{_AFTER})*".replace(".*", "[^/]*")


def _folders(names: frozenset[str]) -> str:
    return _with_copies("|".join(map(re.escape, sorted(names))))


_CODE = _with_copies(LISTS.pattern("names", "code").pattern)
"""Code and pages: no file of secrets, though a folder or a name says `secrets`."""
_SECRET = _with_copies(LISTS.pattern("names", "secret").pattern, f"(?:{_BEFORE})?")
_SECRET_BELOW = _with_copies(LISTS.pattern("names", "secret_below").pattern)
"""Files that are secret in the folder of a certain name only: `.m2/settings.xml`."""
_SECRET_FOLDERS = _folders(LISTS.names("names", "secret_folders"))
_KEPT = _folders(LISTS.names("names", "kept_folders"))
"""Folders whose files are secret unless they are code: a package may be called so."""


def _fits(pattern: str) -> Callable[[str], bool]:
    found = re.compile(pattern, re.IGNORECASE)
    return lambda name: found.fullmatch(name) is not None


secret_name = lru_cache(1 << 16)(_fits(rf"(?!(?:{_CODE})\Z){_SECRET}"))
"""Whether a file of that name is one of secrets. The one list: launchers mask by it too."""
secret_folder = _fits(_SECRET_FOLDERS)
"""Whether all that lies in a folder of that name is secret."""
keeps_secrets = _fits(_KEPT)
"""Whether what lies in a folder of that name is secret but for code."""
is_code = _fits(_CODE)
"""Whether the name is one of code or of a page, which no folder makes a secret."""
may_hold = lru_cache(1 << 16)(
    _fits(rf"(?!(?:{_CODE}|{LISTS.pattern('contents', 'no_contents').pattern})\Z).*")
)
"""Whether a file of that name is one of secrets where its contents say so (spak.secrets.contents)."""
telling = lru_cache(1 << 16)(_fits(LISTS.pattern("contents", "telling").pattern))
"""Whether a name promises a secret."""
NO_SECRETS_BELOW = LISTS.names("contents", "no_secrets_below")
"""Folders below which contents make no file one of secrets."""
may_be_public = _fits(_with_copies(r".*\.pem"))
"""Whether a file of that name holds no secret where it has only certificates or public keys."""
_is_secret_below = _fits(_SECRET_BELOW)


def secret_below(folder: str, name: str) -> bool:
    """Whether a file of that name is one of secrets because it lies right below a folder of that name."""
    return _is_secret_below(f"{folder}/{name}")


def of_git(name: str) -> bool:
    """Whether a name is git's folder, also as a careless file system would have it."""
    return name.casefold().rstrip(". ") in (".git", "git~1")


def secret(path: str) -> bool:
    """True for a file that holds secrets, by its name or by that of a folder above it."""
    *folders, name = [part for part in path.split("/") if part not in ("", ".")] or [""]
    return (
        secret_name(name)
        or secret_below("/".join(folders[-1:]), name)
        or any(map(secret_folder, (*folders, name)))
        or (any(map(keeps_secrets, folders)) and not is_code(name))
    )


def may_hold_at(path: str) -> bool:
    """Whether contents make a file at that path one of secrets."""
    *folders, name = path.split("/")
    return may_hold(name) and NO_SECRETS_BELOW.isdisjoint(folders)


def finds(path: str, data: bytes) -> frozenset[str]:
    """The secrets in the beginning of a file, more of them where its name promises one."""
    return contents.found_in(data, telling(path.rpartition("/")[2]))
