"""`manage.py up`: it starts, says what to do, refuses what cannot be, restarts its part, leaves nothing."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import time
import urllib.request
from pathlib import Path

import pytest

from platform_kit import Up, free_port, running

pytestmark = [pytest.mark.faults, pytest.mark.timeout(200)]


def gone(pid: int, within_s: float = 15) -> bool:
    """True once no process has that number; a child that nobody waits for may stay as a zombie."""
    ends = time.monotonic() + within_s
    while time.monotonic() < ends:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


def answer(url: str) -> str:
    with urllib.request.urlopen(f"{url}/readyz", timeout=5) as found:
        return str(found.read().decode().strip())


def test_it_starts_stops_and_starts_where_it_was(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(data, "--demo") as up:
        assert "alice / spak-demo" in up.said
        assert up.url in up.said
        assert answer(up.url) == "ready"
        children = up.children()
        assert children
        assert up.stop(signal.SIGINT) == 0
        assert "stopped; everything is kept" in up.said
        assert all(gone(pid) for pid in children)
    with sqlite3.connect(data / "spak.sqlite3") as rows:
        rows.execute("UPDATE teams_team SET name = 'Renamed'")
    rows.close()
    with running(data, "--demo") as up:
        assert up.stop(signal.SIGTERM) == 0
    with sqlite3.connect(data / "spak.sqlite3") as rows:
        assert rows.execute("SELECT name FROM teams_team").fetchall() == [("Renamed",)]
    rows.close()


def test_what_dies_is_started_again_and_what_is_killed_leaves_nothing(tmp_path: Path) -> None:
    with running(tmp_path / "data") as up:
        first = set(up.children())
        assert len(first) == 2  # the web part and the worker
        for pid in first:
            os.kill(pid, signal.SIGKILL)
        ends = time.monotonic() + 60
        while len(up.children()) < 2 or first & set(up.children()):
            assert time.monotonic() < ends, up.said
            time.sleep(0.05)
        assert "starting it again" in up.said
        second = up.children()
        assert answer(up.url) == "ready"

        other = Up(tmp_path / "data", free_port())
        assert other.process.wait(60) == 1
        assert "running already" in other.said
        assert "mend: " in other.said

        os.kill(up.process.pid, signal.SIGKILL)
        up.process.wait(10)
        ends = time.monotonic() + 30
        while not all(gone(pid) for pid in second):
            assert time.monotonic() < ends
            time.sleep(0.05)


def test_ctrl_c_while_it_is_read_in_is_no_traceback(tmp_path: Path) -> None:
    up = Up(tmp_path / "data", free_port(), PYTHONPROFILEIMPORTTIME="1")  # each import is said as it is done
    while "django.apps" not in up.said:
        assert up.process.poll() is None, up.said[-500:]
        time.sleep(0.01)
    assert up.stop(signal.SIGINT) in (0, 130)
    assert "Traceback" not in up.said


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        up = Up(tmp_path / "data", port)
        assert up.process.wait(60) == 1
    assert "cannot be used" in up.said
    assert f"SPAK_WEB_PORT={port + 1 if port < 65535 else 8000}" in up.said
    assert "Traceback" not in up.said


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"SPAK_WEB_HOST": "0.0.0.0"}, "public"),
        ({"SPAK_WEB_HOST": "no.such.host.invalid"}, "public"),
        ({"SPAK_WEB_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}, "database cannot be used"),
    ],
    ids=["all addresses", "a name", "no database"],
)
def test_what_it_refuses(tmp_path: Path, more: dict[str, str], word: str) -> None:
    up = Up(tmp_path / "data", free_port(), "--demo", **more)
    assert up.process.wait(60) == 1
    assert word in up.said
    assert "mend: " in up.said
    assert "Traceback" not in up.said
