"""Programs of which a few uses are plain and the rest are not: profilers, java, openssl, clients.

Each judge names the uses that are understood and what they read and write; anything else keeps the reason
for which the program is refused. Like all judges here it only notes deeds and paths.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from spak.commandline import binaries
from spak.commandline.binaries import Binary, rule_of
from spak.commandline.commands import Judge
from spak.commandline.refused import HARD_REFUSED
from spak.commandline.words import Arg, is_number, texts_of
from spak.shell import Command


def refused(judge: Judge, name: str, why: str = "") -> None:
    reason = HARD_REFUSED.get(name, "unknown_flag")
    judge.deed(reason, name, why or f"only a few plain uses of {name} are for the command line")


_WATCHERS = {
    "valgrind": rule_of(
        "tool=text leak-check=text show-leak-kinds=text track-origins=text error-exitcode=number "
        "log-file=write xml=text xml-file=write suppressions=read num-callers=number "
        "callgrind-out-file=write massif-out-file=write cachegrind-out-file=write "
        "q=flag v=flag trace-children=text",
        "db-command vgdb-prefix",
        "text",
    ),
    "perf": rule_of("e=text r=number d=flag o=write x=text", "p t C a G pid tid pre post control", "text"),
}


def watcher(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """A program that runs another and watches it: its own options, then the other's line."""
    if judge.only_asks(rest):
        judge.deed("computes", name)
        return
    if name == "perf":
        if not rest or rest[0].text != "stat":
            refused(judge, name)
            return
        rest = rest[1:]
    rule, at = _WATCHERS[name], 0
    while at < len(rest) and (rest[at].text or "").startswith("-"):
        text = rest[at].text or ""
        at += 1
        if text == "--":
            break
        kind = rule.takes.get(text[1:]) if name == "perf" else None
        if kind and not kind.startswith("flag"):
            at += 1
        elif text.lstrip("-").partition("=")[0] not in rule.takes:
            judge.deed("refused_flag", f"{name} {text}", "an option that is not known")
            return
    judge.options(name, rule, rest[:at])
    if at >= len(rest):
        judge.deed("unknown_flag", name, "no program to watch")
        return
    judge.run(rest[at:], before)


