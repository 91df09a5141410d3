"""The log of a team's runs in the database: `spak.ledger.log`, the second store of one.

Takes a team; gives leaves, hashes of subtrees and the last leaf of a run, adds the leaves that are due,
proves records. A leaf is a row that stays (triggers see to it), with the hashes of the subtrees that it
completes: a proof reads some log2(n) rows. Verification (`problems`) computes them from the leaves instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from django.db import transaction
from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from spak.errors import LedgerError
from spak.ledger import merkle
from spak.ledger.against import histories
from spak.ledger.chain import next_previous
from spak.ledger.file_log import gone
from spak.ledger.log import holds, inclusion, leaf_of
from spak.ledger.note import Head, read
from spak.ledger.proofs import Leaf, read_leaf
from spakweb.ground.teams.models import Team
from spakweb.store.runs.models import LogCheckpoint, LogLeaf, Run, RunRecord

_HASH = 32
AT_A_TIME, RUNS = 500, 200


class DatabaseLog:
    """The log of one team, as it was when it was opened; `append` adds to it."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.rows = LogLeaf.objects.filter(team=team)
        last = self.rows.order_by("-index").values_list("index", flat=True).first()
        self.size = 0 if last is None else last + 1
        self._nodes: dict[tuple[int, int], bytes] = {}

    def node(self, level: int, index: int) -> bytes:
        """The hash of a perfect subtree; b"" where the row that has it is gone."""
        if (level, index) not in self._nodes:
            self._fetch({(level, index)})
        return self._nodes[level, index]

    def _fetch(self, wanted: set[tuple[int, int]]) -> None:
        """Read these subtrees, in one query."""
        leaves = {key: ((key[1] + 1) << key[0]) - 1 for key in wanted}
        rows = dict(self.rows.filter(index__in=set(leaves.values())).values_list("index", "nodes"))
        for (level, index), leaf in leaves.items():
            self._nodes[level, index] = bytes(rows.get(leaf, b""))[level * _HASH :][:_HASH]

    def append(self, leaves: Sequence[Leaf]) -> None:
        """Add leaves at the end. Raises: LedgerError `ledger.busy` where another process added some."""
        with transaction.atomic():
            Team.objects.select_for_update(no_key=True).get(pk=self.team.pk)
            if DatabaseLog(self.team).size != self.size:
                raise LedgerError("ledger.busy", "another process writes the log", "it has what is due")
            size, made = self.size, []
            for leaf in leaves:
                text = leaf.text()
                found = merkle.completed(size, merkle.leaf_hash(text), self.node)
                for level, node in enumerate(found):
                    self._nodes[level, size >> level] = node
                made.append(
                    LogLeaf(
                        team=self.team, index=size, run=leaf.run, count=leaf.count, erased=leaf.root is None,
                        text=text, nodes=b"".join(found),
                    )
                )  # fmt: skip
                size += 1
            LogLeaf.objects.bulk_create(made, batch_size=AT_A_TIME)
        self.size = size

    def last(self, runs: Sequence[str] = ()) -> Iterator[tuple[int, Leaf]]:
        """The last leaf of each run (of these if any are given), with its index. Raises: LedgerError."""
        rows = self.rows.filter(run__in=runs) if runs else self.rows
        newest = rows.filter(run=OuterRef("run")).order_by("-index").values("index")[:1]
        for index, text in rows.filter(index=Subquery(newest)).values_list("index", "text").iterator():
            yield index, read_leaf(bytes(text))

    def find(self, run: str, size: int) -> tuple[int, Leaf] | None:
        """The last leaf of a run among the first `size`, with its index. Raises: LedgerError."""
        row = self.rows.filter(run=run, index__lt=size).order_by("-index").first()
        return None if row is None else (row.index, read_leaf(bytes(row.text)))

    def changed(self) -> QuerySet[Run]:
        """Runs that have other records than their last leaf says, or were deleted since."""
        newest = self.rows.filter(run=OuterRef("key")).order_by("-index")
        rows = Run.objects.filter(team=self.team, count__gt=0)
        rows = rows.annotate(
            seen=Subquery(newest.values("count")[:1]), buried=Subquery(newest.values("erased")[:1])
        )
        other = Q(seen=None) | Q(buried=True) | ~Q(seen=F("count"))
        gone = Q(deleted_at__isnull=False, buried=False)
        return rows.filter((Q(deleted_at=None) & other) | gone).order_by("pk")

    def due(self) -> tuple[list[Leaf], list[str]]:
        """The leaves that are to be appended, and what is wrong with other runs, which get none.

        Raises: LedgerError of a damaged leaf.
        """
        found: list[Leaf] = []
        wrong: list[str] = []
        rows = list(self.changed())
        for start in range(0, len(rows), RUNS):
            part = {row.pk: row for row in rows[start : start + RUNS]}
            before = {leaf.run: leaf for _, leaf in self.last(runs=[row.key for row in part.values()])}
            alive = [pk for pk, row in part.items() if row.deleted_at is None]
            records = RunRecord.objects.filter(run__in=alive).order_by("run_id", "seq")
            pairs = records.values_list("run_id", "line").iterator(chunk_size=AT_A_TIME)
            for pk, lines in groupby(pairs, key=itemgetter(0)):
                key = part[pk].key
                last = before.get(key)
                known = None if last is None or last.root is None else last
                try:
                    leaf = leaf_of(key, (bytes(line) for _, line in lines), known)
                except LedgerError as error:
                    wrong.append(error.message)
                else:
                    found += [] if leaf == last else [leaf]
            found += [
                Leaf(row.key, row.count, row.head, None)
                for row in part.values()
                if row.deleted_at is not None
            ]
        return found, [*wrong, *self.lost()]

    def lost(self) -> list[str]:
        """Runs of the log that have no row any more, and no tombstone."""
        keys = set(Run.objects.filter(team=self.team).values_list("key", flat=True))
        missing = (leaf for _, leaf in self.last() if leaf.run not in keys and leaf.root is not None)
        return [gone(leaf.run, leaf) for leaf in missing]

    def prove(self, row: Run, seq: int | None = None) -> str:
        """The proof of a run, or of one of its records, in the last checkpoint of the team.

        Raises: LedgerError `ledger.not_covered`, `ledger.rewritten`, `ledger.forked`.
        """
        kept = LogCheckpoint.objects.filter(team=self.team).first()
        found = None if kept is None else self.find(row.key, kept.size)
        if kept is None or found is None:
            raise LedgerError(
                "ledger.not_covered", f"no checkpoint covers run {row.key}", "the next checkpoint will"
            )
        index, leaf = found
        note = read(kept.note.encode())
        self._fetch(needed(index, kept.size))
        if not holds(self, index, leaf, note.head()):
            raise LedgerError(
                "ledger.forked",
                "the log is not the one that its last checkpoint names",
                "manage.py check_store --checkpoint FILE lists all that differs",
            )
        lines = RunRecord.objects.filter(run=row.pk, seq__lt=leaf.count).order_by("seq")
        stored = (bytes(line) for line in lines.values_list("line", flat=True).iterator())
        return inclusion(self, index, leaf, note, stored, seq)


