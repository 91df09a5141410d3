"""Signed checkpoints of a team: what they hold, who may have them, and what they find in the database."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from run_rows_kit import begun
from spak.errors import LedgerError
from spak.ledger import note, proofs
from spak.ledger.log import leaf_of
from spak.ledger.settings import Checkpoints
from spak.ledger.witness import Witness
from spak.records import Record, decode, place
from spakweb.ground import clock
from spakweb.ground.database import appendonly
from spakweb.ground.environment import BadSetting
from spakweb.ground.environment import checkpoints as setting
from spakweb.store.ledger.log import DatabaseLog, problems
from spakweb.store.runs.models import LogCheckpoint, LogLeaf, Run, RunRecord, State
from spakweb.work.runs import checkpoints
from spakweb.work.worker import retention
from witness_kit import Witness as Watching
from witness_kit import serving

pytestmark = pytest.mark.django_db


@pytest.fixture
def evidence(tmp_path: Path, settings: Any) -> Path:
    """Where checkpoints go; the team has runs r-0, r-1, r-2."""
    settings.CHECKPOINTS = Checkpoints(log="example.com/platform", to=(str(tmp_path / "evidence"),))
    return tmp_path / "evidence"


@pytest.fixture
def runs(cast: Any, evidence: Path) -> list[Run]:
    return [ended(cast, f"r-{number}", number + 2) for number in range(3)]


def ended(cast: Any, key: str, more: int) -> Run:
    acts = [Record("act", "proposal", {"n": number}, "Main", "s", number) for number in range(more)]
    return begun(cast.team, cast.spec.head, key, acts, state=State.SUCCEEDED, ended_at=clock.now())


def head(team: Any) -> note.Head:
    row = LogCheckpoint.objects.get(team=team)
    return note.trusted(row.note.encode(), note.verifier(row.key))[1]


def lines(run: Run) -> list[bytes]:
    rows = RunRecord.objects.filter(run=run).order_by("seq")
    return [bytes(line) for line in rows.values_list("line", flat=True)]


def rewritten(run: Run, records: list[Record]) -> None:
    """What somebody does who may write the tables: other records, all hashes computed anew."""
    appendonly.remove(connection)
    previous, rows = note.encoded(b""), []
    previous = "A" * 43
    for seq, record in enumerate(records):
        placed, line = place(record, seq, previous)
        previous = placed.hash
        rows.append((run.pk, seq, placed.kind, placed.authority, "", "", placed.at, line))
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {RunRecord._meta.db_table} WHERE run_id = %s", [run.pk])
        columns = "run_id, seq, kind, authority, task, step, at, line"
        cursor.executemany(
            f"INSERT INTO {RunRecord._meta.db_table} ({columns}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
            rows,
        )
    Run.objects.filter(pk=run.pk).update(count=len(rows), head=previous)


def test_a_checkpoint_is_signed_kept_and_written_to_the_teams_part_of_each_place(
    cast: Any, runs: list[Run], evidence: Path
) -> None:
    row = checkpoints.write(cast.team)
    assert (row.size, row.problems, head(cast.team).origin) == (
        3,
        [],
        f"example.com/platform/team-{cast.team.pk}",
    )
    folder = evidence / f"team-{cast.team.pk}"
    assert (folder / "latest.checkpoint").read_text() == row.note
    assert checkpoints.write(cast.team).note == row.note and LogLeaf.objects.count() == 3
    ended(cast, "r-3", 1)
    assert checkpoints.write(cast.team).size == 4
    assert sorted(path.name for path in folder.iterdir())[:2] == [
        "000000000003.checkpoint",
        "000000000004.checkpoint",
    ]
    assert problems(cast.team, [head(cast.team)]) == []


def test_every_record_is_proved_to_somebody_who_has_the_key(cast: Any, runs: list[Run]) -> None:
    key = note.verifier(checkpoints.write(cast.team).key)
    for run in runs:
        for seq, line in enumerate(lines(run)):
            found = proofs.check_inclusion(DatabaseLog(cast.team).prove(run, seq), key)
            assert (found.leaf.run, found.seq, found.line) == (run.key, seq, line)
        with pytest.raises(LedgerError) as caught:
            DatabaseLog(cast.team).prove(run, 99)
        assert caught.value.code == "ledger.not_covered"
    with pytest.raises(LedgerError) as caught:
        DatabaseLog(cast.team).prove(ended(cast, "r-9", 1))
    assert caught.value.code == "ledger.not_covered"


@pytest.mark.parametrize(
    "kind", ["edit", "drop", "reorder", "insertion", "tail cut", "full rehash", "run removed"]
)
def test_what_somebody_who_may_write_the_tables_does_is_found(
    cast: Any, runs: list[Run], kind: str, tmp_path: Path, evidence: Path
) -> None:
    checkpoints.write(cast.team)
    run = runs[2]
    records = [decode(line) for line in lines(run)]
    if kind == "run removed":
        appendonly.remove(connection)
        with connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {RunRecord._meta.db_table} WHERE run_id = %s", [run.pk])
            cursor.execute(f"DELETE FROM {Run._meta.db_table} WHERE id = %s", [run.pk])
    else:
        changed = {
            "edit": [*records[:2], records[2]._replace(body={"n": "other"}), *records[3:]],
            "drop": [*records[:2], *records[3:]],
            "reorder": [*records[:1], records[2], records[1], *records[3:]],
            "insertion": [*records[:2], records[1]._replace(body={"n": "new"}), *records[2:]],
            "tail cut": records[:-1],
            "full rehash": [*records[:-1], records[-1]._replace(body={"n": "other"})],
        }[kind]
        rewritten(run, changed)
    found = problems(cast.team, [head(cast.team)])
    assert len(found) == 1 and run.key in found[0]
    row = checkpoints.write(cast.team)  # and the next checkpoint says so
    same_count = kind in ("edit", "reorder", "full rehash")
    assert [run.key in line for line in row.problems] == ([] if same_count else [True])
    assert len(problems(cast.team, [head(cast.team)])) == 1
    file = evidence / f"team-{cast.team.pk}/latest.checkpoint"
    with pytest.raises(CommandError):
        call_command("check_store", checkpoint=[file], stdout=StringIO(), stderr=StringIO())


def test_an_old_copy_of_the_tables_is_found_and_signs_nothing(
    cast: Any, runs: list[Run], evidence: Path
) -> None:
    checkpoints.write(cast.team)
    old = list(LogCheckpoint.objects.values())
    ended(cast, "r-3", 1)
    checkpoints.write(cast.team)
    later = head(cast.team)
    appendonly.remove(connection)
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {LogLeaf._meta.db_table} WHERE {connection.ops.quote_name('index')} = 3")
        cursor.execute(
            f"DELETE FROM {RunRecord._meta.db_table} WHERE run_id = %s", [Run.objects.get(key="r-3").pk]
        )
    Run.objects.filter(key="r-3").delete()
    LogCheckpoint.objects.update(**{name: old[0][name] for name in ("note", "size")})
    assert "an old copy" in problems(cast.team, [later])[0]
    with pytest.raises(LedgerError) as caught:
        checkpoints.write(cast.team)
    assert caught.value.code == "ledger.forked"


def test_a_log_that_was_rewritten_too_is_found(cast: Any, runs: list[Run], settings: Any) -> None:
    settings.CHECKPOINTS = Checkpoints(log="example.com/platform")
    checkpoints.write(cast.team)
    first = head(cast.team)
    records = [decode(line) for line in lines(runs[0])]
    rewritten(runs[0], [*records[:-1], records[-1]._replace(body={"n": "other"})])
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {LogLeaf._meta.db_table}")
    LogCheckpoint.objects.all().delete()
    checkpoints.write(cast.team)
    assert problems(cast.team, [head(cast.team)]) == []
    assert "another history" in problems(cast.team, [first])[0]
    assert "two histories were signed" in problems(cast.team, [first, head(cast.team)])[-1]


def test_a_later_leaf_of_fewer_records_hides_no_cut(cast: Any, runs: list[Run]) -> None:
    """Somebody cuts a run and adds a leaf that says so; the next checkpoint then has it."""
    checkpoints.write(cast.team)
    first = head(cast.team)
    records = [decode(line) for line in lines(runs[2])][:-1]
    rewritten(runs[2], records)
    DatabaseLog(cast.team).append([leaf_of(runs[2].key, lines(runs[2]))])
    assert checkpoints.write(cast.team).size == 4
    for heads in ([first], [head(cast.team)], [first, head(cast.team)]):
        (found,) = problems(cast.team, heads)
        assert f"{runs[2].key}: fewer records are left" in found


def test_a_deleted_run_leaves_a_tombstone(cast: Any, runs: list[Run]) -> None:
    checkpoints.write(cast.team)
    before = head(cast.team)
    assert retention.mark(runs[1], cast["alice"], "asked for") and retention.erase(runs[1])
    assert problems(cast.team, [before]) == []
    row = checkpoints.write(cast.team)
    last = LogLeaf.objects.order_by("index").last()
    assert last is not None and (row.size, last.run, last.erased, row.problems) == (4, "r-1", True, [])
    assert checkpoints.write(cast.team).size == 4
    assert problems(cast.team, [before, head(cast.team)]) == []


def test_a_witness_cosigns_and_refuses_another_history(cast: Any, runs: list[Run], settings: Any) -> None:
    watching = Watching()
    watching.knows(checkpoints.public_key(cast.team))
    key = note.verifier(watching.key)
    with serving(watching) as url:
        settings.CHECKPOINTS = Checkpoints(log="example.com/platform", witnesses=(Witness(f"{url}/w", key),))
        row = checkpoints.write(cast.team)
        assert row.problems == [] and note.read(row.note.encode()).signed_by(key)
        ended(cast, "r-3", 1)
        checkpoints.write(cast.team)
        appendonly.remove(connection)
        with connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {LogLeaf._meta.db_table}")
        LogCheckpoint.objects.all().delete()
        Run.objects.filter(key="r-3").update(name="x")
        records = [decode(line) for line in lines(runs[0])]
        rewritten(runs[0], [*records, records[-1]])
        with pytest.raises(LedgerError) as caught:
            checkpoints.write(cast.team)
    assert caught.value.code == "ledger.forked"


class TestCommands:
    def test_the_command_signs_each_team_and_prints_its_key(self, cast: Any, runs: list[Run]) -> None:
        out = StringIO()
        call_command("checkpoint", cast.team.slug, stdout=out)
        assert f"size 3, {checkpoints.public_key(cast.team)}" in out.getvalue()
        with pytest.raises(CommandError):
            call_command("checkpoint", "nobody")

    def test_without_a_name_there_is_none(self, cast: Any, settings: Any) -> None:
        settings.CHECKPOINTS = Checkpoints()
        assert checkpoints.find() == []
        with pytest.raises(CommandError):
            call_command("checkpoint")

    def test_check_store_reads_signed_checkpoints(self, cast: Any, runs: list[Run], evidence: Path) -> None:
        key = checkpoints.write(cast.team).key
        file = evidence / f"team-{cast.team.pk}/latest.checkpoint"
        out = StringIO()
        call_command("check_store", quick=True, checkpoint=[file], key=key, stdout=out)
        assert "against a checkpoint of 3 leaves" in out.getvalue()
        foreign = note.sign(note.Head("example.com/platform/team-99999", 0, bytes(32)), b"k" * 32)
        for text in ("nothing", foreign.text(), file.read_text().replace("\n3\n", "\n2\n")):
            file.write_text(text)
            with pytest.raises(CommandError):
                call_command("check_store", quick=True, checkpoint=[file], key=key)
        with pytest.raises(CommandError):
            call_command("check_store", quick=True, checkpoint=[evidence / "nothing"])

    @pytest.mark.parametrize(("table", "column"), [("runs_runrecord", "line"), ("runs_logleaf", "text")])
    def test_a_replacement_that_leaves_text_in_the_column_is_found(
        self, cast: Any, runs: list[Run], evidence: Path, table: str, column: str
    ) -> None:
        key = checkpoints.write(cast.team).key
        new = f"replace({column}, 'r-1', 'r-9')"
        if connection.vendor != "sqlite":
            new = f"convert_to(replace(convert_from({column}, 'UTF8'), 'r-1', 'r-9'), 'UTF8')"
        appendonly.remove(connection)
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE {table} SET {column} = {new}")
        file, err = evidence / f"team-{cast.team.pk}/latest.checkpoint", StringIO()
        with pytest.raises(CommandError, match="problems"):
            call_command("check_store", checkpoint=[file], key=key, stdout=StringIO(), stderr=err)

    @pytest.mark.parametrize("change", ["at = at + 1", "kind = 'end'", "task = 'x'", "authority = 'host'"])
    def test_a_column_that_is_not_what_its_line_says_is_found(
        self, cast: Any, runs: list[Run], change: str
    ) -> None:
        call_command("check_store", stdout=StringIO(), stderr=StringIO())
        appendonly.remove(connection)
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE runs_runrecord SET {change} WHERE seq = 2")
        err = StringIO()
        with pytest.raises(CommandError, match="problems"):
            call_command("check_store", stdout=StringIO(), stderr=err)
        assert f"record 2: its column {change.split()[0]} is not what its line says" in err.getvalue()

    def test_settings_that_cannot_be_used_stop_the_start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        names = [f"SPAK_WEB_CHECKPOINT_{name}" for name in ("LOG", "TO", "WITNESS")]
        for name, value in (
            ("LOG", "two words"),
            ("TO", "-x"),
            ("WITNESS", "https://w"),
            ("WITNESS", "u k"),
        ):
            monkeypatch.setenv(f"SPAK_WEB_CHECKPOINT_{name}", value)
            with pytest.raises(BadSetting):
                setting(*names)
            monkeypatch.delenv(f"SPAK_WEB_CHECKPOINT_{name}")
        assert setting(*names) == Checkpoints()


class TestPages:
    def test_members_see_and_download_it(self, cast: Any, runs: list[Run], client: Any) -> None:
        client.force_login(cast["vera"])
        page = f"/t/{cast.team.slug}/"
        assert client.get(f"{page}latest.checkpoint").status_code == 302
        row = checkpoints.write(cast.team)
        done = client.get(f"{page}latest.checkpoint")
        assert done.content.decode() == row.note and "000000000003.checkpoint" in done["Content-Disposition"]
        assert row.key in client.get(f"{page}members/").content.decode()
