"""Interpreters: shells, python, node and perl, by a file of the project or by a text that is understood.

Each reader takes the Judge, the program's table, the words after its name and the commands before it.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Sequence
from dataclasses import replace

from spak.commandline import flow, lists, pythontext, scripts, table
from spak.commandline.interpret import apply, interpret, parse
from spak.commandline.judge import Judge
from spak.commandline.parsed import Parsed
from spak.commandline.table import Grammar
from spak.commandline.words import Arg, texts_of
from spak.errors import UserError
from spak.shell import Command
from spak.shell import parse as parse_line


def shell(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """`bash FILE` runs the project's own script; `bash -n FILE` only reads it; the text of `-c` is a line."""
    at = next((at for at, item in enumerate(rest) if re.match(r"-[eux]*c\Z", item.text or "")), -1)
    if at < 0 or any(not (item.text or "").startswith("-") for item in rest[:at]):
        if any(item.text == "-n" for item in rest[:1]) and len(rest) > 1:
            judge.deed("reads", grammar.name)
            judge.plain_paths(rest[1:])
            return
        parsed = parse(judge, grammar, rest)
        if not parsed.operands:
            judge.deed("executes", grammar.name, "code for a shell from its input")
        elif parsed.operands[0].text is None or parsed.operands[0].tilde or not parsed.operands[0].literal:
            judge.deed("executes", grammar.name, "a script that is not written out")
        else:
            apply(judge, grammar, parsed, before)
        return
    parse(judge, grammar, [*rest[:at]])
    of_text(judge, f"{grammar.name} -c", rest[at + 1].text if len(rest) > at + 1 else None)


def of_text(judge: Judge, name: str, text: str | None) -> None:
    """A line that a shell is given as a word; it knows no variable of this one."""
    if text is None:
        judge.deed("executes", name, "code for a shell that is not known before the line runs")
        return
    try:
        line = parse_line(text)
    except UserError as error:
        judge.deed("not_understood", name, error.message)
        return
    if len(line.commands) == 1 and text.partition(" ")[0] in _PROBES:
        judge.deed("executes", name, "a shell of its own that only shows who runs it")
        return
    judge.deed("computes", name)
    if line.background or any(command.operator == "&" for command in line.every()):
        judge.deed("background", "&", "a command that goes on after the line")
    known, judge.known = judge.known, {}
    flow.inside(judge, line)
    judge.known = known


_PROBES = lists.names("interpreters", "probes")
_RUN_AS_PROGRAMS = lists.names("interpreters", "run_as_programs")
_PROGRAMS = {"pre_commit": "pre-commit", "sphinx": "sphinx-build"}
"""Programs that are not called as their module is."""
_REACHING = lists.names("interpreters", "reaching")
"""Programs of others that run what they are given, listen, or reach other machines."""
_MODULES = lists.names("interpreters", "modules")


