"""chmod, ln, tar and sqlite3: what they change, and where."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace

from spak.commandline.binaries import rule_of
from spak.commandline.commands import Judge
from spak.commandline.words import Arg, texts_of
from spak.shell import Command


def chmod(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """Plain modes for files of the workspace: no set-user bits, not for the world to write."""
    deep = any(re.match(r"-[vcf]*R[vcf]*\Z|--recursive\Z", item.text or "") for item in rest)
    words = [
        item for item in rest if not re.match(r"-[vcfR]+\Z|--(verbose|changes|recursive)\Z", item.text or "")
    ]
    mode = words[0].text if words else None
    plain = mode is not None and re.match(r"([ugoa]*[+=-][rwxX]*,?)+\Z|0?[0-7]{3}\Z", mode)
    open_to_all = mode is not None and (
        re.match(r"0?[0-7][0-7][2367]\Z", mode) or re.search(r"(^|,|[ug])[oa]+[ug]*[+=][rxX]*w", mode)
    )
    owners = mode is not None and re.match(r"([ugoa]*[+-][rwX]+,?)+\Z", mode)
    if not plain or open_to_all or len(words) < 2 or (deep and not owners):
        judge.deed(
            "refused_flag",
            f"chmod {mode}",
            "plain modes that do not let everybody write; recursion only with plain +rwX",
        )
        return
    judge.deed("writes", name)
    for item in words[1:]:
        judge.path("writes_mode", item)


def ln(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """A symbolic link to a place in the workspace."""
    flags = [text for text in texts_of(rest) if text.startswith("-")]
    words = [item for item in rest if not (item.text or "").startswith("-")]
    if not all(
        re.match(r"-[sfnvr]+\Z|--(symbolic|force|relative|verbose|no-dereference)\Z", flag) for flag in flags
    ):
        judge.deed("refused_flag", "ln " + " ".join(flags), "an option that is not known")
        return
    if not any("s" in flag for flag in flags):
        judge.deed("refused_flag", "ln", "a hard link is a second way into a file")
        return
    judge.deed("writes", name)
    if len(words) == 1:
        words = [*words, Arg(".", (".",))]
    *targets, link = words
    judge.path("writes", link)
    as_written = any(re.match(r"-\w*r|--relative", flag) for flag in flags)
    for item in targets:
        if not link.texts or not item.texts:
            judge.path("reads", item)
        for place in link.texts:
            judge.links(place, *(posixpath.join(place, posixpath.basename(text)) for text in item.texts))
            for folder in [""] if as_written else _folders(judge, place):
                # a link leads on from where it lies, not from where it was made
                judge.path("reads", replace(item, texts=tuple(posixpath.join(folder, t) for t in item.texts)))


def _folders(judge: Judge, place: str) -> set[str]:
    """The folders that a link may lie in: the place itself, where it is one."""
    kinds = {judge.world.look(posixpath.join(folder, place)).kind == "folder" for folder in judge.folders}
    return {place if folder else posixpath.dirname(place) for folder in kinds}


def tar(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    rule = rule_of(
        "f=text file=text C=write directory=write exclude=text strip-components=number X=read T=read "
        "files-from=read "
        "exclude-from=read transform=text xform=text b=number sort=text mtime=text owner=text group=text",
        "I use-compress-program to-command checkpoint-action rsh-command rmt-command F "
        "info-script new-volume-script P "
        "absolute-names S_ recursive-unlink remove-files checkpoint unlink-first U "
        "h dereference keep-directory-symlink",
    )
    words = list(rest)
    if words and words[0].text and not words[0].text.startswith("-"):
        words[0] = Arg("-" + words[0].text, ("-" + words[0].text,))
    if judge.only_asks(words):
        judge.deed("computes", name)
        return
    options, operands = judge.options(name, rule, words)
    keys = set(options)
    modes = {
        "c",
        "x",
        "t",
        "r",
        "u",
        "create",
        "extract",
        "get",
        "list",
        "append",
        "update",
        "d",
        "diff",
    } & keys
    if len(modes) != 1:
        judge.deed("not_understood", name, "not exactly one of -c, -x and -t")
        return
    mode = modes.pop()
    renamed = [*options.get("transform", []), *options.get("xform", [])]
    if renamed and mode in ("x", "extract", "get"):
        judge.deed("not_understood", name, "names that are made while it unpacks")
    if any(
        text in ("e", "s") or re.search(r"[^\w/.,^$\\*()&-]", text)
        for item in renamed
        for text in item.texts or ("s",)
    ):
        judge.deed("not_understood", name, "a transformation of names")
    for item in [*options.get("f", []), *options.get("file", [])]:
        if ":" in (item.text or ":") and item.text != "-":
            judge.deed("connects", item.written, "an archive on another machine")
        elif item.text != "-":
            judge.path("writes" if mode in ("c", "create", "r", "u", "append", "update") else "reads", item)
    judge.deed("reads" if mode in ("t", "list", "d", "diff") else "writes", name)
    for item in operands:
        judge.path("reads", item)
    if mode in ("x", "extract", "get") and not (options.get("C") or options.get("directory")):
        judge.deed("writes", name)


def sqlite(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """A database of the workspace (or none) and plain SQL: no dot commands but those that show."""
    words: list[Arg] = []
    for item in rest:
        text = item.text or ""
        if text.startswith("-") and text.lstrip("-") in (
            "header",
            "csv",
            "json",
            "column",
            "readonly",
            "line",
            "list",
            "version",
            "table",
            "markdown",
            "noheader",
            "batch",
            "safe",
        ):
            continue
        if text.startswith("-"):
            judge.deed("refused_flag", f"sqlite3 {text}", "an option that may run or load something")
            return
        words.append(item)
    if not words:
        judge.deed(
            "computes" if rest else "not_understood", name, "" if rest else "statements from standard input"
        )
        return
    if words[0].text != ":memory:":
        judge.path("writes", words[0])
    if len(words) < 2:
        judge.deed("not_understood", name, "statements from standard input")
    for item in words[1:]:
        sql = item.text
        if (
            sql is None
            or (
                sql.lstrip().startswith(".")
                and not re.match(r"\.(tables|schema|indexes|databases|dbinfo)(\s+\w+)?\s*\Z", sql.strip())
            )
            or re.search(
                r"\n\s*\.|(?i:\b(attach|load_extension|readfile|writefile|edit|fts3_tokenizer|vacuum\s+into|recursive)\b)",
                sql,
            )
        ):
            judge.deed(
                "executes", "sqlite3", "a statement or dot command that may reach other files or programs"
            )
            return
    judge.deed("reads", name)


_COPIES = re.compile(
    r"-[avrnuzhPtplogDcxmWHiq]+\Z|--(archive|verbose|recursive|dry-run|update|checksum|stats|progress|quiet|"
    r"itemize-changes|prune-empty-dirs|(exclude|include)=[^:]*)\Z"
)


def rsync(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """Copies within the workspace; no other machine, nothing deleted, no link followed."""
    operands = [item for item in rest if not (item.text or "").startswith("-")]
    for item in rest:
        if item not in operands and not _COPIES.match(item.text or ""):
            judge.deed("refused_flag", f"{name} {item.written}", "only plain copies are understood")
    if len(operands) < 2 or any(
        not item.texts or ":" in text for item in operands for text in item.texts or ("",)
    ):
        judge.deed("connects", name, "rsync is for copies within the workspace")
        return
    judge.deed("writes", name)
    judge.operands(name, ["read*", "write"], operands, {})
