"""The judgement of an action: permitted by derivation, and not forbidden; denied in every other case.

Takes a loaded Policy, the World and an Action; gives a Decision with its proof or with what is missing. An
error of the engine, a limit, a fault of ours or an action that can not be read is a denial with a reason. It
carries nothing out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from spak.datalog.externals import Answers
from spak.datalog.session import Policy, Session
from spak.datalog.values import Fact, Name
from spak.errors import UserError
from spak.policy.actions import Action, World
from spak.policy.facts import ACTION, facts


@dataclass(frozen=True, slots=True)
class Decision:
    """What the policy says of one action, with its proof or with what was missing."""

    decision: Literal["allow", "deny"]
    reason: str
    proof: Any = None
    why_not: Any = None
    code: str = ""
    """Of a denial: `policy.denied`, `policy.forbidden`, or the code of what went wrong."""

    def to_json(self) -> dict[str, Any]:
        """The decision as commands print it."""
        found: dict[str, Any] = {"decision": self.decision, "reason": self.reason}
        if self.decision == "allow":
            return found | {"proof": self.proof}
        return found | {"why_not": self.why_not}


def judge(
    policy: Policy,
    action: Action,
    world: World,
    known: Iterable[Fact] = (),
    answers: Answers | None = None,
) -> Decision:
    """The decision about one action; `known` are the facts of the run, `answers` tells what the policy asks
    of the workspace. Never raises, however odd it is."""
    try:
        found = facts(action, world, known)
        session = policy.session(found)
        if answers is not None:
            session.settle(answers)
    except UserError as error:
        return denied(error.code, error.message, error.hint)
    except Exception as error:  # a fault of ours is no permission
        return _bug(error)
    return decide(policy, found, session=session)


def _proof(session: Session, pred: str) -> dict[str, Any]:
    from spak.datalog.explain import prove  # most decisions carry no reasons

    return prove(session, pred, ACTION).to_json()


def _missing(session: Session) -> dict[str, Any]:
    from spak.datalog.why_not import why_not

    return why_not(session, "permitted", ACTION).to_json()


def decide(
    policy: Policy, known: list[Fact], explain: bool = True, session: Session | None = None
) -> Decision:
    """The decision from facts; without `explain` it carries neither proof nor what is missing.

    `session` holds the same facts and what the world answered, where somebody has one.
    """
    try:
        session = policy.session(known) if session is None else session
        if session.holds("forbidden", ACTION):
            proof = {"forbidden": _proof(session, "forbidden")} if explain else None
            other = _derived(session) or _untested(session)
            trouble = _patch_trouble(known)
            if trouble and not other:
                return Decision("deny", trouble[1], None, proof, trouble[0])
            why = (
                other
                or _unmet(known, None, "")
                or (_barrier(known, session.holds) if session.holds("makes_commit", ACTION) else "")
                or "a rule of the policy forbids it"
            )
            return Decision("deny", why, None, proof, "policy.forbidden")
        if session.holds("permitted", ACTION):
            proof = _proof(session, "permitted") if explain else None
            return Decision("allow", "permitted by the policy", proof)
        missing = _missing(session) if explain else None
        return Decision("deny", _unmet(known, session.holds), None, missing, "policy.denied")
    except UserError as error:
        return denied(error.code, error.message, error.hint)
    except Exception as error:  # a fault of ours is no permission
        return _bug(error)


def permissible(known: Iterable[Fact]) -> bool:
    """Whether a rule of a law could permit what no rule permits: not what cannot be read, such as a
    malformed patch, and not a commit, which waits for checks and not for rules."""
    return not any(
        name in _TROUBLES
        or (name, args) == ("tool", (ACTION, Name("/git_commit")))
        or (name == "command_does" and args[3] == "git commit")
        for name, args in known
    )


def _patch_trouble(known: Iterable[Fact]) -> tuple[str, str] | None:
    """The code and the reason of a patch that would not be applied."""
    for name, args in known:
        if name == "patch_trouble":
            return str(args[1]), f"{args[2]} [{args[1]}]"
    return None


def _bug(error: Exception) -> Decision:
    return denied("policy.bug", f"the judgement itself failed ({type(error).__name__})", "report it")


def denied(code: str, message: str, hint: str = "") -> Decision:
    """A denial of what never became an action."""
    return Decision("deny", f"{message} [{code}]", why_not={"error": code, "hint": hint}, code=code)


_TROUBLES = ("unreadable", "url_trouble", "patch_trouble")

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
            where = _PLACES.get(str(args[2]), str(args[2])[1:])
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


_PLACES = {
    "/outside": "outside of the workspace",
    "/refused": "no path of the workspace",
    "/git": "git's own",
    "/root": "the workspace itself",
    "/control": "one that says what is run: change it with write_file or a patch",
    "/hard_link": "a second name of another file",
    "/inside": "not made by a build: delete its files one by one",
}
