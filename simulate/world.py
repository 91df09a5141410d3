"""One seed: two or three workers, a beat, people with runs, a broker and a monitor, until all of it is over.

`simulated(seed, plan)` gives what came of it. Everything of the product that runs here is the product's own
code: its tasks, its watch thread, its take-over after a restart, its actions for people.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulate import product, reached, tools, workload
from simulate.baton import Process, Scheduler, Stuck
from simulate.broker import Broker
from simulate.faults import Fault, Injector, drawn
from simulate.invariants import Monitor, Violation
from simulate.threads import Event, Here

LOOK_S, WATCH_S, SWEEP_S, BEAT_S = 2.0, 1.0, 4.0, 5.0
"""How often a worker looks and sweeps: rarer than the product does, for the time that it takes; and beat."""
PATIENCE_S = 400.0
"""So long after the last fault every run has come to its end."""


@dataclass(slots=True)
class Found:
    """What came of a seed."""

    seed: int
    violation: str = ""
    trace: str = ""
    faults: Counter[str] = field(default_factory=Counter)
    records: int = 0
    runs: int = 0
    workers: int = 0
    takeovers: int = 0
    points: int = 0
    virtual_s: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)
    """What tasks raised: a worker logs it and goes on."""
    plan: tuple[Fault, ...] = ()
    alone_s: float = 0.0
    """The longest that a run read running without a holder."""
    arcs: set[reached.Arc] = field(default_factory=set)


def simulated(seed: int, folder: Path, plan: Sequence[Fault] | None = None, *, traced: bool = False) -> Found:
    """The seed, in a process that was forked for it (simulate.product.enter)."""
    arcs: set[reached.Arc] = set()
    if traced:
        reached.trace(arcs)
    found = Simulation(seed, folder, drawn(seed) if plan is None else plan).run()
    if traced:
        reached.stop()
        found.arcs = arcs
    return found


def unless(idle: Callable[[], bool], real: Callable[..., int]) -> Callable[..., int]:
    """The same, without its query where a quick look shows that it would find nothing: most of the time of a
    seed would go into composing these."""
    real = getattr(real, "__wrapped__", real)

    def quick(*given: Any) -> int:
        Here.scheduler.point("sql", "look")
        return 0 if idle() else real(*given)

    quick.__wrapped__ = real  # type: ignore[attr-defined]
    return quick


class Simulation:
    """The processes of a seed, and what they share."""

    def __init__(self, seed: int, folder: Path, plan: Sequence[Fault]) -> None:
        self.seed, self.folder, self.plan = seed, folder, tuple(plan)
        dice = self.dice = random.Random(f"world {seed}")
        self.scheduler = Here.scheduler = Scheduler(seed)
        Here.jump_s = 0.0
        tools.World.forget()
        self.apart = dice.random() < 0.5
        product.spread(self.apart)
        self.broker = Broker(self.scheduler, returns=dice.random() < 0.5)
        self.injector = Injector(self.scheduler, self.plan, self.broker)
        self.injector.crashed, self.injector.frozen = self._crashed, self._frozen
        self.workers = [f"w{number}" for number in range(1, dice.choice((3, 3, 4)))]
        self.living: dict[str, Process] = {}
        self.down: dict[Process, float] = {}
        self.monitor = Monitor(self)
        self.errors: Counter[str] = Counter()
        self.takeovers = 0
        self.keys: dict[str, str] = {}
        """Runs by their keys, with their specs."""
        self.to_start = dice.randint(3, 5)
        self.cancelled: set[str] = set()

    def run(self) -> Found:
        """Raises: nothing; a violation is in what it gives."""
        from spakweb.work.worker import held_run, queue, tasks

        queue.app.send_task = self.broker.send_task
        tasks.LOOK_S, held_run.WATCH_S = LOOK_S, WATCH_S
        tasks.jobs.prompt = tasks.jobs.sweep = lambda: 0  # no kind of jobs is part of it
        tasks.after_sweep.receivers = []
        tasks.stop_wanted = unless(self.monitor.nothing_wanted, tasks.stop_wanted)
        tasks._swept = unless(self.monitor.nothing_to_sweep, tasks._swept)
        people = Process("people")
        for name in self.workers:
            self.scheduler.spawn(
                f"supervisor of {name}", Process(f"supervisor {name}"), self._supervise(name)
            )
        self.scheduler.spawn("beat", Process("beat"), self._beat)
        self.scheduler.spawn("people", people, self._people)
        self.scheduler.spawn("monitor", Process("monitor"), self.monitor.watch)
        said = ""
        try:
            self.scheduler.run()
        except Violation as found:
            said = str(found)
        except Stuck as found:
            said = f"stuck: {found}"
        made = Found(self.seed, said, plan=self.plan)
        made.faults, made.errors, made.takeovers = self.injector.done, self.errors, self.takeovers
        made.points, made.virtual_s = self.scheduler.points, self.scheduler.now
        made.alone_s = self.monitor.longest_alone
        made.runs, made.workers = len(self.keys), len(self.workers)
        heads = self.monitor.heads()
        made.records = sum(count for count, _ in heads.values())
        trace = repr((self.scheduler.log, sorted(heads.items()), round(self.scheduler.now, 3), said))
        made.trace = hashlib.sha256(trace.encode()).hexdigest()[:16]
        return made

    # ---- workers

    def _supervise(self, name: str) -> Any:
        def work() -> None:
            number, before = 0, ""
            while True:
                number += 1
                process = Process(f"{name}.{number}", worker=True, host=name)
                process.skew_s = round(self.scheduler.random.uniform(-1, 1), 3)
                self.living[name] = process
                self.scheduler.spawn(f"{process.name} main", process, self._worker(process, before))
                self.scheduler.wait(lambda owner=process: owner.dead)  # type: ignore[misc]
                self.broker.died(process)
                before = process.name if self.scheduler.random.random() < 0.5 else ""
                self.scheduler.sleep(self.down.pop(process, 1.0))

        return work

    def _worker(self, process: Process, before: str) -> Any:
        from spakweb.work.worker import process as embedded
        from spakweb.work.worker import tasks

        def work() -> None:
            stop = Event()
            embedded.take_over(before, stop)
            for number in (1, 2):
                self.scheduler.spawn(f"{process.name} slot {number}", process, self._consumer(process))
            tasks.watch(stop, SWEEP_S, tasks.sweep_if_nobody_did)

        return work

    def _consumer(self, process: Process) -> Any:
        from django.db import connection

        from spakweb.work.worker import tasks

        known = {"runs.advance": tasks.advance, "runs.sweep": tasks.sweep}

        def work() -> None:
            while True:
                message = self.broker.take(process)
                try:
                    known[message.name].run(*message.args)
                except Exception as error:  # as a worker of Celery's does
                    self.errors[f"{type(error).__name__}: {str(error)[:80]}"] += 1
                connection.close()
                self.broker.done(process, message)

        return work

    def _crashed(self, process: Process, seconds: float) -> None:
        self.down[process] = seconds

    def _frozen(self, process: Process, seconds: float) -> None:
        held = self.monitor.held_by(process.name)

        def thaw() -> None:
            now = self.monitor.fences()
            self.takeovers += any(now.get(run, 0) > fence for run, fence in held.items())

        if held:
            self.scheduler.later(seconds, thaw)

    def healthy(self) -> bool:
        """Whether some worker could go on now, and none of its threads hangs: it takes nothing that it holds
        itself, and its sweep may be what hangs."""
        now = self.scheduler.now
        broken = max(self.injector.full_until, self.injector.failing_until) > now
        return not broken and any(
            not one.dead and max(one.frozen_until, one.cut_until, one.stalled_until) <= now
            for one in self.living.values()
        )

    # ---- beat and people

    def _beat(self) -> None:
        while True:
            self.scheduler.sleep(BEAT_S)
            self.broker.send_task("runs.sweep")

    def _people(self) -> None:
        from django.db import connection

        since = 0.0
        while True:
            self.scheduler.sleep(round(self.scheduler.random.uniform(0.5, 8), 2))
            more = len(self.keys) < self.to_start
            if not more and not self.injector.over and len(self.keys) < 9 and not self._open():
                more = True
            if more:
                self._start()
            self._see_to()
            connection.close()
            if not self.injector.over or self._open() or len(self.keys) < self.to_start:
                if self.injector.over:
                    since = since or self.scheduler.now
                    if self.scheduler.now - since > PATIENCE_S:
                        raise Violation(f"runs were lost: {self.monitor.describe()}")
                continue
            self.injector.calm = True
            for _ in range(8):  # a lease that was taken before the clock was set back ends after a minute
                self.scheduler.sleep(10.0)
                if not self.monitor.held_at_end():
                    break
            self.monitor.at_end()
            self.scheduler.stop()
            return

    def _start(self) -> None:
        from django.db import DatabaseError

        number = len(self.keys)
        names = list(workload.SPECS)
        name = names[number % len(names)] if number < 2 else self.scheduler.random.choice(names)
        key = f"run-{number}"
        backend = "scripted" if name == "talk" and self.scheduler.random.random() < 0.5 else ""
        with suppress(DatabaseError):  # nothing of it is there: it is started the next time
            workload.start(name, key, backend=backend, seed=number)
            self.keys[key] = name

    def _open(self) -> bool:
        return any(state not in ("succeeded", "failed", "cancelled", "refused") for state in
                   self.monitor.states().values())  # fmt: skip

    def _see_to(self) -> None:
        """Answer what runs wait for, go on with those that were paused, and cancel one now and then."""
        from django.db import DatabaseError

        from spakweb.ground.errors import Refused
        from spakweb.ground.teams.models import User
        from spakweb.store.runs.models import Run, State
        from spakweb.work.runs import actions

        chosen = [
            key
            for key, state in self.monitor.states().items()
            if self.scheduler.random.random() < {"waiting": 0.5, "paused": 1.0, "running": 0.06}.get(state, 0)
        ]
        for run in Run.objects.filter(key__in=chosen).order_by("pk") if chosen else ():
            user = User.objects.get()
            try:
                if run.state == State.PAUSED:
                    actions.resume(user, run)
                elif run.state == State.WAITING and (asked := run.summary.get("waiting")):
                    actions.ask(user, run, "answer", asked["id"], text="hello")
                elif run.state == State.RUNNING:
                    word = self.scheduler.random.choice(("pause", "cancel"))
                    actions.request_control(user, run, word)
                    if word == "cancel":
                        self.cancelled.add(run.key)
            except (Refused, DatabaseError):  # a person tries again
                continue
