"""Merges that happen at once, by hand and by the queue, and workers that are killed in a step of the queue:
one version each, never twice, never a lost one. test_postgres.py runs it on PostgreSQL too.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from jobs_kit import do
from process_kit import WAIT_S
from runs_kit import tables
from spakweb.ground.audit.models import Event
from spakweb.ground.errors import Refused
from spakweb.store.jobs.models import Job
from spakweb.store.reviews.models import HistoryRecord, Patch, Queued
from spakweb.store.specs.models import Spec
from spakweb.work.jobs import queue
from spakweb.work.reviews import actions, checks, history, merge_queue, notices, queue_steps, rules
from spakweb.work.reviews.protection import protect
from spakweb.work.specs.actions import Stale, remove_tag, save_version, set_tag

pytestmark = pytest.mark.django_db(transaction=True)

MEET_S = 0.3
TASKS = "".join(
    f'  TASK t{n} {{\n    step s{n}: tool.list_files {{ path: "." }}\n{{edge}}  }}\n'.replace(
        "{edge}", f"    NEXT {{ success -> t{n + 1} }}\n" if n < 5 else ""
    )
    for n in range(6)
)
TEXT = f"AGENT Small LEVEL 1 {{\n  START -> t0\n{TASKS}}}\n"


@pytest.fixture
def world(transactional_db: None, monkeypatch: pytest.MonkeyPatch, cast: Any) -> Iterator[Any]:
    """The cast with a spec of six tasks, merged with one approval; workers are called by the tests."""
    monkeypatch.setattr(queue, "send", lambda kind, key, queue="default": None)
    with tables():
        save_version(cast["alice"], cast.spec, TEXT, 1)
        cast.spec.refresh_from_db()
        yield cast


def step_of(number: int, path: str = ".") -> str:
    return f'step s{number}: tool.list_files {{ path: "{path}" }}'


def proposed(cast: Any, number: int, path: str) -> Patch:
    """An approved patch to the task of that number."""
    text = TEXT.replace(step_of(number), step_of(number, path))
    made = actions.propose(cast["bob"], cast.spec, text, 2, f"Change {number} to {path}")
    actions.judge(cast["rita"], made, 1, True)
    do(checks.CHECK, made.latest.pk)
    return made


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """What each gives or refuses, all begun at the same time; any other error is one of the test."""
    found: list[Any] = [None] * len(works)
    ready = threading.Barrier(len(works))

    def one(place: int, work: Callable[[], Any]) -> None:
        try:
            ready.wait(WAIT_S)
            found[place] = work()
        except Refused as why:
            found[place] = why.code
        except BaseException as error:
            found[place] = error
        finally:
            connections.close_all()

    threads = [threading.Thread(target=one, args=(place, work)) for place, work in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    for item in found:
        if isinstance(item, BaseException):
            raise item
    return found


def meeting(monkeypatch: pytest.MonkeyPatch, many: int, where: Any, name: str) -> None:
    """All that come there wait for each other, as far as locks let them: those that nothing holds up go on
    with what they have read."""
    meet, do = threading.Barrier(many), getattr(where, name)

    def met(*given: Any, **more: Any) -> Any:
        made = do(*given, **more)
        with contextlib.suppress(threading.BrokenBarrierError):
            meet.wait(MEET_S)
        return made

    monkeypatch.setattr(where, name, met)


def whole(spec: Spec, merged: int) -> None:
    """The history holds, numbers have no gap, and each merge is there once."""
    spec = Spec.objects.get(pk=spec.pk)
    numbers = sorted(spec.versions.values_list("number", flat=True))
    assert numbers == list(range(1, spec.head.number + 1))
    assert history.verify(spec) == []
    lines = [history.read(one) for one in HistoryRecord.objects.filter(spec=spec)]
    assert sum(one["what"] == "merge" for one in lines) == merged
    assert Event.objects.filter(action="patch.merged").count() == merged
    done = Patch.objects.filter(spec=spec, state=Patch.State.MERGED)
    assert done.count() == merged == done.values("merged").distinct().count()


def test_one_patch_is_merged_once_by_many(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    patch = proposed(world, 1, "tests")
    meeting(monkeypatch, 4, rules, "missing")
    found = at_once(*[lambda: actions.merge(world["bob"], patch, 1)] * 4)
    assert sorted(str(one) for one in found) == ["small v3", *["web.patch_closed"] * 3]
    assert world.spec.versions.count() == 3
    whole(world.spec, 1)


def test_two_patches_of_a_spec_that_are_merged_at_once_become_a_version_each(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    patches = [proposed(world, 1, "tests"), proposed(world, 4, "docs")]
    meeting(monkeypatch, 2, rules, "missing")
    found = at_once(*[lambda patch=patch: actions.merge(world["bob"], patch, 1) for patch in patches])
    assert sorted(str(one) for one in found) == ["small v3", "web.patch_waits"]
    late = Patch.objects.get(pk=patches[0 if found[0] == "web.patch_waits" else 1].pk)
    actions.update(world["bob"], late, 1)
    actions.judge(world["rita"], late, 2, True)
    assert actions.merge(world["bob"], late, 2).number == 4
    world.spec.refresh_from_db()
    expected = TEXT.replace(step_of(1), step_of(1, "tests")).replace(step_of(4), step_of(4, "docs"))
    assert world.spec.head.text == expected
    whole(world.spec, 2)


@pytest.mark.parametrize("other", ["revise", "close", "judge", "update"])
def test_a_merge_and_another_act_at_once(world: Any, monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    """Whichever comes second sees what the first has done."""
    patch = proposed(world, 1, "tests")
    text = patch.latest.text + "// more\n"
    does: dict[str, Callable[[], Any]] = {
        "revise": lambda: actions.revise(world["bob"], patch, 1, text),
        "close": lambda: actions.close(world["bob"], patch, 1),
        "judge": lambda: actions.judge(world["alice"], patch, 1, False),
        "update": lambda: save_version(
            world["alice"], Spec.objects.get(pk=world.spec.pk), TEXT + "// x\n", 2
        ),
    }
    meeting(monkeypatch, 2, rules, "missing")
    merged, did = at_once(lambda: actions.merge(world["bob"], patch, 1), does[other])
    if str(merged) == "small v3":
        assert did == "web.patch_closed" or isinstance(did, Stale)
        whole(world.spec, 1)
    else:
        assert merged in ("web.patch_moved", "web.patch_closed", "web.patch_waits")
        assert did is None or not isinstance(did, str)
        whole(world.spec, 0)


def test_tags_that_move_while_patches_are_merged(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its record in the history of the spec; none takes the number of another."""
    patch, head = proposed(world, 1, "tests"), world.spec.head
    tags = [set_tag(world["alice"], head, name) for name in ("staging", "production")]
    meeting(monkeypatch, 4, history, "_key")
    at_once(
        lambda: actions.merge(world["bob"], patch, 1),
        lambda: remove_tag(world["alice"], tags[0]),
        lambda: remove_tag(world["alice"], tags[1]),
        lambda: set_tag(world["alice"], head, "staging"),
    )
    whole(world.spec, 1)
    assert HistoryRecord.objects.filter(spec=world.spec).count() == 6


