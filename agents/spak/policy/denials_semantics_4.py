"""Why an action was denied, as runs up to semantics 4 word it: by the facts about the action, and not by what
the decision rests on. Their ledgers hold these words, so that nothing here changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spak.datalog.session import Session
from spak.datalog.values import Fact, Name
from spak.policy.denials import PLACES
from spak.policy.toolfacts import ACTION


def why_forbidden(session: Session, known: list[Fact]) -> tuple[str, str]:
    """The reason and the code where the action is forbidden."""
    other = _derived(session) or _untested(session)
    trouble = _patch_trouble(known)
    if trouble and not other:
        return trouble[1], trouble[0]
    why = (
        other
        or _unmet(known, None, "")
        or (_barrier(known, session.holds) if session.holds("makes_commit", ACTION) else "")
        or "a rule of the policy forbids it"
    )
    return why, "policy.forbidden"


def why_denied(session: Session, known: list[Fact]) -> str:
    """The reason where nothing permits it."""
    return _unmet(known, session.holds)


def _patch_trouble(known: Iterable[Fact]) -> tuple[str, str] | None:
    """The code and the reason of a patch that would not be applied."""
    for name, args in known:
        if name == "patch_trouble":
            return str(args[1]), f"{args[2]} [{args[1]}]"
    return None


_DERIVED = {
    "over_budget": "a budget of the run is used up",
    "undeclared": "the task's TOOLS do not list the tool",
    "loose": "no sandbox that is strict enough holds it",
}


def _derived(session: Session) -> str:
    """What rules of the constitution found about the run around the action."""
    return next((text for name, text in _DERIVED.items() if session.holds(name, ACTION)), "")


def _unmet(known: list[Fact], holds: Any, otherwise: str = "no rule of the policy permits it") -> str:
    """The first fact that no rule permits, in words, with what would be permitted instead."""
    for name, args in known:
        if name == "unreadable":
            return f"it can not be read: {args[2]} [{args[1]}]"
        if name in ("url_trouble", "patch_trouble"):
            return f"{args[2]} [{args[1]}]"
        if name == "command_does" and args[4]:
            return f"{args[3]}: {args[4]} ({str(args[2])[1:]})"
    for name, args in known:
        if name == "connects" and holds is None and args[1] != Name("/https"):
            if ("allowed_host", (args[2],)) not in known:
                return f"the host {args[2]} is not allowed; name it with --allow-host, or HOSTS in CONFIG"
            return f"no rule allows the protocol {str(args[1])[1:]}: allowed_protocol({args[1]})."
    for name, args in known:
        if name == "uses_path" and (holds is None or not holds("permitted_place", args[1], args[2])):
            if holds is None and args[2] not in (Name("/outside"), Name("/refused")):
                continue
            where = PLACES.get(str(args[2]), str(args[2])[1:])
            return f"it {str(args[1])[1:]} {args[3]!a}, a path that is {where}"
        if name == "asks_url" and holds is not None and not holds("allowed_host", args[2]):
            return f"the host {args[2]} is not allowed; name it with --allow-host"
        if name == "sends_header" and holds is not None and not holds("plain_header", args[1]):
            return f"the header {args[1]!a} could carry data out"
        if name == "sends_body":
            return "a request with a body or other arguments could carry data out"
    for name, args in known:
        if name == "asks_url" and (args[1], args[3]) != ("https", 443):
            return "only https at its own port is permitted"
        if name == "asks_method" and holds is not None and not holds("reading_method", args[1]):
            return f"the method {args[1]} does more than read"
    for name, args in known:
        if name == "host_address" and args[2] != Name("/public"):
            return f"the host is at {args[1]}, an address that is {str(args[2])[1:]}"
        if name == "unresolved":
            return f"the host {args[1]} has no address"
        if name == "looks_secret":
            return f"`args.{args[2]}` holds the value of a secret ({args[1]})"
        if name == "names_secret":
            return f"no rule lets the secret {args[1]} go there"
        if name == "unknown_tool":
            return "the tool is not known to the policy; a rule that names it may permit it"
    for name, args in known:
        if name == "asks_url" and holds is None and ("allowed_host", (args[2],)) not in known:
            return f"the host {args[2]} is not allowed; name it with --allow-host"
    return _uncommitted(known, holds) or otherwise


def _untested(session: Session) -> str:
    """What the refactoring guard found, if it stands and stands against the action."""
    found = (
        [str(file) for (file,) in session.query("uncovered")] if session.query("unsafe_to_refactor") else []
    )
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"no test reaches what rests on it: {', '.join(found[:3])}{more}" if found else ""


def _uncommitted(known: list[Fact], holds: Any) -> str:
    """What stands against a commit, if the action is one."""
    if ("tool", (ACTION, Name("/git_commit"))) not in known and not any(
        name == "command_does" and args[3] == "git commit" for name, args in known
    ):
        return ""
    return _barrier(known, holds)


def _barrier(known: list[Fact], holds: Any) -> str:
    """Why the files as they are may not be committed."""
    for name, args in known:
        if name == "diagnostic" and args[0] in (Name("/error"), Name("/panic")):
            return f"{args[1]}:{args[2]}: {args[4]} [{args[3]}]: mend it before a commit"
        if name == "checks_ran" and args[1] in (Name("/fail"), Name("/timeout")):
            return f"the check {args[0]} did not pass: mend what it found before a commit"
    if holds is not None and holds("block_commit", "No Check Ran"):
        passed = next((args[0] for name, args in known if name == "checks_ran"), "")
        if passed:
            return (
                f"{passed} gave an opinion, which is no check: let another VALIDATOR judge it before a commit"
            )
        return "no check ran since the last change: let a VALIDATOR judge it before a commit"
    return ""
