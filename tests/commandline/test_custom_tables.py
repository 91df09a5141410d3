"""Tables that do not ship: what they may say, that nothing else changes, and how a run carries them."""

from __future__ import annotations

import random
import re

import pytest

from attacks_kit import attacks, ordinary
from spak.commandline import custom_tables
from spak.commandline.commands import read_line
from spak.commandline.findings import Reading
from spak.commandline.world import Eyes, Seen

EYES = Eyes(lambda path: Seen("inside", path, "file"), lambda pattern: ())
WRONG = {
    "[git]\n": ("commands.shipped", "git: git is in a table that ships"),
    "[mine]\nnames = 'other gsed'\n": ("commands.shipped", "mine: gsed is in a table that ships"),
    '["python3.15"]\n': ("commands.shipped", "of which python3.15 is a form"),
    "[gcc-13]\n": ("commands.shipped", "of which gcc-13 is a form"),
    "[Git]\n": ("commands.shipped", "of which Git is a form"),
    "[eval]\n": ("commands.shipped", "eval: eval is in a table that ships"),
    "[cd]\n": ("commands.shipped", "cd: cd is in a table that ships"),
    "[fish]\n": ("commands.shipped", "fish: fish is in a table that ships"),
    "[python-m-http]\n": ("commands.shipped", "python-m-http is a module of python"),
    '["../x"]\n': ("commands.shipped", "../x is no plain name of a program"),
    "[x]\nprints = true\n": ("commands.grants", "x: prints is only for tables that ship"),
    "[x]\nabout = 'gcc'\n": ("commands.grants", "x: about is only for tables that ship"),
    "[x]\ncode = 'test'\n": ("commands.grants", "x: code is only for tables that ship"),
    "[x]\nstops = true\n": ("commands.grants", "x: stops is only for tables that ship"),
    "[x]\n[x.verbs.y]\nprints = true\n": ("commands.grants", "x: y: prints is only for tables that ship"),
    "[x]\n[[x.when]]\nwords = 'a'\n": ("commands.grants", "x: words is only for tables that ship"),
    "[x]\ndoes = 'downloads'\n": ("commands.grants", "x: the deed downloads is only for tables that ship"),
    "[x]\nbare = 'commits'\n": ("commands.grants", "x: the deed commits is only for tables that ship"),
    "[x]\notherwise = 'computes'\n": ("commands.grants", "x: `otherwise` would permit words"),
    "[x]\nstyle = 'words'\n": ("commands.grants", "x: the style words would permit options"),
    "[x]\noperands = 'runs'\n": ("commands.grants", "what it does is `builds`"),
    "[x]\ndoes = 'reads'\noperands = 'local runs'\n": ("commands.grants", "what it does is `builds`"),
    "[x]\n[x.verbs.y]\noperands = 'program'\n": ("commands.grants", "x y: it runs files of the workspace"),
    "[x]\noperands = 'prose'\n": ("commands.grants", "x: the kind prose is only for tables that ship"),
    "[x]\noperands = 'rev* tree'\n": ("commands.grants", "x: the kind rev is only for tables that ship"),
    "[x]\noperands = 'word tracks'\n": ("commands.grants", "the kind word tracks is only for tables that"),
    "[x]\noperands = 'script ruby'\n": ("commands.grants", "script ruby is no language that is read"),
    "[x]\noperands = 'match (?=a)a'\n": ("commands.grants", "(?=a)a is no RE2 pattern"),
    f"[x]\noperands = 'match {'a' * 201}'\n": ("commands.grants", "a pattern of more than 200 characters"),
    "[x]\n[x.options]\n'--eval' = 'text'\n": ("commands.grants", "x: --eval may hand over code"),
    "[x]\n[x.options]\n'-c=' = 'match .*'\n": ("commands.grants", "x: -c may hand over code"),
    "[x]\n[x.options]\n'--pre-command' = 'word'\n": (
        "commands.grants",
        "--pre-command may hand over code",
    ),
    "[x]\nflags = '--exec'\noperands = 'text*'\n": ("commands.grants", "x: --exec may hand over code"),
    "[x]\n[x.verbs.eval]\noperands = 'text'\n": ("commands.grants", "x eval: eval may hand over code"),
    "[x]\n[y]\nnames = 'x'\n": ("commands.table", "y: x is in f too"),
    "[x]\nverbs = 3\n": ("commands.table", "x: verbs has to be a table"),
    "[x]\nwhen = 'a'\n": ("commands.table", "x: when has to be a list of tables"),
    "[x]\nwhen = [1]\n": ("commands.table", "x: when has to be a list of tables"),
    "[x]\n[[x.when]]\nany = 1\n": ("commands.table", "x: `when`: any has to be a text"),
    "[x]\ndoes = 3\n": ("commands.table", "x: does has to be a text"),
    "[x]\nresponse = 'yes'\n": ("commands.table", "x: response has to be true or false"),
    "[x]\n[x.options]\n'-a' = 3\n": ("commands.table", "x: options: -a has to be a text"),
    "[x]\n[x.verbs]\na = 1\n": ("commands.table", "x: verbs: a has to be a table"),
    "[x]\n[x.verbs.a]\nflags = [1]\n": ("commands.table", "x: a: flags has to be a text"),
    f"[x]\n[x{'.verbs.y' * 1500}]\n": ("commands.table", "x: nested too deeply"),
    "[x]\nflag = '-a'\n": ("commands.table", "x: flag is no part of a table"),
    "x" * (custom_tables.MAX_TEXT + 1): ("commands.table", "a table of more than 65536 characters"),
}


