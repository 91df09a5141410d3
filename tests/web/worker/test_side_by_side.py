"""Runs of one worker at the same time, under one law: each is as if it were alone.

The worker's own slots and threads, which are made to change places all the time. What runs of one process
share (gates, compiled rules and policies, caches, tools, the writer, the sandbox's users) must not let one
know of another.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from process_kit import WAIT_S
from spak.kernel.replay import replay
from spak.ledger import verify
from spak.records import Authority, Kind
from spakweb.ground.teams.models import User
from spakweb.store.ledger import workspaces
from spakweb.store.ledger.store import DatabaseLedgers
from spakweb.store.runs.models import Run, State
from spakweb.work.worker import execute, slots
from worker_kit import begun

ROUNDS = 12


def text(name: str) -> str:
    """Rounds of steps that are permitted, with names of its own, and a last one that is not."""
    steps = [
        f"""
  step put{number}: tool.write_file {{ path: "{name}/{number}.txt" content: "{name} {number}" }}
  step look{number}: tool.read_file {{ path: "{name}/{number}.txt" }}
  step list{number}: tool.list_files {{ path: "{name}" }}
  step show{number}: tool.run {{ cmd: "cat {name}/{number}.txt" }}"""
        for number in range(ROUNDS)
    ]
    return f'task {name} {{{"".join(steps)}\n  step last: tool.read_file {{ path: ".env" }}\n}}\n'


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads change places after a few instructions, where they else do after 5 ms."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def advanced(keys: list[str]) -> None:
    """All of them in slots of this worker."""
    taken = slots.Slots(len(keys))
    threads = [
        threading.Thread(target=taken.use, args=(lambda key=key: execute.advance(key),)) for key in keys
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)


def decided(key: str) -> list[tuple[object, ...]]:
    """What was decided in a run that came to its last step, verifies and replays equal."""
    run = Run.objects.get(key=key)
    assert (run.state, run.reason, run.holder, run.tries) == (State.REFUSED, "policy.denied", "", 0)
    reader = DatabaseLedgers().reader(key)
    assert verify((line for _, line in reader.read()), exported=False, blobs=reader.blobs).ok
    records = [record for record, _ in reader.read()]
    found = replay(iter(records))
    assert found.difference is None and not found.missing
    place = workspaces.workspace_of(key)
    place.take(run.fence)
    assert place.snapshot() == found.state.r3
    return [
        (record.kind, record.step, record.body.get("allow"), record.body.get("code"))
        for record in records
        if record.authority == Authority.COMMIT
    ]


def test_each_is_as_if_it_were_alone(user: User, hurried: None) -> None:
    names = ["First", "First", "First", "Other", "Other"]
    alone, *together = [begun(user, text(name), mode="full_auto").key for name in names]
    advanced([alone])
    advanced(together)
    wanted = decided(alone)
    permits = [allow for kind, _, allow, _ in wanted if kind == Kind.PERMIT]
    assert permits == [True] * 4 * ROUNDS + [False]
    for key in together:
        assert decided(key) == wanted
