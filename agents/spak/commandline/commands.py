"""What a command line would do: every simple command in it, by the table of its program.

Takes the text of a line and the Eyes on a workspace; gives a Reading: the deeds of its commands (a kind,
what it is about, why) and the paths that it would use. It decides nothing: which kinds of deed and which
places are permitted is the policy's (specs/policy/shell.mg). What is not understood is a
deed of its own kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from spak.commandline import flow, languages, walkers
from spak.commandline.findings import Reading, compiled_and_run
from spak.commandline.interpret import interpret
from spak.commandline.judge import Judge, Programs
from spak.commandline.table import Grammar
from spak.commandline.world import Eyes as World
from spak.errors import UserError
from spak.shell import parse

PROGRAMS = Programs(interpret, languages.READERS, languages.CODE, walkers.listed)


def read_line(
    text: str,
    world: World,
    folder: str = "",
    env: Mapping[str, str] | None = None,
    added: Mapping[str, Grammar] | None = None,
) -> Reading:
    """The deeds and paths of all commands of a line that is run in a folder, with variables of the
    environment besides the usual ones; `added` are grammars of further programs (custom_tables.py)."""
    try:
        line = parse(text)
    except UserError as error:
        return Reading(trouble=(error.code, error.message))
    if not line.commands:
        return Reading(trouble=("shell.empty", "no command"))
    reading = Reading()
    judge = Judge(world, reading, replace(PROGRAMS, added=added) if added else PROGRAMS)
    judge.starts(folder, env or {})
    flow.walk(judge, line)
    judge.follows_own()
    run = {(use.path, use.index) for use in reading.uses if use.how == "runs"}
    compiled = compiled_and_run(reading, {path for path, _ in run})
    run |= {(use.path, use.index) for use in reading.uses if use.index in compiled and use.how == "reads"}
    for use in reading.uses:
        changes = use.how in ("writes", "redirects", "writes_mode", "moves")
        makes = use.index in compiled and use.how == "writes"
        forms = {use.path, _ENDS.sub("", use.path), _OF_PACKAGE.sub(".py", use.path)}
        is_run = any(_is_run(form, run, use.index) for form in forms)
        if changes and not makes and is_run:
            judge.deed("runs_what_it_writes", use.path, "a file that the same line writes is run")
    return reading


_ENDS, _OF_PACKAGE = re.compile(r"\.[cm]?[jt]sx?\Z"), re.compile(r"/__(init|main)__\.py\Z")
"""What programs add to the name of a file or folder that they run."""


def _is_run(path: str, run: set[tuple[str, int]], index: int = -1) -> bool:
    """Whether another command than that of the index runs the path itself, or a folder that it is in."""
    return any(
        by != index and (folder in (path, ".") or path.startswith(folder + "/") or fnmatchcase(path, folder))
        for folder, by in run
    )
