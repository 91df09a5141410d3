"""The interpreter of tables: what the words of one command mean, and what they do.

Takes a Grammar, the Judge of the line and the words after the program's name; notes deeds and paths. Every
word has to find its place: an option that the table does not list, a word too many, or a value that is not of
its kind is a deed of its own, which no policy of ours permits, and which names the word.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from spak.commandline import kinds, lists
from spak.commandline.judge import Judge, Parsed
from spak.commandline.table import Grammar, Kind, Option, When
from spak.commandline.words import HERE, READERS_OF_PIPES, Arg, texts_of

_OF_SHELLS = lists.names("judge", "of_shells")
_ASSIGNS = re.compile(r"[A-Za-z_]\w*=")
_DIGITS = re.compile(r"\d+")
_INPUT = Arg("-", ("-",))
_COUNTED = re.compile(r"(-[A-Za-z])\"?\$\(nproc\)\"?\Z")
"""`-j$(nproc)`: the option is known, and its value is a number."""


def interpret(judge: Judge, grammar: Grammar, rest: list[Arg]) -> None:
    """Note what the command does."""
    if judge.only_asks(rest):
        judge.deed("computes", grammar.about or grammar.name)
        return
    calm = grammar.name in READERS_OF_PIPES
    rest = [_INPUT if item.text == "/dev/stdin" or (calm and item.piped) else item for item in rest]
    if grammar.code:
        judge.programs.readers[grammar.code](judge, grammar, rest)
        return
    parsed = parse(judge, grammar, rest)
    if grammar.verbs:
        _verb(judge, grammar, parsed, rest)
        return
    apply(judge, grammar, parsed)


def _verb(judge: Judge, grammar: Grammar, parsed: Parsed, rest: list[Arg]) -> None:
    _values(judge, grammar, parsed)
    verb = parsed.operands[0] if parsed.operands else Arg("")
    inner = grammar.verbs.get(verb.text or "") if verb.literal else None
    if inner is not None:
        folders = judge.folders
        if grammar.name == "git":  # its words are seen from the folder of -C
            judge.folders = judge.wholes(posixpath.join("", *texts_of(parsed.values("-C"))))
        interpret(judge, inner, parsed.after)
        judge.folders = folders
    elif parsed.operands:
        why = f"the table of {grammar.name} has no such verb"
        judge.deed("unknown_option", f"{grammar.name} {verb.written}", why)
    elif grammar.bare in grammar.verbs:
        interpret(judge, grammar.verbs[grammar.bare], rest)
    elif grammar.bare:
        judge.deed(grammar.bare, grammar.about or grammar.name)
    else:
        judge.deed("unknown_value", grammar.name, "no verb is written out")


def apply(judge: Judge, grammar: Grammar, parsed: Parsed) -> None:
    """Note the deed, the values and the operands of a command whose words were sorted."""
    given, name = parsed.names(), grammar.name
    for when in grammar.when:
        if _holds(when, given, parsed):
            named = {**grammar.kinds, **when.changes.get("kinds", {})}
            grammar = replace(grammar, **{**when.changes, "kinds": named})
    if grammar.one_of and len(grammar.one_of & given) != 1:
        judge.deed("not_understood", name, f"not exactly one of {', '.join(sorted(grammar.one_of))}")
    if grammar.needs - given:
        judge.deed("not_understood", name, f"without {', '.join(sorted(grammar.needs))}")
    judge.deed(grammar.does, (grammar.about or name).replace("{}", name), grammar.why.replace("{}", name))
    _values(judge, grammar, parsed)
    _operands(judge, grammar, parsed)


def _holds(when: When, given: set[str], parsed: Parsed) -> bool:
    if any(names and not names & given for names in (when.given, when.also)) or when.missing & given:
        return False
    words = ("$" if item.text is None else item.text for item in parsed.operands)
    return when.words is None or when.words.match(" ".join(words)) is not None


def _values(judge: Judge, grammar: Grammar, parsed: Parsed) -> None:
    for option, values in parsed.given:
        for kind, value in zip(option.kinds, values, strict=False):
            kinds.take(judge, grammar, grammar.kinds.get(kind.name, kind), value, parsed, option.name)


def _operands(judge: Judge, grammar: Grammar, parsed: Parsed) -> None:
    placed, short = place(parsed.operands, [kind for kind in grammar.operands if kind.name != "command"])
    for item, kind in placed:
        if kind is None:
            judge.deed(grammar.otherwise, f"{grammar.name} {item.written}", "no word is expected here")
        else:
            kinds.take(judge, grammar, grammar.kinds.get(kind.name, kind), item, parsed)
    trees = [kind for kind in grammar.operands if kind.count == "*" and kind.name.startswith("tree")]
    if trees and not any(kind in trees for _, kind in placed):
        kinds.take(judge, grammar, trees[0], HERE, parsed)
    if short and short.name == "pyfile":  # which is its input then
        kinds.take(judge, grammar, short, Arg("-", ("-",)), parsed)
    elif short:
        judge.deed(grammar.otherwise, grammar.name, f"a word is missing: {short.name}")
    if all(kind.name != "command" for kind in grammar.operands):
        return
    if parsed.after and (not grammar.only or parsed.after[0].text in grammar.only):
        loose, judge.loose = judge.loose, judge.loose or grammar.name not in _OF_SHELLS
        judge.run(parsed.after)
        judge.loose = loose
    elif parsed.after:
        judge.deed(grammar.otherwise, f"{grammar.name} {parsed.after[0].written}", "another program")
    else:
        judge.deed(grammar.otherwise, grammar.name, "no command is written out")


def place(
    operands: Sequence[Arg], slots: Sequence[Kind]
) -> tuple[list[tuple[Arg, Kind | None]], Kind | None]:
    """Each operand with its kind, None for one too many; and the first kind left that needs a word."""
    free = len(operands) - sum(not kind.count for kind in slots)
    found: list[tuple[Arg, Kind | None]] = []
    for kind in slots:
        take = 1 if not kind.count else max(0, min(free, 1 if kind.count == "?" else free))
        free -= take if kind.count else 0
        if len(found) + take > len(operands):
            return found, kind
        found += [(item, kind) for item in operands[len(found) : len(found) + take]]
    return found + [(item, None) for item in operands[len(found) :]], None


# ---- sorting words


def parse(judge: Judge, grammar: Grammar, rest: list[Arg]) -> Parsed:
    """The options with their values and the operands; what has no place becomes a deed."""
    found = Parsed()
    if grammar.style == "words":
        found.operands = list(rest)
        return found
    commands = next((at for at, kind in enumerate(grammar.operands) if kind.name == "command"), None)
    if grammar.letters:
        rest = _spelled_out(grammar, rest)
    at = 0
    while at < len(rest):
        item, text = rest[at], rest[at].text
        counted = grammar.options.get(_COUNTED.sub(r"\1", item.written)) if not item.texts else None
        if commands is not None and _begins(grammar, commands, found, item):
            found.after = rest[at + (text == "--") :]
            break
        at += 1
        if text == "--":
            found.first_after_dashes = len(found.operands)
            found.operands += rest[at:]
            break
        if counted is not None:
            found.given.append((counted, [Arg(item.written, number=True)]))
        elif text is not None and text[:1] == "+" and text in grammar.options:
            found.given.append((grammar.options[text], []))
        elif not _dashed(item):
            if grammar.response and any(form.startswith("@") for form in item.texts):
                _unknown(judge, grammar, found, item, "a file of further words")
            found.operands.append(item)
            if grammar.verbs or grammar.stops:
                found.after = rest[at:]
                found.operands += [] if grammar.verbs else rest[at:]
                break
        elif text is None or (item.glob and not item.literal):
            _unknown(judge, grammar, found, item, "a word that may be an option")
        else:
            at += _option(judge, grammar, found, item, text, rest[at:])
            if found.given and found.given[-1][0].name in grammar.ends:
                found.after = rest[at:]
                break
    return found


def _begins(grammar: Grammar, commands: int, found: Parsed, item: Arg) -> bool:
    """Whether the command that a program runs begins with the word: after as many operands as come before
    it, or after all that assign a variable."""
    if grammar.operands[commands - 1].count == "*" and commands:
        return item.text == "--" or not (_dashed(item) or _ASSIGNS.match(item.text or ""))
    return len(found.operands) == commands and (item.text == "--" or not _dashed(item))


def _spelled_out(grammar: Grammar, rest: list[Arg]) -> list[Arg]:
    """`tar cfC a.tar src .` with a dash before each letter, and each value after its letter."""
    first = rest[0].text if rest else None
    if not first or first.startswith("-") or not rest[0].literal:
        return rest
    words, left = [], rest[1:]
    for letter in first:
        words.append(Arg("-" + letter, ("-" + letter,)))
        option = grammar.options.get("-" + letter)
        count = len(option.kinds) if option is not None else 0
        words, left = words + left[:count], left[count:]
    return words + left


def _dashed(item: Arg) -> bool:
    return any(form.startswith("-") and len(form) > 1 for form in item.texts)


def _unknown(judge: Judge, grammar: Grammar, found: Parsed, item: Arg, why: str = "") -> None:
    found.fits = False
    why = why or f"the table of {grammar.name} does not list it"
    judge.deed("unknown_option", f"{grammar.name} {item.written}", why)


def _option(judge: Judge, grammar: Grammar, found: Parsed, item: Arg, text: str, rest: list[Arg]) -> int:
    """Take one word that is an option or several; gives how many words after it are its values."""
    for option, value in _spelled(grammar, text):
        if option is None or (value is not None and len(option.kinds) != 1):
            _unknown(judge, grammar, found, item)
            break
        if value is not None or option.form == "?":
            found.given.append((option, [] if value is None else [_part(item, value)]))
            continue
        values = rest[: len(option.kinds)]
        found.given.append((option, values))
        if len(values) < len(option.kinds):
            _unknown(judge, grammar, found, item, "its value is missing")
        if option.kinds:
            return len(option.kinds)
    return 0


def _spelled(grammar: Grammar, text: str) -> Iterator[tuple[Option | None, str | None]]:
    """The options of a word, each with the value that is joined to it; None for one that the table does not
    list, after which nothing comes."""
    exact = grammar.options.get(text)
    if exact is not None and not exact.kinds:
        yield exact, None
    elif text.startswith("--") or grammar.style in ("single", "go"):
        yield _long(grammar, text[1:] if text.startswith("--") and grammar.style == "go" else text)
    else:
        yield from _cluster(grammar, text)


def _long(grammar: Grammar, text: str) -> tuple[Option | None, str | None]:
    """`--name=value`, `-O2`, `-Iinclude`, `-Wall`: the longest spelling that the word begins with."""
    name, sign, value = text.partition("=")
    options, single = grammar.options, grammar.style == "single" and not text.startswith("--")
    plain = options.get(name)
    joined = options.get(name + "=") or plain
    if sign and joined is not None and joined.kinds and (joined.form == "=" or not single):
        return joined, value
    if not sign and plain is not None and plain.form != "=":
        return plain, None
    for size in range(len(text) - 1, 1, -1) if not text.startswith("--") else ():
        option = options.get(text[:size])
        if option and option.kinds and (option.form == "?" or (size == 2 and single and not option.form)):
            return option, text[size:]
    return None, None


def _cluster(grammar: Grammar, text: str) -> Iterator[tuple[Option | None, str | None]]:
    """`-la`, `-n5`, `-5`."""
    at = 1
    while at < len(text):
        digits = _DIGITS.match(text, at) if "-#" in grammar.options else None
        option = grammar.options.get("-#" if digits else "-" + text[at])
        at = digits.end() if digits else at + 1
        value = text[at:] if option is not None and option.kinds else ""
        yield option, value or None
        if value:
            return


def _part(item: Arg, value: str) -> Arg:
    if value == "/dev/stdin":
        return _INPUT
    return Arg(value or item.written, (value,), item.glob, value.startswith("~"), literal=item.literal)
