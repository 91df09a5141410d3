"""find and xargs: which files they hand on, and what is done with them.

Each reader takes the Judge, the program's table, the words after its name and the commands before it in the
pipeline. It notes what is read of the files that are found, and hands an inner command back to the Judge.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

from spak.commandline import lists
from spak.commandline.interpret import parse
from spak.commandline.judge import Judge
from spak.commandline.outputs import lists_paths
from spak.commandline.table import Grammar
from spak.commandline.words import Arg, arg, texts_of
from spak.shell import Command

_CONDITIONS = lists.names("walkers", "conditions")
_OF_FILES = lists.names("walkers", "of_files")
_TESTS = lists.names("walkers", "tests")
_JUNK = lists.pattern("walkers", "junk")
_RM_FLAGS = lists.names("walkers", "rm_flags")
_SHOWS_NAMES = lists.names("walkers", "shows_names")
_TAKES_PATHS = lists.names("walkers", "takes_paths")
"""Programs that do no more than read or show the paths that are appended."""


def find(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """The folders, then an expression whose words all have to be known."""
    at, roots = 0, list[Arg]()
    while at < len(rest):
        text = rest[at].text
        if text in ("-H", "-P", "-O1", "-O2", "-O3"):
            at += 1
            continue
        if text is not None and (text.startswith(("-", "(", "!", ")")) or text == ","):
            break
        roots.append(rest[at])
        at += 1
    for root in roots:
        judge.path("reads", root)
    judge.deed("computes", "find")
    names: list[str] = []
    while at < len(rest):
        text = rest[at].text
        at += 1
        key = (text or "").removeprefix("-")
        if text in ("(", ")", "!", ",") or (text == "-" + key and key in _TESTS):
            continue
        if text == "-" + key and (key in _CONDITIONS | _OF_FILES or re.match(r"newer[aBcm][aBcm]\Z", key)):
            value = rest[at] if at < len(rest) else None
            if value is None or value.text is None:
                judge.deed("unknown_word", value.written if value else text, "find's condition is not known")
                return
            if key in _OF_FILES or (key.startswith("newer") and not key.endswith("t")):
                judge.path("reads", value)
            names += [value.text] if key in ("name", "iname") else []
            at += 1
        elif text == "-delete":
            _deletes(judge, names, rest)
        elif text == "-exec":
            inner = rest[at : _end(rest, at)]
            at += len(inner) + 1
            _exec(judge, names, rest, roots, inner, before)
        else:
            judge.deed(
                "unknown_option", f"find {rest[at - 1].written}", "an action that its table does not list"
            )
            return


def _end(rest: list[Arg], at: int) -> int:
    return next((place for place in range(at, len(rest)) if rest[place].text in (";", "+")), len(rest))


def _exec(
    judge: Judge,
    names: list[str],
    rest: list[Arg],
    roots: list[Arg],
    inner: list[Arg],
    before: Sequence[Command],
) -> None:
    texts = [item.text for item in inner]
    first = (texts[0] if texts else "") or ""
    if texts[:1] == ["rm"] and texts[-1:] == ["{}"] and set(texts[1:-1]) <= _RM_FLAGS:
        _deletes(judge, names, rest)
    elif first.rpartition("/")[2] not in _TAKES_PATHS and not _compiles(inner):
        judge.deed("executes", f"find -exec {first}", "it runs a command that does more than read")
    else:
        if first not in _SHOWS_NAMES:
            found(judge, rest, roots)
        listed = Arg("{}", lists_paths=True, literal=False)
        judge.run([listed if item.text == "{}" else item for item in inner], before)


def found(judge: Judge, rest: Sequence[Arg], roots: Sequence[Arg]) -> None:
    """The files that an expression of find may give are read."""
    texts = texts_of(rest)
    names = [after for text, after in pairwise(texts) if text in ("-name", "-iname")]
    plain = not set(texts) & {"!", "-not", ",", "-prune"}
    either = texts.count("-o") + texts.count("-or")
    plain = plain and (not either or len(names) == either + 1)
    many = any if either else all
    first = texts.index("(") if "(" in texts else 0
    typed = ("-type", "f") in pairwise(texts) and (not either or texts.index("-type") < first)

    def kept(path: str) -> bool:
        last = path.rpartition("/")[2].lower()
        return not plain or not names or many(fnmatchcase(last, name.lower()) for name in names)

    for root in roots or [Arg(".", (".",))]:
        judge.tree(root, not (typed and plain), kept)


def _compiles(inner: list[Arg]) -> bool:
    """`python3 -m py_compile`: reads, and runs nothing of what it reads."""
    return texts_of(inner[:3]) in (["python3", "-m", "py_compile"], ["python", "-m", "py_compile"])


def _deletes(judge: Judge, names: list[str], rest: list[Arg]) -> None:
    """What is deleted has to be named before, and be what a build makes."""
    texts = texts_of(rest)
    if not names or not all(_JUNK.fullmatch(item) for item in names):
        why = "it deletes more than files that a build makes"
    elif "!" in texts or "-not" in texts:
        why = "it deletes all but what is named"
    elif not _deletes_after_names(texts):
        why = "it deletes before it looks at names"
    else:
        return
    judge.deed("deletes_widely", "find -delete", why)


def _deletes_after_names(texts: list[str]) -> bool:
    """True when each -delete comes after a name in its own alternative."""
    named = False
    for text in texts:
        if text in ("-name", "-iname"):
            named = True
        elif text in ("-o", "-or", ","):
            named = named and "(" in texts
        elif text in ("-delete", "-exec") and not named:
            return False
    return True


def xargs(judge: Judge, grammar: Grammar, rest: list[Arg], before: Sequence[Command]) -> None:
    """Only readers, and only of paths that a command before it lists."""
    parsed = parse(judge, grammar, rest)
    inner = parsed.after
    if not inner:
        judge.deed("computes", "xargs")
        return
    start = len(before)
    while start and before[start - 1].operator == "|":
        start -= 1
    feed = tuple(before[start - 1 :]) if start else ()
    first = (inner[0].text or "").rpartition("/")[2]
    if first not in _TAKES_PATHS and not _compiles(inner):
        judge.deed("executes", f"xargs {first}", "it is run with words that are not known before")
        return
    printed = _echoed(judge, feed)
    if printed and not any(option.kinds for option, _ in parsed.given if option.name in ("-I", "-i")):
        judge.deed("computes", "xargs")
        judge.run([*inner, *printed], before)
        return
    if first not in ("echo", "basename", "dirname", "printf") and not (feed and lists_paths(feed)):
        judge.deed("unknown_word", f"xargs {first}", "paths that are not known before the line runs")
        return
    judge.deed("computes", "xargs")
    listed = Arg("{}", lists_paths=True, literal=False, feed=() if first in _SHOWS_NAMES else feed)
    marker = next((value.text for value in parsed.values("-I", "-i") if value.text), "")
    marker = marker or ("{}" if "-i" in parsed.names() else "")
    if marker:
        judge.run([listed if marker in (item.text or "") else item for item in inner], before)
    else:
        judge.run([*inner, listed], before)


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
    if args and args[0].text == "find":
        at = next((at for at, item in enumerate(args) if (item.text or "-")[0] in "-(!"), len(args))
        found(judge, args, args[1:at])
    elif args and args[0].text == "ls":
        folders = [item for item in args[1:] if not (item.text or "-").startswith("-")]
        for item in folders or [Arg(".", (".",))]:
            judge.tree(item, True, _in_folder(judge, item))
    elif args and args[0].text in ("fd", "fdfind"):
        paths = [item for item in args[1:] if not (item.text or "-").startswith("-")][1:]
        for item in paths or [Arg(".", (".",))]:
            judge.tree(item, False)


def _in_folder(judge: Judge, item: Arg) -> Callable[[str], bool]:
    """Says of a path whether it lies in the folder itself and not further down."""
    folders = {
        judge.world.look(posixpath.join(base, text)).path for base in judge.folders for text in item.texts
    }
    return lambda path: (posixpath.dirname(path) or ".") in folders
