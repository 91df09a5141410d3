"""The judgement of an action: permitted by derivation, and not forbidden; a question to a person where
the law says so, and denied in every other case.

Takes a loaded Policy, the World and an Action; gives a Decision with its proof or with what is missing. An
error of the engine, a limit, a fault of ours or an action that can not be read is a denial with a reason. It
carries nothing out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from spak.commandline.explain import UNKNOWN
from spak.datalog.externals import Answers
from spak.datalog.session import Policy, Session
from spak.datalog.values import Fact, Name
from spak.errors import UserError
from spak.policy.actions import Action, World
from spak.policy.facts import ACTION, facts


@dataclass(frozen=True, slots=True)
class Decision:
    """What the policy says of one action, with its proof or with what was missing."""

    decision: Literal["allow", "ask", "deny"]
    reason: str
    proof: Any = None
    why_not: Any = None
    code: str = ""
    """Of a denial: `policy.denied`, `policy.forbidden`, or the code of what went wrong."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """What a person is asked about: the programs and the paths of a line, and the row that would allow it."""

    def to_json(self) -> dict[str, Any]:
        """The decision as commands print it."""
        found: dict[str, Any] = {"decision": self.decision, "reason": self.reason}
        if self.decision == "allow":
            return found | {"proof": self.proof}
        return found | dict(self.asked) | {"why_not": self.why_not}


def judge(
    policy: Policy,
    action: Action,
    world: World,
    known: Iterable[Fact] = (),
    answers: Answers | None = None,
    *,
    explain: bool = True,
) -> Decision:
    """The decision about one action outside of a run; `known` are further facts, `answers` tells what the
    policy asks of the workspace. Without `explain` it has no proof. Where the law leaves it to a person
    (`may_ask`), what it does not permit and does not forbid is a question. Never raises, however odd the
    action is."""
    try:
        found = facts(action, world, known)
        session = policy.session(found)
        if answers is not None:
            session.settle(answers)
    except UserError as error:
        return denied(error.code, error.message, error.hint)
    except Exception as error:  # a fault of ours is no permission
        return _bug(error)
    decision = decide(policy, found, explain, session)
    if decision.code != "policy.denied" or ("may_ask", 1) not in policy.predicates:
        return decision
    return (
        replace(decision, decision="ask", asked=_asked(session))
        if session.holds("may_ask", ACTION)
        else decision
    )


def _asked(session: Session) -> dict[str, Any]:
    """What a person is shown of a line."""
    programs = [str(row[2]) for row in session.query("runs_program", ACTION, None, None)]
    paths = [str(row[1]) for row in session.query("names_path", ACTION, None)]
    others = dict.fromkeys(str(row[1]) for row in session.query("for_a_person", ACTION, None))
    rows = " ".join(
        f"allowed_program({json.dumps(name, ensure_ascii=False)})." for name in others if name != UNKNOWN
    )
    only = UNKNOWN not in others and not session.holds("unpermitted_path", ACTION)
    settled = only and not session.query("sets_variable", ACTION, None, None)
    return {"programs": programs, "paths": paths, "row": rows if settled else ""}


def decide(
    policy: Policy,
    known: list[Fact],
    explain: bool = True,
    session: Session | None = None,
) -> Decision:
    """The decision from facts; without `explain` it carries neither proof nor what is missing.

    `session` holds the same facts and what the world answered, where somebody has one.
    """
    from spak.datalog.explain import prove  # most decisions carry no reasons
    from spak.datalog.why_not import why_not
    from spak.policy import denials

    try:
        session = policy.session(known) if session is None else session
        if session.holds("forbidden", ACTION):
            proof = prove(session, "forbidden", ACTION, last=denials.LAST)
            why, code = denials.why_forbidden(session, proof)
            return Decision("deny", why, None, {"forbidden": proof.to_json()} if explain else None, code)
        if session.holds("permitted", ACTION):
            shown = prove(session, "permitted", ACTION).to_json() if explain else None
            return Decision("allow", "permitted by the policy", shown)
        lacks = why_not(session, "permitted", ACTION)
        why = denials.why_denied(session, lacks)
        return Decision("deny", why, None, lacks.to_json() if explain else None, "policy.denied")
    except UserError as error:
        return denied(error.code, error.message, error.hint)
    except Exception as error:  # a fault of ours is no permission
        return _bug(error)


def permissible(known: Sequence[Fact]) -> bool:
    """Whether a rule of a law could permit what no rule permits: not what cannot be read, such as a
    malformed patch, and not a commit, which waits for checks and not for rules."""
    named = any(name == "asks_url" for name, _ in known)
    return not any(
        (name in _TROUBLES and not (named and args[1] == "host"))
        or (name, args) == ("tool", (ACTION, Name("/git_commit")))
        for name, args in known
    )


def _bug(error: Exception) -> Decision:
    return denied("policy.bug", f"the judgement itself failed ({type(error).__name__})", "report it")


def denied(code: str, message: str, hint: str = "") -> Decision:
    """A denial of what never became an action."""
    return Decision("deny", f"{message} [{code}]", why_not={"error": code, "hint": hint}, code=code)


_TROUBLES = ("unreadable", "url_trouble", "patch_trouble")
