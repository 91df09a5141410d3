"""Where a guarded agent works: in a copy of the folder, or in an empty folder from which it reads and writes
the files by our tools only (`--workspace-mode tools`).

Takes a session's run; gives the session with the agent's folder, and the launcher that shows it that. A law
that speaks about reads wants the empty folder: what an agent reads in a copy nobody can judge.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spak.guard import TASK

if TYPE_CHECKING:
    from spak.cli.session import Session as Held
    from spak.config import Settings
    from spak.guard.inside_hooks import InsideHooks
    from spak.guard.session import Session
    from spak.policy.law import Law
    from spak.ports import Launcher, Quota, Redacting

COPY = "agent"
"""In the folder of the run: what the agent sees, and with `-store` the store of its copy."""
MODE = "workspace"
"""The label of a run whose agent sees no copy, with the value TOOLS."""
TOOLS = "tools"


@dataclass(frozen=True, slots=True)
class Place:
    """What the agent gets."""

    session: Session
    folder: Path
    launcher: Launcher | None
    redactor: Redacting | None
    """Knows the values in the files of secrets."""
    quota: Quota | None = None
    """Of a copy; without one the folder is empty and cannot be written."""


def by_tools(held: Held) -> tuple[bool, str]:
    """Whether the agent sees no copy; and the rule of the law that wants that, where one does."""
    rule = _reading_rule(held, _law(held).shipped)
    return bool(rule) or _genesis(held)["host"].get("labels", {}).get(MODE) == TOOLS, rule


def words(empty: bool, rule: str) -> str:
    """The first line of a session: what holds the agent, and why it sees no copy."""
    if not empty:
        return "every action of the agent is contained: its copy, taken back or kept"
    why = f", since {rule} speaks about reads" if rule else ""
    return f"the agent sees an empty folder{why}: it works by our tools, and each call is judged"


def hooks(held: Held, place: Place) -> InsideHooks | None:
    """Who answers the agent's hooks; None where the law has no rule of its own that forbids."""
    from spak.cli.gate import judge_of
    from spak.guard.inside_hooks import InsideHooks, stricter
    from spak.workspace import Copied

    policy = stricter(held.run.rules.gate.policy, _law(held).shipped)
    if policy is None:
        return None
    copied = Copied.read(held.folder)
    tops = ["/ws", *([copied.source] if copied is not None else [])]
    return InsideHooks(judge_of(policy, place.folder), place.folder, tops)


def place(held: Held, chosen: Settings, *, empty: bool) -> Place:
    """The agent's place, made anew."""
    for name in (COPY, f"{COPY}-store"):
        shutil.rmtree(held.folder / name, ignore_errors=True)  # of an agent that is gone
    return _empty(held) if empty else _copied(held, chosen)


def _genesis(held: Held) -> Mapping[str, Any]:
    return next(iter(held.run.ledger.read()))[0].body


def _law(held: Held) -> Law:
    from spak.policy.law import Law

    return Law.from_json(_genesis(held)["rules"]["policy"])


def _reading_rule(held: Held, shipped: Collection[str]) -> str:
    """The place of a rule that speaks about reads and is not in these files; empty without one."""
    from spak.policy.reads import about_reads

    rules = held.run.rules
    entries = (rules.catalog.tools[name] for name in rules.program.tasks[TASK].tools)
    pure = (one for one in entries if one.effect == "pure")
    reading = [one.name for one in pure if any(of.startswith("reads") for of in one.arguments.values())]
    found = next(about_reads(rules.gate.policy, shipped, reading), None)
    return "" if found is None else f"{found.place.file}:{found.place.line}"


def _copied(held: Held, chosen: Settings) -> Place:
    from spak.cli import session
    from spak.guard.session import Session
    from spak.runner.repositories import Repositories
    from spak.runner.secret_guard import SecretGuard
    from spak.workspace import Copied, Workspace

    run, folder = held.run, held.folder
    places = folder / COPY, folder / f"{COPY}-store"
    copy = Workspace(*places, bounds=chosen.wanted.bounds, durable=False)  # --resume makes it anew
    copy.restore(run.state.r3, run.workspace.store)
    host = session.placed(run.performer.host, copy, Copied.read(folder), chosen)
    secrets = SecretGuard(host, copy, run.rules.r3)
    secrets.look(fresh=True)
    Repositories(copy, run.rules, lambda: secrets).before_job()
    return Place(Session(run, copy), copy.directory, secrets.launcher(), secrets.redactor, copy.quota)


def _empty(held: Held) -> Place:
    from spak.guard.session import Served

    performer = held.run.performer
    performer.secret_guard.look(fresh=True)
    (held.folder / COPY).mkdir()
    return Place(Served(held.run), held.folder / COPY, performer.host.launcher, performer.redactor)
