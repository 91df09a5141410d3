"""The words of a command as a judge sees them: what a program would get, as far as that is certain.

Takes words of `spak.shell` and the variables that the line itself has set; gives Args. Nothing is guessed: a
word whose expansion is not known is an Arg without texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

from spak.shell import Arithmetic, Substitution, Text, Variable, Word

HARMLESS_VARIABLES = frozenset(
    [
        "HOME",
        "PATH",
        "USER",
        "SHELL",
        "LANG",
        "HOSTNAME",
        "RANDOM",
        "SECONDS",
        "LINENO",
        "?",
        "#",
        "$",
        "UID",
        "TERM",
        "0",
        "!",
        "OSTYPE",
    ]
)
_NUMBERS = re.compile(r"[\s\d+*/%()-]*\Z")
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(-?\d{1,4}|[A-Za-z])\.\.(-?\d{1,4}|[A-Za-z])\Z")
_SPLITS = re.compile(r"\s")
MAX_FORMS = 64
READERS_OF_PIPES = frozenset(
    ("cat", "cmp", "comm", "cut", "diff", "grep", "head", "join", "paste", "sort", "tail", "wc")
)
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

    @property
    def text(self) -> str | None:
        return self.texts[0] if len(self.texts) == 1 else None


Known = dict[str, Arg]


def arg(word: Word, known: Known, split: bool = True) -> Arg:
    """The word with what the line has set put in; not known when that may be cut into several (`split`)."""
    pieces: list[tuple[str, ...]] = []
    bare: list[tuple[str, bool]] = []
    glob = mild = lists = False
    unknown = odd = False
    literal = True
    for part in word.parts:
        if isinstance(part, Text):
            pieces.append((part.value,))
            bare.append((part.value, part.quoted))
            continue
        literal = False
        if isinstance(part, Variable):
            found = known.get(part.name)
            if part.name == "PWD" and not part.parts and part.text in ("$PWD", "${PWD}"):
                pieces.append((".",))
            elif found is not None and part.text in (f"${part.name}", f"${{{part.name}}}"):
                glob, lists = glob or found.glob, lists or found.lists_paths
                mild = mild or found.mild
                if found.texts and (part.quoted or not split):
                    pieces.append(found.texts)
                elif found.texts and not any(_SPLITS.search(text) for text in found.texts):
                    pieces.append(found.texts)
                    glob = glob or any(map(_globs, found.texts))
                else:
                    unknown = True
            else:
                unknown = True
                mild = (part.name in HARMLESS_VARIABLES and not part.parts) or mild
        elif isinstance(part, Arithmetic):
            unknown = True
            plain_sum = _sum(part.text, known)
            mild, odd = plain_sum or mild, odd or not plain_sum
        else:
            assert isinstance(part, Substitution)
            unknown = True
            lists = lists or (
                len(word.parts) == 1 and part.form in ("$(", "`") and lists_paths(part.line.commands)
            )
    if unknown:
        first = word.parts[0]
        piped = len(word.parts) == 1 and isinstance(first, Substitution) and first.form == "<("
        return Arg(word.text, (), glob, False, lists, mild, odd, False, piped)
    plain = "".join("x" * len(value) if quoted else value for value, quoted in bare)
    globbed = "*" in plain or "?" in plain or bool(re.search(r"\[.*\]", plain))
    tilde = plain.startswith("~")
    texts = tuple("".join(chosen) for chosen in product(*pieces))[: MAX_FORMS + 1]
    if len(texts) > MAX_FORMS:
        return Arg(word.text, literal=False)
    return Arg(word.text, texts, glob or globbed, tilde, lists, mild, odd, literal)


def _sum(text: str, known: Known) -> bool:
    """True for arithmetic on numbers and on variables that the line has set to numbers."""
    inner = text.removeprefix("$((").removesuffix("))")
    names = re.findall(r"[A-Za-z_]\w*", inner)
    bare = re.sub(r"\$?[A-Za-z_]\w*", "1", inner)
    return bool(_NUMBERS.match(bare)) and all(
        name in known
        and known[name].texts
        and all(re.match(r"-?\d{1,9}\Z", form) for form in known[name].texts)
        for name in names
    )


def _globs(text: str) -> bool:
    return any(char in text for char in "*?[")


def spread(word: Word, known: Known, split: bool = True) -> list[Arg]:
    """The words that braces make of one, or that a variable is cut into; itself without either."""
    alone = word.parts[0] if len(word.parts) == 1 else None
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
    bare = "".join(part.value for part in word.parts if isinstance(part, Text) and not part.quoted)
    if not first.texts or "{" not in bare or not ("," in bare or ".." in bare):
        return [first]
    if any(isinstance(part, Text) and part.quoted for part in word.parts):
        return [Arg(word.text, literal=False)]
    forms = braces(first.texts[0])
    if forms is None:
        return [Arg(word.text, literal=False, odd=True)]
    return [replace(first, texts=(form,), literal=False) for form in forms]


def braces(text: str) -> list[str] | None:
    """All words that brace expansion makes; None when they are too many or not understood."""
    todo, done = [text], []
    while todo:
        now = todo.pop()
        found = _BRACES.search(now)
        if found is None:
            done.append(now)
            continue
        ranged = _RANGE.match(found[1])
        if "," in found[1]:
            inner = found[1].split(",")
        elif ranged:
            first, last = ranged[1], ranged[2]
            if first.isalpha() != last.isalpha():
                return None
            if first.isalpha():
                inner = [first, last]
            elif abs(int(last) - int(first)) > 1000:
                return None
            else:
                inner = [first, last]
        elif ".." in found[1]:
            return None
        else:
            inner = ["\0" + found[1] + "\1"]  # braces that stay
        todo += [now[: found.start()] + form + now[found.end() :] for form in inner]
        if len(todo) + len(done) > MAX_FORMS:
            return None
    return [form.replace("\0", "{").replace("\1", "}") for form in sorted(done)]


_LISTERS = ("ls", "find", "fd", "rg", "grep", "git")
_KEEPERS = ("sort", "head", "tail", "uniq", "grep", "tac", "shuf")


def lists_paths(commands: tuple[object, ...]) -> bool:
    """True when a pipeline prints paths below the workspace and nothing else."""
    from spak.shell import Command

    for index, command in enumerate(commands):
        if not isinstance(command, Command) or command.within:
            return False
        if index == 0 and any(not isinstance(part, Text) for word in command.words for part in word.parts):
            return False
        words = [word.value or word.text for word in command.words]
        if not words or (index and command.operator != "|"):
            return False
        if index and words[0] in _KEEPERS:
            if words[0] == "grep" and any(re.match(r"-[a-zA-Z]*[of]", word) for word in words[1:]):
                return False
            if words[0] != "grep" and any(
                not word.startswith("-") and not word.isdigit() for word in words[1:]
            ):
                return False
            continue
        if index:
            return False
        if words[0] not in _LISTERS or not _only_lists(words):
            return False
    return bool(commands)


def _only_lists(words: list[str]) -> bool:
    name, rest = words[0], words[1:]
    if name == "git":
        return rest[:1] == ["ls-files"] or (rest[:1] in (["diff"], ["show"]) and "--name-only" in rest)
    if name == "find":
        return not any(re.match(r"-(printf|fprint|exec|ok|delete|ls)", word) for word in rest)
    if name == "ls":
        return not any(word.startswith("-") and "l" in word for word in rest)
    if name == "grep":
        return any(re.match(r"-[a-zA-Z]*l[a-zA-Z]*\Z|--files-with-matches", word) for word in rest)
    if name == "rg":
        return any(re.match(r"-[a-zA-Z]*l[a-zA-Z]*\Z|--files", word) for word in rest)
    return name == "fd"


def texts_of(rest: Iterable[Arg]) -> list[str]:
    return [item.text or "" for item in rest]
