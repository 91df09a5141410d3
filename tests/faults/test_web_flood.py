"""Many sockets, slow readers, a browser that is away: memory stays bounded, nothing is lost or repeated."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runs_kit import Socket, ledger, looped, member, tables, write
from spakweb.face.streams import stream, watches
from spakweb.face.streams.stream import hub
from spakweb.ground.teams.models import Team, User

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults]


@pytest.fixture
def team(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Team]:
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path / "data"
    with tables():
        yield Team.objects.create(name="Demo", slug="demo")


@pytest.fixture
def vera(team: Team) -> User:
    return member(team)


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / (1 << 20)


def test_five_hundred_sockets_that_nobody_reads(
    team: Team, vera: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their pumps stand still in `send`; what is kept for each is a cursor, whatever is written meanwhile."""
    monkeypatch.setattr(stream, "MOST_EACH", 1000)
    held = ledger(team)

    async def watch() -> tuple[int, float, list[int]]:
        pages = [Socket("/t/demo/runs/r1/events", vera) for _ in range(500)]
        for page in pages:  # a socket that is full: sending waits for ever
            page.wire.output_queue._maxsize = 3
        for page in pages:
            await page.__aenter__()
        one = Socket("/t/demo/runs/r1/events", vera)
        await one.__aenter__()
        await one.until(lambda page: len(page.seqs) == 1)
        before = resident_mib()
        readers = list(hub().runs["r1"].readers)
        for _ in range(30):
            await asyncio.to_thread(write, held, 200)
            await one.until(lambda page: page.seqs[-1] == held.count - 1)
        grown = resident_mib() - before
        watch = hub().runs["r1"]
        assert len(watch._window) <= watches.WINDOW and len(readers) == 501
        return len(readers), grown, one.seqs

    _, grown, seqs = looped(watch)
    assert seqs == list(range(held.count))
    assert grown < 64, f"{grown:.0f} MiB for sockets that are not read"
    held.close()


def test_a_browser_that_was_away(team: Team, vera: User) -> None:
    """A minute of a busy run is thousands of records: first the list is fetched again, then it goes on."""
    held = ledger(team)

    async def watch() -> list[dict[str, Any]]:
        async with Socket("/t/demo/runs/r1/events", vera) as page:
            await page.until(lambda page: len(page.seqs) == 1)
        for _ in range(12):
            await asyncio.to_thread(write, held, 100)
        async with Socket("/t/demo/runs/r1/events?after=0", vera) as page:
            await page.one()
            await asyncio.to_thread(write, held, 5)
            await page.until(lambda page: len(page.seqs) == 5)
            return page.messages

    first, *rest = looped(watch)
    assert (first["type"], first["from"], first["to"]) == ("resync", 1, 1201)
    seqs = [record["seq"] for one in rest if one["type"] == "records" for record in one["records"]]
    assert seqs == list(range(1201, 1206))
    held.close()


def test_a_socket_that_talks_without_end_is_closed(team: Team, vera: User) -> None:
    ledger(team).close()

    async def flood() -> list[int]:
        pages = [Socket("/t/demo/runs/r1/events", vera) for _ in range(50)]
        for page in pages:
            await page.__aenter__()
        for _ in range(30):
            for page in pages:
                await page.say("x" * 10_000)
        for page in pages:
            await page.until(lambda page: False)
        left = hub().readers
        for page in pages:
            await page.__aexit__()
        assert hub().readers == 0 <= left
        return [page.code for page in pages]

    assert looped(flood) == [4429] * 50
