"""The words of a command as a judge sees them: what a program would get, as far as that is certain.

Takes words of `spak.shell` and the variables that the line itself has set; gives Args. Nothing is guessed: a
word whose expansion is not known is an Arg without texts.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

from spak.commandline import lists
from spak.commandline.outputs import gives_number, lists_paths
from spak.shell import Arithmetic, Command, Part, Substitution, Text, Variable, Word

HARMLESS_VARIABLES = lists.names("words", "variables")
_NUMBERS = re.compile(r"[\s\d+*/%()-]*\Z")
_COUNTS = frozenset(["?", "#", "$", "!", "RANDOM", "SECONDS", "LINENO", "UID"])
_CUT = re.compile(r"\$\{(\w+)(##?|%%?)[^}]*\}\Z")
_SLICE = re.compile(r"\$\{[\w@*]+:(?![-=+?])")
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(-?\d{1,4}|[A-Za-z])\.\.(-?\d{1,4}|[A-Za-z])\Z")
_PATTERN_ELSE = re.compile(r"\$\{\w+:?[-=+][^\0]*[*?\[]")
_SPLITS = re.compile(r"\s")
MAX_FORMS = 64
MAX_COUNT = 1001
"""Numbers of a range in braces."""
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
    pieces: list[tuple[str, ...]] = []
    bare: list[tuple[str, bool]] = []
    glob = mild = lists = tilde = here = unknown = False
    feed: tuple[Command, ...] = ()
    odd = any(_odd(part, known) for part in word.parts)
    literal = True
    for place, part in enumerate(word.parts):
        if isinstance(part, Text):
            pieces.append((part.value,))
            bare.append((part.value, part.quoted))
            continue
        literal = False
        found = _expanded(part, known)
        if found is not None and found.here and not _is_whole(word.parts, place):
            found = None
        if found is None:
            unknown = True
            if isinstance(part, Variable):
                mild = (part.name in HARMLESS_VARIABLES and not part.parts) or mild
            elif isinstance(part, Arithmetic):
                mild = mild or not odd
            else:
                if len(word.parts) == 1 and part.form in ("$(", "`") and lists_paths(part.line.commands):
                    lists, feed = True, part.line.commands
            continue
        glob, lists, mild = glob or found.glob, lists or found.lists_paths, mild or found.mild
        tilde, here, feed = tilde or found.tilde, here or found.here, (*feed, *found.feed)
        if found.texts and (part.quoted or not split):
            pieces.append(found.texts)
        elif found.texts and not any(_SPLITS.search(text) for text in found.texts):
            pieces.append(found.texts)
            glob = glob or any(map(_globs, found.texts))
        else:
            unknown = True
    number = not literal and all(_numeric(part, known) for part in word.parts)
    plain = "".join("x" * len(value) if quoted else value for value, quoted in bare)
    globbed = "*" in plain or "?" in plain or bool(re.search(r"\[.*\]", plain))
    if unknown:
        glob = glob or globbed or any(_globs_else(part) for part in word.parts)
        first = word.parts[0]
        piped = len(word.parts) == 1 and isinstance(first, Substitution) and first.form == "<("
        return Arg(word.text, (), glob, tilde, lists, mild or number, odd, False, piped, number, here, feed)
    tilde = tilde or plain.startswith("~") or ":~" in plain
    texts = tuple("".join(chosen) for chosen in product(*pieces))[: MAX_FORMS + 1]
    if len(texts) > MAX_FORMS:
        return Arg(word.text, odd=odd, literal=False)
    return Arg(word.text, texts, glob or globbed, tilde, lists, mild, odd, literal, False, number, here)


def _is_whole(parts: tuple[Part, ...], place: int) -> bool:
    """True where `.` may stand for the folder's whole path: it begins a path and ends a name."""
    before = "".join(part.value if isinstance(part, Text) else "\0" for part in parts[:place])
    following = parts[place + 1] if place + 1 < len(parts) else Text("/")
    return bool(re.fullmatch(r"(-[A-Za-z]|.*[=:,])?", before)) and (
        isinstance(following, Text) and following.value.startswith(("/", ":"))
    )


