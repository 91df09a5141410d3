"""Which laws speak about reads, by their parsed rules."""

from __future__ import annotations

import pytest

from law_kit import under
from spak.policy.law import compiled
from spak.policy.reads import about_reads

TOOLS = ("read_file", "list_files", "search_code")
SPEAK = {
    "a use": 'forbidden(A) :- uses_path(A, /reads, _, "private/x").',
    "a walk": "forbidden(A) :- uses_path(A, /walks, _, _).",
    "any use": 'forbidden(A) :- uses_path(A, _, _, P), :string:starts_with(P, "private/").',
    "a use by a variable": 'forbidden(A) :- uses_path(A, How, _, "x"), How != /edits.',
    "a tool": "forbidden(A) :- tool(A, /list_files), !approved(A).",
    "through another rule": 'private(A) :- uses_path(A, /reads, _, "x").\nforbidden(A) :- private(A).',
    "through a negation": "open(A) :- uses_path(A, /reads, /inside, _).\n"
    "forbidden(A) :- tool(A, _), !open(A).",
    "any use but by a tool": 'forbidden(A) :- uses_path(A, _, _, "x"), !tool(A, /write_file).',
    "any use after another's call": 'forbidden(A) :- uses_path(A, _, _, "x"), event(E), tool(E, /run).',
    "a table of its own": "banned(/read_file).\nforbidden(A) :- tool(A, T), banned(T).",
    "any tool but one": "forbidden(A) :- tool(A, T), T != /write_file.",
    "through a table of the shipped law": "forbidden(A) :- tool(A, T), file_tool(T, /reads).",
    "through a fold": 'Decl looked(Path, N) bound [/string, /number] descr [fold("count")].\n'
    "feed_looked(P) :- event(E), uses_path(E, /reads, _, P).\n"
    "forbidden(A) :- tool(A, _), names_path(A, P), looked(P, N), N > 3.",
}
SILENT = {
    "nothing": "",
    "a change": 'forbidden(A) :- changed(A, "private/x", _).',
    "an edit": 'forbidden(A) :- uses_path(A, /edits, _, "x").',
    "any use by a tool that writes": 'forbidden(A) :- tool(A, /write_file), uses_path(A, _, _, "x").',
    "a program": "forbidden(A) :- tool(A, /run), !approved(A).",
    "what permits": 'permitted(A) :- tool(A, /read_file), uses_path(A, /reads, /outside, "/etc/hosts").',
    "a rule on which nothing rests": 'reading(A) :- uses_path(A, /reads, _, "x").',
    "the word in a text": 'forbidden(A) :- changed(A, "reads", _).',
}


def spoken(text: str) -> list[str]:
    law = under(text)
    return [str(one.place.line) for one in about_reads(compiled(law, "", {}), law.shipped, TOOLS)]


@pytest.mark.parametrize("text", SPEAK.values(), ids=SPEAK)
def test_these_speak_about_reads(text: str) -> None:
    assert spoken(text)


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_these_do_not(text: str) -> None:
    assert spoken(text) == []


def test_only_rules_that_were_added_count() -> None:
    law = under()
    found = {one.place.file for one in about_reads(compiled(law, "", {}), (), TOOLS)}
    assert found <= set(law.shipped) and found, "the shipped law speaks about reads, and is not asked"