def python(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """`-c` TEXT, `-m` MODULE, or a file of the project."""
    at = 0
    while at < len(rest):
        text = rest[at].text
        if text in ("-W", "-X"):
            at += 2
        elif text is not None and text.startswith("-") and text not in ("-", "-c", "-m", "--version", "-V"):
            at += 1
        else:
            break
    options, after = rest[:at], rest[at:]
    first = after[0].text if after else None
    if first in ("--version", "-V", "--help", "-h", "-VV") or texts_of(rest) == ["-VV"]:
        judge.deed("computes", grammar.name)
        return
    if first not in ("-c", "-m"):
        if after and first is None:
            judge.deed("executes", grammar.name, "a file that is not written out")
            return
        if first in ("-", None) and judge.body is not None:
            parse(judge, grammar, options)
            _code(judge, grammar, judge.body)
            return
        if first is not None:  # its folder is where it looks for modules first
            judge.imports.update(
                (judge.index, posixpath.join(folder, posixpath.dirname(first))) for folder in judge.folders
            )
        interpret_file(judge, grammar, rest, before)
        return
    parse(judge, grammar, options)
    judge.imports.update((judge.index, folder) for folder in judge.folders)
    if first == "-m":
        module(judge, grammar, after[1:], before)
        return
    _code(judge, grammar, after[1].text if len(after) > 1 else None)


def _code(judge: Judge, grammar: Grammar, code: str | None) -> None:
    read = pythontext.understood(code) if code is not None else pythontext.Text("code that is not known")
    own = all(_of_project(judge, name) for name in read.calls)
    why = read.why or ("" if own else "python code that calls a module which is not the project's")
    judge.deed("executes" if why else "builds", f"{grammar.name} -c", why)
    for name in read.opens:
        judge.path("reads", Arg(name, (name,)))


def interpret_file(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """An interpreter that runs a file; without one it runs its input."""
    parsed = parse(judge, grammar, rest)
    if not parsed.operands:
        judge.deed("executes", grammar.name, "code from standard input")
        return
    apply(judge, grammar, parsed, before)


def _of_project(judge: Judge, name: str) -> bool:
    """Whether the module lies in the folder of the line, or in its `src`; noted as run."""
    path = name.replace(".", "/")
    for folder in dict.fromkeys((*judge.folders, "src")):
        for form in (f"{path}.py", f"{path}/__init__.py"):
            if judge.world.look(posixpath.join(folder, form)).kind == "file":
                judge.use("runs", form if folder in judge.folders else posixpath.join(folder, form))
                return True
    return False


def module(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """`python -m MODULE`."""
    name = rest[0].text if rest else None
    if name is None or not re.match(r"[A-Za-z_][\w.]*\Z", name):
        judge.deed("executes", f"{grammar.name} -m", "a module that is not written out")
        return
    rest = rest[1:]
    if judge.only_asks(rest) and name not in ("asyncio", "code", "idlelib"):
        judge.deed("computes", f"python -m {name}")
    elif name in _RUN_AS_PROGRAMS:
        program = _PROGRAMS.get(name, name)
        judge.run([Arg(program, (program,)), *rest], before)
    elif table.grammar(f"python-m-{name}") is not None:
        listed = table.grammar(f"python-m-{name}")
        assert listed is not None
        interpret(judge, listed, rest, before)
    elif name.partition(".")[0] in _REACHING | _RUN_AS_PROGRAMS and not _of_project(judge, name):
        judge.deed("executes", f"python -m {name}", "a program that runs code, listens or connects")
    elif name.partition(".")[0] in sys.stdlib_module_names and name not in _MODULES:
        judge.deed("executes", f"python -m {name}", "a module that runs code, listens or connects")
    else:
        judge.deed("builds", f"python -m {name}")
        judge.plain_paths(rest)
        if name in ("py_compile", "compileall") and any(item.text == "-" for item in rest):
            judge.deed("unknown_word", f"python -m {name}", "names of files from the input")


def timed(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """`python -m timeit`: each word is code."""
    parsed = parse(judge, grammar, rest)
    texts = [*texts_of(parsed.values("-s")), *texts_of(parsed.operands)]
    if texts:
        _code(judge, grammar, "\n".join(texts))
    else:
        judge.deed("executes", grammar.name, "no code")


def profiled(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """`python -m cProfile` and `trace`, `coverage run`: options, then what python takes."""
    at = next((at for at, item in enumerate(rest) if item.text == "-m"), len(rest))
    parsed = parse(judge, replace(grammar, code="", stops=True), rest[:at])
    inner = [*parsed.operands, *rest[at:]]
    apply(judge, grammar, Parsed(parsed.given), before)
    listed = table.grammar("python")
    assert listed is not None
    python(judge, listed, inner, before)


def node(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """Node, with a file or a text of code."""
    texts = texts_of(rest)
    if texts == ["-v"]:
        judge.deed("computes", grammar.name)
    elif texts[:1] in (["-e"], ["-p"], ["--eval"], ["--print"]) and len(texts) == 2:
        why = scripts.javascript(texts[1])
        judge.deed("executes" if why else "computes", grammar.name, why or "")
    elif texts == ["--test"]:
        judge.deed("builds", grammar.name)
    else:
        interpret_file(judge, grammar, rest, before)


def perl(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """`perl -pe 's/a/b/' FILE` and `perl -ne 'print if /x/' FILE`, or the project's own file."""
    if texts_of(rest) in (["-v"], ["-V"]):
        judge.deed("computes", "perl")
        return
    listed = table.grammar("perl-text")
    if listed is not None and any(re.match(r"-\w*e", item.text or "") for item in rest):
        interpret(judge, listed, rest, before)
    else:
        interpret_file(judge, grammar, rest, before)