def needed(index: int, size: int) -> set[tuple[int, int]]:
    """The subtrees that a proof of inclusion is made of."""
    found: set[tuple[int, int]] = set()

    def node(level: int, at: int) -> bytes:
        found.add((level, at))
        return b""

    merkle.inclusion(index, size, node)
    return found


def problems(team: Team, heads: Sequence[Head]) -> list[str]:
    """Where a team's store is not what signed checkpoints say. The chain of each run is checked elsewhere
    (`salvage.problems`), so that its head at a place stands for all records before it."""
    rows_of = LogLeaf.objects.filter(team=team).order_by("index").values_list("text", flat=True)
    texts = [bytes(text) for text in rows_of.iterator()]
    found = [problem.message for problem in histories(merkle.Tree(texts), heads)]
    size = max((head.size for head in heads), default=0)
    try:
        leaves = [read_leaf(text) for text in texts]
    except LedgerError as error:
        return [*found, error.message]
    rows = {row.key: row for row in Run.objects.filter(team=team)}
    covered = {leaf.run: leaf for leaf in leaves[:size]}
    found += [gone(run, leaf) for run, leaf in covered.items() if run not in rows and leaf.root is not None]
    for leaf in dict.fromkeys(leaves[:size]):  # all of a run: a later one may have been added to hide another
        row = rows.get(leaf.run)
        if row is None or leaf.root is None or row.deleted_at is not None:
            continue
        line = RunRecord.objects.filter(run=row.pk, seq=leaf.count - 1).values_list("line", flat=True).first()
        if line is None:
            found.append(f"{leaf.run}: fewer records are left than the {leaf.count} of the checkpoint")
        elif next_previous(bytes(line), "") != leaf.head:
            found.append(f"{leaf.run}: after {leaf.count} records the head is not the checkpoint's")
    return found
