"""What is done with one file, from five hashes: a table, and what holds of all of them."""

from __future__ import annotations

from itertools import product

import pytest

from spakweb.work.folders.plan import Act, act


@pytest.mark.parametrize(
    ("now", "there", "base", "seen", "head", "expected"),
    [
        ("a", "a", "a", "a", "a", Act.SAME),
        ("b", "a", "a", "a", "b", Act.SAME),  # our own commit, or the same change on both sides
        ("b", "a", "a", "a", "a", Act.TAKE),
        ("a", "a", "a", "a", "b", Act.GIVE),
        ("b", "a", "a", "a", "c", Act.BOTH),
        ("b", "b", "a", "a", "a", Act.LEFT),  # a patch waits, or was closed
        ("b", "b", "a", "a", "c", Act.GIVE),  # and a version came afterwards
        ("c", "b", "a", "d", "d", Act.BOTH),  # the file changed once more; they never agreed since
        ("c", "b", "a", "a", "a", Act.TAKE),
        ("a", "b", "a", "d", "d", Act.BOTH),  # the file is again what both had
        ("b", "a", "", "a", "a", Act.BOTH),  # they never had one text
        (None, "a", "a", "a", "a", Act.GONE),
        (None, "a", "a", "a", "b", Act.GONE),
        (None, "", "a", "a", "b", Act.ABSENT),
        (None, "", "", "", "a", Act.GIVE),
        ("a", "", "a", "b", "a", Act.SAME),  # it is there again
        ("c", "", "a", "a", "a", Act.TAKE),
    ],
)
def test_the_table(now: str | None, there: str, base: str, seen: str, head: str, expected: Act) -> None:
    assert act(now, there, base, seen, head) == expected


def test_nothing_is_written_over() -> None:
    """A text comes in by itself only over the one that both had; one goes out only over a file that somebody
    has looked at, or where none is."""
    texts = ("a", "b", "c")
    for now, there, base, seen in product((None, *texts), ("", *texts), ("", *texts), ("", *texts)):
        for head in texts:
            found = act(now, there, base, seen, head)
            assert (found == Act.SAME) == (now == head)
            if found == Act.TAKE:
                assert head == base and now is not None
            if found == Act.GIVE:
                assert now == there or (now is None and not there and not base)


def test_after_our_own_commit_there_is_nothing_to_do() -> None:
    for there, base, seen in product(("", "a", "b"), repeat=3):
        assert act("b", there, base, seen, "b") == Act.SAME
        assert act("b", "b", "b", "b", "b") == Act.SAME
