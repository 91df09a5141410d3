"""What a value or an operand may be, and what it means for the files of the workspace.

`take` judges one word by the kind that a table gives it. Kinds of paths: reads, writes, edits (in place),
runs, deletes, moves, tracks, writes_mode, deletes_tree (only what a build makes), and

    tree        a file or folder, read with all that is below it       tree_links  links followed too
    paths       several, joined by `:`                                  unpacks     an archive or a patch
    deletes_all a file, or with -r what a build makes                   tests       a path, `::` and a name
    source      no name with @ before it
    local       a path without `:`, used as the next word says

Others: text (anything that is known), prose (anything), plain (a word without / .. @ | and comma), number,
count (of three digits), suffix and stem (of the names of copies and parts), name (of a variable), word
(perhaps a path, `--name=path` too), match PATTERN, like PATTERN (perhaps a path too), choice A|B, script
LANGUAGE (scripts.py), globs (a path or a pattern that the program expands), report (a form, or form:path),
packed (a file that is packed in its place), line (a command line), rev and held (git's revisions), lines
PATTERN (with a path after the last colon), into (where copies go), query LANGUAGE (a script, or the file to
read), worktree (a folder that gets the files of a commit), program (a file that is run), pyfile (one of
Python, or its input), python (a text of Python), module (of Python, with the words after it), activate (of
a virtual environment), java (a class), named (a name that means no more), assigned (a path or name=value),
variable (name=value, or a name: with `unset` one that is taken away), host (another machine and a path
there), target (of make), extras (a folder with extras after it), plugin, none; include and exclude are
patterns of names in a tree.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from fnmatch import fnmatchcase

from spak.commandline import environment, lists, places, scripts
from spak.commandline.judge import Judge, Parsed
from spak.commandline.table import Grammar, Kind
from spak.commandline.words import HERE, Arg, words

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_INCLUDES = lists.pattern("kinds", "includes", re.IGNORECASE | re.MULTILINE)
_FORMS = lists.sections()["forms"]
_NOT_KNOWN = "a word that is not known before the line runs"
_PATHS = words("reads writes edits runs deletes moves tracks writes_mode deletes_tree")

_HOST = r"(?:[A-Za-z0-9_][\w.-]*@)?([A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)"
_URL = re.compile(rf"(?:ssh|git\+ssh|ssh\+git)://{_HOST}(?::\d{{1,5}})?/[\w./~+-]+\Z", re.ASCII)
_COPY = re.compile(rf"{_HOST}:([\w./~+-]*)\Z", re.ASCII)

Taker = Callable[["Judge", Grammar, Kind, Arg, "Parsed", str], None]


def address(text: str) -> str:
    """The host of an SSH address, as git and scp write it; empty for any other text."""
    found = _URL.match(text) if "://" in text else _COPY.match(text)
    return found[1].lower() if found else ""


def take(judge: Judge, grammar: Grammar, kind: Kind, item: Arg, parsed: Parsed, option: str = "") -> None:
    """Judge a word as the kind says; `option` is the option whose value it is. In an added table a word that
    could be a path is held to be one that is read, also where the kind is text or a form."""
    if grammar.added and kind.name in ("text", "word", "match", "like"):
        if not item.texts:
            judge.deed("unknown_word", item.written, _NOT_KNOWN)
            return
        judge.plain_paths([item], kind.detail or "reads" if kind.name == "word" else "reads")
    if item.glob and kind.name in _SHOWN:
        judge.expands(item)
    if (kind.name in _PATHS or kind.name in _PATHLIKE) and any(map(_ADDRESS.match, item.texts)):
        judge.deed("connects", item.written, "an address on a command line")
    elif kind.name in _PATHS:
        _path(judge, grammar, kind.name, item)
    else:
        TAKERS[kind.name](judge, grammar, kind, item, parsed, option)


def _path(judge: Judge, grammar: Grammar, how: str, item: Arg) -> None:
    if how == "runs" and any(text in ("", "-") for text in item.texts):
        judge.deed("executes", f"{grammar.name} {item.written}", "code from standard input")
        return
    if how == "edits":  # what a file holds may be shown, or stand in a copy of it
        judge.path("reads", item)
    judge.path("writes" if how == "edits" else how, item)
    for text in item.texts:
        if how == "tracks" and not item.glob:
            judge.pathspec(text)


def _unfit(judge: Judge, grammar: Grammar, item: Arg, option: str, why: str) -> None:
    judge.deed(grammar.otherwise, " ".join(filter(None, (grammar.name, option, item.written))), why)


def _formed(judge: Judge, grammar: Grammar, kind: Kind, item: Arg, parsed: Parsed, option: str) -> None:
    """A word of a form, as lists.toml says it."""
    form = _FORMS[kind.name]
    uses = form.get("uses", "").replace("{}", kind.detail or form.get("else", ""))
    if not item.texts and uses not in _PATHS:
        if not (form.get("number") and (item.number or item.mild or grammar.prints)):
            judge.deed("unknown_word", item.written, _NOT_KNOWN)
        return
    if not _fits(form.get("form", kind.detail), item.texts, grammar.added):
        _unfit(judge, grammar, item, option, form.get("why", "a value that the table does not list"))
    if uses and not (item.texts and "but" in form and _fits(form["but"], item.texts)):
        cut = (re.sub(form.get("cut", r"(?!)"), "", text) or "." for text in item.texts)
        texts = tuple(part for text in cut for part in re.split(form.get("split", r"(?!)"), text))
        tilde = item.tilde or any(text.startswith("~") for text in texts[1:])
        spreads = item.glob or (kind.name == "globs" and any(re.search(r"[*?{]", text) for text in texts))
        word = replace(item, texts=texts, tilde=tilde, glob=spreads)
        take(judge, grammar, Kind(uses), word, parsed, option)
        if form.get("both"):
            judge.path(uses, item)
    if "notes" in form:
        getattr(judge, form["notes"])(*item.texts)


def _fits(pattern: str, texts: Iterable[str], added: bool = False) -> bool:
    """Whether the pattern fits all of the texts; that of an added table is matched in linear time."""
    if not added:
        return all(map(re.compile(pattern).fullmatch, texts))
    import re2

    return all(re2.fullmatch(pattern, text.encode("utf-8", "backslashreplace").decode()) for text in texts)


def _choice(judge: Judge, grammar: Grammar, kind: Kind, item: Arg, parsed: Parsed, option: str) -> None:
    if not item.texts or not set(item.texts) <= set(kind.detail.split("|")):
        _unfit(judge, grammar, item, option, f"none of {kind.detail.replace('|', ', ')}")


def _word(judge: Judge, grammar: Grammar, kind: Kind, item: Arg, parsed: Parsed, option: str) -> None:
    judge.plain_paths([item], kind.detail or "reads")


def _program(judge: Judge, grammar: Grammar, kind: Kind, item: Arg, parsed: Parsed, option: str) -> None:
    """The project's own program; a text or data file is none, whatever it holds."""
    _path(judge, grammar, "runs", item)
    what = f"{grammar.name} {item.written}"
    words = [word for word in parsed.operands if word is not item]
    if judge.known_by_path(item.text or "", words):
        return
    judge.takes_code(what, words)
    if any(map(places.is_data, item.texts)):
        judge.deed("executes", what, "a file of text or data is run as a program")
    elif grammar.does != "builds":
        judge.deed("builds", grammar.name)


