"""A patch that is made from edited files gives these files again, and fits no others."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from spak.patch import PatchRefused, apply
from spak.patch.make import make

LINE = st.text(st.characters(exclude_characters="\n\0", codec="utf-8"), max_size=6)
TEXT = st.lists(st.sampled_from(["a\n", "b\n", "\n", "c\n"]) | LINE.map(lambda line: f"{line}\n"), max_size=8)
CONTENT = st.builds(lambda lines, end: ("".join(lines) + end).encode(), TEXT, LINE)
EDIT = st.tuples(st.none() | CONTENT, st.none() | CONTENT)


def applied(patch: str, files: dict[str, bytes]) -> dict[str, bytes]:
    changes = apply(patch, files.get)
    assert not isinstance(changes, PatchRefused), changes
    found = dict(files)
    for change in changes:
        found.pop(change.path, None)
        if change.after is not None:
            found[change.path] = change.after
    return found


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(["a.py", "d/b c.txt", 'q"q', "名前", "e"]), EDIT, max_size=4))
def test_what_is_made_is_what_is_applied(edits: dict[str, tuple[bytes | None, bytes | None]]) -> None:
    before = {path: old for path, (old, _) in edits.items() if old is not None}
    after = {path: new for path, (_, new) in edits.items() if new is not None}
    patch = make((path, old, new) for path, (old, new) in edits.items())
    assert bool(patch) == (before != after)
    assert not patch or applied(patch, before) == after


def test_an_empty_file_that_is_created_ends_where_the_next_file_begins() -> None:
    patch = make([("new", None, b""), ("kept", b"", b"a\n"), ("gone", b"", None)])
    assert applied(patch, {"kept": b"", "gone": b""}) == {"new": b"", "kept": b"a\n"}


def test_it_fits_nothing_else() -> None:
    patch = make([("a", b"one\ntwo\n", b"one\n2\n")])
    refused = apply(patch, {"a": b"one\ntwo\nthree\n"}.get)
    assert isinstance(refused, PatchRefused) and refused.code == "patch.hash"


def test_nothing_changed_makes_no_patch() -> None:
    assert make([("a", b"x", b"x")]) == "" == make([])
