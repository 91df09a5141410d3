"""The order in which the commands of a line run, and what its variables may hold when each does.

Walks the commands of a line as a shell would: what a branch, an `&&` or a pipeline sets may be set or not,
what a subshell sets is gone after it, and a loop is walked until nothing changes any more. A variable of
which something is not known is not in `known` at all, or has no texts there. Takes the judge and a line; what
single commands do is the judge's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from spak.commandline.judge import Judge
from spak.commandline.words import Known, joined
from spak.shell import Command, Line, Part, Text, Variable

MAX_TURNS = 4
"""Walks of a loop before a variable that still changes counts as not known."""

MAX_VARIABLES = 256
"""Variables of one line."""

MAX_WALKED = 4096
"""Commands walked for one line, those of loops again in each turn."""

_SETS = re.compile(r"\$\{\w+:?=")


def walk(judge: Judge, line: Line) -> None:
    """Read a line, with every way that control may take through it."""
    scoped = any("(" in command.within for command in line.commands)
    strict = all(command.operator in ("", "&&") and not command.negated for command in line.commands)
    _list(judge, line.commands, 0, len(line.commands), 0, scoped or not strict)


def inside(judge: Judge, line: Line) -> None:
    """A substitution: its own folder, the same variables."""
    judge.depth += 1
    folders, known = list(judge.folders), dict(judge.known)
    if judge.depth <= 8:
        walk(judge, line)
    else:
        judge.deed("not_understood", "$(", "substitutions nested too deeply")
    judge.folders, judge.known = folders, known
    judge.depth -= 1


def _list(judge: Judge, line: tuple[Command, ...], start: int, end: int, level: int, loose: bool) -> None:
    """The items of one list: simple commands, and compounds as wholes."""
    waiting: Known | None = None
    either = False
    for first, last in _items(line, start, end, level):
        operator = line[first].operator
        either = either or operator == "||"
        if operator not in ("&&", "||", "|", "|&") or either:
            judge.known = judge.known if waiting is None else joined(judge.known, waiting)
            waiting = None
        either = either and operator in ("&&", "||", "|", "|&")
        before = dict(judge.known)
        if last - first == 1 and len(line[first].path) == level:
            _one(judge, line, first, loose)
        else:
            _compound(judge, line, first, last, level, loose)
        if operator in ("|", "|&") or (last < end and line[last].operator in ("|", "|&")):
            judge.known = joined(before, judge.known)
        elif operator in ("&&", "||"):
            waiting = before if waiting is None else joined(waiting, before)
    judge.known = judge.known if waiting is None else joined(judge.known, waiting)


def _one(judge: Judge, line: tuple[Command, ...], place: int, loose: bool) -> None:
    command = line[place]
    judge.walked += 1
    before = dict(judge.known)
    for name in _set_by_expansion(command):
        judge.known.pop(name, None)
    kept = dict(judge.known)
    if len(command.assignments) > 1:  # each value may rest on those before
        for assignment in command.assignments:
            judge.known.pop(assignment.name, None)
    for found in command.substitutions():
        inside(judge, found.line)
    judge.known = kept
    judge.index += 1
    judge.last = judge.depth == 0 and place == len(line) - 1 and not command.path
    judge.command(command, line[:place], loose)
    if len(judge.known) > MAX_VARIABLES:
        judge.deed("not_understood", "variables", "more variables than are followed")
        judge.known = {}
    if command.assignments and command.redirections:  # one that fails prevents the assignment
        judge.known = joined(before, judge.known)


def _compound(
    judge: Judge, line: tuple[Command, ...], first: int, last: int, level: int, loose: bool
) -> None:
    kind = line[first].path[level][0]
    own = [place for place in range(first, last) if len(line[place].path) == level + 1]
    bare = [place for place in own if not line[place].assignments]
    head = [place for place in own if line[place].assignments]
    lists = [pair for pair in _items(line, first, last, level + 1) if len(line[pair[0]].path) > level + 1]
    for place in bare:  # its redirections, which are made first, and prevent it when one fails
        _one(judge, line, place, loose)
    unmade = dict(judge.known)
    _body(judge, line, head, lists, level, loose, kind)
    if bare:
        judge.known = joined(unmade, judge.known)


def _body(
    judge: Judge,
    line: tuple[Command, ...],
    head: list[int],
    lists: list[tuple[int, int]],
    level: int,
    loose: bool,
    kind: str,
) -> None:
    if kind in ("while", "until"):
        condition = line[lists[0][0]]
        if not (condition.words and condition.words[0].value == "read") and not _ends(line, lists):
            name = condition.words[0].text if condition.words else kind
            judge.deed("endless", name, "a loop whose end is not known")
    if kind in ("while", "until", "for"):
        judge.loops += 1
        _loop(judge, line, head, lists, level, loose)
        judge.loops -= 1
        if not judge.loops:
            judge.left = None
        return
    for place in head:
        _one(judge, line, place, loose)
    start = dict(judge.known)
    if kind in ("if", "case"):
        _branches(judge, line, lists, level, loose)
        return
    for pair in lists:
        _list(judge, line, *pair, level + 2, loose)
    if kind == "(":
        judge.known = start


def _branches(
    judge: Judge, line: tuple[Command, ...], lists: list[tuple[int, int]], level: int, loose: bool
) -> None:
    ends: list[Known] = []
    whole = False
    start = dict(judge.known)
    for pair in lists:
        label = line[pair[0]].path[level + 1][0]
        judge.known = dict(start)
        _list(judge, line, *pair, level + 2, loose)
        if label == "if":
            start = judge.known
        else:
            ends.append(judge.known)
            whole = whole or label == "else"
    judge.known = joined(*ends, *([] if whole else [start]))


def _loop(
    judge: Judge,
    line: tuple[Command, ...],
    head: list[int],
    lists: list[tuple[int, int]],
    level: int,
    loose: bool,
) -> None:
    index, turn = judge.index, 0
    while True:
        turn += 1
        judge.index = index
        start, folders = dict(judge.known), list(judge.folders)
        for place in head:
            _one(judge, line, place, loose)
        for pair in lists:
            _list(judge, line, *pair, level + 2, loose)
        judge.known = joined(start, judge.known, judge.known if judge.left is None else judge.left)
        if turn > MAX_TURNS:
            judge.known = {name: found for name, found in judge.known.items() if start[name] == found}
        if (judge.known, judge.folders) == (start, folders):
            return
        if judge.walked > MAX_WALKED or turn > MAX_WALKED:
            judge.deed("not_understood", "loop", "loops that change too much")
            judge.known = {}
            return


def _ends(line: tuple[Command, ...], lists: list[tuple[int, int]]) -> bool:
    """True for a loop that tests a variable which its body sets, or that sleeps until a file is there."""
    (first, last), *bodies = lists
    condition = line[first]
    if last - first != 1 or not condition.words or condition.words[0].value not in ("[", "[[", "test"):
        return False
    body = [command for start, end in bodies for command in line[start:end]]
    tested = {part.name for word in condition.words for part in word.parts if isinstance(part, Variable)}
    looks = any(word.value in ("-f", "-e", "-s", "-d") for word in condition.words)
    return any(item.name in tested for command in body for item in command.assignments) or (
        looks and any(command.words and command.words[0].value == "sleep" for command in body)
    )


def _items(line: tuple[Command, ...], start: int, end: int, level: int) -> Iterator[tuple[int, int]]:
    """The places of each command of a list, and of each compound as a whole."""
    at = start
    while at < end:
        first = at
        at += 1
        inner = line[first].path[level : level + 1]
        while inner and at < end and line[at].path[level : level + 1] == inner:
            at += 1
        yield first, at


def _set_by_expansion(command: Command) -> Iterator[str]:
    """The variables that `${name:=word}` sets."""
    todo: list[Part] = [part for word in command.all_words() for part in word.parts]
    while todo:
        part = todo.pop()
        if isinstance(part, Text):
            continue
        if isinstance(part, Variable) and _SETS.match(part.text):
            yield part.name
        todo += getattr(part, "parts", ())
