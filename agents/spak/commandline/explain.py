"""What a command line starts: its programs, their words, the paths that they name. For people and for laws.

Takes the text of a line, or the words of one command; gives an Explained. It also looks into the lines that
are words of shells (`bash -c`) and behind programs that only start others (`timeout 60 pytest`). What it
cannot see is a program of its own, UNKNOWN, so that a law that lists programs does not permit it.
`Started.reads` are the paths of a program that, by the table readers.toml, does nothing but read and print;
None for any other.

It is no wall and foresees no effects: a program may do whatever its sandbox lets it do.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from spak import shell
from spak.commandline import readers
from spak.commandline.readers import Read, Said
from spak.errors import UserError
from spak.shell import Command, Text, Word

UNKNOWN = "?"
"""A program that nobody can know before the line runs."""
MAX_PROGRAMS = 200
MAX_PATHS = 400
MAX_DEPTH = 8
"""Lines within lines that are looked into."""
_DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty"})
_PATH = re.compile(r"[^\s=:]*(?:/|\A\.\.?\Z|\w\.\w{1,8}\Z)[^\s]*|\.[\w.-]+")
"""A word that looks like the name of a file."""


@dataclass(frozen=True, slots=True)
class Started:
    """One program that a line starts."""

    program: str
    words: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    reads: tuple[Read, ...] | None = None
    """What it reads, where it does nothing else; seen from the folder of the line."""


@dataclass(frozen=True, slots=True)
class Explained:
    """What a line starts, in order."""

    started: tuple[Started, ...] = ()
    writes: tuple[str, ...] = ()
    """Files that redirections write."""
    reads: tuple[Read, ...] = ()
    """Files that redirections read."""
    sets: tuple[tuple[str, str], ...] = ()
    """Variables that the line gives to its programs."""
    trouble: tuple[str, str] | None = None
    """The code and message where the line cannot be read."""

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths that the line names."""
        named = (*(path for one in self.started for path in one.paths), *self.writes)
        return tuple(dict.fromkeys((*named, *(read.path for read in self.reads))))[:MAX_PATHS]


def line(text: str) -> Explained:
    """What a line for a shell starts."""
    try:
        parsed = shell.parse(text)
    except UserError as error:
        return Explained(trouble=(error.code, error.message))
    except RecursionError:
        return Explained(trouble=("shell.too_deep", "a command line nested too deep"))
    if not parsed.commands:
        return Explained(trouble=("shell.empty", "no command"))
    found = _Reader()
    found.line(parsed)
    return found.explained()


def words(argv: Sequence[str]) -> Explained:
    """What a program with arguments starts, without a shell."""
    found = _Reader()
    found.start([Said(word) for word in argv], 0)
    return found.explained()


