"""The embedded broker: writers that are killed, files that hold no message, a full disk."""

from __future__ import annotations

import errno
import io
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from queue import Empty
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from kombu import Connection

from spakweb.ground import broker
from spakweb.work.operate import up

broker.register()
WRITER = """
import sys
from kombu import Connection
from spakweb.ground import broker
broker.register()
folder, first, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with Connection(f"{broker.SCHEME}://localhost/", transport_options={"folder": folder}) as connection:
    queue = connection.SimpleQueue("work")
    print("ready", flush=True)
    for number in range(first, end):
        queue.put(number)
        print(number, flush=True)
"""


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[Any]:
    where = {"folder": str(tmp_path / "queue")}
    with Connection(f"{broker.SCHEME}://localhost/", transport_options=where) as connection:
        yield connection.default_channel


def message(number: int) -> dict[str, Any]:
    about = {"delivery_tag": str(number), "delivery_info": {}}
    return {"body": "", "headers": {}, "properties": about, "n": number}


def taken(channel: Any, queue: str = "work") -> list[int]:
    """Everything that is in the queue."""
    found = []
    while True:
        try:
            found.append(channel._get(queue)["n"])
        except Empty:
            return found


def test_a_pipe_in_the_queue_is_set_aside(channel: Any) -> None:
    channel._put("work", message(1))
    place = channel._place("work")
    os.mkfifo(place / "0_pipe.msg")
    (place / "2_folder.msg").mkdir()
    assert taken(channel) == [1] and channel._size("work") == 0
    assert len(list((channel.folder / broker.UNREADABLE).iterdir())) == 2


def test_messages_come_once_in_order_each_from_its_queue(channel: Any) -> None:
    for number in range(20):
        channel._put("work", message(number))
    for odd in ("gpu.h100", "../other", "new", ""):
        channel._put(odd, message(99))
    assert channel._size("work") == 20 and taken(channel) == list(range(20))
    assert [taken(channel, odd) for odd in ("gpu.h100", "../other", "new", "")] == [[99]] * 4
    assert taken(channel) == [] and not list((channel.folder / broker.NEW).iterdir())
    channel._put("work", message(1))
    assert channel._purge("work") == 1 and taken(channel) == []
    assert {path.parent for path in channel.folder.iterdir()} == {channel.folder}


