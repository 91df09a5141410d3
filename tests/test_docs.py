"""The docs are tests: codes, commands, settings and targets are named there, and links lead somewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

import spak
from spak.cli import spak as command

ROOT = Path(__file__).resolve().parents[1]
SOURCE = sorted(
    path
    for folder in ("agents/spak", "platform/spakweb")
    for path in (ROOT / folder).rglob("*.py")
    if folder == "agents/spak" or path.parent.name in ("folders", "sources", "telemetry")
)
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("bench/*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "specs").rglob("*.md"),
    ]
)
ERRORS = (ROOT / "docs" / "errors.md").read_text()
CLI = (ROOT / "docs" / "cli.md").read_text()
PLATFORM_CODES = [
    code
    for line in re.findall(
        r"^- (`web\.\w+`(?:, `web\.\w+`)*)", (ROOT / "docs/platform.md").read_text(), re.MULTILINE
    )
    for code in re.findall(r"web\.\w+", line)
]
"""The codes that an entry of docs/platform.md is about."""

FAMILIES = frozenset(re.findall(r"^- `([a-z]+)\.", ERRORS, re.MULTILINE))
NOT_CODES = frozenset({"llm.query", "llm.plan", "tool.run", "run.start", "run.view", "run.approve",
                       "run.branch", "telemetry.send", "telemetry.sweep"})  # fmt: skip
TAIL = "\0"
CODE = re.compile(r"[a-z]+\.[a-z][a-z0-9_]*")


def page_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


# ---- error codes ---------------------------------------------------------------------------------------


def strings(tree: ast.AST, inside: bool = False) -> Iterator[str]:
    """Every text in the source; one with a variable tail (`f"measure.{x}"`) ends in TAIL. The texts around
    variables count where `inside` says so."""
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) and not inside]
    parts = {id(part) for node in joined for part in node.values}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.JoinedStr)
            and len(node.values) == 2
            and isinstance(node.values[0], ast.Constant)
        ):
            yield f"{node.values[0].value}{TAIL}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def raised(tree: ast.AST, *names: str) -> Iterator[str]:
    """The first argument of whatever is called ...Error, or one of `names`, where it is a code."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id.endswith(("Error", *names))
        ):
            first = node.args[0] if node.args else None
            if (
                isinstance(first, ast.Constant)
                and isinstance(first.value, str)
                and CODE.fullmatch(first.value)
            ):
                yield first.value


