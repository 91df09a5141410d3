"""What each role of a team may do, and what each scope of a token: tables.

Gives the least role for each action and its words on pages. access.py decides by them; nothing here
asks the database.
"""

from __future__ import annotations

from spakweb.ground.teams.models import Role

RIGHTS: dict[str, tuple[Role, str]] = {
    "team.view": (Role.VIEWER, "see members"),
    "spec.view": (Role.VIEWER, "specs and their versions"),
    "source.view": (Role.VIEWER, "sources"),
    "schedule.view": (Role.VIEWER, "schedules"),
    "trigger.view": (Role.VIEWER, "triggers"),
    "suite.view": (Role.VIEWER, "suites"),
    "campaign.view": (Role.VIEWER, "campaigns"),
    "run.view": (Role.VIEWER, "runs"),
    "fleet.view": (Role.VIEWER, "runners"),
    "spec.edit": (Role.EDITOR, "edit, save, restore and import specs"),
    "spec.propose": (Role.EDITOR, "propose patches"),
    "spec.merge": (Role.EDITOR, "merge patches that have the approvals they need"),
    "suite.edit": (Role.EDITOR, "edit suites"),
    "campaign.edit": (Role.EDITOR, "run campaigns"),
    "run.start": (Role.EDITOR, "start runs"),
    "run.answer": (Role.EDITOR, "answer them"),
    "run.control": (Role.EDITOR, "stop them"),
    "schedule.edit": (Role.EDITOR, "add schedules"),
    "trigger.edit": (Role.EDITOR, "add triggers"),
    "source.sync": (Role.EDITOR, "sync a folder now"),
    "run.branch": (Role.EDITOR, "ask for a branch of their result"),
    "spec.tag": (Role.REVIEWER, "tag versions"),
    "spec.review": (Role.REVIEWER, "approve patches"),
    "run.approve": (Role.REVIEWER, "approve what a run asks for"),
    "team.manage": (Role.ADMIN, "invite, change roles, write the team's rules, add webhooks"),
    "source.manage": (Role.ADMIN, "add sources and sync folders of them"),
    "spec.protect": (Role.ADMIN, "protect specs"),
    "spec.widen": (Role.ADMIN, "save what widens them"),
    "spec.archive": (Role.ADMIN, "archive them"),
    "run.delete": (Role.ADMIN, "delete runs and say how long they are kept"),
    "audit.view": (Role.ADMIN, "read the audit log"),
    "work.manage": (Role.ADMIN, "see the work of workers and try it again"),
}
"""The least role for each action, and what the action is called on pages; roles are ranked viewer, editor,
reviewer, admin."""

ACTIONS = {action: role for action, (role, _) in RIGHTS.items()}

SCOPES: dict[str, frozenset[str]] = {
    "look": frozenset(),
    "start": frozenset({"run.start", "run.control", "run.branch", "suite.edit", "campaign.edit"}),
    "answer": frozenset({"run.answer"}),
    "edit": frozenset({"spec.edit", "spec.tag", "source.sync"}),
    "review": frozenset({"spec.propose", "spec.merge"}),
    "admin": frozenset({"source.manage", "schedule.edit", "trigger.edit", "audit.view", "work.manage"}),
}
"""What a scope of a token adds to looking. None approves: `run.approve` and `spec.review` are people's."""

RANK = {role: place for place, role in enumerate(Role)}


def rights_of(role: Role) -> str:
    """What a role may do that the one below it may not, in words: `also edit suites, start runs`."""
    words = ", ".join(text for least, text in RIGHTS.values() if least == role)
    return words if RANK[role] == 0 else f"also {words}"
