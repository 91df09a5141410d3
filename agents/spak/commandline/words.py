"""The words of a command as a judge sees them: what a program would get, as far as that is certain.

Takes words of `spak.shell` and the variables that the line itself has set; gives Args. Nothing is guessed: a
word whose expansion is not known is an Arg without texts.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from operator import eq

from spak.commandline import lists
from spak.commandline.outputs import gives_number, lists_paths
from spak.shell import Arithmetic, Command, Part, Substitution, Text, Variable, Word

HARMLESS_VARIABLES = lists.names("words", "variables")
_NUMBERS = re.compile(r"[\s\d+*/%():-]*\Z")
_NAME = re.compile(r"[A-Za-z_]\w*")
_COUNTS = frozenset(["?", "#", "$", "!", "RANDOM", "SECONDS", "LINENO", "UID"])
_CUT = re.compile(r"\$\{(\w+)(##?|%%?)[^}]*\}\Z")
_SLICE = re.compile(r"\$\{[\w@*]+:(?![-=+?])")
_BRACES = re.compile(r"\{([^{}]*)\}")
_AROUND = re.compile(r"\{[^{}]*\0[^{}]*\.\.|\.\.[^{}]*\0[^{}]*\}")
_RANGE = re.compile(r"(-?\d{1,4})\.\.(-?\d{1,4})|([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z])")
_LONG_RANGE = re.compile(r"\{\d{1,3}\.\.(\d{1,3}|1000)\}")
"""Of so many numbers that the words are not listed."""
_PATTERN_ELSE = re.compile(r"\$\{\w+:?[-=+][^\0]*[*?\[]")
_RUNS = ("$(", "`")
"""The forms of a command whose output is put into a word."""
_SPLITS = re.compile(r"\s")
MAX_FORMS = 64
READERS_OF_PIPES = lists.names("words", "read_pipes")
"""Programs that may be given the output of a command, itself judged, as a file: `<(..)`."""


@dataclass(frozen=True, slots=True)
class Arg:
    """One word. `texts` are the texts that it may become (a glob counts as its pattern); empty: not known."""

    written: str
    texts: tuple[str, ...] = ()
    glob: bool = False
    tilde: bool = False
    lists_paths: bool = False
    """True for the output of a command that lists paths below the workspace."""
    mild: bool = False
    """True when what is not known is but a number or a harmless variable, so that printing it is fine."""
    odd: bool = False
    """True for arithmetic that may evaluate more than numbers, and for braces that make very many words."""
    literal: bool = True
    """True when no expansion took part."""
    piped: bool = False
    """True for the output of a command that is read like a file, `<(..)` and nothing else."""
    number: bool = False
    """True for what is certain to be a whole number, also where it is not known which."""
    here: bool = False
    """True for a path that is relative to the folder the line is in."""
    feed: tuple[Command, ...] = ()
    """The commands that list the paths, where `lists_paths`."""

    @property
    def text(self) -> str | None:
        """Its text, where it can be only one."""
        return self.texts[0] if len(self.texts) == 1 else None

    def below(self, folder: str) -> Arg:
        """The path that it names, seen from where a path to the folder begins."""
        return replace(self, texts=tuple(posixpath.join(folder, text) for text in self.texts))


HERE = Arg(".", (".",))
"""The folder that the line is in."""
Known = dict[str, Arg]


def is_number(found: Arg | None) -> bool:
    """True when arithmetic with it evaluates a number and nothing else."""
    return found is not None and (
        found.number or (bool(found.texts) and all(re.match(r"-?\d{1,9}\Z", text) for text in found.texts))
    )


def arg(word: Word, known: Known, split: bool = True) -> Arg:
    """The word with what the line has set put in; not known when that may be cut into several (`split`)."""
    only = word.parts[0] if len(word.parts) == 1 else None
    if isinstance(only, Text) and (only.quoted or not any(sign in only.value for sign in "*?[~")):
        return Arg(word.text, (only.value,))
    found = [_piece(word.parts, place, known, split) for place in range(len(word.parts))]
    odd = any(_odd(part, known) for part in word.parts)
    texts = tuple(islice(map("".join, product(*(item.texts for item in found))), MAX_FORMS + 1))
    bare = [part for part in word.parts if isinstance(part, Text)]
    plain = "".join("x" * len(part.value) if part.quoted else part.value for part in bare)
    literal = len(bare) == len(word.parts)
    number = not literal and all(_numeric(part, known) for part in word.parts)
    globs = any(item.glob for item in found)
    return Arg(
        word.text,
        texts if len(texts) <= MAX_FORMS else (),
        globs or "*" in plain or "?" in plain or bool(re.search(r"\[.*\]", plain)),
        any(item.tilde for item in found) or plain.startswith("~") or ":~" in plain,
        any(item.lists_paths for item in found) and not _leads_on(word.parts, found),
        number or (any(item.mild for item in found) and "/" not in plain),
        odd,
        literal,
        isinstance(only, Substitution) and only.form == "<(",
        number,
        any(item.here for item in found),
        tuple(command for item in found for command in item.feed),
    )


def _leads_on(parts: tuple[Part, ...], found: list[Arg]) -> bool:
    """Whether a slash comes after a part that is paths which a command lists."""
    first = next(at for at, item in enumerate(found) if item.lists_paths)
    return any(not isinstance(part, Text) or "/" in part.value for part in parts[first + 1 :])


def _piece(parts: tuple[Part, ...], place: int, known: Known, split: bool) -> Arg:
    """What one part of a word gives."""
    part = parts[place]
    if isinstance(part, Text):
        return Arg(part.value, (part.value,))
    found = _expanded(part, known)
    if found is not None and not (found.here and not _is_whole(parts, place)):
        if part.quoted or not split:
            return found
        texts = () if any(map(_SPLITS.search, found.texts)) else found.texts
        return replace(found, texts=texts, glob=found.glob or any(map(_globs, texts)))
    if isinstance(part, Variable):
        glob = not part.quoted and _PATTERN_ELSE.match(part.text) is not None
        return Arg(part.text, glob=glob, mild=part.name in HARMLESS_VARIABLES and not part.parts)
    if isinstance(part, Arithmetic):
        return Arg(part.text, mild=not _odd(part, known))
    commands = part.line.commands
    lists = len(parts) == 1 and part.form in _RUNS and lists_paths(commands)
    return Arg(part.form, lists_paths=lists, feed=commands if lists else ())


def _is_whole(parts: tuple[Part, ...], place: int) -> bool:
    """True where `.` may stand for the folder's whole path: it begins a path and ends a name."""
    before, after = (
        "".join(part.value if isinstance(part, Text) else "\0" for part in some)
        for some in (parts[:place], parts[place + 1 :])
    )
    return re.fullmatch(r"(-[A-Za-z]|.*[=:,])?", before) is not None and after[:1] in ("", "/", ":")