def refused(tree: ast.AST) -> Iterator[str]:
    """The codes of a patch's refusals, which its package writes without their family."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "refuse":
            assert isinstance(node.args[0], ast.Constant)
            yield str(node.args[0].value)


@cache
def codes_of_the_platform() -> tuple[set[str], set[str]]:
    """The codes `web.NAME` in its sources, alone or before a message, and the other codes that it raises."""
    own: set[str] = set()
    others: set[str] = set()
    for path in (ROOT / "platform/spakweb").rglob("*.py"):
        tree = ast.parse(path.read_text())
        named = re.findall(r"(?m)^web\.[a-z][a-z0-9_]*(?=$|: )", "\n".join(strings(tree, inside=True)))
        own |= set(named)
        others |= set(raised(tree, "Refused"))
    return own, {code for code in others if not code.startswith("web.")}


def codes_in_source() -> tuple[set[str], set[str]]:
    """Whole codes, and beginnings of those whose tail is a variable."""
    whole: set[str] = set()
    begun: set[str] = set()
    for path in SOURCE:
        tree = ast.parse(path.read_text())
        whole |= set(raised(tree))
        if path.parent.name == "patch":
            whole |= {f"patch.{code}" for code in refused(tree)}
        for text in strings(tree):
            if text.partition(".")[0] not in FAMILIES:
                continue
            if text.endswith(TAIL):
                begun.add(text.removesuffix(TAIL))
            elif CODE.fullmatch(text) and text not in NOT_CODES:
                whole.add(text)
    return whole, begun


def test_every_code_has_its_line_and_every_line_its_code() -> None:
    documented = set(re.findall(r"^- `([a-z]+\.\w+)`: .*\w", ERRORS, re.MULTILINE))
    whole, begun = codes_in_source()
    assert sorted(whole - documented) == [], "add these to docs/errors.md"
    covered = {code for code in documented if any(code.startswith(start) for start in begun)}
    _, others = codes_of_the_platform()
    assert sorted(documented - whole - covered - others) == [], "docs/errors.md names codes that are gone"
    unnamed = {start for start in begun if not any(code.startswith(start) for code in documented)}
    assert unnamed == set()


def test_every_code_of_the_platform_has_its_line_and_every_line_its_code() -> None:
    own, others = codes_of_the_platform()
    listed = PLATFORM_CODES
    assert sorted(own - set(listed)) == [], "add these to docs/platform.md"
    assert sorted(set(listed) - own) == [], "docs/platform.md names codes that are gone"
    documented = set(re.findall(r"^- `([a-z]+\.\w+)`: .*\w", ERRORS, re.MULTILINE))
    assert sorted(others - documented) == [], "add these to docs/errors.md"


def test_a_code_is_documented_once() -> None:
    for listed in (re.findall(r"^- `([a-z]+\.\w+)`", ERRORS, re.MULTILINE), PLATFORM_CODES):
        assert len(listed) == len(set(listed))


# ---- commands ------------------------------------------------------------------------------------------


def commands(group: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(group, click.Group):
        yield name, group
        return
    context = click.Context(group)
    if name != "spak" and len(group.get_params(context)) > 1:  # it does something without a verb
        yield name, group
    for verb in group.list_commands(context):
        found = group.get_command(context, verb)
        assert found is not None, verb
        yield from commands(found, f"{name} {verb}")


COMMANDS = dict(commands(command, "spak"))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_its_chapter_with_every_option(name: str) -> None:
    chapter = re.search(rf"^### `{name}[ `].*?(?=^##|\Z)", CLI, re.MULTILINE | re.DOTALL)
    assert chapter, f"docs/cli.md has no chapter ### `{name}`"
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Option) and not {"--help", "--json", "--runs-dir"} & set(
            parameter.opts
        ):
            assert max(parameter.opts, key=len) in chapter.group(), f"{name}: {parameter.opts}"


def test_no_chapter_is_left_of_a_command_that_is_gone() -> None:
    chapters = re.findall(r"^### `(spak [a-z]+(?:[ -][a-z]+)*)", CLI, re.MULTILINE)
    assert sorted(chapters) == sorted(COMMANDS)


def test_the_exit_codes_of_a_run_are_those_of_the_table() -> None:
    from spak.cli.common import EXIT

    for state, code in EXIT.items():
        assert re.search(rf"^\| {code} \|.*`{state}`", CLI, re.MULTILINE), (state, code)


def test_every_setting_of_the_command_is_listed() -> None:
    from spak import config

    chapter = CLI.partition("## Settings")[2]
    for table, keys in config._KNOWN.items():
        for key in keys:
            assert f"| `[{table}]` | `{key}` |" in chapter, (table, key)
    for variable in config._ENVIRONMENT:
        assert f"`{variable}`" in chapter


# ---- the rest ------------------------------------------------------------------------------------------


def test_every_make_target_is_named_in_contributing_or_readme() -> None:
    targets = re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    pages = (ROOT / "README.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    assert targets
    assert [name for name in targets if f"make {name}" not in pages] == []


def test_the_readme_names_only_commands_that_exist() -> None:
    text = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`make ([a-z]+)", text):
        assert f"\n{target}:" in makefile, target
    verbs = {name.split()[1] for name in COMMANDS}
    for verb in re.findall(r"^ {4}\$ spak ([a-z]+)|`spak ([a-z]+)", text, re.MULTILINE):
        assert "".join(verb) in verbs, verb


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_to_files_that_are_here(page: Path) -> None:
    text = re.sub(r"^(```|~~~).*?^\1$|^ {4}.*$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = (page.parent / file) if file else page
        assert there.exists(), target
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), target


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_decisions_are_numbered_and_whole() -> None:
    files = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
    numbers = [int(path.name[:4]) for path in files]
    assert numbers[0] == 1 and len(numbers) == len(set(numbers))  # one may be taken before it is written
    index = (ROOT / "docs" / "adr" / "README.md").read_text()
    for path in files:
        headings = re.findall(r"^## (.+)$", path.read_text(), re.MULTILINE)
        assert headings == ["Context", "Decision", "Alternatives", "Consequences"], path.name
        assert path.name in index


def test_every_example_is_listed() -> None:
    listed = (ROOT / "specs" / "README.md").read_text()
    for path in (ROOT / "specs" / "examples").glob("*.spak"):
        assert f"examples/{path.name}" in listed


def test_every_page_is_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    for path in (ROOT / "docs").glob("*.md"):
        assert path.name == "index.md" or f"({path.name})" in index, path.name


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_a_page_begins_with_whom_it_is_for(page: Path) -> None:
    first = page.read_text(encoding="utf-8").split("\n\n")[1]
    assert first.startswith(("For ", "Start with ")), first


def test_pages_that_the_code_names_are_here() -> None:
    named = {name for path in SOURCE for name in re.findall(r"\bdocs/[a-z_/0-9-]+\.md", path.read_text())}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_tests_that_hold_a_guarantee_are_here() -> None:
    """Each row of the last table names at least one, and none that is gone."""
    page = (ROOT / "docs" / "guarantees.md").read_text().partition("## Which tests hold it")[2]
    rows = [line for line in page.splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) > 35
    _tests_are_here(rows)


def test_each_of_the_22_faults_names_its_tests() -> None:
    page = (ROOT / "docs" / "faults.md").read_text()
    rows = [line for line in page.splitlines() if re.match(r"\| \d", line)]
    assert [int(row.split("|")[1]) for row in rows] == list(range(1, 23))
    _tests_are_here(rows)


def _tests_are_here(rows: list[str]) -> None:
    for row in rows:
        places = re.findall(r"`([a-z_/]+\.py)`: ((?:`test_\w+`(?:, )?)+)", row)
        assert places, row
        for place, names in places:
            text = (ROOT / "tests" / place).read_text()
            for name in re.findall(r"`(test_\w+)`", names):
                assert f"def {name}(" in text, (place, name)


def test_the_changelog_knows_this_version() -> None:
    assert f"## {spak.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_versioning_names_the_numbers_in_the_code() -> None:
    from spak import records
    from spak.program.semantics import SEMANTICS

    text = (ROOT / "VERSIONING.md").read_text()
    assert f"| kernel semantics | {SEMANTICS} |" in text
    assert f"| record format | {records.FORMAT} |" in text


def chapter(page: str, name: str) -> str:
    """The text under the heading of a tool or validator; empty where there is none."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.search(rf"^## `?{re.escape(name)}`?$(.*?)(?=^## |\Z)", text, re.M | re.S)
    return found[1] if found else ""


def test_every_validator_has_its_row_in_the_first_table() -> None:
    from spak.validators import VALIDATORS

    first = (ROOT / "docs/validators.md").read_text(encoding="utf-8").partition("\n## ")[0]
    assert [name for name in VALIDATORS if f"\n| `{name}` | " not in first] == []


def test_every_tool_and_validator_has_a_chapter_with_its_options() -> None:
    from spak import config

    known = config.catalog()
    entries = [("tools.md", item) for item in known.tools.values()]
    entries += [("validators.md", item) for item in known.validators.values()]
    missing = [
        f"{page}: {entry.name} {option}"
        for page, entry in entries
        for option in ("", *entry.schema.get("properties", {}))
        if f"`{option}`" not in chapter(page, entry.name) and (option or not chapter(page, entry.name))
    ]
    assert missing == []