@pytest.mark.parametrize(
    "text", [b"", b'{"body": "W10=", "prop', b"[]", b"null", b"{}", b"\xff\xfe", b'{"properties": {}}',
     b'{"properties": {"delivery_tag": {}}}'],
    ids=["empty", "half", "list", "null", "nothing in it", "no text", "no tag", "no tag of text"],
)  # fmt: skip
def test_a_file_that_holds_no_message_is_set_aside_and_logged(
    channel: Any, text: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    channel._put("work", message(1))
    place = channel._place("work")
    (place / f"00000000000000000000_x{broker.SUFFIX}").write_bytes(text)
    channel._put("work", message(2))
    assert taken(channel) == [1, 2]
    assert [path.read_bytes() for path in (channel.folder / broker.UNREADABLE).iterdir()] == [text]
    assert "held no message" in caplog.text and not list(place.iterdir())


def test_a_consumer_gets_what_comes_after_an_unreadable_file(tmp_path: Path) -> None:
    """As a worker reads: through the transport's loop, which an exception ends."""
    where = {"folder": str(tmp_path), "polling_interval": 0.01}
    with Connection(f"{broker.SCHEME}://localhost/", transport_options=where) as connection:
        queue = connection.SimpleQueue("work")
        place = connection.default_channel._place("work")
        place.mkdir(exist_ok=True)
        (place / f"0_x{broker.SUFFIX}").write_bytes(b"")
        queue.put({"key": "r1"})
        found = queue.get(timeout=60)
        found.ack()
        assert found.payload == {"key": "r1"}


def test_two_readers_take_a_message_once(channel: Any) -> None:
    other = channel.connection.client.channel()
    for number in range(10):
        channel._put("work", message(number))
    first, second = channel._get("work")["n"], other._get("work")["n"]  # both have listed the folder by now
    assert sorted([first, second, *taken(channel), *taken(other)]) == list(range(10))


def test_a_full_disk_leaves_nothing_in_the_queue(channel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            channel._put("work", message(1))
    assert channel._size("work") == 0 and not list((channel.folder / broker.NEW).iterdir())
    channel._put("work", message(2))
    assert taken(channel) == [2]


def test_a_message_is_in_the_queue_when_it_is_whole_and_not_before(
    channel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, seen = Path.write_bytes, list[int]()

    def slowly(path: Path, data: bytes) -> int:
        really(path, data[: len(data) // 2])
        seen.append(channel._size("work"))
        return really(path, data)

    monkeypatch.setattr(Path, "write_bytes", slowly)
    channel._put("work", message(1))
    assert seen == [0] and taken(channel) == [1]


def test_what_a_dead_writer_left_is_removed_after_an_hour(
    channel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = channel.folder / broker.NEW / f"1_x{broker.SUFFIX}"
    left.write_bytes(b"{")
    channel.connection.client.channel()
    assert left.exists(), "somebody may be writing it"
    monkeypatch.setattr(broker, "LEFT_S", -1.0)
    channel.connection.client.channel()
    assert not left.exists()


@pytest.mark.parametrize(
    ("many", "kills"),
    [
        pytest.param(2_000, 5, id="short"),
        pytest.param(
            100_000, 60, id="long",
            marks=[pytest.mark.slow, pytest.mark.faults, pytest.mark.timeout(1800)],
        ),
    ],
)  # fmt: skip
def test_a_writer_killed_at_random_costs_no_message_and_no_reader(
    tmp_path: Path, many: int, kills: int
) -> None:
    """Each message whose writer was told that it is there comes once; the one at a kill comes or does not."""
    chance, seen, put = random.Random(11), Counter[int](), set[int]()
    where, first, left = {"folder": str(tmp_path), "polling_interval": 0.001}, 0, kills
    with Connection(f"{broker.SCHEME}://localhost/", transport_options=where) as connection:
        queue = connection.SimpleQueue("work")
        while first < many:
            end = min(many, first + chance.randint(1, 2 * many // kills)) if left else many
            writer = subprocess.Popen(
                [sys.executable, "-c", WRITER, str(tmp_path), str(first), str(many)],
                stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert writer.stdout is not None
            for line in writer.stdout:
                if line != "ready\n":
                    put.add(int(line))
                    first = int(line) + 1
                if chance.random() < 0.5:
                    _read(queue, seen, 20)
                if first >= end < many:
                    writer.kill()
                    left -= 1
                    break
            rest = [int(line) for line in writer.stdout.read().split() if line != "ready"]
            put |= set(rest)
            first = max([first, *(number + 1 for number in rest)]) + 1  # that one may be there, or not
            writer.wait()
            writer.stdout.close()
        while _read(queue, seen, many):
            pass
    print(f"{many} messages, {kills - left} kills")
    assert put <= set(seen) and max(seen.values()) == 1, "a message was lost, or came twice"
    assert not list((tmp_path / broker.UNREADABLE).iterdir())


def test_a_reader_that_died_is_back_within_five_seconds_of_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """All waiting that is built into a recovery: the supervisor's look, its pause before a child that died
    for the fourth time within a minute, and the reader's look at the queue. How long a process takes to start
    is the machine's."""
    now, started = [100.0], [100.0]
    monkeypatch.setattr(up.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(
        up.Supervisor, "_start", lambda self, child: (started.append(now[0]), child.starts.append(now[0]))
    )
    child = up.Child("worker", (), process=SimpleNamespace(poll=lambda: -9), starts=[100.0])  # type: ignore[arg-type]
    with up.listen("127.0.0.1", 0) as listening:
        supervisor = up.Supervisor([child], listening, io.StringIO())
        while len(started) < 5:
            now[0] += up.LOOK_S
            supervisor.look()
        os.close(supervisor.reading)
        os.close(supervisor.writing)
    waits = [after - before for before, after in pairwise(started)]
    polled = settings.CELERY_BROKER_TRANSPORT_OPTIONS["polling_interval"]
    assert max(waits) + polled < 5 and waits[0] + polled < 1, waits


def _read(queue: Any, seen: Counter[int], many: int) -> int:
    """Take up to so many messages; gives how many there were."""
    for number in range(many):
        try:
            found = queue.get(block=False)
        except Empty:
            return number
        found.ack()
        if isinstance(found.payload, int):
            seen[found.payload] += 1
    return many
