"""Options that programs name in their own help: each is listed in the program's table, or denied by its name.

The cases were collected on a machine that has the programs (help_options.py); nothing is started here.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spak.commandline import table
from spak.commandline.commands import read_line
from spak.commandline.table import Grammar
from spak.commandline.world import Eyes, Seen
from spak.shell import join

CASES = [json.loads(line) for line in (Path(__file__).parent / "cases/help.jsonl").read_text().splitlines()]
EYES = Eyes(lambda path: Seen("inside", path, "file"), lambda pattern: ())
PERMITTED = {"computes", "reads", "writes", "builds", "commits", "installs_locked", "talks_to_origin"}
ASKS = ("--help", "--version", "-version", "-V")
NOT_BY_OPTIONS = {"find", "test", "expr", "env", "python3", "node", "perl", "ssh", "scp", "dd"}
"""Programs whose words are read by code, or that no option makes harmless."""


def found(name: str) -> Grammar | None:
    program, *verbs = (word for word in name.split() if not word.startswith("-"))
    grammar = table.grammar(program)
    for verb in verbs if grammar is not None else ():
        grammar = grammar.verbs.get(verb) if grammar is not None else None
    return grammar


def listed(grammar: Grammar, option: str) -> bool:
    """Whether a spelling of the table takes the option: alone, joined to a value, or as letters in a row."""
    names = {name.rstrip("?=") for name in grammar.options}
    if "-#" in names and option[1:].isdigit():
        return True
    short = not option.startswith("--") and len(option) > 2
    if grammar.style == "go" or option in names:
        return option in names or "-" + option.lstrip("-") in names
    return short and (option[:2] in names or grammar.style == "single")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["program"])
def test_an_option_is_in_the_table_or_denied(case: dict[str, object]) -> None:
    name, options = str(case["program"]), case["options"]
    assert isinstance(options, list)
    grammar = found(name)
    for option in options:
        for words in ([option], [option, "x"], [f"{option}=x"], [option, "x", "x"]):
            reading = read_line(join([*name.split(), *words]), EYES)
            passes = reading.trouble is None and {deed.kind for deed in reading.deeds} <= PERMITTED
            if passes and name.split()[0] not in NOT_BY_OPTIONS and option not in ASKS:
                assert grammar is not None and listed(grammar, option), (name, words)


def test_enough_options_are_tried() -> None:
    assert len(CASES) > 100
    assert sum(len(case["options"]) for case in CASES) > 4000