def _is_plain(part: Variable) -> bool:
    return part.text in (f"${part.name}", f"${{{part.name}}}")


def _expanded(part: Part, known: Known) -> Arg | None:
    """What an expansion gives as far as the line tells; None when it tells nothing."""
    if isinstance(part, Variable):
        if part.name == "PWD" and _is_plain(part):
            return Arg(part.text, (".",), here=True)
        found, cut = known.get(part.name), _CUT.match(part.text)
        if found is None or _is_plain(part):
            return found
        if cut is None or len(part.parts) != 1 or not isinstance(part.parts[0], Text):
            return None
        return _changed(found, cut[2], part.parts[0].value)
    if not isinstance(part, Substitution) or part.form not in _RUNS or len(part.line.commands) != 1:
        return None
    command = part.line.commands[0]
    if command.redirections or command.assignments or command.within:
        return None
    name, count = command.words[0].value if command.words else None, len(command.words)
    if name == "pwd" and count == 1:
        return Arg("$(pwd)", (".",), here=True)
    if name not in _PARTS_OF_PATHS or count != 2:
        return None
    sign, pattern, form = _PARTS_OF_PATHS[name]
    inner = arg(command.words[1], known)
    one = not inner.glob or all(part.quoted for part in command.words[1].parts)
    fits = one and all(re.fullmatch(form, text) for text in inner.texts)
    return _changed(inner, sign, pattern) if fits else None


