"""What kind of place a path is, by its name and by what was seen there."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from spak import secret_text
from spak.commandline import lists
from spak.commandline.world import HOLDS_SECRET, Seen

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
may_hold = lru_cache(1 << 16)(_fits(rf"(?!(?:{_CODE}|{lists.pattern('places', 'no_contents').pattern})\Z).*"))
"""Whether a file of that name is one of secrets where its contents say so (spak.secret_text)."""
telling = lru_cache(1 << 16)(_fits(lists.pattern("places", "telling").pattern))
"""Whether a name promises a secret."""
NO_SECRETS_BELOW = lists.names("places", "no_secrets_below")
"""Folders below which contents make no file one of secrets."""
may_be_public = _fits(_with_copies(r".*\.pem"))
"""Whether a file of secrets of that name is none where it holds certificates or public keys alone."""
controls = _fits(lists.pattern("places", "control").pattern)
"""Whether a file of that name says what is run."""
is_data = _fits(rf"(?:{lists.pattern('places', 'data').pattern})(?s:.*)")
"""Whether a name is one of text or data, which is no program."""
_is_secret_below = _fits(_SECRET_BELOW)
_is_generated, _is_ordinary, _is_set_up, _is_for_builds, _is_known_ending = (
    _fits(lists.pattern("places", key).pattern)
    for key in ("generated", "ordinary_dots", "written_folders", "written_for_builds", "known_endings")
)
at_root = _fits(lists.pattern("places", "control_at_root").pattern)
_IMPORTED = rf"({'|'.join(lists.ordered('places', 'imported'))})(/__init__)?"
_ODD = lists.pattern("places", "odd_at_root").pattern
_is_looked_for = _fits(rf"((src|lib|scripts|tools|tests?)/)?{_IMPORTED}(\.py[cdw]?|(\.[\w-]+)?\.so)|{_ODD}")
_CONTROL_FOLDERS = lists.names("places", "control_folders")


_REPLACES = frozenset({"writes", "redirects", "deletes"})
"""Ways of use that do not show what a file held."""


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def generated(path: str) -> bool:
    """True for what a build makes again, and for what lies in a folder of such things."""
    return any(map(_is_generated, _parts(path)))


def secret_below(folder: str, name: str) -> bool:
    """Whether a file of that name is one of secrets because it lies right below a folder of that name."""
    return _is_secret_below(f"{folder}/{name}")


def of_git(name: str) -> bool:
    """Whether a name is git's folder, also as a careless file system would have it."""
    return name.casefold().rstrip(". ") in (".git", "git~1")


def secret(path: str) -> bool:
    """True for a file that holds secrets, by its name or by that of a folder above it."""
    *folders, name = _parts(path) or [""]
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
    return secret_text.found_in(data, telling(path.rpartition("/")[2]))


def place(seen: Seen, how: str, asked: str) -> str:
    """The word for a path's place: outside, refused, root, git, secret, control, hard_link, or inside."""
    if seen.place != "inside":
        return seen.place
    parts = _parts(seen.path)
    if any(map(of_git, parts)):
        return "git"
    if not parts:
        return "root"
    if seen.kind == "file" and seen.links > 1:
        return "hard_link"
    if secret(seen.path) or (how not in _REPLACES and seen.note == HOLDS_SECRET):
        return "secret"
    if says_what_is_run(parts, how):
        return "control"
    for_builds = any(map(_is_for_builds, parts[:-1])) and not is_code(parts[-1])
    if how in ("writes", "redirects") and (for_builds or in_installed(parts)):
        return "control"
    if generated(seen.path):
        return "generated"
    if how in ("writes", "redirects") and _is_odd(parts, how):
        return "control"
    return "inside"


def says_what_is_run(parts: Sequence[str], how: str) -> bool:
    """Whether a file with these parts of a path says what is run, wherever its folder is one of builds."""
    hidden = any(map(_of_settings, parts[:-1] if how == "deletes" else parts))
    known = hidden or not _CONTROL_FOLDERS.isdisjoint(map(str.casefold, parts)) or controls(parts[-1])
    return known or any(fits("/".join(parts)) for fits in (at_root, _is_looked_for))


def in_installed(parts: Sequence[str]) -> bool:
    """Whether a file lies in a folder that holds programs of others."""
    return any(map(_is_set_up, parts[:-1]))


def _is_odd(parts: Sequence[str], how: str) -> bool:
    """Whether a name ends as neither data nor code does, or as settings do and has no usual name of data; but
    among data for tests."""
    ending = re.search(r"\w\.([A-Za-z][\w-]*)\Z", parts[-1])
    known = how != "redirects" or parts[-1][0] == "." if ending is None else _is_known_ending(ending[1])
    return (not known or at_root(parts[-1])) and _OF_DATA.isdisjoint(parts[:-1])


_OF_DATA = frozenset({"data", "docs", "examples", "fixtures", "samples", "test", "testdata", "tests"})


def _of_settings(name: str) -> bool:
    """Whether a name begins with a dot and is none of those that say nothing of what is run."""
    return re.match(r"\.[^.]", name) is not None and not (_is_ordinary(name) or _is_generated(name))
