"""The words of a command as a judge sees them: what a program would get, as far as that is certain.

Takes words of `spak.shell` and the variables that the line itself has set; gives Args. Nothing is guessed: a
word whose expansion is not known is an Arg without texts.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
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
_AROUND = re.compile(r"\{[^{}]*\0[^{}]*\.\.|\.\.[^{}]*\0[^{}]*\}")
_RANGE = re.compile(r"(-?\d{1,4}|[A-Za-z])\.\.(-?\d{1,4}|[A-Za-z])\Z")
_PATTERN_ELSE = re.compile(r"\$\{\w+:?[-=+][^\0]*[*?\[]")
_RUNS = ("$(", "`")
"""The forms of a command whose output is put into a word."""
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
    found = [_piece(word.parts, place, known, split) for place in range(len(word.parts))]
    odd = any(_odd(part, known) for part in word.parts)
    texts: tuple[str, ...] = ()
    if all(item.texts for item in found):
        texts = tuple(map("".join, product(*(item.texts for item in found))))[: MAX_FORMS + 1]
        if len(texts) > MAX_FORMS:
            return Arg(word.text, odd=odd, literal=False)
    bare = [part for part in word.parts if isinstance(part, Text)]
    plain = "".join("x" * len(part.value) if part.quoted else part.value for part in bare)
    literal = len(bare) == len(word.parts)
    number = not literal and all(_numeric(part, known) for part in word.parts)
    globs = any(item.glob for item in found) or any(map(_globs_else, word.parts))
    return Arg(
        word.text,
        texts,
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
        return Arg(part.text, mild=part.name in HARMLESS_VARIABLES and not part.parts)
    if isinstance(part, Arithmetic):
        return Arg(part.text, mild=not _odd(part, known))
    commands = part.line.commands
    lists = len(parts) == 1 and part.form in _RUNS and lists_paths(commands)
    return Arg(part.form, lists_paths=lists, feed=commands if lists else ())


def _is_whole(parts: tuple[Part, ...], place: int) -> bool:
    """True where `.` may stand for the folder's whole path: it begins a path and ends a name."""
    before = "".join(part.value if isinstance(part, Text) else "\0" for part in parts[:place])
    following = parts[place + 1] if place + 1 < len(parts) else Text("/")
    return bool(re.fullmatch(r"(-[A-Za-z]|.*[=:,])?", before)) and (
        isinstance(following, Text) and following.value.startswith(("/", ":"))
    )


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
    if name not in ("basename", "dirname") or count != 2:
        return None
    inner = arg(command.words[1], known)
    if inner.glob and not all(part.quoted for part in command.words[1].parts):
        return None  # it may become several words
    form = r"(?!-)[^\n]*[^/\n]" if name == "basename" else r"(?!-|/[^/]*\Z|.*//)(?=.*/)[^\n]*[^/\n]"
    if not all(re.fullmatch(form, text) for text in inner.texts):
        return None
    return _changed(inner, *(("##", "*/") if name == "basename" else ("%", "/*")))


def _changed(found: Arg, sign: str, pattern: str) -> Arg | None:
    """What is left without what the pattern fits, where that is certain for each text."""
    if found.here and not all(_within(text, sign, pattern) for text in found.texts):
        return None
    texts = [_cut(text, sign, pattern, found.glob) for text in found.texts]
    sure = tuple(dict.fromkeys(text for text in texts if text is not None))
    if not sure or None in texts:
        return None
    return replace(found, texts=sure, mild=False, number=False, lists_paths=False, literal=False)


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
        if _is_plain(part):
            return part.name in _COUNTS or is_number(known.get(part.name))
        return part.text.startswith("${#")
    if isinstance(part, Arithmetic):
        return _sum(part.parts, known)
    return part.form in _RUNS and gives_number(part.line.commands)


def _sum(parts: tuple[Part, ...], known: Known, also: str = "") -> bool:
    """True for arithmetic on numbers and on what is certain to be one."""
    if not all(isinstance(part, Text) or _numeric(part, known) for part in parts):
        return False
    inner = "".join(part.value if isinstance(part, Text) else "1" for part in parts)
    names = re.findall(r"[A-Za-z_]\w*", inner)
    bare = re.sub(r"[A-Za-z_]\w*", "1", inner.replace(also, " ") if also else inner)
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
    if split and isinstance(alone, Variable) and _is_plain(alone) and not (alone.quoted or alone.parts):
        found = known.get(alone.name)
        texts = [text for text in (found.text or "").split(" ") if text] if found is not None else []
        if found is not None and found.text is not None and not any(map(_SPLITS.search, texts)):
            return [
                replace(found, written=text, texts=(text,), glob=found.glob or _globs(text), literal=False)
                for text in texts
            ]
    first = arg(word, known, split)
    plain = [part for part in word.parts if not (isinstance(part, Text) and part.quoted)]
    bare = "".join(part.value if isinstance(part, Text) else "\0" for part in plain)
    if not first.texts or "{" not in bare or not ("," in bare or ".." in bare):
        return [first]
    # as it is: braces of a variable, and around one where a range would be
    unclear = any(text.count(char) != bare.count(char) for char in "{}," for text in first.texts)
    if unclear or len(plain) < len(word.parts) or _AROUND.search(bare):
        return [Arg(word.text, literal=False)]
    whole = _RANGE.match(bare[1:-1]) if bare[0] == "{" and bare[-1] == "}" else None
    if whole and whole[1].isdigit() and whole[2].isdigit() and MAX_FORMS <= _count(whole) <= MAX_COUNT:
        return [Arg(word.text, mild=True, literal=False, number=True)]
    rows = [row for row in map(braces, first.texts) if row is not None]
    if len(rows) < len(first.texts) or len(set(map(len, rows))) != 1:
        return [Arg(word.text, literal=False, odd=True)]
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
    """All words that brace expansion makes; None when they are too many or not understood. A long range of
    numbers within a word is a pattern for all that could stand there."""
    todo, done = [text], []
    while todo:
        now = todo.pop()
        found = _BRACES.search(now)
        if found is None:
            done.append(now)
            continue
        inner: list[str] | None
        if "," in found[1]:
            inner = found[1].split(",")
        elif ".." in found[1]:
            inner = _range(found[1])
        else:
            inner = ["\0" + found[1] + "\1"]  # braces that stay
        if inner is None:
            return None
        todo += [now[: found.start()] + form + now[found.end() :] for form in inner]
        if len(todo) + len(done) > MAX_FORMS:
            return None
    return [form.replace("\0", "{").replace("\1", "}") for form in sorted(done)]


def _count(ranged: re.Match[str]) -> int:
    return abs(int(ranged[1]) - int(ranged[2])) + 1


def _range(text: str) -> list[str] | None:
    """The words of `{a..c}` or `{1..9}`."""
    ranged = _RANGE.match(text)
    if ranged is None:
        return None
    first, last = ranged[1], ranged[2]
    if first.isalpha() or last.isalpha():
        letters = first.isalpha() and last.isalpha() and first.isupper() == last.isupper()
        low, high = sorted((ord(first[-1]), ord(last[-1])))
        return [chr(code) for code in range(low, high + 1)] if letters else None
    if _count(ranged) > MAX_COUNT:
        return None
    if _count(ranged) >= MAX_FORMS:
        return None if "-" in first + last else ["*"]
    low, high = sorted((int(first), int(last)))
    padded = any(re.match(r"-?0\d", end) for end in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return [str(number).zfill(width) for number in range(low, high + 1)]


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
