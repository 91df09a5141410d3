"""What kind of place a path is, by its name and by what was seen there."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from spak.commandline.world import HOLDS_SECRET, Seen
from spak.door.classes import LISTS as DOOR
from spak.secrets import which
from spak.word_lists import WordLists

_LISTS = WordLists(Path(__file__).resolve().parent / "places.toml")
SECRET_PATHS = which.SECRET_PATHS
secret, is_code, of_git, telling = which.secret, which.is_code, which.of_git, which.telling
may_hold_at, finds = which.may_hold_at, which.finds


def _fits(pattern: str) -> Callable[[str], bool]:
    found = re.compile(pattern, re.IGNORECASE)
    return lambda name: found.fullmatch(name) is not None


controls = _fits(_LISTS.pattern("places", "control").pattern)
"""Whether a file of that name says what is run."""
is_data = _fits(rf"(?:{_LISTS.pattern('places', 'data').pattern})(?s:.*)")
"""Whether a name is one of text or data, which is no program."""
_is_generated, _is_ordinary, _is_set_up, _is_for_builds, _is_known_ending = (
    _fits(_LISTS.pattern("places", key).pattern)
    for key in ("generated", "ordinary_dots", "written_folders", "written_for_builds", "known_endings")
)
at_root = _fits(_LISTS.pattern("places", "control_at_root").pattern)
_IMPORTED = rf"({'|'.join(DOOR.ordered('shadows', 'imported'))})(/__init__)?"
_ODD = _LISTS.pattern("places", "odd_at_root").pattern
_is_looked_for = _fits(rf"((src|lib|scripts|tools|tests?)/)?{_IMPORTED}(\.py[cdw]?|(\.[\w-]+)?\.so)|{_ODD}")
_CONTROL_FOLDERS = _LISTS.names("places", "control_folders")


_REPLACES = frozenset({"writes", "redirects", "deletes"})
"""Ways of use that do not show what a file held."""


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def generated(path: str) -> bool:
    """True for what a build makes again, and for what lies in a folder of such things."""
    return any(map(_is_generated, _parts(path)))


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