def problems(text: str) -> list[tuple[str, str]]:
    return [(item.code, item.message) for item in custom_tables.problems({"f": "version = 1\n" + text})]


def same(one: Reading, two: Reading) -> bool:
    return (one.deeds, one.uses, one.connections, one.trouble) == (
        two.deeds,
        two.uses,
        two.connections,
        two.trouble,
    )


@pytest.mark.parametrize("text", WRONG, ids=lambda text: WRONG[text][1])
def test_what_an_added_table_may_not_say_has_a_code(text: str) -> None:
    code, message = WRONG[text]
    found = problems(text)
    assert any(item[0] == code and message in item[1] for item in found), found


@pytest.mark.parametrize(
    "kind", ["line", "command", "script sed", "choice a|b", "number", "reads", r"match [A-Z]\d+"]
)
def test_an_option_for_code_may_say_what_it_takes(kind: str) -> None:
    assert problems(f"[x]\n[x.options]\n'--eval' = '{kind}'\n") == []


def test_no_more_tables_than_are_read() -> None:
    many = {str(number): "version = 1\n" for number in range(custom_tables.MAX_TEXTS + 1)}
    assert [item.message for item in custom_tables.problems(many)] == [
        f"more than {custom_tables.MAX_TEXTS} tables"
    ]


def test_what_an_added_table_does_not_list_is_denied() -> None:
    """Also its texts and forms are held to be paths, and no word is let through unknown."""
    text = (
        "version = 1\n[x]\noperands = 'text*'\n[x.options]\n'-n' = 'match [a-z./]+'\n'-w' = 'word writes'\n"
    )
    grammars = custom_tables.grammars({"f": text})

    def found(line: str) -> set[str]:
        reading = read_line(line, EYES, added=grammars)
        return {deed.kind for deed in reading.deeds} | {f"{use.how} {use.place}" for use in reading.uses}

    assert found("x --all") == {"unknown_option", "computes"}
    assert "unknown_word" in found('x "$A"') and "unknown_word" in found('x -n "$A"')
    assert "reads secret" in found("x .env") and "reads secret" in found("x -n ./.env")
    assert "writes secret" in found("x -w .env") and "unknown_value" in found("x -n A")


def words_of(lines: list[str]) -> list[str]:
    """Every word of the lines that a table could be added for."""
    found = {word for line in lines for word in re.findall(r"[\w.+-]+", line)}
    return sorted(word for word in found if word != "version" and not custom_tables._taken(word))


def runs(reading: Reading) -> set[str]:
    """The programs of a line that no table knows."""
    asks = "a version or a help text"
    return {
        deed.about.rpartition("/")[2]
        for deed in reading.deeds
        if deed.kind == "unknown_binary" or deed.why == asks
    }


def test_no_line_changes_that_does_not_run_an_added_program() -> None:
    """Every word of every line as a program that takes anything: only lines that run it differ."""
    lines = [*(line for _, line in attacks()), *ordinary()]
    names = words_of(lines)
    free = "version = 1\n" + "".join(f'["{name}"]\noperands = "text*"\n' for name in names)
    grammars = custom_tables.grammars({"f": free})
    changed = 0
    for line in lines:
        plain, with_tables = read_line(line, EYES), read_line(line, EYES, added=grammars)
        if same(plain, with_tables):
            continue
        changed += 1
        assert runs(plain) & grammars.keys(), line
    assert changed and len(names) > 1000


@pytest.mark.parametrize("seed", range(20))
def test_no_line_changes_by_tables_made_at_random(seed: int) -> None:
    chance = random.Random(seed)
    lines = chance.sample([*(line for _, line in attacks()), *ordinary()], 40)
    parts = ["operands = 'text*'", "operands = ['reads*', 'command']", "flags = '-a -b --long'"]
    parts += ["does = 'builds'", "otherwise = 'refused_flag'", "style = 'go'", "letters = true"]
    parts += ["response = true", "bare = 'reads'"]
    names = chance.sample(words_of(lines), 5)
    text = "version = 1\n"
    for name in names:
        chosen = {part.partition(" ")[0]: part for part in chance.sample(parts, 4)}
        text += f'["{name}"]\n' + "\n".join(chosen.values()) + "\n"
    assert custom_tables.problems({"f": text}) == []
    for line in lines:
        plain = read_line(line, EYES)
        if not runs(plain) & set(names):
            assert same(plain, read_line(line, EYES, added=custom_tables.grammars({"f": text}))), line
