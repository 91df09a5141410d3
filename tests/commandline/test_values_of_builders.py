"""No option of a compiler or an archiver takes a value with a path, a list or a sign that may name a file,
but where its table says that the value is a path, which is then judged as one."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import pytest

from gate_kit import CHECKED, constitution, workspace, world
from spak.commandline import table
from spak.commandline.words import words
from spak.policy.actions import Action, World
from spak.policy.judge import judge

OUT = ("../x", "/etc/x")
VALUES = (*OUT, "@../x", "|id", "a,../x", "-o,/etc/x")
REST = {
    "gcc": "-c src/a.c",
    "tar": "-cf build/x.tar README.md",
    "zip": "build/x.zip README.md",
    "unzip": "-l build/x.zip",
    "gzip": "-k README.md",
    "strip": "build/x",
    "patch": "-p1 -i fine.patch",
    "nvcc": "-c src/k.cu",
    "rustc": "src/a.rs",
    "protoc": "src/a.proto",
    "clang-format": "src/a.c",
}
"""Words with which each program is permitted."""
PATHS = words("reads writes runs tree tree_links local packed unpacks source into paths tests")
PATTERNS = ("exclude", "include")
"""Kinds of values that are patterns of names: they choose among what is read anyway."""


@cache
def programs() -> dict[str, str]:
    """Each name of a program and the section that it stands in."""
    found = {}
    for file in ("compilers", "archives", "build"):
        for section, body in tomllib.loads((table.FOLDER / f"{file}.toml").read_text()).items():
            if isinstance(body, dict):
                found |= dict.fromkeys([section, *words(body.get("names", ""))], section)
    return found


def lines(program: str) -> list[str]:
    """Command lines with each option that takes a value, and each value, joined and apart."""
    grammar = table.grammar(program)
    assert grammar is not None
    rest, made = REST[programs()[program]], []
    for name, option in grammar.options.items():
        if not option.kinds or {kind.name for kind in option.kinds} & set(PATTERNS):
            continue
        for value in (
            OUT if any(grammar.kinds.get(kind.name, kind).name in PATHS for kind in option.kinds) else VALUES
        ):
            if name.endswith("=") or option.form:
                made.append(
                    f"{program} '{name.rstrip('=?')}{'=' if name.endswith('=') else ''}{value}' {rest}"
                )
            else:
                made.append(f"{program} {name} '{value}' {rest}")
                made.append(f"{program} '{name}{'=' if name.startswith('--') else ''}{value}' {rest}")
    return made


@pytest.fixture(scope="module")
def eyes(tmp_path_factory: pytest.TempPathFactory) -> World:
    root: Path = workspace(tmp_path_factory.mktemp("values"))
    (root / "fine.patch").write_text("--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-r\n+s\n")
    return world(root)


def allows(line: str, eyes: World) -> bool:
    return judge(constitution(), Action("shell", {"command": line}), eyes, CHECKED).decision == "allow"


@pytest.mark.parametrize("program", REST)
def test_no_value_of_an_option_leads_out(program: str, eyes: World) -> None:
    assert allows(f"{program} {REST[program]}", eyes)
    assert [line for line in lines(program) if allows(line, eyes)] == []


def test_enough_is_tried() -> None:
    assert sum(len(lines(program)) for program in REST) > 400
