"""find and xargs: which files they hand on, and what is done with them.

Each reader takes the Judge, the program's table and the words after its name. It notes what is read of the
files that are found, and hands an inner command back to the Judge.
"""

from __future__ import annotations

import posixpath
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import takewhile

from spak.commandline import lists
from spak.commandline.interpret import parse
from spak.commandline.judge import Judge
from spak.commandline.kinds import OWN_SIGNS
from spak.commandline.outputs import lists_paths
from spak.commandline.table import Grammar
from spak.commandline.words import HERE, Arg, spread, texts_of
from spak.shell import Command

_CONDITIONS = lists.names("walkers", "conditions")
_OF_FILES = lists.names("walkers", "of_files")
_TESTS = lists.names("walkers", "tests")
_JUNK = lists.pattern("walkers", "junk")
_RM_FLAGS = lists.names("walkers", "rm_flags")
_SHOWS_NAMES = lists.names("walkers", "shows_names")
_TAKES_PATHS = lists.names("walkers", "takes_paths")
"""Programs that do no more than read or show the paths that are appended."""


def find(judge: Judge, grammar: Grammar, rest: list[Arg]) -> None:
    """The folders, then an expression whose words all have to be known."""
    roots, words = _roots(rest)
    for root in roots:
        judge.path("reads", root)
    judge.deed("computes", "find")
    chosen, actions = _expression(judge, words)
    for inner in actions:
        if inner:
            _exec(judge, chosen, roots, inner)
        else:
            _deletes(judge, chosen)


def _roots(rest: Sequence[Arg]) -> tuple[list[Arg], Sequence[Arg]]:
    """The folders, and the words of the expression."""
    roots = list(takewhile(lambda item: not re.match(_BEGINS, item.text or ""), rest))
    return [item for item in roots if item.text not in _MODES], rest[len(roots) :]


_MODES = ("-H", "-P", "-O1", "-O2", "-O3")
_BEGINS = rf"(?!({'|'.join(_MODES)})\Z)-|[(!)]|,\Z"


@dataclass(slots=True)
class Chosen:
    """Which files an expression of find, or a part of it between two -o, may choose: their names fit one of
    `names`, where there are any."""

    names: list[str] = field(default_factory=list)
    is_file: bool = False
    acts: bool = False

    def takes(self, path: str) -> bool:
        """Whether the path may be among them."""
        last = path.rpartition("/")[2].lower()
        return not self.names or any(
            fnmatchcase(last, OWN_SIGNS.sub("*", name.lower())) for name in self.names
        )


def _expression(judge: Judge, words: Sequence[Arg]) -> tuple[Chosen, list[Sequence[Arg]]]:
    """Which files an expression of find may choose, and the words of each command, none for -delete.

    It is cut at each -o, whatever the brackets: a file that fits no -name of any part makes no part true, so
    the names count where every part has one. An action chooses nothing by parts that end before it does.
    """
    todo, actions, parts = deque(words), list[Sequence[Arg]](), [Chosen()]
    depth, text, begins = 0, "", 0
    while todo:
        item, part, negated = todo.popleft(), parts[-1], text in ("!", "-not")
        text = item.text or ""
        if text in ("!", "-not", "(", ")") and not negated:
            depth += {"(": 1, ")": -1}.get(text, 0)
        elif text in ("-o", "-or", ","):
            begins = begins if depth or any(part.acts for part in parts) else len(parts)
            parts.append(Chosen())
        elif text in ("-print", "-print0", "-delete", "-exec"):
            part.acts = True
            inner: list[Arg] = []
            while text == "-exec" and todo and not (inner and inner[-1].text in (";", "+")):
                inner.append(todo.popleft())
            actions += [inner[:-1]] if text in ("-delete", "-exec") else []
        elif part.acts or not _test(judge, part, text, todo, negated):
            judge.deed("unknown_option", f"find {item.written}", "no test, or one after an action")
            return Chosen(), actions
    parts = parts[begins:] if any(part.acts for part in parts) else parts
    named = all(part.names for part in parts)
    names = [name for part in parts for name in part.names if named]
    return Chosen(names, all(part.is_file for part in parts)), actions


def _test(judge: Judge, part: Chosen, text: str, todo: deque[Arg], negated: bool) -> bool:
    """Read one test and its value; gives whether it is one."""
    if text[1:] in _TESTS:
        return text[:1] == "-"
    if text[:1] != "-" or text[1:] not in _CONDITIONS | _OF_FILES or not todo:
        return False
    value = todo.popleft()
    if text[1:] in _OF_FILES:
        judge.path("reads", value)
    elif text in ("-name", "-iname") and not negated:
        part.names.append(value.text or "*")  # which may be any
    part.is_file = part.is_file or (text == "-type" and value.text == "f" and not negated)
    return True


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
    walks = any(re.match(r"-[A-Za-z]*[rR]|--(dereference-)?rec|--dir", text) for text in texts_of(inner[1:]))
    return compiles or (first.rpartition("/")[2] in _TAKES_PATHS and not ("grep" in first and walks))


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
    marks = texts_of(parsed.values("-I"))
    if inner and not _takes_paths(first, inner):
        judge.deed("executes", f"xargs {first}", "it is run with words that are not known before")
    elif inner and not (first in _PRINTS or (feed and lists_paths(feed))):
        judge.deed("unknown_word", f"xargs {first}", "paths that are not known before the line runs")
    elif any(mark in text and (not mark or text != mark) for mark in marks for text in texts_of(inner)):
        judge.deed("unknown_word", "xargs -I", "a word that is made of what is read")
    else:
        judge.deed("computes", "xargs")
        listed = Arg("{}", lists_paths=True, literal=False, feed=() if first in _SHOWS_NAMES else feed)
        if inner:
            put = [listed if item.text in marks else item for item in inner]
            judge.run(put if marks else [*inner, listed])


_PRINTS = ("echo", "basename", "dirname", "printf")


def listed(judge: Judge, feed: Sequence[Command]) -> None:
    """What `find` or `ls` lists is read: secrets in it, and links out of the workspace."""
    args = [item for word in feed[0].words for item in spread(word, judge.known)] if feed else []
    plain = [item for item in args[1:] if not (item.text or "-").startswith("-")]
    match texts_of(args):
        case ["find", *_]:
            roots, words = _roots(args[1:])
            found(judge, _expression(judge, words)[0], roots)
        case ["ls", *_]:
            for item in plain or [HERE]:
                judge.tree(item, True, _in_folder(judge, item))
        case ["fd" | "fdfind", *_]:
            for item in plain[1:] or [HERE]:
                judge.tree(item, False)
        case ["git", "ls-files", *options] if any(re.match(r"-[a-z]*o|--others", text) for text in options):
            judge.tree(HERE, False)  # what git does not track
        case ["git", "diff", *_] if plain[1:]:
            judge.tree(HERE, False)  # what a commit had may be anything


def _in_folder(judge: Judge, item: Arg) -> Callable[[str], bool]:
    """Says of a path whether it lies in the folder itself and not further down."""
    folders = {judge.world.look(whole).path for whole in judge.wholes(*item.texts)}
    return lambda path: (posixpath.dirname(path) or ".") in folders
