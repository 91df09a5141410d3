"""find and xargs: which files they hand on, and what is done with them.

Each reader takes the Judge, the program's table and the words after its name. It notes what is read of the
files that are found, and hands an inner command back to the Judge.
"""

from __future__ import annotations

import posixpath
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from spak.commandline import lists, places
from spak.commandline.interpret import parse
from spak.commandline.judge import Judge
from spak.commandline.outputs import lists_paths
from spak.commandline.table import Grammar
from spak.commandline.words import HERE, Arg, arg, texts_of
from spak.shell import Command

_CONDITIONS = lists.names("walkers", "conditions")
_OF_FILES = lists.names("walkers", "of_files")
_TESTS = lists.names("walkers", "tests")
_JUNK = lists.pattern("walkers", "junk")
_RM_FLAGS = lists.names("walkers", "rm_flags")
_SHOWS_NAMES = lists.names("walkers", "shows_names")
_TAKES_PATHS = lists.names("walkers", "takes_paths")
"""Programs that do no more than read or show the paths that are appended."""
MAX_NESTED = 100
"""Brackets and negations of an expression."""


def find(judge: Judge, grammar: Grammar, rest: list[Arg]) -> None:
    """The folders, then an expression whose words all have to be known."""
    roots, words = _roots(rest)
    for root in roots:
        judge.path("reads", root)
    judge.deed("computes", "find")
    for chosen, inner in _Expression(judge, words).actions:
        if any(map(places.of_git, "/".join(texts_of(roots)).split("/"))):
            judge.deed("executes", "find", "an action on files of git")
        if inner:
            _exec(judge, chosen, roots, inner)
        else:
            _deletes(judge, chosen)


def _roots(rest: Sequence[Arg]) -> tuple[list[Arg], Sequence[Arg]]:
    """The folders, and the words of the expression."""
    begins = (at for at, item in enumerate(rest) if re.match(_BEGINS, item.text or ""))
    at = next(begins, len(rest))
    return [item for item in rest[:at] if item.text not in _MODES], rest[at:]


