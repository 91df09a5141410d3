"""A worker that is killed (SIGKILL) at each of its writes in a step of a campaign, on a real PostgreSQL:
the next ones go on where its ledger ends, and no record, run or patch is there twice.

It needs a database that two processes share, so test_postgres.py runs it.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

import platform_campaigns as kit
from spak.evolve.campaigns import verify
from spakweb.ground import clock
from spakweb.store.campaigns.models import Campaign, State
from spakweb.store.jobs.models import Job
from spakweb.store.reviews.models import Patch
from spakweb.store.specs.facts import catalog
from spakweb.store.specs.models import Spec
from spakweb.store.suites.models import Suite
from spakweb.work.campaigns import ledger, pairs, queue, steps

pytestmark = pytest.mark.skipif(
    "SPAK_TEST_ON_POSTGRES" not in os.environ, reason="tests/web/ground/test_postgres.py runs it"
)


def killed_at(number: int, pk: int) -> bool:
    """Whether a worker's step was killed at the event of that number; False when it came to its end first."""
    connections.close_all()
    child = os.fork()
    if child == 0:
        try:
            _dying(number)
            kit.advance(pk)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def _dying(number: int) -> None:
    """Before and after each write of the ledger, with a run that is begun and not yet committed, and before
    and after patches are proposed."""
    seen = 0

    def event() -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(do: Callable[..., Any]) -> Callable[..., Any]:
        def done(*given: Any, **more: Any) -> Any:
            event()
            made = do(*given, **more)
            event()
            return made

        return done

    ledger.write = around(ledger.write)
    pairs.case_runs.begin = around(pairs.case_runs.begin)  # type: ignore[attr-defined]
    steps.patches.propose = around(steps.patches.propose)  # type: ignore[attr-defined]


def lapse(campaign: Campaign) -> None:
    """The lease of whoever had it is over, and nobody counts its faults."""
    past = clock.now() - timedelta(minutes=1)
    Job.objects.filter(kind=queue.STEP, key=str(campaign.pk)).update(lease_until=past, tries=0)


def told_of(campaign: Campaign) -> list[Any]:
    told = ledger.read(campaign)
    assert verify(told, catalog()) == []
    return [
        (item.verdict, [(pair.case, pair.k, pair.outcome) for pair in item.pairs], list(item.stages))
        for item in told.tested
    ]


def test_a_worker_that_is_killed_at_any_write_of_a_step_leaves_nothing_twice(
    cast: Any, world: tuple[Spec, Suite], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, _ = world
    suite = kit.brought(cast["bob"], cast.team, monkeypatch, gate="gate")
    whole = kit.begun(cast["bob"], spec, suite, candidates=1)
    assert kit.finish(whole) == "candidates"
    broken = kit.begun(cast["bob"], spec, suite, candidates=1)
    died, number, reached = 0, 1, (0, 0, 0)
    while broken.state == State.RUNNING:
        if killed_at(number, broken.pk):
            died += 1
        else:
            kit.run_all(broken)
        lapse(broken)
        broken.refresh_from_db()
        before, reached = reached, (broken.count, broken.asked.count(), Patch.objects.count())
        number = number + 1 if reached == before else 1  # the next event once it got no further
        assert died < 200
    assert died >= 2 * whole.count, "before and after each record, and where runs are begun"
    assert broken.state == State.ENDED
    assert told_of(broken) == told_of(whole)
    assert told_of(broken)[0][0] == "fit"
    assert broken.count == whole.count
    assert broken.asked.count() == whole.asked.count() == 2
    assert [patch.campaign for patch in Patch.objects.order_by("pk")] == [
        f"{one.patches_name} candidate 1" for one in (whole, broken)
    ]
