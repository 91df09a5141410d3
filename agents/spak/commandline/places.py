"""What kind of place a path is, by its name and by what was seen there."""

from __future__ import annotations

import re

from spak.commandline import lists
from spak.commandline.world import Seen

_DATA = lists.pattern("places", "data", re.IGNORECASE)

_SECRET = lists.pattern("places", "secret", re.IGNORECASE)
_SECRET_FOLDERS = lists.names("places", "secret_folders")
_KEPT = lists.names("places", "kept_folders")
"""Folders whose files are secret unless they are code: a package may be called so."""
_CODE = lists.pattern("places", "code", re.IGNORECASE)
"""Code and pages: no file of secrets, though a folder or a name says `secrets`."""
SECRET_PATHS = (
    rf"(?:.*/)?(?:(?:{'|'.join(map(re.escape, sorted(_SECRET_FOLDERS)))})(?:/.*)?"
    rf"|(?!(?:{_CODE.pattern})\Z)(?:(?:{'|'.join(map(re.escape, sorted(_KEPT)))})/.*|{_SECRET.pattern}))"
)
"""All that `secret` calls one, and a little more: a pattern for those who have many paths to ask it of."""
_CONTROL = lists.pattern("places", "control", re.IGNORECASE)
CONTROL_NAMES = lists.ordered("places", "control_names")
"""Names of files that say what is run, written out."""
_CONTROL_FOLDERS = lists.names("places", "control_folders")
_GENERATED = lists.pattern("places", "generated", re.IGNORECASE)


def generated(path: str) -> bool:
    """True for what a build makes again, and for what lies in a folder of such things."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return any(_GENERATED.fullmatch(part) for part in parts[:-1]) or bool(
        parts and _GENERATED.fullmatch(parts[-1])
    )


def secret_name(name: str) -> bool:
    """Whether a file of that name is one of secrets. The one list: launchers mask by it too."""
    return _SECRET.fullmatch(name.casefold()) is not None and not is_code(name)


def secret_folder(name: str) -> bool:
    """Whether all that lies in a folder of that name is secret."""
    return name.casefold() in _SECRET_FOLDERS


def keeps_secrets(name: str) -> bool:
    """Whether what lies in a folder of that name is secret but for code."""
    return name.casefold() in _KEPT


def is_code(name: str) -> bool:
    """Whether the name is one of code or of a page, which no folder makes a secret."""
    return _CODE.fullmatch(name) is not None


def of_git(name: str) -> bool:
    """Whether a name is git's folder, also as a careless file system would have it."""
    return name.casefold().rstrip(". ") in (".git", "git~1")


def secret(path: str) -> bool:
    """True for a file that holds secrets, by its name or by that of a folder above it."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return bool(parts) and (
        secret_name(parts[-1])
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
    if _CONTROL_FOLDERS & set(lowered) or _CONTROL.fullmatch(parts[-1]):
        return "control"
    if generated(seen.path):
        return "generated"
    return "inside"


def is_data(name: str) -> bool:
    """Whether a name is one of text or data, which is no program."""
    return _DATA.match(name) is not None
