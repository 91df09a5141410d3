"""A session that is kept for similar actions, with the amounts spent updated before each.

Takes the facts of an action and of what is spent; keeps a session that says the same of the action as one of
just these facts. Counters mostly move within their bounds. Where the law only ever asks whether more than
something is spent (`rising`), the session holds a larger amount: if nothing follows from it, nothing follows
from less, and the session needs no update before that much is spent. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from spak.datalog import Session
from spak.datalog.values import Fact
from spak.errors import UserError
from spak.policy.history.state import History

AHEAD, LEAST = 64, 4
"""What is added to a counter at first, and the least that is worth an update."""


class Held:
    """A session, the facts that it holds, and what was derived from them."""

    __slots__ = ("_ahead", "_idle", "_idle_at", "allowed_at", "known", "moving", "past", "rising", "session")

    def __init__(
        self, session: Session, known: tuple[Fact, ...], moving: tuple[Fact, ...], rising: bool
    ) -> None:
        self.session, self.known, self.moving, self.rising = session, known, moving, rising
        self.past: History | None = None
        """The one that its answers about the past are from."""
        self.allowed_at = -1
        """The session's version at which the action was found to be permitted."""
        self._ahead = [AHEAD] * len(moving)
        self._idle: Sequence[bool] = ()
        """Of each fact in `moving`, whether nothing follows from it, at the version `_idle_at`."""
        self._idle_at = -1

    def change(self, known: tuple[Fact, ...], moving: tuple[Fact, ...]) -> tuple[list[Fact], list[Fact]]:
        """What these facts lack of the session's, and what they have more."""
        before, now = {*self.known, *self.moving}, {*known, *moving}
        less = [fact for fact in (*self.known, *self.moving) if fact not in now]
        return less, [fact for fact in (*known, *moving) if fact not in before]

    def become(self, known: tuple[Fact, ...], moving: tuple[Fact, ...]) -> None:
        """Hold exactly these facts. Raises: PolicyError, PolicyLimit."""
        if self.known is not known or self.moving is not moving:
            less, more = self.change(known, moving)
            if less or more:
                self.session.update(less, more)
            self.known, self.moving = known, moving

    def spend(self, moving: tuple[Fact, ...], folds: bool) -> None:
        """Say what follows from these facts in the place of what was spent. Raises: PolicyError,
        PolicyLimit."""
        before = self.moving
        if before == moving:
            return
        if folds or len(before) != len(moving):
            self.become(self.known, moving)
        elif not self.rising or len(self._ahead) != len(moving):
            self._tell(moving)
        elif late := self._late(moving):
            self._tell_ahead(moving, late)

    def _late(self, moving: tuple[Fact, ...]) -> list[int]:
        """The places of the facts for which the session has to be updated."""
        idle = self._idle if self._idle_at == self.session.version else [False] * len(moving)
        late = []
        for place, (old, new) in enumerate(zip(self.moving, moving, strict=True)):
            if old is new or old == new:
                continue
            if not (idle[place] and old[1][0] == new[1][0] and _amount(new) <= _amount(old)):
                late.append(place)
        return late

    def _tell_ahead(self, moving: tuple[Fact, ...], late: list[int]) -> None:
        """Tell of more than these counters, or of what they are where something follows from more."""
        before, raised, exact = self.moving, [*self.moving], [*self.moving]
        for place in late:
            exact[place] = raised[place] = fact = moving[place]
            if self._ahead[place] >= LEAST:
                raised[place] = (fact[0], (fact[1][0], _amount(fact) + self._ahead[place]))
        try:
            self._tell(raised)
            if all(self._idle[place] or raised[place] is exact[place] for place in late):
                for place in late:
                    self._ahead[place] *= 4
                return
            self._tell(before)
        except UserError:
            pass  # of more than is spent: the session is as it was
        for place in late:
            self._ahead[place] //= 8
        self._tell(exact)

    def _tell(self, moving: Sequence[Fact]) -> None:
        pairs = [(old, new) for old, new in zip(self.moving, moving, strict=True) if old != new]
        self.session.update([old for old, _ in pairs], [new for _, new in pairs])
        self.moving = tuple(moving)
        if self.rising:
            self._idle = [self.session.idle(fact) for fact in moving]
            self._idle_at = self.session.version


def _amount(fact: Fact) -> int:
    amount = fact[1][1]
    assert isinstance(amount, int)
    return amount
