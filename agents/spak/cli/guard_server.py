"""`spak guard --server URL`: the law of a team for the session, and the thread that reports it there.

Takes what `spak login` keeps; gives a Link before the session begins, and its Reports while it goes on. That
the platform is away is an error before the session, since the law of the team is not known then, and no more
than a line on the terminal afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spak.cli import common
from spak.errors import UsageError

if TYPE_CHECKING:
    from spak.cli.session import Session as Held
    from spak.client import Platform
    from spak.client.reports import Asked, Reports
    from spak.guard.session import Session
    from spak.policy.law import Law

FINISH_S = 15.0
"""How long the command waits at its end for a platform that is slow or away."""
THEIRS = "platform-"
"""Before the name of a file of the platform's operator that a file here has too."""


@dataclass(slots=True)
class Link:
    """A team of a platform, with the law that it gives the session."""

    platform: Platform
    team: str
    law: Law
    approvers: Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class Reporting:
    """What a session that is reported has to do with its platform."""

    session: Session | None = None
    """Who does what people ask on the page, once the agent works."""

    def obey(self, asked: Asked) -> str:
        """Do what somebody asked on the page; gives why not, or nothing. Raises: UserError."""
        from spak.guard.orders import answers

        body = asked["body"]
        if self.session is None:
            return "the agent has not begun"
        match asked["kind"]:
            case "take_back":
                answers(self.session, {"do": "back", "record": int(body["seq"]) - 1})
            case "answer":
                number = str(body["of"]).partition("-")[0]
                answers(self.session, {"do": "answer", "question": number, "text": str(body["text"])})
            case _:
                answers(self.session, {"do": "approve", "body": body["signed"]})
        return ""


@contextmanager
def platform_of(server: str, team: str) -> Iterator[tuple[Platform, str]]:
    """A platform, and the team, which may be left out where the token reaches one.

    Raises: UsageError `guard.team`, `client.*`; UnavailableError."""
    from spak.client import Platform, servers
    from spak.client.connection import origin

    where = origin(server)
    with Platform(where, servers.token(where)) as platform:
        yield platform, team or _only(platform)


@contextmanager
def linked(server: str | None, team: str) -> Iterator[Link | None]:
    """The link to a team, while the session goes on; None without a server.

    Raises: as `platform_of`; PolicyError where the laws together do not load."""
    from spak import config
    from spak.client.reports import of_law
    from spak.runner import laws

    if server is None:
        if team:
            raise UsageError("guard.team", "--team names a team of a platform", "add --server URL")
        yield None
        return
    with platform_of(server, team) as (platform, team):
        operator, rules, approvers = of_law(platform.law(team))
        chosen = config.settings()
        texts = laws.texts("law", chosen.law)
        for name, text in operator.items():
            if texts.get(name) != text:
                texts[f"{THEIRS}{name}" if name in texts else name] = text
        yield Link(platform, team, laws.operators(texts, rules), approvers)


def _only(platform: Platform) -> str:
    """The one team that the token reaches. Raises: UsageError `guard.team`."""
    teams = [str(one.get("slug", "")) for one in platform.teams()]
    if len(teams) == 1:
        return teams[0]
    known = ", ".join(teams) or "none"
    raise UsageError("guard.team", f"the token reaches these teams: {known}", "name one with --team")


def sender(
    platform: Platform, team: str, folder: Path, *, holds: Callable[[str], bool] | None = None,
    told: Callable[[str], None] = lambda line: None, ask: Callable[[Asked], str] | None = None,
    waits: Callable[[], bool] = lambda: False,
) -> Reports:  # fmt: skip
    """What reports the run of a folder. `holds` says whether a text has a value of a secret; without it only
    what looks like one is known. Without `ask` nothing is done that people ask."""
    from spak import config
    from spak.client.reports import Reports
    from spak.files.disk import Disk
    from spak.llm import redactor
    from spak.workspace.store import Store

    store, usual = Store(folder / "store", Disk()), redactor(config.settings().llm)

    def read(name: str) -> bytes:
        store.look()
        return store.read(name)

    def over(asked: Asked) -> str:
        return "the session has ended"

    known = holds or (lambda text: usual.text(text) != text)
    return Reports(platform, team, folder, read=read, holds=known, told=told, ask=ask or over, waits=waits)


@contextmanager
def reporting(link: Link | None, held: Held, *, quiet: bool) -> Iterator[Reporting]:
    """Report the session while it goes on, and what is left of it at its end. `quiet`: the agent has the
    terminal, so that nothing is said before it is gone."""
    made = Reporting()
    if link is None:
        yield made
        return
    run, later = held.run, list[str]()

    def holds(text: str) -> bool:
        redactor = run.performer.redactor
        return redactor is not None and redactor.text(text) != text

    def waits() -> bool:
        return made.session is not None and any(made.session.people.waiting().values())

    def told(line: str) -> None:
        if quiet:
            later.append(line)
        else:
            common.say(f"spak: {line}")

    reports = sender(
        link.platform, link.team, held.folder, holds=holds, told=told, ask=made.obey, waits=waits
    )
    run.listeners.append(reports.news)
    reports.start()
    try:
        yield made
    finally:
        whole = reports.finish(FINISH_S)
        for line in later:
            common.say(f"spak: {line}")
        if not whole:
            where = f"--server {link.platform.url} --team {link.team}"
            common.say(f"spak: not all of it was reported; spak guard report {held.folder.name} {where}")
