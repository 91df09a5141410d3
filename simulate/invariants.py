"""What must hold after each commit, at each moment, and at the end of a seed.

After each commit: fences and numbers of records never fall, a run that ended stays as it is, under one fence
one process writes, and no run is chosen again and again. At each second: no run reads running without a
holder for longer than the promise. At the end: every run came to its end, its ledger verifies and replays,
its workspace is what the last R3 says, effects were done as often as docs/guarantees.md allows and no more.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from simulate import workload
from simulate.baton import Process
from simulate.threads import Here, wall
from simulate.tools import Outside, World

PROMISE_S = 14.0
"""So long after its lease ended, and after the last fault, a run may read running: a sweep that came to
nothing counts for 8 seconds, 4 pass to a worker's next sweep, and 2 to its next look."""
CHOOSING = "+"
"""After the name of a process that has chosen a run and not taken its lease."""
CHOSEN = 50
"""So often a run may be chosen at most while it gets no further."""
ENDED = ("succeeded", "failed", "cancelled", "refused")


class Violation(Exception):
    """An invariant does not hold."""


class Monitor:
    """Looks at the database from outside, by a connection of its own, and comes to no point."""

    def __init__(self, simulation: Any) -> None:
        self._of = simulation
        self._raw = sqlite3.connect(str(simulation.folder / "spak.sqlite3"), check_same_thread=False)
        self._before: dict[str, tuple[Any, ...]] = {}
        self._writers: dict[tuple[str, int], str] = {}
        self._holders: dict[tuple[str, int], str] = {}
        self._begun: dict[tuple[str, tuple[str, ...]], set[str]] = {}
        self._chosen: dict[tuple[str, int, int], int] = {}
        """How often a run was chosen, by its fence and its number of records."""
        self._had: dict[str, set[str]] = {}
        """Who held a run, or had chosen it."""
        self._alone: dict[str, float] = {}
        """Since when a run reads running without a holder, while nothing new went wrong."""
        self.longest_alone = 0.0
        from simulate import calls

        calls.Faulty.committed = self.committed
        World.effect_begins = self.effect_begins

    def _rows(self) -> list[tuple[Any, ...]]:
        found = self._raw.execute(
            "SELECT key, fence, count, state, holder, lease_until, reason, head, wanted, faults, "
            "enqueued_at, not_before FROM runs_run"
        ).fetchall()
        return sorted(found)

    def states(self) -> dict[str, str]:
        """The state of each run."""
        return {row[0]: row[3] for row in self._rows()}

    def fences(self) -> dict[str, int]:
        """The fence of each run."""
        return {row[0]: row[1] for row in self._rows()}

    def heads(self) -> dict[str, tuple[int, str]]:
        """The number of records of each run, and its head."""
        return {row[0]: (row[2], row[7]) for row in self._rows()}

    def held_by(self, process: str) -> dict[str, int]:
        """The runs that a process holds, with their fences."""
        return {row[0]: row[1] for row in self._rows() if row[4] in (process, process + CHOOSING)}

    def describe(self) -> str:
        """How runs that are not over look."""
        return "; ".join(str(row) for row in self._rows() if row[3] not in ENDED)

    # ---- what need not be looked for

    def nothing_wanted(self) -> bool:
        """Whether nobody wants a run that has not ended to stop."""
        return all(not row[8] or row[3] in ENDED for row in self._rows())

    def nothing_to_sweep(self) -> bool:
        """Whether all runs that have not ended are held for some seconds more, or wait for a person."""
        asked = self._raw.execute("SELECT 1 FROM runs_command WHERE done_at IS NULL LIMIT 1").fetchone()
        return not asked and all(
            row[3] in ENDED
            or (row[3] in ("waiting", "paused") and not row[8])
            or (row[4] and not self._is_over(row[5], 5.0))
            or (row[3] == "queued" and not row[4] and not row[11] and self._is_recent(row[10]))
            for row in self._rows()
        )

    @staticmethod
    def _is_recent(sent: str | None) -> bool:
        """Whether a message was sent so short a time ago that none is sent again."""
        if sent is None:
            return False
        at = datetime.fromisoformat(sent).replace(tzinfo=UTC).timestamp()
        return at <= wall() <= at + 25.0

    # ---- after each commit

    def committed(self, raw: Any) -> None:
        """Raises: Violation."""
        process: Process | None = Here.scheduler.process
        for row in self._rows():
            key, fence, count, state, *_ = row
            before = self._before.get(key)
            self._before[key] = row
            if before is None or before == row:
                continue
            if fence < before[1] or count < before[2]:
                self._fail(f"{key}: fence or count fell: {before} -> {row}")
            if before[3] in ENDED and (state != before[3] or count != before[2]):
                self._fail(f"{key}: changed after its end: {before} -> {row}")
            self._holders_of(before, row, process)
            if count > before[2] and process is not None:
                writer = self._writers.setdefault((key, fence), process.name)
                if writer != process.name:
                    self._fail(f"{key}: {writer} and {process.name} write under fence {fence}")

    def _holders_of(self, before: tuple[Any, ...], row: tuple[Any, ...], process: Process | None) -> None:
        """Under one fence one process holds, and what it holds nobody else puts down."""
        key, fence, holder, held = row[0], row[1], row[4], before[4]
        had = self._had.setdefault(key, set())
        if fence > before[1]:
            for name in had:
                World.lost_at.setdefault((key, name), Here.scheduler.now)
            World.lost_at.pop((key, holder), None)
        if holder:
            had.add(holder.removesuffix(CHOOSING))
        if holder.endswith(CHOOSING) and holder != held:
            times = self._chosen[key, fence, row[2]] = self._chosen.get((key, fence, row[2]), 0) + 1
            if times > CHOSEN:
                self._fail(f"{key}: chosen {times} times, and gets no further: {row}")
        if holder and not holder.endswith(CHOOSING):
            first = self._holders.setdefault((key, fence), holder)
            if first != holder:
                self._fail(f"{key}: {first} and {holder} hold it under fence {fence}")
        alive = {one.name for one in self._of.living.values() if not one.dead}
        if (
            held in alive
            and process is not None
            and process.name != held
            and holder != held
            and not self._is_over(before[5], 5.0)
            and not (row[10] and before[5] and row[10] > before[5])  # over by the date before a jump
        ):
            self._fail(f"{key}: {process.name} put down what {held} holds: {before} -> {row}")

    def _fail(self, words: str) -> None:
        error = Violation(words)
        Here.scheduler.stop(error)
        raise error

    # ---- at each moment

    def watch(self) -> None:
        """Raises: Violation."""
        scheduler = Here.scheduler
        while True:
            scheduler.sleep(1.0)
            healthy = self._of.healthy()
            for row in self._rows():
                key, _, _, state, holder, until, *_ = row
                if not healthy or state != "running" or (holder and not self._is_over(until)):
                    self._alone.pop(key, None)
                    continue
                since = max(self._alone.setdefault(key, scheduler.now), self._of.injector.began_at)
                self.longest_alone = max(self.longest_alone, scheduler.now - since)
                if scheduler.now - since > PROMISE_S:
                    self._fail(f"{key}: reads running without a holder for {PROMISE_S:.0f} s: {row}")

    @staticmethod
    def _is_over(until: str | None, soon_s: float = 0.0) -> bool:
        if until is None:
            return True
        ends = datetime.fromisoformat(until).replace(tzinfo=UTC).timestamp()
        return not wall() + soon_s <= ends <= wall() + 60 - soon_s

    # ---- when an effect begins

    def effect_begins(self, key: str, effect: str, words: Sequence[str]) -> None:
        """Its permit is committed: there are as many for a command as it has effects. Raises: Violation."""
        begun = self._begun.setdefault((key, tuple(words)), set())
        begun.add(effect)
        found = self._raw.execute(
            "SELECT line FROM runs_runrecord AS r JOIN runs_run AS of ON of.id = r.run_id "
            "WHERE of.key = ? AND r.kind = 'permit'", [key]
        )  # fmt: skip
        bodies = [json.loads(line)["body"] for (line,) in found]
        permits = sum(body["allow"] and body.get("args", {}).get("cmd") == list(words) for body in bodies)
        if permits < len(begun):
            self._fail(f"{key}: {' '.join(words)} began without a permit that is committed")

    # ---- at the end

    def held_at_end(self) -> list[str]:
        """Runs that have ended, and that somebody holds."""
        return [row[0] for row in self._rows() if row[3] in ENDED and row[4] and not self._is_over(row[5])]

    def at_end(self) -> None:
        """Raises: Violation."""
        states = self.states()
        if held := self.held_at_end():
            self._fail(f"{', '.join(held)}: ended, and held for more than a minute")
        for key, spec in self._of.keys.items():
            if key not in states:
                self._fail(f"{key}: its row is gone")
            self._one(key, spec, states[key])

    def _one(self, key: str, spec: str, state: str) -> None:
        from spak.kernel.replay import replay
        from spak.ledger import verify
        from spakweb.store.ledger.store import DatabaseLedgers
        from spakweb.store.runs.models import Run

        run = Run.objects.get(key=key)
        if state == "cancelled" and key in self._of.cancelled and not run.count:
            return
        if state != "succeeded" and not (state == "cancelled" and key in self._of.cancelled):
            self._fail(f"{key}: {state} {run.reason!r}")
        reader = DatabaseLedgers().reader(key)
        read = list(reader.read())
        verdict = verify([line for _, line in read], exported=False, blobs=reader.blobs)
        if not verdict.ok:
            self._fail(f"{key}: its ledger does not verify: {verdict}")
        replayed = replay(iter([record for record, _ in read]))
        if replayed.difference is not None or replayed.missing:
            self._fail(f"{key}: its replay differs: {replayed.difference} {replayed.missing}")
        if not self._of.apart and any(record.kind == "rollback" for record, _ in read):
            self._fail(f"{key}: its way back was gone, so its files were taken for changed by others")
        acts = [record.body["of"] for record, _ in read if record.kind == "act" and "outcome" in record.body]
        if len(set(acts)) != len(acts):
            self._fail(f"{key}: an effect has two results")
        if state == "succeeded" or not self._of.apart:  # who cancels a run elsewhere brings no files there
            self._workspace(key, replayed.state.r3)
        if key in World.runs and World.runs[key].stale:
            self._fail(f"{key}: {World.runs[key].stale}")
        if state == "succeeded":
            self._effects(key, spec, World.runs.get(key, Outside()))

    def _workspace(self, key: str, root: str) -> None:
        from spak.workspace import Workspace

        seen = {}
        for place in self._folders(key):
            seen[str(place)] = Workspace(place, self._of.folder / "looked" / key).snapshot()
        if root not in seen.values():
            self._fail(f"{key}: no workspace is what R3 {root} says: {seen}")

    def _folders(self, key: str) -> list[Any]:
        roots = [self._of.folder]
        if self._of.apart:
            roots = [self._of.folder / "hosts" / name for name in self._of.workers]
        places = [root / "runs" / key / "workspace" for root in roots]
        return [place for place in places if place.exists()]

    def _effects(self, key: str, spec: str, seen: Outside) -> None:
        wanted = workload.WORDS[spec]
        logs = [
            (place / "log").read_text().split() for place in self._folders(key) if (place / "log").exists()
        ]
        if wanted not in logs:
            self._fail(f"{key}: the workspace shows {logs}, not {wanted}")
        for word in {word for word, _, _ in seen.sent}:
            ids = {effect for sent, effect, _ in seen.sent if sent == word}
            if len(ids) != 1:
                self._fail(f"{key}: {word} was sent under {len(ids)} ids")
        for word, times in seen.once.items():
            if times > 1:
                self._fail(f"{key}: {word}, which may be done once, was done {times} times")
