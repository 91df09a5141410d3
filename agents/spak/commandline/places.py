"""What kind of place a path is, by its name and by what was seen there."""

from __future__ import annotations

import re
from functools import lru_cache

from spak.commandline import lists
from spak.commandline.world import Seen

_DATA = lists.pattern("places", "data", re.IGNORECASE)

_BEFORE = lists.pattern("places", "copy_before").pattern
_AFTER = lists.pattern("places", "copy_after").pattern


def _with_copies(pattern: str, before: str = "") -> str:
    """The pattern for one name of a path, and for what programs and people call a second copy: `.env~`,
    `id_rsa.bak`. No two parts of a copy's ending begin alike, so that no name takes long."""
    return rf"{before}(?:{pattern})(?:{_AFTER})*".replace(".*", "[^/]*")


def _folders(names: frozenset[str]) -> str:
    return _with_copies("|".join(map(re.escape, sorted(names))))


_CODE = _with_copies(lists.pattern("places", "code").pattern)
"""Code and pages: no file of secrets, though a folder or a name says `secrets`."""
_SECRET = _with_copies(lists.pattern("places", "secret").pattern, f"(?:{_BEFORE})?")
_SECRET_BELOW = _with_copies(lists.pattern("places", "secret_below").pattern)
"""Files that are secret in the folder of a certain name only: `.m2/settings.xml`."""
_SECRET_FOLDERS = _folders(lists.names("places", "secret_folders"))
_KEPT = _folders(lists.names("places", "kept_folders"))
"""Folders whose files are secret unless they are code: a package may be called so."""
SECRET_PATHS = (
    rf"(?:.*/)?(?:(?:{_SECRET_FOLDERS})(?:/.*)?|{_SECRET_BELOW}"
    rf"|(?!(?:.*/)?(?:{_CODE})\Z)(?:(?:{_KEPT})/.*|{_SECRET}))"
)
"""All that `secret` calls one, and a little more: a pattern for those who have many paths to ask it of."""
_IS_CODE = re.compile(_CODE, re.IGNORECASE)
_IS_SECRET = re.compile(rf"(?!(?:{_CODE})\Z){_SECRET}", re.IGNORECASE)
_IS_SECRET_BELOW = re.compile(_SECRET_BELOW, re.IGNORECASE)
_IS_SECRET_FOLDER = re.compile(_SECRET_FOLDERS, re.IGNORECASE)
_IS_KEPT = re.compile(_KEPT, re.IGNORECASE)
_IS_PEM = re.compile(_with_copies(r".*\.pem"), re.IGNORECASE)
_CONTROL = lists.pattern("places", "control", re.IGNORECASE)
_CONTROL_FOLDERS = lists.names("places", "control_folders")
_AT_ROOT = lists.pattern("places", "control_at_root", re.IGNORECASE)
_ORDINARY_DOTS = lists.pattern("places", "ordinary_dots", re.IGNORECASE)
_GENERATED = lists.pattern("places", "generated", re.IGNORECASE)


def generated(path: str) -> bool:
    """True for what a build makes again, and for what lies in a folder of such things."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return any(_GENERATED.fullmatch(part) for part in parts[:-1]) or bool(
        parts and _GENERATED.fullmatch(parts[-1])
    )


@lru_cache(1 << 16)
def secret_name(name: str) -> bool:
    """Whether a file of that name is one of secrets. The one list: launchers mask by it too."""
    return _IS_SECRET.fullmatch(name) is not None


def secret_below(folder: str, name: str) -> bool:
    """Whether a file of that name is one of secrets because it lies right below a folder of that name."""
    return _IS_SECRET_BELOW.fullmatch(f"{folder}/{name}") is not None


def secret_folder(name: str) -> bool:
    """Whether all that lies in a folder of that name is secret."""
    return _IS_SECRET_FOLDER.fullmatch(name) is not None


def keeps_secrets(name: str) -> bool:
    """Whether what lies in a folder of that name is secret but for code."""
    return _IS_KEPT.fullmatch(name) is not None


def is_code(name: str) -> bool:
    """Whether the name is one of code or of a page, which no folder makes a secret."""
    return _IS_CODE.fullmatch(name) is not None


def may_be_public(name: str) -> bool:
    """Whether a file of secrets of that name is none where it holds certificates or public keys alone."""
    return _IS_PEM.fullmatch(name) is not None


def of_git(name: str) -> bool:
    """Whether a name is git's folder, also as a careless file system would have it."""
    return name.casefold().rstrip(". ") in (".git", "git~1")


def secret(path: str) -> bool:
    """True for a file that holds secrets, by its name or by that of a folder above it."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return bool(parts) and (
        secret_name(parts[-1])
        or secret_below("/".join(parts[-2:-1]), parts[-1])
        or any(map(secret_folder, parts))
        or (any(map(keeps_secrets, parts[:-1])) and not is_code(parts[-1]))
    )


def place(seen: Seen, how: str, asked: str) -> str:
    """The word for a path's place: outside, refused, root, git, secret, control, hard_link, or inside."""
    if seen.place != "inside":
        return seen.place
    parts = [part for part in seen.path.split("/") if part not in ("", ".")]
    lowered = [part.casefold() for part in parts]
    if any(map(of_git, parts)):
        return "git"
    if not parts:
        return "root"
    if seen.kind == "file" and seen.links > 1:
        return "hard_link"
    if secret(seen.path):
        return "secret"
    hidden = any(map(_of_settings, parts[:-1] if how == "deletes" else parts))
    if hidden or _CONTROL_FOLDERS & set(lowered) or controls(parts[-1]) or _AT_ROOT.fullmatch(seen.path):
        return "control"
    if generated(seen.path):
        return "generated"
    return "inside"


def _of_settings(name: str) -> bool:
    """Whether a name begins with a dot and is none of those that say nothing of what is run."""
    return re.match(r"\.[^.]", name) is not None and not (
        _ORDINARY_DOTS.fullmatch(name) or _GENERATED.fullmatch(name)
    )


def controls(name: str) -> bool:
    """Whether a file of that name says what is run."""
    return _CONTROL.fullmatch(name) is not None


def is_data(name: str) -> bool:
    """Whether a name is one of text or data, which is no program."""
    return _DATA.match(name) is not None