@dataclass(slots=True)
class _Reader:
    started: list[Started] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    sets: list[tuple[str, str]] = field(default_factory=list)
    folder: str | None = ""
    """The line's current folder; None where that is not known."""
    unclear: bool = False
    """The line computes something outside of its commands, such as the word of a `case`."""
    moves: frozenset[int] = frozenset()
    """Commands of which all that comes later runs only if they succeed, by their identity."""

    def explained(self) -> Explained:
        started = [replace(one, reads=None) for one in self.started] if self.unclear else self.started
        return Explained(tuple(started), tuple(self.writes), tuple(self.reads), tuple(self.sets))

    def line(self, parsed: shell.Line, depth: int = 0) -> None:
        """All commands of a line."""
        self.moves |= _chained(parsed)
        for command in parsed.every():
            for assignment in command.assignments:
                self.unclear |= not assignment.name and any(map(_computes, assignment.values))
                if assignment.name:
                    self.sets.append((assignment.name, " ".join(value.text for value in assignment.values)))
            for redirection in command.redirections:
                self._redirects(redirection)
            if command.words:
                loops = not {"while", "until"}.isdisjoint(command.within)
                expands = loops or any(_computes(word) for word in command.all_words())
                self.start([_said(word) for word in command.words], depth, command, expands)
        if depth == 0 and not self.started:
            self.started.append(Started(UNKNOWN))  # redirections or assignments alone

    def start(
        self, said: Sequence[Said], depth: int, command: Command | None = None, expands: bool = False
    ) -> None:
        """One command: its program, and those that it starts by its words."""
        if len(self.started) >= MAX_PROGRAMS or depth > MAX_DEPTH or not said:
            if not self.started or self.started[-1].program != UNKNOWN:
                self.started.append(Started(UNKNOWN))
            return
        program = said[0].text if said[0].kind == "known" else UNKNOWN
        shown = Started(program, tuple(word.text for word in said[1:]), tuple(_paths(said[1:])))
        name = posixpath.basename(program)
        if name == "cd" and not expands:
            self.started.append(replace(shown, reads=self._moves(said, command)))
        elif name in readers.STARTS:
            self._starts(readers.STARTS[name], shown, said, depth, expands)
        elif name in readers.SHELLS:
            self._shell(shown, said, depth, expands)
        else:
            elsewhere = program != name or (name == "git" and self.folder != "")
            reads = None if expands or elsewhere else readers.reads(said)
            self.started.append(replace(shown, reads=self._here(reads)))
            if name == "find":
                self._actions(said, depth)
            elif name == "eval":
                self._inner(" ".join(word.text for word in said[1:]), depth)

    def _here(self, reads: tuple[Read, ...] | None) -> tuple[Read, ...] | None:
        """The paths as seen from where the line began."""
        if reads is None or not self.folder:
            return reads if self.folder is not None else None
        return tuple(replace(read, path=posixpath.join(self.folder, read.path)) for read in reads)

    def _moves(self, said: Sequence[Said], command: Command | None) -> tuple[Read, ...] | None:
        """The folder that a `cd` at the top of a line reads; later paths are seen from there."""
        if (
            id(command) not in self.moves
            or len(said) != 2
            or said[1].kind != "known"
            or said[1].text.startswith("-")
        ):
            self.folder = None
            return None
        reads = self._here((Read(said[1].text),))
        self.folder = (
            posixpath.normpath(reads[0].path) if reads else None
        )  # as a shell does, whatever links say
        return reads and tuple(replace(read, path=self.folder or read.path) for read in reads)

    def _starts(
        self, row: readers.Starts, shown: Started, said: Sequence[Said], depth: int, expands: bool
    ) -> None:
        """A program that starts the command in its words."""
        rest, known = list(said[1:]), not (row.asks or expands or "/" in shown.program)
        while rest and rest[0].text.startswith("-"):
            option = rest.pop(0).text
            name, joined, _ = option.partition("=")
            if option in row.values and rest:
                rest.pop(0)
            elif option not in row.flags and not (joined and name in row.values):
                known = known and option[:2] in row.values and len(option) > 2
        while rest and row.asks and (named := re.match(r"(\w+)=(.*)", rest[0].text, re.DOTALL)):
            self.sets.append((named[1], named[2]))
            rest.pop(0)
        del rest[: row.skip]
        self.started.append(replace(shown, reads=() if known else None))
        self.start(rest, depth + 1, expands=expands or row.appends)

    def _shell(self, shown: Started, said: Sequence[Said], depth: int, expands: bool) -> None:
        """A shell: the line that `-c` gives it."""
        at = next((at for at, word in enumerate(said) if re.fullmatch(r"-[a-z]*c", word.text)), 0)
        text = said[at + 1] if at and at + 1 < len(said) else None
        plain = text is not None and text.kind == "known"
        only = plain and len(said) == 3 and said[1].text == "-c" and not expands
        only = only and shown.program in readers.PLAIN_SHELLS
        self.started.append(replace(shown, reads=() if only else None))
        if text is not None and plain:
            self._inner(text.text, depth)
        elif text is not None:
            self.started.append(Started(UNKNOWN))

    def _inner(self, text: str, depth: int) -> None:
        """A line within the line."""
        try:
            parsed = shell.parse(text)
        except (UserError, RecursionError):
            self.started.append(Started(UNKNOWN))
            return
        folder = self.folder
        self.line(parsed, depth + 1)
        self.folder = folder

    def _actions(self, said: Sequence[Said], depth: int) -> None:
        """What find starts for the files that it finds."""
        for at, word in enumerate(said):
            if word.text in ("-exec", "-execdir", "-ok", "-okdir"):
                rest = said[at + 1 :]
                end = next((end for end, one in enumerate(rest) if one.text in (";", "\\;", "+")), len(rest))
                self.start(rest[:end], depth + 1, expands=True)

    def _redirects(self, redirection: shell.Redirection) -> None:
        target = _said(redirection.target)
        if redirection.op.startswith("<<") or redirection.body is not None:
            return
        if target.text in _DEVICES or (
            redirection.op in (">&", "<&") and re.fullmatch(r"\d+|-", target.text)
        ):
            return
        path = posixpath.join(self.folder or "", target.text)
        if redirection.op == "<" and target.kind == "known" and self.folder is not None:
            self.reads.append(Read(path))
        else:
            self.writes.append(path)


def _chained(parsed: shell.Line) -> frozenset[int]:
    """The commands outside of pipelines where `&&` joins all there is."""
    commands = parsed.commands
    joined = not parsed.background and all(
        one.operator in ("", "&&", "|", "|&") and not one.within and not one.negated for one in commands
    )
    after = [*(one.operator for one in commands[1:]), "&&"]
    alone = (
        one
        for one, operator in zip(commands, after, strict=True)
        if joined and one.operator in ("", "&&") and operator == "&&"
    )
    return frozenset(map(id, alone))


def _said(word: Word) -> Said:
    if (value := word.value) is not None:
        return Said(value)
    plain = all(isinstance(part, Text) for part in word.parts)
    pattern = plain and not re.search(r"[{}~\\]", word.text)
    return Said("".join(_written(word.parts)) if pattern else word.text, "pattern" if pattern else "unknown")


def _written(parts: Iterable[object]) -> Iterator[str]:
    return (part.value for part in parts if isinstance(part, Text))


def _computes(word: Word) -> bool:
    """Whether a shell puts something else into the word than names of files."""
    return any(not isinstance(part, Text) for part in word.parts)


def _paths(said: Iterable[Said]) -> Iterator[str]:
    """What looks like the name of a file, also after an option's name."""
    for word in said:
        text = word.text.partition("=")[2] if word.text.startswith("-") else word.text
        text = text.removeprefix("@")
        if text and text not in _DEVICES and _PATH.fullmatch(text) and "://" not in text:
            yield text