def ar(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """Makes and lists archives; the names that it would unpack to are not known before."""
    texts = texts_of(rest)
    if len(rest) < 2 or not re.match(r"-?[rqtcsuDvT]+\Z", texts[0]):
        refused(judge, name)
        return
    listing = "t" in texts[0]
    judge.deed("reads" if listing else "writes", name)
    judge.path("reads" if listing else "writes", rest[1])
    for item in rest[2:]:
        judge.path("reads", item)


def java(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """The project's own classes or archive, with sizes and properties; no agents, no files of options."""
    at = 0
    while at < len(rest):
        text = rest[at].text or ""
        if text in ("-version", "--version", "-help", "--help"):
            judge.deed("computes", name)
            return
        if text in ("-cp", "-classpath", "--class-path", "-jar") and at + 1 < len(rest):
            for part in (rest[at + 1].text or "$").split(":"):
                judge.path("runs", Arg(part, (part,), tilde=part.startswith("~")))
            at += 2
            if text == "-jar":
                judge.deed("builds", name)
                judge.plain_paths(rest[at:])
                return
        elif re.match(
            r"-(ea|da|server|X(mx|ms|ss)\d+[kmg]?|D(file\.encoding|user\.language)=[\w-]+)\Z", text
        ):
            at += 1
        elif re.match(r"[A-Za-z_$][\w.$]*(\.java)?\Z", text):
            judge.deed("builds", name)
            judge.path("runs", rest[at] if text.endswith(".java") else Arg(".", (".",)))
            judge.plain_paths(rest[at + 1 :])
            return
        else:
            break
    refused(judge, name, "an option that loads other code, or no class of the project")


def openssl(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """Digests, versions, a look at a certificate; nothing that connects, signs, encrypts or loads."""
    texts = texts_of(rest)
    verb = texts[0] if texts else ""
    plain = {
        "version": r"-[abdefopvr]\Z",
        "dgst": r"-(md5|sha\d{1,3}(-\d{3})?|sha3-\d{3}|blake2\w+|hex|r|c|binary)\Z",
        "sha256": r"-(hex|r|c)\Z",
        "md5": r"-(hex|r|c)\Z",
        "x509": r"-(in|noout|text|dates|subject|issuer|fingerprint|enddate|startdate|serial)\Z",
    }.get(verb)
    if plain is None or any(text.startswith("-") and not re.match(plain, text) for text in texts[1:]):
        refused(judge, name)
        return
    judge.deed("reads" if len(rest) > 1 else "computes", name)
    for item in rest[1:]:
        if not (item.text or "").startswith("-"):
            judge.path("reads", item)


_CLIENTS: dict[str, str] = {
    "docker": r"(version|info|(compose )?ps|images)( -(a|q|-all|-quiet))*\Z",
    "podman": r"(version|info|ps|images)( -(a|q|-all|-quiet))*\Z",
    "kubectl": r"version --client( -o (json|yaml)| --output=(json|yaml))?\Z",
    "helm": r"(lint|version|template)( [\w./-]+| --strict)*\Z",
    "terraform": r"(fmt|validate|version)( -(check|recursive|diff|json|no-color))*\Z",
}


def client(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """A client of a daemon or a cluster: only what shows its own state or checks the project's files."""
    line = " ".join(item.text if item.text is not None else "$" for item in rest)
    if not judge.only_asks(rest) and not re.match(_CLIENTS[name], line):
        judge.deed(HARD_REFUSED.get(name, "connects"), name, f"{name} changes what is not the workspace's")
        return
    judge.deed("writes" if name == "terraform" and line.startswith("fmt") else "reads", name)
    judge.plain_paths(rest)


def pager(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """less and more without a terminal are cat; a word with + is a command of theirs."""
    flags = [item for item in rest if (item.text or "").startswith("-")]
    if any((item.text or "").startswith("+") for item in rest) or not all(
        re.match(r"-[NRSFXEiMn]+\Z", item.text or "") for item in flags
    ):
        judge.deed("executes", name, "a command or an option of the pager")
        return
    judge.deed("reads", name)
    for item in rest:
        if item not in flags:
            judge.path("reads", item)


def checker(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> bool:
    """`ruby -c`, `php -l`, `node --check`: the syntax of a file, and nothing run."""
    texts = texts_of(rest)
    if len(rest) < 2 or texts[0] not in {"ruby": ("-c", "-wc"), "php": ("-l",)}.get(name, ()):
        return False
    if any(text.startswith("-") for text in texts[1:]):
        return False
    judge.deed("reads", name)
    for item in rest[1:]:
        judge.path("reads", item)
    return True


_PLAIN_RE = r"(?:[^/\\`@(${]|\\[^\x00]|\((?!\?\??\{)|\{\d*,?\d*\}|\$(?=[/)|]))*"
_PERL = re.compile(
    rf"\s*(?:s/{_PLAIN_RE}/(?:[^/\\`@${{]|\\[^\x00]|\$\d)*/[gimsx]*|tr/[^/\\`]*/[^/\\`]*/[dcs]*|"
    rf"(?:print(?: \$_)?(?: if| unless)? )?m?/{_PLAIN_RE}/[imsx]*(?: and print)?|"
    rf"print(?: \$\.)?(?: if| unless) m?/{_PLAIN_RE}/[imsx]*|print if \$\. *[<>=]=? *\d+)\s*;?\s*\Z"
)


def perl_line(judge: Judge, rest: list[Arg]) -> bool:
    """`perl -pe 's/a/b/' FILE` and `perl -ne 'print if /x/' FILE`: one plain substitution or condition."""
    flags = [item for item in rest if (item.text or "").startswith("-")]
    words = [item for item in rest if not (item.text or "").startswith("-")]
    if not flags or rest[: len(flags)] != flags or not words or words[0].text is None:
        return False
    joined = [flag.text or "" for flag in flags]
    inplace = any(re.match(r"-p?i(\.\w+)?\Z", flag) for flag in joined)
    if not all(re.match(r"-(0?[lpn]{0,2}e|[pn]|l|0\d*|p?i(\.\w+)?)\Z", flag) for flag in joined):
        return False
    if not joined[-1].endswith("e") or sum(flag.endswith("e") for flag in joined) != 1:
        return False
    if not any("p" in flag or "n" in flag for flag in joined) or not _PERL.match(words[0].text):
        return False
    judge.deed("writes" if inplace else "reads", "perl")
    for item in words[1:]:
        judge.path("writes" if inplace else "reads", item)
    return True


def image(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """ImageMagick's convert: plain files and sizes; its names of formats, pipes and lists are a language."""
    if judge.only_asks(rest):
        judge.deed("computes", name)
        return
    if len(rest) < 2 or not all(re.match(r"[\w./%+x!^#,-]+\Z", item.text or "") for item in rest):
        judge.deed("refused_flag", name, "a word that may name a program, an address or a list of files")
        return
    if any(
        re.match(r"-(write|delegate|script|process|set|profile|format|define)", item.text or "")
        for item in rest
    ):
        judge.deed("refused_flag", name, "an option that writes, loads or runs something")
        return
    judge.deed("writes", name)
    judge.plain_paths(rest[:-1])
    judge.path("writes", rest[-1])


def bundle(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """`bundle exec X` is X; the rest by its table."""
    if rest and rest[0].text == "exec" and len(rest) > 1:
        judge.run(rest[1:], before)
        return
    judge.by_table(name, binaries.table()[name], rest)


def managed(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """pdm, hatch, rye and composer: what the project's own files name is built, run and installed."""
    verb = rest[0].text if rest else ""
    flags = all((item.text or "").startswith("--") and "=" not in (item.text or "=") for item in rest[1:])
    if judge.only_asks(rest) or (verb in ("show", "list", "version", "status", "validate") and flags):
        judge.deed("computes", name)
    elif verb in ("install", "sync", "lock", "build", "dump-autoload") and flags:
        judge.deed("installs_locked", name)
    elif name == "hatch" and verb in ("test", "fmt") and flags:
        judge.deed("builds", name)
    elif verb == "run" and len(rest) > 1 and name != "composer":
        inner = rest[1].text or "$"
        if len(rest) == 2 and re.match(r"[a-z][a-z0-9_:-]*\Z", inner) and not _is_program(inner):
            judge.deed("builds", name)  # a script of the project's own file
        else:
            judge.run(rest[1:], before)
    else:
        judge.deed("unknown_flag", f"{name} {verb}", "it fetches, sends or changes settings")


def _is_program(name: str) -> bool:
    from spak.commandline.special import JUDGES

    return name in HARD_REFUSED or name in JUDGES


_GOALS = re.compile(
    r"(clean|validate|compile|test-compile|test|package|verify|install|site|dependency:(tree|list|resolve)|"
    r"versions:display-[\w-]+|help:\S+|spotless:(check|apply)|checkstyle:check)\Z"
)
_MVN = Binary(
    ("text",),
    {"f": "read", "P": "text", "pl": "text", "s": "read", "D": "text", "T": "text"},
    {"gs": "settings that choose what is loaded"},
    "builds",
)


def mvn(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """Maven's own phases; a goal of a plug-in may run anything and deploy publishes."""
    if judge.only_asks(rest):
        judge.deed("computes", name)
        return
    _options, operands = judge.options(name, _MVN, rest)
    judge.deed("builds", name)
    for item in operands:
        if not _GOALS.match(item.text or ""):
            judge.deed("unknown_flag", f"{name} {item.written}", "a goal that runs or publishes something")
    for text in texts_of(rest):
        if re.match(r"-D(exec|maven\.(ext|repo|compiler\.exec)|argLine|jvm|forkedProcess|toolchain)", text):
            judge.deed("refused_flag", f"{name} {text}", "a property that chooses what is run")


def processes(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """`ps`; its letter e without a dash shows the environments of processes."""
    letters = [text for text in texts_of(rest) if re.match(r"[A-Za-z]+\Z", text)]
    shows = any("e" in text for text in letters) or any(item.text is None for item in rest)
    judge.deed(
        "shows_environment" if shows else "computes", name, "it may show environments" if shows else ""
    )


def sleep(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    calm = len(rest) == 1 and re.match(r"\d{1,2}(\.\d+)?s?\Z", rest[0].text or "")
    judge.deed("computes" if calm else "wastes", name, "" if calm else "a long sleep")


def tail(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """Reads as the table says; following `/dev/null`, to which no line ever comes, is a sleep without end."""
    judge.by_table(name, binaries.table()[name], rest)
    texts = texts_of(rest)
    if "/dev/null" in texts and any(re.match(r"-[a-zA-Z]*[fF]|--f", text) for text in texts):
        judge.deed("wastes", name, "a wait without an end")


def kill(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """Ends jobs of the line itself, `%1`; no process by its number or its name."""
    texts = texts_of(rest)
    own = bool(texts) and all(re.match(r"%\d+\Z|-(TERM|INT|15|2)\Z", text) for text in texts)
    judge.deed("computes" if own else "signals", name, "" if own else "kill is not for the command line")


def seq(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    _options, numbers = judge.options(name, rule_of("f=text s=text"), rest)
    calm = all(re.match(r"-?[\d.]{1,7}\Z", item.text or "") for item in numbers)
    judge.deed("computes" if calm else "wastes", name, "" if calm else "a long sequence")


def setting(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """`set -euo pipefail`: how a shell takes errors. Behind `--` stand words for `$1`, which is not known."""
    texts = [item.text for item in rest]
    rest = rest[: texts.index("--")] if "--" in texts else rest
    if "--" in texts and not rest:
        judge.deed("computes", name)
        return
    calm = bool(rest) and all(
        re.match(r"[-+][euxovn]+\Z|pipefail\Z|errexit\Z|nounset\Z", item.text or "") for item in rest
    )
    judge.deed("computes" if calm else "executes", name, "" if calm else "settings of the shell")


_COMPARES = frozenset(["-eq", "-ne", "-lt", "-le", "-gt", "-ge"])


def test(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    judge.deed("computes", name)
    for place, item in enumerate(rest):
        sides = rest[max(place - 1, 0) : place + 2]
        if (
            name == "[["
            and item.text in _COMPARES
            and not all(is_number(side) for side in sides if side != item)
        ):
            judge.deed("not_understood", item.written, "`[[` evaluates what is not certain to be a number")
        if item.text == "-v" and not all(
            side.text and re.match(r"\w+\Z", side.text) for side in rest[place + 1 : place + 2]
        ):
            judge.deed("not_understood", item.written, "an index would be evaluated")
        if item.texts and any(text.startswith(("/", "..")) or item.tilde for text in item.texts):
            judge.path("reads", item)
        elif "[" in item.written[1:] and any(
            sign in text for text in (item.written, *item.texts) for sign in ("$(", "`")
        ):
            judge.deed("unknown_word", item.written, "an index that a shell would evaluate")
