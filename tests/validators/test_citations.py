"""The checks `cites` and `quotes`: what a digest may say, and what a document has to say for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spak.validators import citations
from spak.validators.static_checks import folder_files, judge

BEES = "# Bees\n\nThe drones gather\nno food at all.\n"
DIGEST = '# Digest\n\n- Drones eat\n  what others bring. [bees.md: "The drones gather no food"]\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs/deep").mkdir(parents=True)
    (tmp_path / "docs/bees.md").write_text(BEES)
    (tmp_path / "docs/deep/a.txt").write_bytes(b"caf\xe9 and more words")
    (tmp_path / "secret.md").write_text("The drones gather no food")
    (tmp_path / "docs/link.md").symlink_to(tmp_path / "secret.md")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "cites", "quotes"),
    [
        (DIGEST, [], []),
        ('1. Wrapped. [bees.md: "gather\n   no food at"]\n', [], []),
        ('* Deep. [deep/a.txt: "and more words"]\n', [], []),
        ("- Bare claim.\n", ["uncited_claim"], ["uncited_claim"]),
        ('- Invented. [wasps.md: "The drones gather no food"]\n', ["unknown_document"], ["misquoted"]),
        ('- Bent. [bees.md: "The drones gather much food"]\n', [], ["misquoted"]),
        ('- Thin. [bees.md: "no food"]\n', [], ["short_quote"]),
        ('- Out. [../secret.md: "The drones gather no food"]\n', ["unknown_document"], ["misquoted"]),
        ('- Linked. [link.md: "The drones gather no food"]\n', ["unknown_document"], ["misquoted"]),
        ('- Null. [a\0.md: "The drones gather no food"]\n', ["unknown_document"], ["misquoted"]),
        (f"Drones are lazy.\n{DIGEST}", ["loose_text"], []),
        ("# Nothing\n", ["too_few_claims"], []),
        ("", ["too_few_claims"], []),
        ('- Half. [bees.md: "The drones\n', ["uncited_claim"], ["uncited_claim"]),
    ],
)
def test_what_a_digest_may_say(folder: Path, text: str, cites: list[str], quotes: list[str]) -> None:
    for check, expected in (("cites", cites), ("quotes", quotes)):
        found = judge(check, {"folder": "docs"}, text.encode(), "digest.md", folder_files(folder))
        assert [item.code for item in found] == expected


def test_the_least_number_of_claims_and_of_characters(folder: Path) -> None:
    files = folder_files(folder)
    data = DIGEST.encode()
    assert judge("cites", {"folder": "docs", "min": 2}, data, "d.md", files)[0].code == "too_few_claims"
    assert judge("quotes", {"folder": "docs", "min_chars": 99}, data, "d.md", files)[0].code == "short_quote"
    assert judge("cites", {"folder": 3}, data, "d.md", files)[0].code == "bad_argument"


@given(st.text(alphabet='-* #1.[]:"ab\n\t \0é', max_size=200))
def test_reading_is_total(text: str) -> None:
    digest = citations.read(text)
    lines = text.split("\n")
    assert all(1 <= claim.line <= len(lines) for claim in digest.claims)
    assert set(digest.loose).isdisjoint(claim.line for claim in digest.claims)
