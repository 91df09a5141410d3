"""The judgement of an action: permitted by derivation, and not forbidden; denied in every other case.

Takes a loaded Policy, the World and an Action; gives a Decision with its proof or with what is missing. An
error of the engine, a limit or an action that can not be read is a denial with a reason. It carries
nothing out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from spak.errors import UserError
from spak.policy.actions import Action, World
from spak.policy.facts import ACTION, facts
from spak.policy.session import Policy
from spak.policy.values import Fact, Name


@dataclass(frozen=True, slots=True)
class Decision:
    decision: Literal["allow", "deny"]
    reason: str
    proof: Any = None
    why_not: Any = None

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"decision": self.decision, "reason": self.reason}
        if self.decision == "allow":
            return found | {"proof": self.proof}
        return found | {"why_not": self.why_not}


def judge(policy: Policy, action: Action, world: World) -> Decision:
    """The decision about one action. Never raises for an action, however odd."""
    try:
        known = facts(action, world)
        session = policy.session(known)
        if session.holds("forbidden", ACTION):
            proof = session.proof("forbidden", ACTION).to_json()
            return Decision("deny", reason(known, "forbidden"), why_not={"forbidden": proof})
        if session.holds("permitted", ACTION):
            return Decision("allow", "permitted by the policy", session.proof("permitted", ACTION).to_json())
        missing = session.why_not("permitted", ACTION).to_json()
        return Decision("deny", _unmet(known, session.holds), why_not=missing)
    except UserError as error:
        return Decision("deny", f"{error.message} [{error.code}]", why_not={"error": error.code})


def denied(code: str, message: str, hint: str = "") -> Decision:
    """A denial of what never became an action."""
    return Decision("deny", f"{message} [{code}]", why_not={"error": code, "hint": hint})


def reason(known: list[Fact], what: str) -> str:
    """One sentence from the facts that speak against the action."""
    return _unmet(known, None) or what


def _unmet(known: list[Fact], holds: Any) -> str:
    """The first fact that no rule permits, in words, with what would be permitted instead."""
    for name, args in known:
        if name == "unreadable":
            return f"it can not be read: {args[2]} [{args[1]}]"
        if name in ("url_trouble", "patch_trouble"):
            return f"{args[2]} [{args[1]}]"
        if name == "command_does" and args[4]:
            return f"{args[3]}: {args[4]} ({str(args[2])[1:]})"
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
    return "no rule of the policy permits it"


_PLACES = {
    "/outside": "outside of the workspace",
    "/refused": "no path of the workspace",
    "/git": "git's own",
    "/root": "the workspace itself",
    "/control": "one that says what is run: change it with write_file or a patch",
    "/hard_link": "a second name of another file",
    "/inside": "not made by a build: delete its files one by one",
}
