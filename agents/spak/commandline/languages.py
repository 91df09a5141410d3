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

from spak.commandline import environment, interpreters, lists, table, walkers
from spak.commandline.interpret import apply, parse
from spak.commandline.judge import Judge
from spak.commandline.patch_names import is_patch, patched
from spak.commandline.table import Grammar
from spak.commandline.words import Arg, is_number, texts_of, words
from spak.shell import Command

Reader = Callable[["Judge", Grammar, list[Arg], Sequence[Command]], None]

_HOST = r"(?:[A-Za-z0-9_][\w.-]*@)?([A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)"
_URL = re.compile(rf"(?:ssh|git\+ssh|ssh\+git)://{_HOST}(?::\d{{1,5}})?/[\w./~+-]+\Z", re.ASCII)
_COPY = re.compile(rf"{_HOST}:([\w./~+-]*)\Z", re.ASCII)
_TARGET = re.compile(rf"{_HOST}\Z", re.ASCII)
_WITH_VALUE = re.compile(r"-[46AaCfGgKkMNnqrsTtVvXxYy]*[BbcDEeFIiJLlmOoPpQRSWw]\Z")
_CALM_COPY = re.compile(r"-[46qrpBC]+\Z")


def managed(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """`pdm run X`: a script of the project's own file where X is no program, else X."""
    inner = rest[0].text if len(rest) == 1 and not judge.fed else None
    if inner and re.match(r"[a-z][a-z0-9_:-]*\Z", inner) and table.grammar(inner) is None:
        judge.deed("builds", grammar.name)
    else:
        apply(judge, grammar, parse(judge, grammar, rest), before)


_NPX = lists.names("languages", "npx")


def npx(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """A tool that projects have among their own packages; another one would be fetched."""
    while rest and rest[0].text in ("--no-install", "--no", "--"):
        rest = rest[1:]
    tool = rest[0].text if rest else None
    if tool in _NPX:
        judge.run(rest, before)
    else:
        judge.deed("connects", f"{grammar.name} {tool}", "it may fetch and run a package")


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


def address(text: str) -> str:
    """The host of an SSH address, as git and scp write it; empty for any other text."""
    found = _URL.match(text) if "://" in text else _COPY.match(text)
    return found[1].lower() if found else ""


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


def ssh(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """`ssh` and `sftp`: the first word that could be a host is noted; nothing makes them harmless."""
    value = False
    for item in rest:
        text = item.text or ""
        found = None if value else _TARGET.match(text) or _COPY.match(text)
        if found:
            judge.connect("ssh", found[1].lower())
            break
        value = _WITH_VALUE.match(text) is not None
    judge.deed(
        "connects", grammar.name, f"{grammar.name} runs commands on another machine, which nobody judges"
    )


def scp(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """Copies from hosts into the workspace download; copies to a host are refused."""
    flags = [item for item in rest if (item.text or "-").startswith("-")]
    words = [item for item in rest if item not in flags]
    hosts = [address(item.text or "") for item in words]
    for host in filter(None, hosts):
        judge.connect("ssh", host)
    fetches = len(words) > 1 and all(hosts[:-1]) and not any(":" in text for text in words[-1].texts)
    if not fetches or not all(_CALM_COPY.match(item.text or "") for item in flags):
        judge.deed("connects", grammar.name, "only plain copies from another machine are understood")
        return
    judge.deed("downloads", grammar.name)
    judge.path("writes", words[-1])


def env(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """`env`: the variables that it sets, then the command that it runs."""
    at = 0
    while at < len(rest):
        text = rest[at].text or ""
        if text in ("-i", "-", "--ignore-environment"):
            at += 1
        elif text in ("-u", "--unset"):
            at += 2
        elif text.startswith("-"):
            judge.deed("unknown_option", f"env {rest[at].written}", "only -i and -u are understood")
            return
        elif re.match(r"[A-Za-z_]\w*=", text):
            key, _, value = text.partition("=")
            _sets(judge, key, [value])
            at += 1
        else:
            break
    if at >= len(rest):
        judge.deed("shows_environment", "env", "it prints the environment")
        return
    judge.deed("computes", "env")
    judge.run(rest[at:], before)


def _sets(judge: Judge, key: str, values: Sequence[str]) -> bool:
    why = environment.trouble(key, values)
    if why:
        judge.deed("sets_environment", key, why)
    judge.paths_of(key, values)
    return why is None


def export(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """`export`: the variables that later commands see."""
    for text in texts_of(rest):
        key, sign, value = text.partition("=")
        known = judge.known.get(key)
        if not re.match(r"[A-Za-z_]\w*\Z", key):
            judge.deed("sets_environment", f"export {key}", "not a plain assignment")
        elif _sets(judge, key, [value] if sign or known is None else known.texts):
            judge.deed("computes", f"export {key}")
    if not rest:
        judge.deed("shows_environment", "export", "it prints the environment")


def unset(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """Takes a variable away, as env -u does; not one that programs go by."""
    judge.deed("computes", "unset")
    for text in texts_of(rest):
        plain = re.match(r"[A-Za-z_]\w*\Z", text)
        why = environment.trouble(text, []) if plain else "not a plain name"
        if why:
            judge.deed("sets_environment", f"unset {text}", why)


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
    "shell": interpreters.shell,
    "python": interpreters.python,
    "timed": interpreters.timed,
    "profiled": interpreters.profiled,
    "node": interpreters.node,
    "perl": interpreters.perl,
    "managed": managed,
    "npx": npx,
    "patch": patch,
    "applied": applied,
    "fetch": fetch,
    "ssh": ssh,
    "scp": scp,
    "env": env,
    "export": export,
    "unset": unset,
    "ln": ln,
    "test": test,
}
"""Readers by the name that a table gives as `code`."""