def worker(spec: int, steps: int = 60) -> None:
    """Steps and checks until the queue is empty, as a worker has them."""
    for _ in range(steps):
        queue.want(merge_queue.ADVANCE, spec, Spec.objects.get(pk=spec).team_id)
        do(merge_queue.ADVANCE, spec)
        entry = merge_queue.waiting(spec).first()
        if entry is None:
            return
        do(checks.CHECK, entry.patch.latest.pk)


def test_a_queue_with_many_workers_while_somebody_saves(world: Any) -> None:
    protect(world["alice"], world.spec, 0, queue=True, follow=True)
    patches = [proposed(world, number, "tests") for number in (0, 2, 4)]
    same = proposed(world, 4, "docs")
    for patch in (*patches, same):
        actions.queue(world["bob"], patch, 1)
    key = world.spec.pk

    def save() -> None:
        for number in range(3):
            for _ in range(20):
                head = Spec.objects.get(pk=key).head
                made = save_version(
                    world["alice"], Spec.objects.get(pk=key), f"// {number}\n{head.text}", head.number
                )
                if not isinstance(made, Stale):
                    break

    at_once(*[lambda: worker(key)] * 3, save)
    worker(key)
    states = {one.patch.number: one.state for one in Queued.objects.select_related("patch")}
    assert states == {1: "merged", 2: "merged", 3: "merged", 4: "refused"}
    world.spec.refresh_from_db()
    expected = TEXT
    for number in (0, 2, 4):
        expected = expected.replace(step_of(number), step_of(number, "tests"))
    assert world.spec.head.text == f"// 2\n// 1\n// 0\n{expected}"
    assert world.spec.head.number == 8
    whole(world.spec, 3)


# ---- workers that are killed


def killed_at(number: int, spec: int) -> bool:
    """Whether a worker was killed at the write of that number; False when its step ended first."""
    connections.close_all()
    child = os.fork()
    if child == 0:
        try:
            _dying(number)
            queue_steps.step(spec)
            entry = merge_queue.waiting(spec).first()
            if entry is not None:
                do(checks.CHECK, entry.patch.latest.pk)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def _dying(number: int) -> None:
    """Before and after each write of a step: revision, checks, version, history, place, notice; and after the
    transaction, before the message that it sends."""
    seen = 0

    def event() -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(where: Any, name: str) -> None:
        do = getattr(where, name)

        def done(*given: Any, **more: Any) -> Any:
            event()
            made = do(*given, **more)
            event()
            return made

        setattr(where, name, done)

    for where, name in (
        (actions, "_revise"), (actions, "save_version"), (actions.history, "append"), (checks, "begin"),
        (merge_queue, "leave"), (notices, "merged"), (notices, "left_queue"), (checks, "run"),
        (queue, "want"), (merge_queue, "ask"),
    ):  # fmt: skip
        around(where, name)


def test_workers_that_are_killed_at_any_write_of_a_step(world: Any) -> None:
    protect(world["alice"], world.spec, 1, queue=True, follow=True)
    patches = [proposed(world, 0, "tests"), proposed(world, 3, "docs"), proposed(world, 3, "src")]
    for patch in patches:
        actions.queue(world["bob"], patch, 1)
    key, died, number, before = world.spec.pk, 0, 1, None
    for _ in range(400):
        if merge_queue.waiting(key).first() is None:
            break
        died += killed_at(number, key)
        Job.objects.exclude(holder="").update(lease_until=timezone.now() - timedelta(seconds=1), tries=0)
        rows = Patch.objects.values_list("state", "queued__state", "revisions__checks__state").order_by("pk")
        now = (sorted(map(str, rows)), world.spec.versions.count())
        number, before = (number + 1 if now == before else 1), now
    assert [one.state for one in Queued.objects.order_by("pk")] == ["merged", "merged", "refused"]
    assert died > 20
    world.spec.refresh_from_db()
    expected = TEXT.replace(step_of(0), step_of(0, "tests")).replace(step_of(3), step_of(3, "docs"))
    assert (world.spec.head.number, world.spec.head.text) == (4, expected)
    assert [one.revisions.count() for one in Patch.objects.order_by("pk")] == [1, 2, 1]
    whole(world.spec, 2)