def _rev(judge: Judge, grammar: Grammar, kind: Kind, item: Arg, parsed: Parsed, option: str) -> None:
    """A revision or a path of git: one that leads elsewhere, or that comes after `--`, is a path."""
    if not item.texts:
        if not item.lists_paths and not item.mild:
            judge.deed("unknown_word", grammar.name, _NOT_KNOWN)
        return
    first = parsed.first_after_dashes
    after_dashes = first >= 0 and any(item is other for other in parsed.operands[first:])
    for text in item.texts:
        at = None if after_dashes else re.match(r"(?:[^:{]|\{[^}]*\})*:(?:[0-3]:)?(?![/(!])(.+)\Z", text)
        if at:  # what a commit or the index holds under the name
            judge.tree(Arg(at[1], (at[1],)), False)
        judge.pathspec(text)
    leads = any(places.secret(text) or re.match(r"/|\.\.(/|\Z)|.*/\.\./", text) for text in item.texts)
    there = any(judge.world.look(whole).kind in ("file", "folder") for whole in judge.wholes(*item.texts))
    if leads or item.tilde:
        judge.path("reads", item)
    elif after_dashes or there or kind.detail == "tree":
        judge.path("tracks", item)
        if not set(item.texts) & {".", "./", ":/"}:
            judge.tree(item, False)


