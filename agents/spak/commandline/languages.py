"""Programs whose words are more than options and operands, and code that a program is given as a word.

Each reader takes the Judge, the program's table and the words after its name. It sorts them by the table as
far as that goes. `READERS` names them. `CODE` names the readers of a command line, a text of Python or the
name of a module: they take the Judge, the program's table, the word and the other words of the command.

Of programs that reach another machine by SSH, `ssh` and `sftp` run what nobody here can judge, and a copy to
another machine carries data out: these stay refused. What only fetches (a clone, `git fetch` and `git
ls-remote` with an address, `scp` from a host) is the deed `downloads`. Of all of them the host and the
protocol are noted: which ones are allowed is decided by specs/policy/network.mg. Source: seed 004 section 5.2
(network_policy_schema).
"""

from __future__ import annotations

import posixpath
import re

from spak.commandline import flow, lists, pythontext, table, walkers
from spak.commandline.interpret import apply, interpret, parse
from spak.commandline.judge import Judge, Parsed
from spak.commandline.kinds import address, take
from spak.commandline.patch_names import is_patch, patched
from spak.commandline.table import Grammar, Kind
from spak.commandline.words import HERE, Arg, is_number, texts_of, words
from spak.commandline.world import TOO_MANY
from spak.errors import UserError
from spak.shell import parse as parse_line

_SCRIPT = lists.pattern("languages", "scripts")


def managed(judge: Judge, grammar: Grammar, rest: list[Arg]) -> None:
    """`pdm run X`: a script of the project's own file where X is no program, else X."""
    inner = rest[0].text if len(rest) == 1 and not judge.fed else None
    if inner and _SCRIPT.fullmatch(inner) and table.grammar(inner) is None:
        judge.deed("builds", grammar.name)
    else:
        apply(judge, grammar, parse(judge, grammar, rest))


def patch(judge: Judge, grammar: Grammar, rest: list[Arg]) -> None:
    """`patch`, `git apply` and `git am`: what patches of their words, or of the input, would change is
    looked at."""
    parsed = parse(judge, grammar, rest)
    apply(judge, grammar, parsed)
    given, words = parsed.names(), parsed.operands
    if grammar.name == "patch":
        reads_input = len(words) < 2 and "-i" not in given
    else:
        reads_input = all(item.text == "-" for item in words) and not given & _GOES_ON
    if not reads_input:
        return
    if judge.stdin is not None:
        judge.unpacks(judge.stdin, [HERE])
        return
    names = patched(judge.body) if judge.body is not None and is_patch(judge.body) else [TOO_MANY]
    if not all(judge.writes_members(names, [HERE], folder) for folder in judge.folders):
        judge.deed("not_looked_at", "patch", "a patch that cannot be looked at before the line runs")


_GOES_ON = words("--abort --quit --continue --skip --show-current-patch")


def fetch(judge: Judge, grammar: Grammar, rest: list[Arg]) -> None:
    """`git clone`, `fetch` and `ls-remote`: by SSH from an address, else from the project's own remote."""
    parsed = parse(judge, grammar, rest)
    host = address(parsed.operands[0].text or "") if parsed.operands else ""
    if not host and grammar.does != "downloads":
        apply(judge, grammar, parsed)
        return
    if host:
        judge.connect("ssh", host)
    clones, more = grammar.name == "git clone", parsed.operands[1:]
    branches = all(re.match(r"[A-Za-z][\w./-]*\Z", item.text or "") for item in more)
    if not host or not parsed.fits or (len(more) > 1 if clones else not branches):
        judge.deed("connects", grammar.name, "another machine, by more than a plain fetch from an address")
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
        for place in link.texts:
            inside = (posixpath.join(place, posixpath.basename(text)) for text in item.texts)
            judge.brings(place, *inside, at="/")
            at = {judge.world.look(whole).kind == "folder" for whole in judge.wholes(place)}
            if given & {"-n", "-T"}:
                at.add(False)
            for folder in at:  # a link leads on from where it lies
                judge.path("reads", item.below(place if folder else posixpath.dirname(place)))


_COMPARES = words("-eq -ne -lt -le -gt -ge")


