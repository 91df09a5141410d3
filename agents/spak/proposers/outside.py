"""The proposer that is an agent outside of the kernel: what it proposes comes from a guarded session.

`spak guard` puts its own in the place of this one while the session lasts (spak.guard); by itself it has
nothing to propose, so that a session is never taken up without its agent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spak.errors import UsageError
from spak.lang.catalog import NamedEntry
from spak.ports import Candidate, PlanRequest, Search

Following = Callable[[PlanRequest], Sequence[Candidate] | Search]


class Outside:
    """The proposer `outside`."""

    entry = NamedEntry("outside", "an agent behind the guard proposes: spak guard -- AGENT")

    def __init__(self, following: Following | None = None) -> None:
        self._following = following

    def propose(self, request: PlanRequest) -> Sequence[Candidate] | Search:
        """What the session has next. Raises: UsageError `guard.no_session` without one."""
        if self._following is not None:
            return self._following(request)
        raise UsageError(
            "guard.no_session",
            f"TASK {request.task} waits for an agent behind the guard, and there is none",
            "spak guard --resume RUN -- AGENT goes on with this run",
        )
