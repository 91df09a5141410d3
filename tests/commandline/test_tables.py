"""The tables that ship can be read, and a wrong one is named."""

from __future__ import annotations

import pytest

from spak.commandline import table
from spak.commandline.check import problems

FILES = sorted(table.FOLDER.glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_shipped_table_is_in_order(file) -> None:  # type: ignore[no-untyped-def]
    assert problems(file.read_text()) == []


@pytest.mark.parametrize("name", table.programs())
def test_each_program_has_a_grammar(name: str) -> None:
    assert table.grammar(name) is not None


def test_no_program_stands_in_two_tables() -> None:
    heads = [head[1] for file in FILES for head in table._HEAD.finditer(file.read_text())]
    names = [
        name for file in FILES for found in table._NAMES.findall(file.read_text()) for name in found.split()
    ]
    assert len(set(heads + names)) == len(heads + names)


WRONG = {
    "": "no `version = 1` at the top",
    "version = 1\n[a]\nflag = '-x'\n": "a: flag is no part of a table",
    "version = 1\n[a]\n[a.options]\n'-x' = 'read'\n": "a: read is no kind",
    "version = 1\n[a]\ndoes = 'hums'\n": "a: hums is no deed",
    "version = 1\n[a]\n[a.options]\n'x' = 'reads'\n": "a: x is no spelling of an option",
    "version = 1\n[a]\n[[a.when]]\nany = '-z'\n": "a: `when` names -z, which is no option of it",
    "version = 1\n[a]\noperands = ['match [']\n": "a: [: unterminated character set at position 0",
    "version = 1\n[a]\nneeds = '-f'\n": "a: -f is no option of it",
    "version = 1\n[a\n": "no TOML",
    "version = 1\n[a]\nstyle = 'x'\n": "a: style x is none of single, go, words",
    "version = 1\na = 1\n": "a is no section",
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: WRONG[text])
def test_what_is_wrong_with_a_table_is_named(text: str) -> None:
    assert problems(text)[0].startswith(WRONG[text])


def test_the_first_record_of_a_run_names_the_tables() -> None:
    from spak.lang.catalog import Catalog
    from spak.runner.genesis import genesis

    made = genesis("", Catalog({}), {}, "", 0, {})
    assert made["rules"]["commands"] == table.digest() and len(table.digest()) > 40


def test_the_lists_that_code_reads_are_part_of_the_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    before = table.digest()
    monkeypatch.setattr(table.lists, "text", lambda: "other")
    assert table.digest() != before