_MODES = ("-H", "-P", "-O1", "-O2", "-O3")
_BEGINS = rf"(?!({'|'.join(_MODES)})\Z)-|[(!)]|,\Z"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Of which files an action of find is: their names fit one of `names`, where there are any."""

    names: frozenset[str] = frozenset()
    is_file: bool = False

    def and_(self, other: Chosen) -> Chosen:
        """Both hold."""
        return Chosen(other.names or self.names, self.is_file or other.is_file)

    def or_(self, other: Chosen) -> Chosen:
        """One of them holds."""
        names = self.names | other.names if self.names and other.names else frozenset()
        return Chosen(names, self.is_file and other.is_file)

    def takes(self, path: str) -> bool:
        """Whether the path may be among them."""
        last = path.rpartition("/")[2].lower()
        return not self.names or any(fnmatchcase(last, _WIDE.sub("*", name.lower())) for name in self.names)


_WIDE = re.compile(r"\[.*\]|\\.?", re.DOTALL)


class _Expression:
    """An expression of find, read as find does: `,` binds least, then -o, then -a, then !. Notes paths, and
    the first word that is not understood."""

    def __init__(self, judge: Judge, words: Sequence[Arg]) -> None:
        self.judge = judge
        self.words = deque(words)
        """Those that are still to be read."""
        self.actions: list[tuple[Chosen, Sequence[Arg]]] = []
        """The words of each command, none for -delete, and the files that it is of."""
        self.printed: list[Chosen] = []
        """The files that -print gives, which may come before a test."""
        nested = sum(item.text in ("(", "!", "-not") for item in words)
        self.all = self._list(Chosen()) if nested <= MAX_NESTED else Chosen()
        for chosen in self.printed:
            self.all = chosen if chosen is self.printed[0] else self.all.or_(chosen)
        """The files for which the expression holds, and which are printed."""
        if self.words:
            judge.deed("not_understood", "find", "an expression that is not understood")

    def _next(self, *words: str) -> bool:
        fits = bool(self.words) and self.words[0].text in words
        if fits:
            self.words.popleft()
        return fits

    def _list(self, before: Chosen) -> Chosen:
        found = self._both(before)
        while (apart := self._next(",")) or self._next("-o", "-or"):
            other = self._both(before)
            found = other if apart else found.or_(other)
        return found

    def _both(self, before: Chosen) -> Chosen:
        found = before
        while self.words and self.words[0].text not in ("-o", "-or", ",", ")"):
            if not self._next("-a", "-and"):
                found = found.and_(self._one(found))
        return found

    def _one(self, before: Chosen) -> Chosen:
        if self._next("!", "-not"):
            self._one(before)
            return Chosen()
        if self._next("("):
            found = self._list(before)
            self._next(")")
            return found
        item = self.words.popleft() if self.words else Arg("")
        text = item.text or ""
        if text in ("-print", "-print0"):
            self.printed.append(before)
        elif text == "-delete":
            self.actions.append((before, ()))
        elif text == "-exec":
            inner: list[Arg] = []
            while self.words and not self._next(";", "+"):
                inner.append(self.words.popleft())
            self.actions.append((before, inner))
        elif text[:1] == "-" and (text[1:] in _CONDITIONS | _OF_FILES or _NEWER.match(text)):
            return self._condition(text)
        elif text[:1] != "-" or text[1:] not in _TESTS:
            why = "an action that its table does not list"
            self.judge.deed("unknown_option", f"find {item.written}", why)
            self.words.clear()
        return Chosen()

    def _condition(self, text: str) -> Chosen:
        value = self.words.popleft() if self.words else Arg(text)
        if value.text is None:
            self.judge.deed("unknown_word", value.written, "find's condition is not known")
        elif text[1:] in _OF_FILES or (_NEWER.match(text) and text[-1] != "t"):
            self.judge.path("reads", value)
        elif text in ("-name", "-iname"):
            return Chosen(frozenset([value.text]))
        return Chosen(is_file=text == "-type" and value.text == "f")


_NEWER = re.compile(r"-newer[aBcm][aBcm]\Z")


def _exec(judge: Judge, chosen: Chosen, roots: list[Arg], inner: Sequence[Arg]) -> None:
    texts = [item.text for item in inner]
    first = texts[0] or ""
    if texts[:1] == ["rm"] and texts[-1:] == ["{}"] and set(texts[1:-1]) <= _RM_FLAGS:
        _deletes(judge, chosen)
    elif not _takes_paths(first, inner):
        judge.deed("executes", f"find -exec {first}", "it runs a command that does more than read")
    else:
        if first not in _SHOWS_NAMES:
            found(judge, chosen, roots)
        listed = Arg("{}", lists_paths=True, literal=False)
        judge.run([listed if item.text == "{}" else item for item in inner])


def found(judge: Judge, chosen: Chosen, roots: Sequence[Arg]) -> None:
    """The files that an expression of find may give are read."""
    for root in roots or [HERE]:
        judge.tree(root, not chosen.is_file, chosen.takes)


def _takes_paths(first: str, inner: Sequence[Arg]) -> bool:
    """Whether a command only reads or shows the paths that are appended: `python3 -m py_compile` too, which
    runs nothing of what it reads."""
    compiles = texts_of(inner[:3]) in (["python3", "-m", "py_compile"], ["python", "-m", "py_compile"])
    return first.rpartition("/")[2] in _TAKES_PATHS or compiles


def _deletes(judge: Judge, chosen: Chosen) -> None:
    """What is deleted has to be named before, and be what a build makes."""
    if not chosen.names or not all(map(_JUNK.fullmatch, chosen.names)):
        judge.deed("deletes_widely", "find -delete", "it deletes more than files that a build makes")


def xargs(judge: Judge, grammar: Grammar, rest: list[Arg]) -> None:
    """Only readers, and only of paths that a command before it lists."""
    parsed = parse(judge, grammar, rest)
    inner, start = parsed.after, len(judge.before)
    while start and judge.before[start - 1].operator == "|":
        start -= 1
    feed = tuple(judge.before[start - 1 :]) if start else ()
    first = (inner[0].text or "").rpartition("/")[2] if inner else ""
    cut = any(value.text != "\\n" for value in parsed.values("-d")) or parsed.values("-I", "-i")
    printed = [] if cut else _echoed(judge, feed)
    shows = first in ("echo", "basename", "dirname", "printf")
    if inner and not _takes_paths(first, inner):
        judge.deed("executes", f"xargs {first}", "it is run with words that are not known before")
    elif inner and not (printed or shows or (feed and lists_paths(feed))):
        judge.deed("unknown_word", f"xargs {first}", "paths that are not known before the line runs")
    else:
        judge.deed("computes", "xargs")
        listed = Arg("{}", lists_paths=True, literal=False, feed=() if first in _SHOWS_NAMES else feed)
        marker = next(
            filter(None, texts_of(parsed.values("-I", "-i"))), "{}" if "-i" in parsed.names() else ""
        )
        for text in texts_of(inner) if marker else ():  # what is written around the marker leads from it
            if marker in text and "/" in text:
                judge.path("reads", Arg(text, (text.replace(marker, "x"),)))
            if marker in text and not re.fullmatch(r"(?!-)[\w./ :]*", text.replace(marker, "x")):
                judge.deed("unknown_word", text, "a word that is made of what is read")
        put = [listed if marker and marker in (item.text or "") else item for item in inner]
        if inner:
            judge.run(put if marker else [*inner, *(printed or [listed])])


def _echoed(judge: Judge, feed: tuple[Command, ...]) -> list[Arg]:
    """The words that an `echo` or a `printf '%s\\n'` before it prints, where they are known."""
    words = [arg(word, judge.known) for word in feed[0].words] if len(feed) == 1 else []
    texts = texts_of(words)
    skip = 1 if texts[:1] == ["echo"] else 2 if texts[:2] == ["printf", "%s\\n"] else 0
    plain = skip and all(re.match(r"[\w./*][\w./*-]*\Z", text) for text in texts[skip:])
    return words[skip:] if plain else []


def listed(judge: Judge, feed: Sequence[Command]) -> None:
    """What `find` or `ls` lists is read: secrets in it, and links out of the workspace."""
    args = [arg(word, judge.known) for word in feed[0].words] if feed else []
    plain = [item for item in args[1:] if not (item.text or "-").startswith("-")]
    match texts_of(args):
        case ["find", *_]:
            roots, words = _roots(args[1:])
            found(judge, _Expression(judge, words).all, roots)
        case ["ls", *_]:
            for item in plain or [HERE]:
                judge.tree(item, True, _in_folder(judge, item))
        case ["fd" | "fdfind", *_]:
            for item in plain[1:] or [HERE]:
                judge.tree(item, False)
        case ["git", "ls-files", *options] if any(re.match(r"-[a-z]*o|--others", text) for text in options):
            judge.tree(HERE, False)  # what git does not track


def _in_folder(judge: Judge, item: Arg) -> Callable[[str], bool]:
    """Says of a path whether it lies in the folder itself and not further down."""
    folders = {judge.world.look(whole).path for whole in judge.wholes(*item.texts)}
    return lambda path: (posixpath.dirname(path) or ".") in folders
