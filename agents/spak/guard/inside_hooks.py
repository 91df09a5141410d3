"""The hooks of an agent behind the walls: what the rules of the law forbid by themselves is denied before it
happens; all else is let through without a word, since the walls hold.

Takes the policy of a session and the agent's folder; gives the reason of a denial for the event of a hook.
Only rules besides the shipped law are asked: that one speaks of a machine without walls. What an agent does
in spite of an answer, or without a question, is contained as ever. It records nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from spak.datalog.session import Policy
from spak.datalog.syntax import Clause, Literal_
from spak.guard.hook_agents import actions
from spak.policy.actions import Action
from spak.policy.closed_predicates import Key
from spak.policy.judge import Decision
from spak.policy.reads import rests_on

FORBIDDEN = ("forbidden", 1)


def stricter(policy: Policy, shipped: Collection[str]) -> Policy | None:
    """The policy in which only rules that are in no shipped file forbid; None where there are none."""
    kept = tuple(
        one for one in policy.clauses
        if one.head.key != FORBIDDEN or (one.place.file not in shipped and not _of_a_run(policy, one))
    )  # fmt: skip
    if not any(one.head.key == FORBIDDEN for one in kept):
        return None
    return Policy(kept, tuple(policy.decls.values()), ())


def _of_a_run(policy: Policy, clause: Clause) -> bool:
    """Whether a rule rests on what happened before or on an approval, which is known of calls of the run
    only: the walls and our tools hold it."""
    keys = {part.atom.key for part in clause.body if isinstance(part, Literal_)}
    rests = set[Key]().union(*(rests_on(policy, key) for key in keys))
    return any(key in policy.folds or key[0] in ("approved", "signed_approval") for key in rests)


class InsideHooks:
    """Of one session. `tops` are the paths at which the agent has its folder."""

    def __init__(self, judge: Callable[[Action], Decision], folder: Path, tops: Sequence[str]) -> None:
        self._judge, self._folder, self._tops = judge, str(folder.resolve()), tuple(tops)

    def answer(self, data: bytes) -> str:
        """Why the law forbids the call that a hook asks about; else empty."""
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            return ""
        if not isinstance(event, dict) or not isinstance(event.get("tool_input"), dict):
            return ""
        cwd = self._here(event.get("cwd"))
        args: Mapping[str, Any] = {name: self._here(value) for name, value in event["tool_input"].items()}
        folder = cwd if isinstance(cwd, str) else self._folder
        for action in actions(str(event.get("tool_name")), args, folder, self._folder):
            found = self._judge(action)
            if found.code == "policy.forbidden":
                return f"spak: {found.reason}"[:2000]
        return ""

    def _here(self, value: Any) -> Any:
        """A path of the agent's folder as it is on the host."""
        for top in self._tops:
            if isinstance(value, str) and (value == top or value.startswith(f"{top}/")):
                return self._folder + value.removeprefix(top)
        return value