def _expanded(part: Part, known: Known) -> Arg | None:
    """What an expansion gives as far as the line tells; None when it tells nothing."""
    if isinstance(part, Variable):
        if part.name == "PWD" and part.text in ("$PWD", "${PWD}"):
            return Arg(part.text, (".",), here=True)
        found = known.get(part.name)
        if found is None or part.text in (f"${part.name}", f"${{{part.name}}}"):
            return found
        cut = _CUT.match(part.text)
        if cut is None or len(part.parts) != 1 or not isinstance(part.parts[0], Text):
            return None
        pattern = part.parts[0].value
        if found.here and any(not _within(text, cut[2], pattern) for text in found.texts):
            return None
        return _changed(found, [_cut(text, cut[2], pattern, found.glob) for text in found.texts])
    if isinstance(part, Substitution) and part.form in ("$(", "`") and len(part.line.commands) == 1:
        command = part.line.commands[0]
        if command.redirections or command.assignments or command.within or not command.words:
            return None
        name = command.words[0].value
        if name == "pwd" and len(command.words) == 1:
            return Arg("$(pwd)", (".",), here=True)
        if name in ("basename", "dirname") and len(command.words) == 2:
            inner = arg(command.words[1], known)
            if inner.glob and not all(part.quoted for part in command.words[1].parts):
                return None  # it may become several words
            cuts = [("##", "*/")] if name == "basename" else [("%", "/*")]
            if inner.here and any(not _within(text, *cuts[0]) for text in inner.texts):
                return None
            plain = all(re.fullmatch(r"(?!-)[^\n]*[^/\n]", text) for text in inner.texts)
            if not plain or (name == "dirname" and not all("/" in text for text in inner.texts)):
                return None
            if name == "dirname" and any(re.search(r"//|^/[^/]*$", text) for text in inner.texts):
                return None
            return _changed(inner, [_cut(text, *cuts[0], inner.glob) for text in inner.texts])
    return None


def _changed(found: Arg, texts: list[str | None]) -> Arg | None:
    known = [text for text in texts if text is not None]
    if not known or len(known) < len(texts):
        return None
    return replace(
        found, texts=tuple(dict.fromkeys(known)), mild=False, number=False, lists_paths=False, literal=False
    )


def _within(text: str, sign: str, pattern: str) -> bool:
    """True when what is taken away comes after the `.` that means the folder's path."""
    if (sign, pattern) in (("##", "*/"), ("%", "/*")):
        return "/" in text
    return sign[0] == "%" and not re.search(r"[*?]", pattern) and len(text) - len(pattern) >= 2


def _cut(text: str, sign: str, pattern: str, glob: bool) -> str | None:
    """`${name#pattern}` and its kin; None where that is not certain. Of a pattern for names only what is
    written in it can be taken away."""
    if re.search(r"[\[\]\\]", pattern):
        return None
    if (sign, pattern) in (("##", "*/"), ("%", "/*")):
        head, slash, last = text.rpartition("/")
        return last if sign == "##" else (head if slash else text)
    if re.search(r"[*?]", pattern):
        return None
    cut = text.removeprefix(pattern) if sign[0] == "#" else text.removesuffix(pattern)
    return None if glob and pattern and cut == text else cut


def _numeric(part: Part, known: Known) -> bool:
    """True when the part is certain to give digits."""
    if isinstance(part, Text):
        return re.match(r"-?\d*\Z", part.value) is not None
    if isinstance(part, Variable):
        if part.text in (f"${part.name}", f"${{{part.name}}}"):
            return part.name in _COUNTS or is_number(known.get(part.name))
        return part.text.startswith("${#")
    if isinstance(part, Arithmetic):
        return _sum(part.parts, known)
    return part.form in ("$(", "`") and gives_number(part.line.commands)


def _sum(parts: tuple[Part, ...], known: Known, also: str = "") -> bool:
    """True for arithmetic on numbers and on what is certain to be one."""
    inner = ""
    for part in parts:
        if isinstance(part, Text):
            inner += part.value
        elif _numeric(part, known):
            inner += "1"
        else:
            return False
    names = re.findall(r"[A-Za-z_]\w*", inner)
    bare = re.sub(r"[A-Za-z_]\w*", "1", inner)
    for char in also:
        bare = bare.replace(char, " ")
    return bool(_NUMBERS.match(bare)) and all(
        re.fullmatch(r"\d*", name) or is_number(known.get(name)) for name in names
    )


def _odd(part: Part, known: Known) -> bool:
    """True for arithmetic that may evaluate more than numbers, at any depth: a shell evaluates it again."""
    if isinstance(part, Arithmetic):
        return not _sum(part.parts, known)
    if not isinstance(part, Variable):
        return False
    if _SLICE.match(part.text) and not _sum(part.parts, known, ":"):
        return True
    return any(_odd(inner, known) for inner in part.parts)


