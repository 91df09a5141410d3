"""Kinds of edit that a rule can name: `kinds_of(...)` says which of KINDS a change of a spec is of. Pure.

A change can be of several kinds; layout alone is of none, and comments alone are of `any`. Most are those of
the capability delta (spak.lang.diff), whichever way it goes: a validator that is added is of the kind
`judges` too. `tools` has besides every step and check that calls a tool, and `judges` every check, so that
another command line of the same tool is of both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from spak.lang import ast
from spak.lang.diff import Difference
from spakweb.work.specs.widening import widens

KINDS: Mapping[str, tuple[str, str]] = {
    "any": ("Every change but formatting", "it changes more than formatting"),
    "widens": ("What widens what the spec may do", "it widens what the spec may do"),
    "privileged": ("Every privileged change", "it makes privileged changes"),
    "permits": ("What permits recorded actions that were denied", "it permits actions that were denied"),
    "tools": ("Tools and their arguments", "it changes tools or their arguments"),
    "sandbox": ("Sandbox and network", "it changes sandbox or network"),
    "policy": ("POLICY and axioms", "it changes POLICY or axioms"),
    "judges": ("Validators, conditions and checks", "it changes what its work is judged by"),
    "models": ("Backend and proposers", "it changes backend or proposers"),
    "limits": ("Level, mode and budgets", "it changes level, mode or budgets"),
}
"""By name: what the form calls it, and why a patch needs the approval."""
DELTA = {
    "tool": "tools",
    "sandbox": "sandbox",
    "network": "sandbox",
    "history": "sandbox",
    "policy": "policy",
    "axiom": "policy",
    "validator": "judges",
    "judgement": "judges",
    "way": "judges",
    "step": "judges",
    "prompt": "judges",
    "evidence": "judges",
    "protect": "judges",
    "backend": "models",
    "proposer": "models",
    "level": "limits",
    "mode": "limits",
    "approvals": "policy",
    "export": "policy",
    "budget": "limits",
}
"""Kinds of the capability delta by those of a rule."""
STEP = re.compile(r"(tasks/[^/]+/(steps|checks)/[^/]+)(?:/.*)?")


def kinds_of(found: Difference, marked: Collection[str], *specs: ast.Spec) -> frozenset[str]:
    """All but `permits`, which only recorded actions show; `specs` are both sides of the difference."""
    kinds = {DELTA[one.kind] for one in found.capabilities}
    if not found.equal:
        kinds.add("any")
    if widens(found):
        kinds.add("widens")
    if marked:
        kinds.add("privileged")
    paths = [step for one in found.changes if (step := STEP.fullmatch(one.path))]
    if any(step[2] == "checks" for step in paths):
        kinds.add("judges")
    calls = {path for spec in specs for path in _calls(spec)}
    calls |= {_renamed(path, found.renames) for path in calls}
    if any(step[1] in calls for step in paths):
        kinds.add("tools")
    return frozenset(kinds)


def _calls(spec: ast.Spec) -> Iterator[str]:
    """Paths of steps and checks that call a tool."""
    for task in spec.tasks():
        for item in task.items:
            if isinstance(item, ast.Step) and item.kind.startswith("tool."):
                yield f"tasks/{task.name}/steps/{item.name}"
            elif isinstance(item, ast.Evaluation):
                for check in item.items:
                    yield f"tasks/{task.name}/checks/{check.name}"


def _renamed(path: str, renames: Mapping[str, str]) -> str:
    """The path under the new name of its task."""
    first, name, *rest = path.split("/")
    return "/".join((first, renames.get(name, name), *rest))
