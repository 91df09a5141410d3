"""Command lines that reach another machine by SSH: which host, and whether anything is sent.

`ssh` and `sftp` run what nobody here can judge, and a copy to another machine carries data out: these stay
refused. What only fetches (a clone, `git fetch` and `git ls-remote` with an address, `scp` from a host) is
the deed `downloads`. Of all of them the host and the protocol are noted: which ones are allowed is decided by
specs/policy/network.mg. Source: seed 004 section 5.2 (network_policy_schema).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from spak.commandline.judge import Judge
from spak.commandline.words import Arg
from spak.shell import Command

_HOST = r"(?:[A-Za-z0-9_][\w.-]*@)?([A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)"
_URL = re.compile(rf"(?:ssh|git\+ssh|ssh\+git)://{_HOST}(?::\d{{1,5}})?/[\w./~+-]+\Z", re.ASCII)
_COPY = re.compile(rf"{_HOST}:([\w./~+-]*)\Z", re.ASCII)
_TARGET = re.compile(rf"{_HOST}\Z", re.ASCII)
_WITH_VALUE = re.compile(r"-[46AaCfGgKkMNnqrsTtVvXxYy]*[BbcDEeFIiJLlmOoPpQRSWw]\Z")
_CALM_COPY = re.compile(r"-[46qrpBC]+\Z")
_CALM_GIT = re.compile(
    r"--(depth=\d+|quiet|verbose|single-branch|no-tags|tags|prune|heads|branch=[A-Za-z][\w./-]*|dry-run)\Z|-[qvpt]\Z"
)
_BRANCH = re.compile(r"[A-Za-z][\w./-]*\Z")


def address(text: str) -> str:
    """The host of an SSH address, as git and scp write it; empty for any other text."""
    found = _URL.match(text) if "://" in text else _COPY.match(text)
    return found[1].lower() if found else ""


def ssh(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """`ssh` and `sftp`: the first word that could be a host is noted; nothing makes them harmless."""
    value = False
    for item in rest:
        text = item.text or ""
        found = None if value else _TARGET.match(text) or _COPY.match(text)
        if found:
            judge.connect("ssh", found[1].lower())
            break
        value = _WITH_VALUE.match(text) is not None
    judge.deed("connects", name, f"{name} runs commands on another machine, which nobody judges")


def scp(judge: Judge, name: str, rest: list[Arg], before: Sequence[Command]) -> None:
    """Copies from hosts into the workspace download; copies to a host are refused."""
    flags = [item for item in rest if (item.text or "-").startswith("-")]
    words = [item for item in rest if item not in flags]
    hosts = [address(item.text or "") for item in words]
    for host in filter(None, hosts):
        judge.connect("ssh", host)
    fetches = len(words) > 1 and all(hosts[:-1]) and not any(":" in text for text in words[-1].texts)
    if not fetches or not all(_CALM_COPY.match(item.text or "") for item in flags):
        judge.deed("connects", name, "only plain copies from another machine are understood")
        return
    judge.deed("downloads", name)
    judge.path("writes", words[-1])


def git(judge: Judge, verb: str, rest: list[Arg], texts: list[str]) -> bool:
    """Whether a clone, fetch or ls-remote names an SSH address, and so is judged here."""
    flags = [text for text in texts if text.startswith("-")]
    words = [text for text in texts if not text.startswith("-")]
    host = address(words[0]) if words else ""
    if not host:
        return False
    judge.connect("ssh", host)
    after = words[1:]
    target = [item for item in rest if item.text == after[0]] if verb == "clone" and len(after) == 1 else []
    known = bool(target) or not after or (verb != "clone" and all(_BRANCH.match(word) for word in after))
    if not known or not all(_CALM_GIT.match(flag) for flag in flags):
        judge.deed("connects", f"git {verb}", "another machine, with more than a plain fetch")
        return True
    judge.deed("downloads", f"git {verb}")
    for item in target:
        judge.path("writes", item)
    return True
