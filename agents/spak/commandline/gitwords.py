"""git, by verb and flag: which of its many words run something, write elsewhere or talk to others."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spak.commandline import remotes
from spak.commandline.commands import Judge
from spak.commandline.words import Arg
from spak.shell import Command

_READS = frozenset(
    [
        "status",
        "diff",
        "log",
        "show",
        "blame",
        "annotate",
        "ls-files",
        "ls-tree",
        "rev-parse",
        "rev-list",
        "describe",
        "shortlog",
        "grep",
        "cat-file",
        "name-rev",
        "merge-base",
        "whatchanged",
        "diff-tree",
        "diff-index",
        "diff-files",
        "for-each-ref",
        "show-ref",
        "reflog",
        "count-objects",
        "check-ignore",
        "check-attr",
        "fsck",
        "var",
        "version",
        "help",
        "cherry",
        "range-diff",
        "symbolic-ref",
        "show-branch",
        "verify-commit",
    ]
)
_CHANGES = frozenset(
    [
        "add",
        "commit",
        "checkout",
        "switch",
        "restore",
        "branch",
        "tag",
        "stash",
        "merge",
        "rebase",
        "cherry-pick",
        "revert",
        "reset",
        "rm",
        "mv",
        "init",
        "notes",
        "apply",
        "am",
        "bisect",
        "format-patch",
    ]
)
_STRATEGIES = frozenset({"ort", "recursive", "ours", "resolve", "octopus", "subtree"})
_RUNS = re.compile(
    r"--(exec|ext-diff|textconv|open-files-in-pager|upload-pack|receive-pack|tree-filter|template|separate-git-dir|"
    r"extcmd|tool|gpg-sign|signoff-by|edit-description|exec-path|output-directory|strategy|shell-path|config-env|"
    r"git-dir|work-tree|super-prefix|show-signature|config|file|pathspec-from-file|no-index|interactive|trailer-cmd)(=|\Z)"
)
_PLAIN_CONFIG = re.compile(
    r"(color\.\w+|core\.(quotepath|pager|autocrlf|safecrlf)|advice\.\w+|user\.(name|email)|diff\.(noprefix|renames|algorithm)|"
    r"log\.\w+|core\.abbrev|merge\.conflictstyle|commit\.gpgsign|tag\.gpgsign|init\.defaultbranch|protocol\.version|"
    r"column\.\w+|blame\.\w+|status\.\w+|rerere\.enabled|pull\.(rebase|ff)|push\.default|"
    r"fetch\.prune)=([\w.@ +-]*)\Z",
    re.IGNORECASE,
)
_VALUE = frozenset(
    [
        "-m",
        "--message",
        "-n",
        "--max-count",
        "-S",
        "-G",
        "-L",
        "--author",
        "--since",
        "--until",
        "--after",
        "--before",
        "--grep",
        "--format",
        "--pretty",
        "-c",
        "-C",
        "-b",
        "-B",
        "-t",
        "-u",
        "--date",
        "--committer",
        "-U",
        "--diff-filter",
        "--sort",
        "--points-at",
        "--contains",
        "--merged",
        "-O",
        "--onto",
        "-s",
        "--source",
        "--exclude",
        "--skip",
        "--abbrev",
        "--decorate-refs",
        "--branches",
        "--remotes",
        "--glob",
        "--word-diff-regex",
        "--stat-width",
        "-e",
        "--reuse-message",
        "--fixup",
        "--squash",
        "--trailer",
        "--cleanup",
        "-x",
        "--orphan",
        "-D",
        "-d",
        "-M",
    ]
)
_TEXTUAL = frozenset(
    [
        "-m",
        "--message",
        "-S",
        "-G",
        "--author",
        "--since",
        "--until",
        "--after",
        "--before",
        "--grep",
        "--format",
        "--pretty",
        "--date",
        "--trailer",
        "-e",
    ]
)


def git(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """The options before the verb, then the verb."""
    at = 0
    while at < len(rest):
        text = rest[at].text
        if text is None:
            judge.deed(
                "unknown_word", rest[at].written, "a word of git that is not known before the line runs"
            )
            return
        if text in ("--no-pager", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"):
            at += 1
        elif text == "-c":
            setting = rest[at + 1].text if at + 1 < len(rest) else None
            found = _PLAIN_CONFIG.match(setting or "")
            if not found or (found[1].lower() == "core.pager" and found[3] not in ("cat", "")):
                judge.deed("refused_flag", f"git -c {setting}", "a setting that may run something")
                return
            at += 2
        elif text == "-C":
            if at + 1 >= len(rest):
                break
            judge.path("reads", rest[at + 1])
            at += 2
        elif text in ("--version", "--help", "-v", "-h"):
            judge.deed("computes", "git")
            return
        elif text.startswith("-"):
            judge.deed(
                "refused_flag", f"git {text}", "an option of git that chooses other programs or folders"
            )
            return
        else:
            break
    if at >= len(rest):
        judge.deed("computes", "git")
        return
    _verb(judge, rest[at].text or "", rest[at + 1 :])


def _verb(judge: Judge, verb: str, rest: list[Arg]) -> None:
    texts = [item.text or "" for item in rest]
    if any(
        item.text is None and not _text_slot(texts, index) and not item.lists_paths and not item.mild
        for index, item in enumerate(rest)
    ):
        judge.deed("unknown_word", f"git {verb}", "a word that is not known before the line runs")
        return
    for index, text in enumerate(texts):
        if text == "--":
            break
        if (
            _RUNS.match(text)
            and not _text_slot(texts, index)
            and not (verb == "add" and text == "--interactive")
        ):
            judge.deed("refused_flag", f"git {verb} {text}", "it runs a program or reaches another folder")
            return
        if len(text) > 4 and text.startswith("--") and "=" not in text and _shortened(text):
            judge.deed("refused_flag", f"git {verb} {text}", "a shortened option that may run a program")
            return
    if verb in ("clone", "fetch", "ls-remote") and remotes.git(judge, verb, rest, texts):
        return
    handler = {
        "config": _config, "remote": _remote, "fetch": _fetch, "pull": _fetch, "push": _push, "clean": _clean,
        "worktree": _worktree, "submodule": _submodule, "grep": _grep, "archive": _archive,
    }.get(verb)  # fmt: skip
    if handler is not None:
        handler(judge, verb, rest, texts)
        return
    if verb not in _READS and verb not in _CHANGES:
        judge.deed("unknown_flag", f"git {verb}", "a verb of git that runs, fetches or rewrites")
        return
    if verb in _CHANGES and _destroys(judge, verb, texts):
        return
    if verb == "rebase" and any(re.match(r"-(i|x)|--(exec|interactive|edit-todo)", text) for text in texts):
        judge.deed("refused_flag", "git rebase", "an interactive rebase runs commands")
        return
    if (verb == "reflog" and texts[:1] in (["expire"], ["delete"])) or (
        verb == "symbolic-ref" and len(texts) > 1
    ):
        judge.deed("deletes_widely", f"git {verb}", "it changes what the repository remembers")
        return
    if verb == "bisect" and texts[:1] == ["run"]:
        judge.deed("executes", "git bisect run", "it runs a command many times")
        return
    if verb in ("blame", "annotate") and any(text.startswith("--contents") for text in texts):
        judge.deed("refused_flag", f"git {verb}", "it reads another file")
    if verb in ("commit", "merge", "am", "rebase", "cherry-pick") and any(
        re.match(r"--no-verif", text) or (verb == "commit" and re.match(r"-[a-zA-Z]*n", text))
        for index, text in enumerate(texts)
        if not _text_slot(texts, index)
    ):
        judge.deed("refused_flag", f"git {verb} --no-verify", "it goes past the project's own checks")
    if verb in ("merge", "rebase", "cherry-pick", "revert") and _strategy(texts) - _STRATEGIES:
        judge.deed("refused_flag", f"git {verb} -s", "a strategy is a program")
    if verb == "format-patch" and any(re.match(r"-o|--output|--to|--add-header", text) for text in texts):
        judge.deed("refused_flag", "git format-patch", "it writes elsewhere")
    if verb in ("apply", "am") and any(re.match(r"--(unsafe-paths|directory)", text) for text in texts):
        judge.deed("refused_flag", f"git {verb}", "it may write outside of the workspace")
    if verb == "init" and any(not text.startswith("-") for text in texts):
        judge.plain_paths(rest, "writes")
    judge.deed("reads" if verb in _READS else "commits", _about(verb, texts))
    _paths(judge, verb, rest, texts)


_NO_COMMIT = {
    "merge": {"--no-commit", "--squash", "--abort", "--quit"},
    "rebase": {"--abort", "--quit"},
    "cherry-pick": {"-n", "--no-commit", "--abort", "--quit"},
    "revert": {"-n", "--no-commit", "--abort", "--quit"},
    "am": {"--abort", "--quit"},
}
"""Options with which a verb that makes commits makes none."""


def _about(verb: str, texts: list[str]) -> str:
    """What a deed of git is called: the law knows by it what can make a commit (commit_door in guards.mg)."""
    options = {text for index, text in enumerate(texts) if not _text_slot(texts, index)}
    if options & _NO_COMMIT.get(verb, set()) and "--commit" not in options:
        return f"git {verb}, no commit"
    if verb in ("stash", "notes") and texts[:1] in (["list"], ["show"], ["apply"]):
        return f"git {verb} {texts[0]}"
    return f"git {verb}"


def _text_slot(texts: list[str], index: int) -> bool:
    return index > 0 and (texts[index - 1] in _TEXTUAL or bool(re.match(r"-[a-z]*m\Z", texts[index - 1])))


def _strategy(texts: list[str]) -> set[str]:
    """The strategies that are named by -s, attached or behind it."""
    return {
        text[2:] or "".join(texts[index + 1 : index + 2])
        for index, text in enumerate(texts)
        if text.startswith("-s") and not _text_slot(texts, index)
    }


def _shortened(text: str) -> bool:
    names = (
        "exec-path",
        "ext-diff",
        "textconv",
        "open-files-in-pager",
        "upload-pack",
        "receive-pack",
        "no-index",
        "template",
    )
    return any(name.startswith(text[2:]) for name in names)


def _paths(judge: Judge, verb: str, rest: list[Arg], texts: list[str]) -> None:
    """Words that could be paths of other places: absolute ones, and those that go up."""
    index = 0
    behind = False
    while index < len(rest):
        text, item = texts[index], rest[index]
        index += 1
        if text == "--":
            behind = True
            continue
        if not behind and text.startswith("-"):
            if re.match(r"--output(=|\Z)|-o\Z", text) and verb in _READS:
                judge.deed("refused_flag", f"git {verb} {text}", "it writes a file")
                return
            if verb in ("commit", "tag", "notes", "merge") and re.match(r"(-F|--file)", text):
                judge.plain_paths([item, *rest[index : index + 1]])
            if re.match(r"-(S|G|L)|--(author|grep|format|pretty|since|until|message|date)", text):
                index += 1 if text in _VALUE else 0
                continue
            if _text_slot([*texts, ""], index) and index < len(rest):
                index += 1
            continue
        held = re.match(r"[^:]*:(?!/)(.+)\Z", text) if verb in ("show", "cat-file", "checkout") else None
        if held and not behind:
            judge.path("reads", Arg(held[1], (held[1],)))
        if item.texts and ((item.tilde and behind) or re.match(r"/|\.\.(/|\Z)|.*/\.\./", text)):
            judge.path("reads", item)
        elif behind or verb in ("add", "rm", "mv"):
            judge.path("tracks", item)


def _destroys(judge: Judge, verb: str, texts: list[str]) -> bool:
    joined = " ".join(texts)
    why = ""
    if (
        verb == "reset"
        and "--hard" in texts
        and any(not text.startswith("-") and text not in ("HEAD",) for text in texts)
    ):
        why = "it throws commits and changes away"
    elif verb == "reset" and "--hard" in texts:
        why = "it throws changes away"
    elif verb == "branch" and re.search(r"(^| )-[a-zA-Z]*[DMC]|--force|(^| )-f", joined):
        why = "it throws a branch away by force"
    elif verb in ("checkout", "switch") and re.search(r"(^| )(-f|--force|--discard-changes)", joined):
        why = "it throws changes away by force"
    elif verb in ("checkout", "restore") and texts and texts[-1] in (".", "*", ":/"):
        why = "it throws all changes away"
    elif verb == "stash" and re.match(r"(drop|clear)", joined):
        why = "it throws stashed changes away"
    elif verb == "tag" and re.search(r"(^| )-[a-z]*[fs]|--(force|sign|local-user)|-u", joined):
        why = "it moves or signs a tag"
    elif (
        verb == "rm" and re.search(r"(^| )-[a-z]*r", joined) and (not texts or texts[-1] in (".", "*", ".."))
    ):
        why = "it takes everything away"
    elif verb == "commit" and re.search(r"(^| )-[a-z]*S|--gpg-sign", joined):
        why = "it signs by another program"
    if why:
        judge.deed("deletes_widely" if "away" in why else "refused_flag", f"git {verb}", why)
    return bool(why)


def _config(judge: Judge, verb: str, rest: list[Arg], texts: list[str]) -> None:
    if (
        texts[:1]
        and texts[0] in ("--get", "--list", "-l", "--get-all", "--get-regexp", "get", "list")
        and not any(re.match(r"--(file|global|system)|-f", text) for text in texts)
    ):
        judge.deed("reads", "git config")
        return
    plain = [text for text in texts if text != "--local"]
    if len(plain) == 1 and re.match(r"[a-z]+\.[\w.]+\Z", plain[0]):
        judge.deed("reads", "git config")
    elif len(plain) == 2 and re.match(r"user\.(name|email)\Z", plain[0]) and not plain[1].startswith("-"):
        judge.deed("commits", "git config")
    else:
        judge.deed("refused_flag", "git config", "settings of git can run programs")


def _remote(judge: Judge, verb: str, rest: list[Arg], texts: list[str]) -> None:
    calm = texts in ([], ["-v"], ["--verbose"], ["show"]) or (len(texts) == 2 and texts[0] in ("get-url",))
    judge.deed(
        "reads" if calm else "refused_flag",
        "git remote",
        "" if calm else "it changes or asks another machine",
    )


_REMOTE_NAME = re.compile(r"(origin|upstream)\Z")
_BRANCH = re.compile(r"[A-Za-z][\w./-]*\Z")


def _fetch(judge: Judge, verb: str, rest: list[Arg], texts: list[str]) -> None:
    flags = [text for text in texts if text.startswith("-")]
    words = [text for text in texts if not text.startswith("-")]
    calm = all(
        re.match(
            r"--(prune|tags|all|rebase|ff-only|no-rebase|quiet|verbose|depth=\d+|unshallow|no-tags|dry-run|autostash)\Z|-[pqvt]\Z",
            flag,
        )
        for flag in flags
    )
    calm = calm and (
        not words or (bool(_REMOTE_NAME.match(words[0])) and all(_BRANCH.match(word) for word in words[1:]))
    )
    judge.deed(
        "talks_to_origin" if calm else "connects",
        f"git {verb}",
        "" if calm else "another machine than the project's own",
    )


def _push(judge: Judge, verb: str, rest: list[Arg], texts: list[str]) -> None:
    judge.deed("publishes", "git push", "it sends commits to another machine")


def _clean(judge: Judge, verb: str, rest: list[Arg], texts: list[str]) -> None:
    dry = any(re.match(r"-[a-zA-Z]*n|--dry-run", text) for text in texts)
    judge.deed(
        "reads" if dry else "deletes_widely",
        "git clean",
        "" if dry else "it deletes files that no commit has",
    )
    judge.plain_paths(rest)


def _worktree(judge: Judge, verb: str, rest: list[Arg], texts: list[str]) -> None:
    if texts[:1] == ["list"]:
        judge.deed("reads", "git worktree")
    elif texts[:1] == ["add"]:
        judge.deed("commits", "git worktree")
        judge.plain_paths(rest[1:], "writes")
    else:
        judge.deed("unknown_flag", "git worktree", "it changes or deletes a working tree")


def _submodule(judge: Judge, verb: str, rest: list[Arg], texts: list[str]) -> None:
    calm = texts in ([], ["status"], ["status", "--recursive"], ["summary"])
    judge.deed(
        "reads" if calm else "connects", "git submodule", "" if calm else "it fetches or runs something"
    )


def _grep(judge: Judge, verb: str, rest: list[Arg], texts: list[str]) -> None:
    if any(re.match(r"-[a-zA-Z]*O|--open|--no-index|-f|--ext", text) for text in texts):
        judge.deed("refused_flag", "git grep", "it opens a program or other files")
        return
    judge.deed("reads", "git grep")
    words = [item for item in rest if not (item.text or "").startswith("-")]
    judge.plain_paths([item for item in words[1:] if item.texts])


def _archive(judge: Judge, verb: str, rest: list[Arg], texts: list[str]) -> None:
    if any(re.match(r"--(remote|exec|add-file|add-virtual)", text) for text in texts):
        judge.deed("connects", "git archive", "an archive of another machine or another file")
        return
    judge.deed("writes", "git archive")
    for index, text in enumerate(texts):
        if text in ("-o", "--output") and index + 1 < len(rest):
            judge.path("writes", rest[index + 1])
        elif re.match(r"--output=|-o.", text):
            judge.path("writes", Arg(text, (text.partition("=")[2] or text[2:],)))