_PARTS_OF_PATHS = {
    "basename": ("##", "*/", r"(?!-)([^\n]*/)?[^/\n]+"),
    "dirname": ("%", "/*", r"(?!-)/?([^/\n]+/)+[^/\n]+"),
}
"""Programs that print a part of a path, as an expansion of which paths: no option, and no odd slashes."""


_CUTS = {("##", "*/"): r"(?s)\A.*/", ("%", "/*"): r"/[^/]*\Z"}
"""Patterns of `${name##pattern}` and its kin that are no plain text, and what they take away."""


def _changed(found: Arg, sign: str, pattern: str) -> Arg | None:
    """What is left without what the pattern fits; None where that is not certain. Of a pattern for names only
    what is written in it can be taken away, of the folder's own path nothing."""
    of_path, literal = _CUTS.get((sign, pattern)), re.escape(pattern)
    if of_path is None and (found.here or re.search(r"[][*?\\]", pattern)):
        return None
    form = of_path or (rf"\A{literal}" if sign[0] == "#" else rf"{literal}\Z")
    texts = tuple(re.sub(form, "", text, count=1) for text in found.texts)
    if (found.here or (found.glob and of_path is None)) and any(map(eq, texts, found.texts)):
        return None
    return replace(found, texts=texts, mild=False, number=False, lists_paths=False, literal=False)


def _numeric(part: Part, known: Known) -> bool:
    """True when the part is certain to give digits."""
    if isinstance(part, Text):
        return re.match(r"-?\d*\Z", part.value) is not None
    if isinstance(part, Variable):
        if _is_plain(part):
            return part.name in _COUNTS or is_number(known.get(part.name))
        return part.text.startswith("${#")
    if isinstance(part, Arithmetic):
        return _sum(part.parts, known)
    return part.form in _RUNS and gives_number(part.line.commands)


def _sum(parts: tuple[Part, ...], known: Known) -> bool:
    """True for arithmetic on numbers and on what is certain to be one."""
    inner = "".join(part.value if isinstance(part, Text) else "1" for part in parts)
    return (
        all(isinstance(part, Text) or _numeric(part, known) for part in parts)
        and all(is_number(known.get(name)) for name in _NAME.findall(inner))
        and _NUMBERS.match(_NAME.sub("1", inner)) is not None
    )


def _odd(part: Part, known: Known) -> bool:
    """True for arithmetic that may evaluate more than numbers, at any depth: a shell evaluates it again."""
    if isinstance(part, Arithmetic):
        return not _sum(part.parts, known)
    if not isinstance(part, Variable):
        return False
    if _SLICE.match(part.text) and not _sum(part.parts, known):
        return True
    return any(_odd(inner, known) for inner in part.parts)


def _globs(text: str) -> bool:
    return any(char in text for char in "*?[")