def _into(judge: Judge, grammar: Grammar, kind: Kind, item: Arg, parsed: Parsed, option: str) -> None:
    """Where copies go: to this name, or into this folder under their own names."""
    judge.path("writes", item)
    judge.overwrites(*item.texts)
    sources = [other for other in parsed.operands if other is not item]
    judge.copies(sources, item, "-T" not in parsed.names(), grammar.name == "rsync")


def _target(judge: Judge, grammar: Grammar, kind: Kind, item: Arg, parsed: Parsed, option: str) -> None:
    """A target of make, or a variable of it: none that decides what is run."""
    key, sign, value = (item.text or "").partition("=")
    if not sign:
        judge.plain_paths([item])
        for name in item.texts:  # which a rule of make's own may write, from a file that ends so
            judge.use("reads", f"{name}.sh")
    elif not key.isidentifier():
        _unfit(judge, grammar, item, option, "a variable of make that is not plain")
    elif environment.matters(key) and (why := environment.trouble(key, [value], judge.is_there)):
        judge.deed("sets_environment", key, why)
    else:
        judge.pathlike(item, value)


def _source(judge: Judge, grammar: Grammar, kind: Kind, item: Arg, parsed: Parsed, option: str) -> None:
    if any(text.startswith("@") for text in item.texts):
        _unfit(judge, grammar, item, option, "a file of further words")
    if item.text == "-" and judge.stdin is None:
        code = re.sub(r"(\\|\?\?/)\n", "", judge.body or "")
        if judge.body is None or _INCLUDES.search(code):
            _unfit(judge, grammar, item, option, "code on the input that may include any file")
    file = judge.stdin if item.text == "-" else None
    judge.path("runs", item if file is None or file.text == "/dev/null" else file)


OWN_SIGNS = re.compile(r"\[.*\]|\\.?", re.DOTALL)
"""What patterns hold of which programs have their own reading."""


def _tree(judge: Judge, grammar: Grammar, kind: Kind, item: Arg, parsed: Parsed, option: str) -> None:
    values = [(option.kinds[0], value.text) for option, values in parsed.given for value in values]
    only = [OWN_SIGNS.sub("*", text) for kind, text in values if text and kind.name == "include"]
    unsure = any(kind.name == "exclude" or (kind.name == "include" and text is None) for kind, text in values)

    def kept(path: str) -> bool:  # of both the last one may count
        return unsure or not only or any(fnmatchcase(posixpath.basename(path), pattern) for pattern in only)

    for folder in parsed.values(*kind.detail.split()):
        for text in folder.texts:
            judge.tree(item.below(text), False, kept)
    judge.tree(item, kind.name == "tree_links", kept)


