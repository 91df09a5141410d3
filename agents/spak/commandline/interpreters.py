"""Code that a program is given as a word: a command line, a text of Python, the name of a module.

Each function takes the Judge, the program's table, the word and the other words of the command; what the
words of the interpreters themselves mean is in their tables.
"""

from __future__ import annotations

import posixpath
import re
import sys

from spak.commandline import flow, kinds, lists, pythontext, table
from spak.commandline.interpret import interpret
from spak.commandline.judge import Judge, Parsed
from spak.commandline.table import Grammar, Kind
from spak.commandline.words import Arg, texts_of
from spak.errors import UserError
from spak.shell import parse as parse_line


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
    if found.background or any(command.operator == "&" for command in found.every()):
        judge.deed("background", "&", "a command that goes on after the line")
    known, judge.known = judge.known, {}
    flow.inside(judge, found)
    judge.known = known


_PROBES = lists.names("interpreters", "probes")
_RUN_AS_PROGRAMS = lists.names("interpreters", "run_as_programs")
_PROGRAMS = {"pre_commit": "pre-commit", "sphinx": "sphinx-build"}
"""Programs that are not called as their module is."""
_REACHING = lists.names("interpreters", "reaching")
"""Programs of others that run what they are given, listen, or reach other machines."""
_MODULES = lists.names("interpreters", "modules")


def python(judge: Judge, grammar: Grammar, item: Arg, parsed: Parsed) -> None:
    """A text of Python, after those of `-s` (timeit)."""
    _looks_in(judge, "")
    code = None if item.text is None else "\n".join([*texts_of(parsed.values("-s")), item.text])
    read = pythontext.understood(code) if code is not None else pythontext.Text("code that is not known")
    own = all(_of_project(judge, name) for name in read.calls)
    why = read.why or ("" if own else "python code that calls a module which is not the project's")
    judge.deed("executes" if why else "builds", f"{grammar.name} -c", why)
    for name in read.opens:
        judge.path("reads", Arg(name, (name,)))


def file(judge: Judge, grammar: Grammar, item: Arg, parsed: Parsed) -> None:
    """A file of Python, or the text that the line gives as its input."""
    if item.text is None:
        judge.deed("executes", grammar.name, "a file that is not written out")
    elif item.text == "-" and judge.body is not None:
        python(judge, grammar, Arg("-", (judge.body,)), parsed)
    else:
        _looks_in(judge, posixpath.dirname(item.text))
        kinds.take(judge, grammar, Kind("program"), item, parsed)


def _looks_in(judge: Judge, below: str) -> None:
    """Notes the folder in which a python looks for modules first."""
    judge.imports.update((judge.index, posixpath.join(folder, below)) for folder in judge.folders)


def _of_project(judge: Judge, name: str) -> bool:
    """Whether the module lies in the folder of the line, or in its `src`; noted as run."""
    path = name.replace(".", "/")
    for folder in dict.fromkeys((*judge.folders, "src")):
        for form in (f"{path}.py", f"{path}/__init__.py"):
            if judge.world.look(posixpath.join(folder, form)).kind == "file":
                judge.use("runs", form if folder in judge.folders else posixpath.join(folder, form))
                return True
    return False


def module(judge: Judge, grammar: Grammar, item: Arg, parsed: Parsed) -> None:
    """`python -m MODULE`."""
    name, rest = item.text, parsed.after
    _looks_in(judge, "")
    if name is None or not re.match(r"[A-Za-z_][\w.]*\Z", name):
        judge.deed("executes", f"{grammar.name} -m", "a module that is not written out")
        return
    if judge.only_asks(rest) and name not in ("asyncio", "code", "idlelib"):
        judge.deed("computes", f"python -m {name}")
    elif name in _RUN_AS_PROGRAMS:
        program = _PROGRAMS.get(name, name)
        judge.run([Arg(program, (program,)), *rest])
    elif (listed := table.grammar(f"python-m-{name}")) is not None:
        interpret(judge, listed, rest)
    elif name.partition(".")[0] in _REACHING | _RUN_AS_PROGRAMS and not _of_project(judge, name):
        judge.deed("executes", f"python -m {name}", "a program that runs code, listens or connects")
    elif name.partition(".")[0] in sys.stdlib_module_names and name not in _MODULES:
        judge.deed("executes", f"python -m {name}", "a module that runs code, listens or connects")
    else:
        judge.deed("builds", f"python -m {name}")
        judge.plain_paths(rest)
        if name in ("py_compile", "compileall") and any(item.text == "-" for item in rest):
            judge.deed("unknown_word", f"python -m {name}", "names of files from the input")


CODE = {"line": line, "python": python, "module": module, "pyfile": file}
"""By the kind of the word: code that a program is given."""
