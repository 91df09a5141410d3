"""The order in which the commands of a line run, and what its variables may hold when each does.

Walks the commands of a line as a shell would: what a branch, an `&&` or a pipeline sets may be set or not,
what a subshell sets is gone after it, and a loop is walked until nothing changes any more. A variable of
which something is not known is not in `known` at all, or has no texts there. Takes the judge and a line; what
single commands do is the judge's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from spak.commandline.judge import Judge
from spak.commandline.words import Known, joined, variables
from spak.shell import Command, Line, Variable

MAX_TURNS = 4
"""Walks of a loop before a variable that still changes counts as not known."""

MAX_VARIABLES = 256
"""Variables of one line."""

MAX_WALKED = 4096
"""Commands walked for one line, those of loops again in each turn."""

Items = Sequence[int]
Pairs = Sequence[tuple[int, int]]
"""The places of lists, each from the first command to before the last."""

_SETS = re.compile(r"\$\{\w+:?=")


def walk(judge: Judge, line: Line) -> None:
    """Read a line, with every way that control may take through it."""
    scoped = any("(" in command.within for command in line.commands)
    strict = all(command.operator in ("", "&&") and not command.negated for command in line.commands)
    _Walk(judge, line.commands, scoped or not strict).list(0, len(line.commands), 0)
    if line.background or any(command.operator == "&" for command in line.commands):
        judge.deed("background", "&", "a command that goes on after the line")


def inside(judge: Judge, line: Line) -> None:
    """A substitution: its own folder, the same variables."""
    judge.depth += 1
    folders, known, before, loose = [*judge.folders], {**judge.known}, judge.before, judge.loose
    if judge.depth <= 8:
        walk(judge, line)
    else:
        judge.deed("not_understood", "$(", "substitutions nested too deeply")
    judge.folders, judge.known, judge.before, judge.loose = folders, known, before, loose
    judge.depth -= 1


@dataclass(frozen=True, slots=True)
class _Walk:
    """One pass over the commands of a line; `level` is how deep in compounds a list is."""

    judge: Judge
    line: tuple[Command, ...]
    loose: bool
    """Whether a change of folder may or may not have happened for what comes after."""
    left: list[Known] = field(default_factory=list)
    """What was known where a loop was left or begun again early."""

    def list(self, start: int, end: int, level: int) -> None:
        """The items of one list: simple commands, and compounds as wholes."""
        judge, waiting, either = self.judge, list[Known](), False
        for first, last in _items(self.line, start, end, level):
            operator = self.line[first].operator
            either = either or operator == "||"
            if operator not in ("&&", "||", "|", "|&") or either:
                judge.known = joined(judge.known, *waiting)
                waiting = []
            either = either and operator in ("&&", "||", "|", "|&")
            before = dict(judge.known)
            if last - first == 1 and len(self.line[first].path) == level:
                self.one(first)
            else:
                self.compound(first, last, level)
            if operator in ("|", "|&") or (last < end and self.line[last].operator in ("|", "|&")):
                judge.known = joined(before, judge.known)
            elif operator in ("&&", "||"):
                waiting.append(before)
        judge.known = joined(judge.known, *waiting)

    def one(self, place: int) -> None:
        """One simple command."""
        judge, command = self.judge, self.line[place]
        judge.walked += 1
        before = dict(judge.known)
        for part in variables(command):
            if _SETS.match(part.text):
                judge.known.pop(part.name, None)
        kept = dict(judge.known)
        if len(command.assignments) > 1:  # each value may rest on those before
            for assignment in command.assignments:
                judge.known.pop(assignment.name, None)
        for found in command.substitutions():
            inside(judge, found.line)
        judge.known = kept
        judge.index += 1
        judge.last = judge.depth == 0 and place == len(self.line) - 1 and not command.path
        judge.before, judge.loose = self.line[:place], self.loose
        judge.command(command)
        if {"break", "continue"} & {word.value for word in command.words[:2]}:
            self.left.append(dict(judge.known))
        if len(judge.known) > MAX_VARIABLES:
            judge.deed("not_understood", "variables", "more variables than are followed")
            judge.known = {}
        if command.assignments and command.redirections:  # one that fails prevents the assignment
            judge.known = joined(before, judge.known)

    def compound(self, first: int, last: int, level: int) -> None:
        """A compound command: its redirections, which are made first, then its head and lists."""
        judge, line = self.judge, self.line
        own = [place for place in range(first, last) if len(line[place].path) == level + 1]
        bare = [place for place in own if not line[place].assignments]
        head = [place for place in own if line[place].assignments]
        lists = [pair for pair in _items(line, first, last, level + 1) if len(line[pair[0]].path) > level + 1]
        for place in bare:
            self.one(place)
        unmade = dict(judge.known)
        self.body(line[first].path[level][0], head, lists, level)
        if bare:  # a redirection that fails prevents the compound
            judge.known = joined(unmade, judge.known)

    def body(self, kind: str, head: Items, lists: Pairs, level: int) -> None:
        """The head and the lists of a compound, as its kind runs them."""
        judge = self.judge
        if kind in ("while", "until"):
            words = self.line[lists[0][0]].words
            if not (words and words[0].value == "read") and not _ends(self.line, lists):
                judge.deed("endless", words[0].text if words else kind, "a loop whose end is not known")
        if kind in ("while", "until", "for"):
            self.loop(head, lists, level)
            return
        start = dict(judge.known)
        if kind in ("if", "case"):
            self.run(head, (), level)
            self.branches(lists, level)
        else:
            self.run(head, lists, level)
        if kind == "(":
            judge.known = start

    def run(self, head: Items, lists: Pairs, level: int) -> None:
        """The head and the lists of a compound one after another."""
        for place in head:
            self.one(place)
        for pair in lists:
            self.list(*pair, level + 2)

    def branches(self, lists: Pairs, level: int) -> None:
        """Lists of which one is run."""
        judge, ends, whole = self.judge, list[Known](), False
        start = dict(judge.known)
        for pair in lists:
            label = self.line[pair[0]].path[level + 1][0]
            judge.known = dict(start)
            self.list(*pair, level + 2)
            if label == "if":
                start = judge.known
            else:
                ends.append(judge.known)
                whole = whole or label == "else"
        judge.known = joined(*ends, *([] if whole else [start]))

    def loop(self, head: Items, lists: Pairs, level: int) -> None:
        """A loop, walked until nothing changes any more."""
        judge = self.judge
        index, left = judge.index, len(self.left)
        for turn in range(MAX_WALKED):
            judge.index = index
            start, folders = dict(judge.known), [*judge.folders]
            self.run(head, lists, level)
            judge.known = joined(start, judge.known, *self.left[left:])
            if turn >= MAX_TURNS:
                judge.known = {name: found for name, found in judge.known.items() if start[name] == found}
            if (judge.known, judge.folders) == (start, folders):
                return
            if judge.walked > MAX_WALKED:
                break
        judge.deed("not_understood", "loop", "loops that change too much")
        judge.known = {}


def _ends(line: tuple[Command, ...], lists: Pairs) -> bool:
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
