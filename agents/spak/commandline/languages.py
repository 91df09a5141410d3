"""Programs whose words are more than options and operands: package managers, git over SSH, a shell's own.

Each reader takes the Judge, the program's table, the words after its name and the commands before it in the
pipeline. It sorts them by the table as far as that goes. `READERS` names all readers.

Of programs that reach another machine by SSH, `ssh` and `sftp` run what nobody here can judge, and a copy to
another machine carries data out: these stay refused. What only fetches (a clone, `git fetch` and `git
ls-remote` with an address, `scp` from a host) is the deed `downloads`. Of all of them the host and the
protocol are noted: which ones are allowed is decided by specs/policy/network.mg. Source: seed 004 section 5.2
(network_policy_schema).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from spak.commandline import table, walkers
from spak.commandline.interpret import apply, parse
from spak.commandline.judge import Judge
from spak.commandline.kinds import address
from spak.commandline.patch_names import is_patch, patched
from spak.commandline.table import Grammar
from spak.commandline.words import Arg, is_number, words
from spak.shell import Command

Reader = Callable[["Judge", Grammar, list[Arg], Sequence[Command]], None]


def managed(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """`pdm run X`: a script of the project's own file where X is no program, else X."""
    inner = rest[0].text if len(rest) == 1 and not judge.fed else None
    if inner and re.match(r"[a-z][a-z0-9_:-]*\Z", inner) and table.grammar(inner) is None:
        judge.deed("builds", grammar.name)
    else:
        apply(judge, grammar, parse(judge, grammar, rest), before)


def patch(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """The patch of an option, of the second word, or of its input; what it changes is looked at."""
    parsed = parse(judge, grammar, rest)
    apply(judge, grammar, parsed, before)
    if len(parsed.operands) > 1 or parsed.values("-i"):
        return
    _patched(judge, parsed.values("-d") or [Arg(".", (".",))], before)


def applied(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """`git apply` and `git am`: the patches of their words, or of the input."""
    parsed = parse(judge, grammar, rest)
    apply(judge, grammar, parsed, before)
    goes_on = parsed.names() & {"--abort", "--quit", "--continue", "--skip", "--show-current-patch"}
    if not goes_on and all(item.text == "-" for item in parsed.operands):
        _patched(judge, [Arg(".", (".",))], before)


def _patched(judge: Judge, targets: list[Arg], before: Sequence[Command]) -> None:
    """The patch on the input is looked at."""
    if judge.stdin is not None:
        judge.unpacks(judge.stdin, targets)
    elif (
        judge.body is not None and is_patch(judge.body) and judge.writes_members(patched(judge.body), targets)
    ):
        return
    elif not before or not before[-1].words or before[-1].words[0].value != "git":
        judge.deed("not_looked_at", "patch", "a patch that cannot be looked at before the line runs")


def fetch(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """`git clone`, `fetch` and `ls-remote`: by SSH from an address, else from the project's own remote."""
    parsed = parse(judge, grammar, rest)
    words = parsed.operands
    host = address(words[0].text or "") if words else ""
    if not host:
        if grammar.does == "downloads":
            judge.deed("connects", grammar.name, "another machine, by no address that is understood")
        else:
            apply(judge, grammar, parsed, before)
        return
    judge.connect("ssh", host)
    clones = grammar.name == "git clone"
    branches = all(re.match(r"[A-Za-z][\w./-]*\Z", item.text or "") for item in words[1:])
    if not parsed.fits or (len(words) > 2 if clones else not branches):
        judge.deed("connects", grammar.name, "another machine, with more than a plain fetch")
        return
    judge.deed("downloads", grammar.name)
    for item in words[1:] if clones else ():
        judge.path("writes", item)


def ln(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """A symbolic link to a place in the workspace."""
    parsed = parse(judge, grammar, rest)
    names, given = parsed.operands, parsed.names()
    if "-s" not in given:
        judge.deed("refused_flag", "ln", "a hard link is a second way into a file")
        return
    judge.deed("writes", "ln")
    *targets, link = names if len(names) > 1 else [*names, Arg(".", (".",))]
    judge.path("writes", link)
    for item in targets:
        if not link.texts or not item.texts:
            judge.path("reads", item)
        for place in link.texts:
            judge.links(place, *(posixpath.join(place, posixpath.basename(text)) for text in item.texts))
            for folder in [""] if "-r" in given else _folders(judge, place):
                # a link leads on from where it lies, not from where it was made
                texts = tuple(posixpath.join(folder, text) for text in item.texts)
                judge.path("reads", replace(item, texts=texts))


def _folders(judge: Judge, place: str) -> set[str]:
    """The folders that a link may lie in: the place itself, where it is one."""
    kinds = {judge.world.look(posixpath.join(folder, place)).kind == "folder" for folder in judge.folders}
    return {place if folder else posixpath.dirname(place) for folder in kinds}


_COMPARES = words("-eq -ne -lt -le -gt -ge")


def test(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """`test` and `[[`, which compute; a file that they ask about is read."""
    judge.deed("computes", grammar.name)
    for place, item in enumerate(rest):
        sides = [side for side in rest[max(place - 1, 0) : place + 2] if side != item]
        if grammar.name == "[[" and item.text in _COMPARES and not all(map(is_number, sides)):
            judge.deed("not_understood", item.written, "`[[` evaluates what is not certain to be a number")
        if item.text == "-v" and not all(
            side.text and re.match(r"\w+\Z", side.text) for side in rest[place + 1 : place + 2]
        ):
            judge.deed("not_understood", item.written, "an index would be evaluated")
        if item.texts and any(text.startswith(("/", "..")) or item.tilde for text in item.texts):
            judge.path("reads", item)
        elif "[" in item.written[1:] and any(
            sign in text for text in (item.written, *item.texts) for sign in ("$(", "`")
        ):
            judge.deed("unknown_word", item.written, "an index that a shell would evaluate")


READERS: dict[str, Reader] = {
    "find": walkers.find,
    "xargs": walkers.xargs,
    "managed": managed,
    "patch": patch,
    "applied": applied,
    "fetch": fetch,
    "ln": ln,
    "test": test,
}
"""Readers by the name that a table gives as `code`."""
