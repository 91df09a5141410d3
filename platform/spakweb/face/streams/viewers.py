"""Who watches runs: until when each may, and whose pages of a run are open just now.

A `Viewer` is a person with the session that their stream was opened in. `over(...)` says which of them may
not watch any more: signed out, password changed, token ended, no member. `People` knows the pages of a run in
this process and, by messages of the channel layer, in the other ones; it is a hint for people and nothing
depends on it. Programs (SSE) are not counted as looking on.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from django.contrib.sessions.models import Session
from django.utils import timezone

from spakweb.ground import rights
from spakweb.ground.teams.models import Membership, Token, User

SIGNED_OUT, GONE = 4401, 4403
NAMED = 20
"""People that a page is told by name."""
HOLDS_S = 45.0
"""For how long holds what another process told; each tells it again in a third of that."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who watches, and by which session or token."""

    user: int
    name: str = ""
    """Empty for a program, which is not shown to others."""
    session: str = ""
    """Empty for what is bound to no session."""
    proof: str = ""
    """What the session holds of the password; another one ends it."""
    token: int = 0
    """Of a program that came with one."""

    @classmethod
    def of(cls, user: Any, session: Any, named: bool) -> Viewer:
        """The viewer that a request's user is; without a name they are not shown to others."""
        key = str(getattr(session, "session_key", None) or "")
        proof = user.get_session_auth_hash() if key else ""
        token = user.token.pk if user.token else 0
        return cls(user.pk, str(user)[:80] if named else "", key, proof, token)


def over(pairs: Iterable[tuple[Viewer, int]]) -> dict[tuple[Viewer, int], int]:
    """Of viewers with the team that they watch: those who may not any more, with the code of the close."""
    wanted = set(pairs)
    if not wanted:
        return {}
    people = User.objects.in_bulk({viewer.user for viewer, _ in wanted})
    keys = {viewer.session for viewer, _ in wanted if viewer.session}
    open_ones = Session.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
    sessions = set(open_ones.values_list("session_key", flat=True)) if keys else set()
    held = {viewer.token for viewer, _ in wanted if viewer.token}
    tokens = set(Token.live().filter(pk__in=held).values_list("pk", flat=True)) if held else set()
    least = rights.RANK[rights.ACTIONS["run.view"]]
    found = Membership.objects.filter(user__in=people, team__in={team for _, team in wanted})
    members = {
        (user, team) for user, team, role in found.values_list("user", "team", "role")
        if rights.RANK[role] >= least
    }  # fmt: skip
    hashes = {pk: user.get_session_auth_hash() for pk, user in people.items() if user.is_active}
    ended: dict[tuple[Viewer, int], int] = {}
    for viewer, team in wanted:
        stays = not viewer.session or (viewer.session in sessions and hashes.get(viewer.user) == viewer.proof)
        if not stays or (viewer.token and viewer.token not in tokens):
            ended[viewer, team] = SIGNED_OUT
        elif viewer.user not in hashes or (viewer.user, team) not in members:
            ended[viewer, team] = GONE
    return ended


class PeopleNews(TypedDict):
    """What a process tells the others: of each run, all of its own viewers."""

    type: Literal["runs.people"]
    process: str
    runs: dict[str, list[list[Any]]]


class People:
    """Whose pages of which run are open; `here` of this process, `heard` of the others."""

    def __init__(self) -> None:
        self.process = secrets.token_hex(6)
        self.changed: set[str] = set()
        """Runs of which the others are to be told."""
        self._here: dict[str, list[Viewer]] = {}
        self._there: dict[str, dict[str, tuple[float, list[tuple[int, str]]]]] = {}

    def come(self, run: str, viewer: Viewer) -> None:
        """Add a viewer of a run; one without a name is not counted."""
        if viewer.name:
            self._here.setdefault(run, []).append(viewer)
            self.changed.add(run)

    def go(self, run: str, viewer: Viewer) -> None:
        """Remove a viewer of a run."""
        left = self._here.get(run, [])
        if viewer in left:
            left.remove(viewer)
            self.changed.add(run)
        if not left:
            self._here.pop(run, None)
            self._there.pop(run, None)  # asked for again by whoever opens it here

    def watched(self) -> set[str]:
        """The runs that somebody watches in this process."""
        return set(self._here)

    def of(self, run: str) -> list[tuple[int, str]]:
        """Each once, by name."""
        now = time.monotonic()
        found = {(viewer.user, viewer.name) for viewer in self._here.get(run, ())}
        for at, people in self._there.get(run, {}).values():
            if now - at < HOLDS_S:
                found.update(people)
        return sorted(found, key=lambda one: (one[1], one[0]))

    def news(self, runs: Iterable[str]) -> PeopleNews:
        """Who watches some runs here, for other processes."""
        here = {}
        for run in runs:
            mine = {(viewer.user, viewer.name) for viewer in self._here.get(run, ())}
            here[run] = [list(one) for one in sorted(mine)]
        return {"type": "runs.people", "process": self.process, "runs": here}

    def hear(self, news: Mapping[str, Any]) -> list[str]:
        """The runs of this process that it is about; whoever tells of one for the first time is answered."""
        if news["process"] == self.process:
            return []
        about = []
        for run, people in news["runs"].items():
            if run not in self._here:
                continue
            there = self._there.setdefault(run, {})
            if people and news["process"] not in there:
                self.changed.add(run)
            if people:
                there[news["process"]] = time.monotonic(), [(int(pk), str(name)[:80]) for pk, name in people]
            else:
                there.pop(news["process"], None)
            about.append(run)
        return about


def people_message(found: list[tuple[int, str]]) -> dict[str, Any]:
    """The message of a page."""
    shown = [{"id": pk, "name": name} for pk, name in found[:NAMED]]
    return {"type": "people", "people": shown, "count": len(found)}