def _globs_else(part: Part) -> bool:
    """Whether a variable may become a pattern that its expansion holds: `${x:-/etc/*}`."""
    return isinstance(part, Variable) and not part.quoted and bool(_PATTERN_ELSE.match(part.text))


def _globs(text: str) -> bool:
    return any(char in text for char in "*?[")


def spread(word: Word, known: Known, split: bool = True) -> list[Arg]:
    """The words that braces make of one, or that a variable is cut into; itself without either."""
    alone = word.parts[0] if len(word.parts) == 1 else None
    if isinstance(alone, Text) and (alone.quoted or "{" not in alone.value):
        return [arg(word, known, split)]
    if split and isinstance(alone, Variable) and not alone.quoted and not alone.parts:
        found = known.get(alone.name)
        if (
            found is not None
            and found.text is not None
            and alone.text in (f"${alone.name}", f"${{{alone.name}}}")
        ):
            texts = found.text.split(" ") if found.text.strip(" ") else []
            if not any(_SPLITS.search(text) for text in texts):
                return [
                    replace(
                        found, written=text, texts=(text,), glob=found.glob or _globs(text), literal=False
                    )
                    for text in texts
                    if text
                ]
    first = arg(word, known, split)
    bare = "".join(
        part.value if isinstance(part, Text) else "\0"
        for part in word.parts
        if not (isinstance(part, Text) and part.quoted)
    )
    if not first.texts or "{" not in bare or not ("," in bare or ".." in bare):
        return [first]
    if any(isinstance(part, Text) and part.quoted for part in word.parts):
        return [Arg(word.text, literal=False)]
    whole = _RANGE.match(bare[1:-1]) if bare[0] == "{" and bare[-1] == "}" else None
    if whole and whole[1].isdigit() and whole[2].isdigit() and MAX_FORMS <= _count(whole) <= MAX_COUNT:
        return [Arg(word.text, mild=True, literal=False, number=True)]
    if re.search(r"\{[^{}]*\0[^{}]*\.\.|\.\.[^{}]*\0[^{}]*\}", bare):  # which stays as it is
        return [Arg(word.text, literal=False)]
    if any(text.count(char) != bare.count(char) for char in "{}," for text in first.texts):
        return [Arg(word.text, literal=False)]  # braces of a variable stay as they are
    rows = [braces(text) for text in first.texts]
    full = [row for row in rows if row is not None]
    if len(full) < len(rows) or len({len(row) for row in full}) != 1:
        return [Arg(word.text, literal=False, odd=True)]
    return [
        replace(first, texts=forms, literal=False, glob=first.glob or any(map(_globs, forms)))
        for forms in zip(*full, strict=True)
    ]


def braces(text: str) -> list[str] | None:
    """All words that brace expansion makes; None when they are too many or not understood. A long range of
    numbers within a word is a pattern for all that could stand there."""
    todo, done = [text], []
    while todo:
        now = todo.pop()
        found = _BRACES.search(now)
        if found is None:
            done.append(now)
            continue
        if "," in found[1]:
            inner = found[1].split(",")
        elif ".." in found[1]:
            ranged = _RANGE.match(found[1])
            between = _range(ranged) if ranged else None
            if between is None:
                return None
            inner = between
        else:
            inner = ["\0" + found[1] + "\1"]  # braces that stay
        todo += [now[: found.start()] + form + now[found.end() :] for form in inner]
        if len(todo) + len(done) > MAX_FORMS:
            return None
    return [form.replace("\0", "{").replace("\1", "}") for form in sorted(done)]


def _count(ranged: re.Match[str]) -> int:
    return abs(int(ranged[1]) - int(ranged[2])) + 1


def _range(ranged: re.Match[str]) -> list[str] | None:
    """The words of `{a..c}` or `{1..9}`."""
    first, last = ranged[1], ranged[2]
    if first.isalpha() or last.isalpha():
        if not (first.isalpha() and last.isalpha() and first.isupper() == last.isupper()):
            return None
        ends = sorted((ord(first), ord(last)))
        return [chr(code) for code in range(ends[0], ends[1] + 1)]
    if _count(ranged) > MAX_COUNT:
        return None
    if _count(ranged) >= MAX_FORMS:
        return None if "-" in first + last else ["*"]
    low, high = sorted((int(first), int(last)))
    padded = any(re.match(r"-?0\d", end) for end in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return [str(number).zfill(width) for number in range(low, high + 1)]


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
