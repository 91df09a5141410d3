"""Programs whose words are more than options and operands: package managers, git over SSH, a shell's own.

Each reader takes the Judge, the program's table and the words after its name. It sorts them by the table as
far as that goes. `READERS` names all readers.

Of programs that reach another machine by SSH, `ssh` and `sftp` run what nobody here can judge, and a copy to
another machine carries data out: these stay refused. What only fetches (a clone, `git fetch` and `git
ls-remote` with an address, `scp` from a host) is the deed `downloads`. Of all of them the host and the
protocol are noted: which ones are allowed is decided by specs/policy/network.mg. Source: seed 004 section 5.2
(network_policy_schema).
"""

from __future__ import annotations

import posixpath
import re

from spak.commandline import table, walkers
from spak.commandline.interpret import apply, parse
from spak.commandline.judge import Judge
from spak.commandline.kinds import address
from spak.commandline.patch_names import is_patch, patched
from spak.commandline.table import Grammar
from spak.commandline.words import HERE, Arg, is_number, texts_of, words


def managed(judge: Judge, grammar: Grammar, rest: list[Arg]) -> None:
    """`pdm run X`: a script of the project's own file where X is no program, else X."""
    inner = rest[0].text if len(rest) == 1 and not judge.fed else None
    if inner and re.match(r"[a-z][a-z0-9_:-]*\Z", inner) and table.grammar(inner) is None:
        judge.deed("builds", grammar.name)
    else:
        apply(judge, grammar, parse(judge, grammar, rest))


def patch(judge: Judge, grammar: Grammar, rest: list[Arg]) -> None:
    """The patch of an option, of the second word, or of its input; what it changes is looked at."""
    parsed = parse(judge, grammar, rest)
    apply(judge, grammar, parsed)
    if len(parsed.operands) <= 1 and not parsed.values("-i"):
        _patched(judge, parsed.values("-d"))


def applied(judge: Judge, grammar: Grammar, rest: list[Arg]) -> None:
    """`git apply` and `git am`: the patches of their words, or of the input."""
    parsed = parse(judge, grammar, rest)
    apply(judge, grammar, parsed)
    goes_on = parsed.names() & {"--abort", "--quit", "--continue", "--skip", "--show-current-patch"}
    if not goes_on and all(item.text == "-" for item in parsed.operands):
        _patched(judge, [])


def _patched(judge: Judge, targets: list[Arg]) -> None:
    """The patch on the input is looked at, which changes files below the targets."""
    targets = targets or [HERE]
    if judge.stdin is not None:
        judge.unpacks(judge.stdin, targets)
        return
    body = judge.body if judge.body is not None and is_patch(judge.body) else None
    looked = body is not None and judge.writes_members(patched(body), targets)
    of_git = judge.before and judge.before[-1].words and judge.before[-1].words[0].value == "git"
    if not looked and not of_git:
        judge.deed("not_looked_at", "patch", "a patch that cannot be looked at before the line runs")


def fetch(judge: Judge, grammar: Grammar, rest: list[Arg]) -> None:
    """`git clone`, `fetch` and `ls-remote`: by SSH from an address, else from the project's own remote."""
    parsed = parse(judge, grammar, rest)
    host = address(parsed.operands[0].text or "") if parsed.operands else ""
    if not host and grammar.does != "downloads":
        apply(judge, grammar, parsed)
        return
    if not host:
        judge.deed("connects", grammar.name, "another machine, by no address that is understood")
        return
    judge.connect("ssh", host)
    clones, more = grammar.name == "git clone", parsed.operands[1:]
    branches = all(re.match(r"[A-Za-z][\w./-]*\Z", item.text or "") for item in more)
    if not parsed.fits or (len(more) > 1 if clones else not branches):
        judge.deed("connects", grammar.name, "another machine, with more than a plain fetch")
        return
    judge.deed("downloads", grammar.name)
    for item in more if clones else ():
        judge.path("writes", item)


def ln(judge: Judge, grammar: Grammar, rest: list[Arg]) -> None:
    """A symbolic link to a place in the workspace."""
    parsed = parse(judge, grammar, rest)
    names, given = parsed.operands, parsed.names()
    if "-s" not in given:
        judge.deed("refused_flag", "ln", "a hard link is a second way into a file")
        return
    judge.deed("writes", "ln")
    *targets, link = names if len(names) > 1 else [*names, HERE]
    judge.path("writes", link)
    for item in targets:
        if not link.texts or not item.texts:
            judge.path("reads", item)
        for place in link.texts:
            judge.links(place, *(posixpath.join(place, posixpath.basename(text)) for text in item.texts))
            for folder in [""] if "-r" in given else _folders(judge, place):
                # a link leads on from where it lies, not from where it was made
                judge.path("reads", item.below(folder))


def _folders(judge: Judge, place: str) -> set[str]:
    """The folders that a link may lie in: the place itself, where it is one."""
    kinds = {judge.world.look(posixpath.join(folder, place)).kind == "folder" for folder in judge.folders}
    return {place if folder else posixpath.dirname(place) for folder in kinds}


_COMPARES = words("-eq -ne -lt -le -gt -ge")


def test(judge: Judge, grammar: Grammar, rest: list[Arg]) -> None:
    """`test` and `[[`, which compute; a file that they ask about is read."""
    judge.deed("computes", grammar.name)
    for place, item in enumerate(rest):
        sides = [side for side in rest[max(place - 1, 0) : place + 2] if side != item]
        if grammar.name == "[[" and item.text in _COMPARES and not all(map(is_number, sides)):
            judge.deed("not_understood", item.written, "`[[` evaluates what is not certain to be a number")
        if item.text == "-v" and not all(
            re.match(r"\w+\Z", text) for text in texts_of(rest[place + 1 : place + 2])
        ):
            judge.deed("not_understood", item.written, "an index would be evaluated")
        if item.texts and any(text.startswith(("/", "..")) or item.tilde for text in item.texts):
            judge.path("reads", item)
        elif "[" in item.written[1:] and any(
            re.search(r"\$\(|`", text) for text in (item.written, *item.texts)
        ):
            judge.deed("unknown_word", item.written, "an index that a shell would evaluate")


READERS = {
    reader.__name__: reader
    for reader in (walkers.find, walkers.xargs, managed, patch, applied, fetch, ln, test)
}
"""Readers by the name that a table gives as `code`."""