def _local(judge: Judge, grammar: Grammar, kind: Kind, item: Arg, parsed: Parsed, option: str) -> None:
    if any(":" in text for text in item.texts):
        if host := address(item.text or ""):
            judge.connect("ssh", host)
        judge.deed("connects", item.written, "a file on another machine")
    elif any(text.startswith("-") and text != "-" for text in item.texts):
        _unfit(judge, grammar, item, option, "a name that reads like an option")
    elif item.text != "-":
        take(judge, grammar, Kind(*kind.detail.split(" ", 1)), item, parsed, option)


def _unpacks(judge: Judge, grammar: Grammar, kind: Kind, item: Arg, parsed: Parsed, option: str) -> None:
    """The archive is read, its members are written below the folder of the options that `detail` names."""
    _local(judge, grammar, Kind("local", "reads"), item, parsed, option)
    if grammar.name == "unzip":  # it looks for names and patterns itself
        item = replace(item, texts=tuple(text + end for text in item.texts for end in ("", ".zip", ".ZIP")))
    judge.unpacks(item, parsed.values(*kind.detail.split()) or [HERE])


def _code(judge: Judge, grammar: Grammar, kind: Kind, item: Arg, parsed: Parsed, option: str) -> None:
    """A command line, a text of Python or a module, given as a word."""
    judge.programs.code[kind.name](judge, grammar, item, parsed)


def _variable(judge: Judge, grammar: Grammar, kind: Kind, item: Arg, parsed: Parsed, option: str) -> None:
    """A variable that programs see from here on, with or without a value, or that is taken away (`unset`)."""
    key, sign, value = (item.text or "").partition("=")
    known = judge.known.get(key)
    values = [value] if sign else [] if kind.detail else known.texts if known is not None else [""]
    plain = re.match(r"[A-Za-z_]\w*\Z", key) and not (sign and kind.detail)
    why = environment.trouble(key, values, judge.is_there) if plain else "not a plain assignment"
    if why:
        judge.deed("sets_environment", key if plain else f"{grammar.name} {key}", why)
    judge.paths_of(key, values)


def _host(judge: Judge, grammar: Grammar, kind: Kind, item: Arg, parsed: Parsed, option: str) -> None:
    """Another machine and a path there; with `:` also its name alone."""
    text = item.text or ""
    if host := address(text) or address(text + kind.detail):
        judge.connect("ssh", host)
    else:
        _unfit(judge, grammar, item, option, "no address that is understood")


def _query(judge: Judge, grammar: Grammar, kind: Kind, item: Arg, parsed: Parsed, option: str) -> None:
    """A program, or the file to read where one is called so."""
    if any(judge.world.look(whole).kind == "file" for whole in judge.wholes(*item.texts)):
        judge.path("reads", item)
    else:
        _script(judge, grammar, kind, item, parsed, option)


def _script(judge: Judge, grammar: Grammar, kind: Kind, item: Arg, parsed: Parsed, option: str) -> None:
    """What a program that is given as a word does beyond the deed of its command."""
    if item.text is None:
        judge.deed("unknown_word", grammar.name, "a program that is not known before the line runs")
    elif why := scripts.why(kind.detail, item.text):
        judge.deed("executes", grammar.name, why)


TAKERS: dict[str, Taker] = {
    **dict.fromkeys(_FORMS, _formed),
    **dict.fromkeys(("line", "python", "module", "pyfile"), _code),
    "prose": lambda *_: None,
    "held": _rev,
    "tree_links": _tree,
    **{taker.__name__[1:]: taker for taker in (_choice, _word, _program, _target, _rev, _into, _variable)},
    **{taker.__name__[1:]: taker for taker in (_host, _source, _local, _tree, _unpacks, _script, _query)},
}
_SHOWN = words("text match prose like")
"""Kinds of words that a program may print: a shell puts the names that a pattern matches in their place."""
_PATHLIKE = words("tree tree_links program unpacks source local into")
KINDS = frozenset(TAKERS) | _PATHS | {"command"}
"""Every kind that a table may name."""