def test(judge: Judge, grammar: Grammar, rest: list[Arg]) -> None:
    """`test` and `[[`, which compute; a file that they ask about is read."""
    judge.deed("computes", grammar.name)
    for place, item in enumerate(rest):
        sides = [side for side in rest[max(place - 1, 0) : place + 2] if side != item]
        if grammar.name == "[[" and item.text in _COMPARES and not all(map(is_number, sides)):
            judge.deed("not_understood", item.written, "`[[` evaluates what is not certain to be a number")
        after = texts_of(rest[place + 1 : place + 2])
        if item.text == "-v" and not all(re.match(r"\w+\Z", text) for text in after):
            judge.deed("not_understood", item.written, "an index would be evaluated")
        if item.texts and any(re.match(r"/|(.*/)?\.\.(/|\Z)", text) or item.tilde for text in item.texts):
            judge.path("reads", item)


def line(judge: Judge, grammar: Grammar, item: Arg, parsed: Parsed) -> None:
    """A line that a shell is given as a word; it knows no variable of this one."""
    name = f"{grammar.name} -c"
    if item.text is None:
        judge.deed("executes", name, "code for a shell that is not known before the line runs")
        return
    try:
        found = parse_line(item.text)
    except UserError as error:
        judge.deed("not_understood", name, error.message)
        return
    if len(found.commands) == 1 and item.text.partition(" ")[0] in _PROBES:
        judge.deed("executes", name, "a shell of its own that only shows who runs it")
        return
    judge.deed("computes", name)
    known, judge.known = judge.known, {}
    flow.inside(judge, found)
    judge.known = known


_PROBES = lists.names("interpreters", "probes")
_RUN_AS_PROGRAMS = lists.names("interpreters", "run_as_programs")


def python(judge: Judge, grammar: Grammar, item: Arg, parsed: Parsed) -> None:
    """A text of Python, after those of `-s` (timeit)."""
    together = any(item is other for other in parsed.operands)
    pieces = [*parsed.values("-s"), *(parsed.operands if together else [item])]
    code = None if any(piece.text is None for piece in pieces) else "\n".join(texts_of(pieces))
    read = pythontext.understood(code) if code is not None else pythontext.Text("code that is not known")
    own = all(_of_project(judge, name) for name in sorted(read.calls))
    why = read.why or ("" if own else "python code that calls a module which is not the project's")
    judge.deed("executes" if why else "builds", f"{grammar.name} -c", why)
    judge.plain_paths([Arg(text, (text,)) for text in read.texts if read.calls])
    for name in sorted(read.imports):
        judge.use("runs", name.replace(".", "/") + ".py")
    for name in read.opens:
        judge.path("reads", Arg(name, (name,)))


def file(judge: Judge, grammar: Grammar, item: Arg, parsed: Parsed) -> None:
    """A file of Python, or the text that the line gives as its input."""
    if item.text == "-" and judge.body is not None:
        python(judge, grammar, Arg("-", (judge.body,)), parsed)
    else:
        take(judge, grammar, Kind("program"), item, parsed)


def _of_project(judge: Judge, name: str) -> bool:
    """Whether the module lies in the folder of the line, or in its `src`; noted as run."""
    path = name.replace(".", "/")
    for folder in dict.fromkeys((*judge.folders, "src")):
        for form in (f"{path}.py", f"{path}/__init__.py", f"{path}/__main__.py"):
            if judge.world.look(posixpath.join(folder, form)).kind == "file":
                judge.use("runs", form if folder in judge.folders else posixpath.join(folder, form))
                return True
    return False


def module(judge: Judge, grammar: Grammar, item: Arg, parsed: Parsed) -> None:
    """`python -m MODULE`."""
    name, rest = item.text, parsed.after
    if name is None or not re.match(r"[A-Za-z_][\w.]*\Z", name):
        judge.deed("executes", f"{grammar.name} -m", "a module that is not written out")
    elif judge.only_asks(rest) and name not in ("asyncio", "code", "idlelib"):
        judge.deed("computes", f"python -m {name}")
    elif name in _RUN_AS_PROGRAMS:
        judge.run([Arg(name, (name,)), *rest])
    elif (listed := table.grammar(f"python-m-{name}")) is not None:
        interpret(judge, listed, rest)
    elif pythontext.is_standard(name) or not _of_project(judge, name):
        judge.deed("executes", f"python -m {name}", "no module of the project, and none that is known")
    else:
        judge.deed("builds", f"python -m {name}")
        judge.plain_paths(rest)


CODE = {"line": line, "python": python, "module": module, "pyfile": file}
"""By the kind of the word: code that a program is given."""


READERS = {
    reader.__name__: reader for reader in (walkers.find, walkers.xargs, managed, patch, fetch, ln, test)
}
"""Readers by the name that a table gives as `code`."""