def spread(word: Word, known: Known, split: bool = True) -> list[Arg]:
    """The words that braces make of one, or that a variable is cut into; itself without either."""
    alone = word.parts[0] if len(word.parts) == 1 else None
    if isinstance(alone, Text) and (alone.quoted or "{" not in alone.value):
        return [arg(word, known, split)]
    if split and isinstance(alone, Variable) and _is_plain(alone) and not alone.quoted:
        found = known.get(alone.name, Arg(""))
        cut = (found.text or "").split(" ")
        if found.text is not None and not any(map(_SPLITS.search, cut)):
            found = replace(found, glob=found.glob or _globs(found.text), literal=False)
            return [replace(found, written=text, texts=(text,)) for text in cut if text]
    first = arg(word, known, split)
    plain = [part for part in word.parts if not (isinstance(part, Text) and part.quoted)]
    bare = "".join(part.value if isinstance(part, Text) else "\0" for part in plain)
    if not first.texts or "{" not in bare or not ("," in bare or ".." in bare):
        return [first]
    # as it is: braces of a variable, and around one where a range would be
    unclear = any(text.count(char) != bare.count(char) for char in "{}," for text in first.texts)
    if unclear or len(plain) < len(word.parts) or _AROUND.search(bare):
        return [Arg(word.text, odd=first.odd, literal=False)]
    rows = [row for row in map(braces, first.texts) if row is not None]
    if len(rows) < len(first.texts) or len(set(map(len, rows))) != 1:
        number = _LONG_RANGE.fullmatch(bare) is not None
        return [Arg(word.text, mild=number, number=number, odd=first.odd or not number, literal=False)]
    return [
        replace(
            first,
            texts=forms,
            literal=False,
            glob=first.glob or any(map(_globs, forms)),
            tilde=first.tilde or any(form.startswith("~") for form in forms),
        )
        for forms in zip(*rows, strict=True)
    ]


def braces(text: str) -> list[str] | None:
    """All words that brace expansion makes; None when they are too many or not understood."""
    todo, done = [text], []
    while todo:
        now = todo.pop()
        found = _BRACES.search(now)
        if found is None:
            done.append(now)
            continue
        inner = found[1].split(",") if "," in found[1] else _range(found[1])
        if inner is None:
            return None
        todo += [now[: found.start()] + form + now[found.end() :] for form in inner]
        if len(todo) + len(done) > MAX_FORMS:
            return None
    return [form.replace("\0", "{").replace("\1", "}") for form in sorted(done)]


def _range(text: str) -> list[str] | None:
    """The words of `{a..c}` or `{1..9}`, and of braces that stay."""
    if ".." not in text:
        return [f"\0{text}\1"]
    ranged = _RANGE.fullmatch(text)
    if ranged is None:
        return None
    ends = [end for end in ranged.groups() if end]
    if ends[0].isalpha():
        return [chr(code) for code in range(ord(min(ends)), ord(max(ends)) + 1)]
    low, high = sorted(map(int, ends))
    padded = any(re.match(r"-?0\d", end) for end in ends)
    width = max(map(len, ends)) if padded else 0
    return [str(number).zfill(width) for number in range(low, high + 1)] if high - low < MAX_FORMS else None


def variables(command: Command) -> Iterator[Variable]:
    """The variables written in a command, also in the operands of others."""
    todo = [part for word in command.all_words() for part in word.parts]
    while todo:
        part = todo.pop()
        todo += part.parts if isinstance(part, Variable | Arithmetic) else ()
        if isinstance(part, Variable):
            yield part


def texts_of(rest: Iterable[Arg]) -> list[str]:
    """The texts of words, empty for those that are not known before the line runs."""
    return [item.text or "" for item in rest]


def words(text: str) -> frozenset[str]:
    """The words of a list that is written as one text."""
    return frozenset(text.split())


def joined(*states: Known) -> Known:
    """What is known when any of these may be so."""
    first, *others = states
    found = dict(first)
    for state in others:
        found = {name: either(item, state[name]) for name, item in found.items() if name in state}
    return found


def either(one: Arg, two: Arg) -> Arg:
    """What is known when one of these may be so."""
    found = combined(one.written, (one, two))
    texts = sorted(set(found.texts))
    return one if one == two else replace(found, texts=tuple(texts) if len(texts) <= MAX_FORMS else ())


def combined(written: str, found: Sequence[Arg]) -> Arg:
    """What is known of a word that is any of these."""
    return Arg(
        written,
        tuple(text for item in found for text in item.texts) if all(item.texts for item in found) else (),
        any(item.glob for item in found),
        any(item.tilde for item in found),
        bool(found) and all(item.lists_paths for item in found),
        all(item.mild or item.texts for item in found),
        any(item.odd for item in found),
        literal=False,
        number=bool(found) and all(map(is_number, found)),
        here=any(item.here for item in found),
        feed=tuple(dict.fromkeys(command for item in found for command in item.feed)),
    )
