"""What the variables of a command line may hold when a command of it runs.

Walks the commands of a line as a shell would: what a branch, an `&&` or a pipeline sets may be set or not,
what a subshell sets is gone after it, and a loop is walked until nothing changes any more. A variable of
which something is not known is not in `known` at all, or has no texts there. What single commands do is the
judge's.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from spak.commandline import environment
from spak.commandline.findings import Findings, Reading
from spak.commandline.words import MAX_FORMS, Arg, Known, is_number
from spak.commandline.world import Eyes as World
from spak.shell import Command, Line, Part, Text, Variable

MAX_TURNS = 4
"""Walks of a loop before a variable that still changes counts as not known."""

MAX_VARIABLES = 256
"""Variables of one line."""

MAX_WALKED = 4096
"""Commands walked for one line, those of loops again in each turn."""

_BINDERS = frozenset(["read", "export", "local", "unset"])
"""Programs of a shell that set variables, and that the judge permits."""

_OWN = re.compile(
    r"(_|RANDOM|SECONDS|LINENO|PWD|OLDPWD|REPLY|OPT(ARG|IND|ERR)|DIRSTACK|FUNCNAME|PIPESTATUS|PPID|E?UID|GROUPS|"
    r"SRANDOM|(BASH|COMP|EPOCH|HIST).*)\Z"
)
_SETS = re.compile(r"\$\{\w+:?=")


def sets_itself(name: str) -> bool:
    """True for a variable that a shell changes without being told to."""
    return _OWN.match(name) is not None


def joined(*states: Known) -> Known:
    """What is known when any of these may be so."""
    first, *others = states
    found = dict(first)
    for state in others:
        for name in list(found):
            if name not in state:
                del found[name]
            elif found[name] != state[name]:
                found[name] = _either(found[name], state[name])
    return found


def _either(one: Arg, two: Arg) -> Arg:
    texts = tuple(dict.fromkeys((*one.texts, *two.texts)))
    known = bool(one.texts) and bool(two.texts) and len(texts) <= MAX_FORMS
    return Arg(
        one.written,
        tuple(sorted(texts)) if known else (),
        one.glob or two.glob,
        one.tilde or two.tilde,
        one.lists_paths and two.lists_paths,
        (one.mild or bool(one.texts)) and (two.mild or bool(two.texts)),
        one.odd or two.odd,
        literal=False,
        number=is_number(one) and is_number(two),
        here=one.here or two.here,
        feed=tuple(dict.fromkeys((*one.feed, *two.feed))),
    )


class Flow(Findings):
    """The order of commands and the state that each starts from."""

    def __init__(self, world: World, reading: Reading) -> None:
        super().__init__(world, reading)
        self.known: Known = {}
        self.depth = 0
        self.walked = 0
        self.last = False
        """True for the command that ends the whole line."""
        self.been = [""]
        """Every folder that the line has stood in."""
        self.loops = 0
        self.left: Known | None = None
        """What was known where one of the loops around was left or begun again early."""

    def command(self, command: Command, before: Sequence[Command], loose: bool) -> None:
        """Judge one simple command; the judge's own."""
        raise NotImplementedError

    def assign(self, name: str, values: list[Arg], for_one: bool, append: bool) -> None:
        """Judge a variable that is set, for one command or from here on; the judge's own."""
        raise NotImplementedError

    def starts(self, folder: str, env: Mapping[str, str]) -> None:
        """Where the line is run and with which variables: judged as `cd` and as `VAR=x` before a command."""
        if folder:
            self.path("reads", Arg(folder, (folder,), tilde=folder.startswith("~")))
            self.folders = self.been = [folder]
        for name, value in env.items():
            found = Arg(value, (value,))
            self.assign(name, [found], True, False)
            self.known[name] = replace(found, glob=any(char in value for char in "*?["), literal=False)

    def line(self, line: Line) -> None:
        """Read a line, with every way that control may take through it."""
        scoped = any("(" in command.within for command in line.commands)
        strict = all(command.operator in ("", "&&") and not command.negated for command in line.commands)
        self._list(line.commands, 0, len(line.commands), 0, scoped or not strict)

    def inside(self, line: Line) -> None:
        """A substitution: its own folder, the same variables."""
        self.depth += 1
        folders, known = list(self.folders), dict(self.known)
        if self.depth <= 8:
            self.line(line)
        else:
            self.deed("not_understood", "$(", "substitutions nested too deeply")
        self.folders, self.known = folders, known
        self.depth -= 1

    def bound(self, args: Sequence[Arg]) -> None:
        """`read`, `export` and their kin leave variables that are not known."""
        if args[0].text in ("break", "continue"):
            self.left = joined(self.known if self.left is None else self.left, self.known)
        if args[0].text == "printf" and len(args) > 1 and (args[1].text or "-v").startswith("-v"):
            found = args[1] if args[1].text != "-v" else args[2] if len(args) > 2 else args[0]
            self._unknown(found, (found.text or "").removeprefix("-v"))
        for item in args[1:] if args[0].text in _BINDERS else ():
            for text in item.texts:
                name, sign, _ = text.partition("=")
                if sign or args[0].text != "export":
                    # `-ra name` may be written as one word
                    for start in range(len(name)) if name.startswith("-") else [0]:
                        self._unknown(item, name[start:].rstrip("+"), args[0].text == "read")
            if not item.texts:
                self.known = {}

    def _unknown(self, item: Arg, name: str, judged: bool = True) -> None:
        """A variable that gets a value which is not known."""
        self.known.pop(name, None)
        if not item.texts:
            self.known = {}
        elif judged and environment.matters(name):
            self.deed("sets_environment", name, "programs go by this variable")

    def change_folder(self, name: str, rest: list[Arg], loose: bool) -> None:
        """`cd`, `pushd` and `popd`. A shell takes `..` from the name that it went by, a program from the
        folder that it is in: where these differ nothing is known."""
        targets = [item for item in rest if item.text not in ("--", "-P", "-L")]
        back = len(targets) == 1 and re.match(r"-\Z|[-+]\d+\Z", targets[0].text or "") is not None
        if (name == "popd" or back) and len(self.been) > 1:  # to one of those before
            self.deed("computes", name)
            self._stand(list(self.been))
            return
        if len(targets) != 1 or targets[0].text is None or targets[0].glob or back or name == "popd":
            self.deed("unknown_word", name, "a folder that is not written out")
            return
        self.deed("computes", name)
        goal = targets[0].text
        stays = [
            f"{old}/{goal}" for old in self.folders if self.world.look(f"./{old}/{goal}").place == "inside"
        ]
        if not (
            self.last and stays and set(goal.rstrip("/").split("/")) == {".."}
        ):  # back, and nothing is done there
            self.path("reads", targets[0])
        moved = []
        for old in self.folders:
            whole = goal if goal.startswith("/") or not old else f"{old}/{goal}"
            named = posixpath.normpath(whole) if goal else old
            there, told = self.world.look(whole or "."), self.world.look(named or ".")
            if (
                ".." in whole
                and (there.place, there.path) != (told.place, told.path)
                and "inside"
                in (
                    there.place,
                    told.place,
                )
            ):
                self.deed("not_understood", goal, "a folder that a link leads to, and above it")
            moved.append("" if named == "." else named)
        self._stand([*self.folders, *moved] if loose else moved)

    def _stand(self, folders: list[str]) -> None:
        self.folders = list(dict.fromkeys(folders))
        if len(self.folders) > 8:
            self.deed("not_understood", "cd", "too many changes of the folder")
            self.folders = self.folders[:8]
        self.been = list(dict.fromkeys([*self.been, *self.folders]))[:8]
        self.known = {name: found for name, found in self.known.items() if not found.here}

    def _list(self, line: tuple[Command, ...], start: int, end: int, level: int, loose: bool) -> None:
        """The items of one list: simple commands, and compounds as wholes."""
        waiting: Known | None = None
        either = False
        for first, last in _items(line, start, end, level):
            operator = line[first].operator
            either = either or operator == "||"
            if operator not in ("&&", "||", "|", "|&") or either:
                self.known = self.known if waiting is None else joined(self.known, waiting)
                waiting = None
            either = either and operator in ("&&", "||", "|", "|&")
            before = dict(self.known)
            if last - first == 1 and len(line[first].path) == level:
                self._one(line, first, loose)
            else:
                self._compound(line, first, last, level, loose)
            if operator in ("|", "|&") or (last < end and line[last].operator in ("|", "|&")):
                self.known = joined(before, self.known)
            elif operator in ("&&", "||"):
                waiting = before if waiting is None else joined(waiting, before)
        self.known = self.known if waiting is None else joined(self.known, waiting)

    def _one(self, line: tuple[Command, ...], place: int, loose: bool) -> None:
        command = line[place]
        self.walked += 1
        before = dict(self.known)
        for name in _set_by_expansion(command):
            self.known.pop(name, None)
        kept = dict(self.known)
        if len(command.assignments) > 1:  # each value may rest on those before
            for assignment in command.assignments:
                self.known.pop(assignment.name, None)
        for found in command.substitutions():
            self.inside(found.line)
        self.known = kept
        self.index += 1
        self.last = self.depth == 0 and place == len(line) - 1 and not command.path
        self.command(command, line[:place], loose)
        if len(self.known) > MAX_VARIABLES:
            self.deed("not_understood", "variables", "more variables than are followed")
            self.known = {}
        if command.assignments and command.redirections:  # one that fails prevents the assignment
            self.known = joined(before, self.known)

    def _compound(self, line: tuple[Command, ...], first: int, last: int, level: int, loose: bool) -> None:
        kind = line[first].path[level][0]
        own = [place for place in range(first, last) if len(line[place].path) == level + 1]
        bare = [place for place in own if not line[place].assignments]
        head = [place for place in own if line[place].assignments]
        lists = [pair for pair in _items(line, first, last, level + 1) if len(line[pair[0]].path) > level + 1]
        for place in bare:  # its redirections, which are made first, and prevent it when one fails
            self._one(line, place, loose)
        unmade = dict(self.known)
        self._body(line, head, lists, level, loose, kind)
        if bare:
            self.known = joined(unmade, self.known)

    def _body(
        self,
        line: tuple[Command, ...],
        head: list[int],
        lists: list[tuple[int, int]],
        level: int,
        loose: bool,
        kind: str,
    ) -> None:
        if kind in ("while", "until"):
            told = line[lists[0][0]]
            if not (told.words and told.words[0].value == "read") and not _ends(line, lists):
                name = told.words[0].text if told.words else kind
                self.deed("endless", name, "a loop whose end is not known")
        if kind in ("while", "until", "for"):
            self.loops += 1
            self._loop(line, head, lists, level, loose)
            self.loops -= 1
            if not self.loops:
                self.left = None
            return
        for place in head:
            self._one(line, place, loose)
        start = dict(self.known)
        if kind in ("if", "case"):
            self._branches(line, lists, level, loose)
            return
        for pair in lists:
            self._list(line, *pair, level + 2, loose)
        if kind == "(":
            self.known = start

    def _branches(
        self, line: tuple[Command, ...], lists: list[tuple[int, int]], level: int, loose: bool
    ) -> None:
        ends: list[Known] = []
        whole = False
        start = dict(self.known)
        for pair in lists:
            label = line[pair[0]].path[level + 1][0]
            self.known = dict(start)
            self._list(line, *pair, level + 2, loose)
            if label == "if":
                start = self.known
            else:
                ends.append(self.known)
                whole = whole or label == "else"
        self.known = joined(*ends, *([] if whole else [start]))

    def _loop(
        self,
        line: tuple[Command, ...],
        head: list[int],
        lists: list[tuple[int, int]],
        level: int,
        loose: bool,
    ) -> None:
        index, turn = self.index, 0
        while True:
            turn += 1
            self.index = index
            start, folders = dict(self.known), list(self.folders)
            for place in head:
                self._one(line, place, loose)
            for pair in lists:
                self._list(line, *pair, level + 2, loose)
            self.known = joined(start, self.known, self.known if self.left is None else self.left)
            if turn > MAX_TURNS:
                self.known = {name: found for name, found in self.known.items() if start[name] == found}
            if (self.known, self.folders) == (start, folders):
                return
            if self.walked > MAX_WALKED or turn > MAX_WALKED:
                self.deed("not_understood", "loop", "loops that change too much")
                self.known = {}
                return


def _ends(line: tuple[Command, ...], lists: list[tuple[int, int]]) -> bool:
    """True for a loop that tests a variable which its body sets, or that sleeps until a file is there."""
    (first, last), *bodies = lists
    told = line[first]
    if last - first != 1 or not told.words or told.words[0].value not in ("[", "[[", "test"):
        return False
    body = [command for start, end in bodies for command in line[start:end]]
    tested = {part.name for word in told.words for part in word.parts if isinstance(part, Variable)}
    looks = any(word.value in ("-f", "-e", "-s", "-d") for word in told.words)
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
