"""`manage.py up`: it starts, says what to do, refuses what cannot be, restarts its part, leaves nothing."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import stat
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from platform_kit import START_S, Up, running
from process_kit import happens, until
from spakweb.ground.errors import Refused
from spakweb.work.operate.up import Stopped, Supervisor, listen, only_one

pytestmark = [pytest.mark.faults, pytest.mark.timeout(2 * START_S)]


def gone(pid: int) -> bool:
    """True once no process has that number; a child that nobody waits for may stay as a zombie."""

    def ended() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:
            return True

    return happens(ended)


def answer(url: str) -> str:
    with urllib.request.urlopen(f"{url}/readyz", timeout=START_S) as found:
        return str(found.read().decode().strip())


def test_its_life(tmp_path: Path) -> None:
    """It starts and stops, and starts where it was; what dies is started again; what is killed leaves nothing
    behind. That it ends on SIGTERM is asked of each that a test of runs in a browser has."""
    data = tmp_path / "data"
    with running(data, "--demo") as up:
        assert "alice / spak-demo" in up.said
        assert up.url in up.said
        assert answer(up.url) == "ready"
        children = up.children()
        assert len(children) == 2  # the web part and the worker
        assert up.stop(signal.SIGINT) == 0
        assert "stopped; everything is kept" in up.said
        assert all(gone(pid) for pid in children)
    with sqlite3.connect(data / "spak.sqlite3") as rows:
        rows.execute("UPDATE teams_team SET name = 'Renamed'")
    rows.close()
    with running(data, "--demo") as up:
        first = set(up.children())
        assert len(first) == 2
        for pid in first:
            os.kill(pid, signal.SIGKILL)
        until(lambda: len(up.children()) == 2 and not first & set(up.children()), lambda: up.said)
        assert "starting it again" in up.said
        assert answer(up.url) == "ready"

        other = Up(data)
        assert other.process.wait(START_S) == 1
        assert "running already" in other.said
        assert "fix: " in other.said

        second = up.children()
        os.kill(up.process.pid, signal.SIGKILL)
        up.process.wait(START_S)
        assert all(gone(pid) for pid in second)
    with sqlite3.connect(data / "spak.sqlite3") as rows:
        assert rows.execute("SELECT name FROM teams_team").fetchall() == [("Renamed",)]
    rows.close()


def test_ctrl_c_while_it_is_read_in_is_no_traceback(tmp_path: Path) -> None:
    up = Up(tmp_path / "data", cold=True, PYTHONPROFILEIMPORTTIME="1")  # each import is said as it is done
    while "django.apps" not in up.said:
        assert up.process.poll() is None, up.said[-500:]
        time.sleep(0.01)
    assert up.stop(signal.SIGINT) in (0, 130)
    assert "Traceback" not in up.said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_was_ignored_at_start_stays_ignored(number: int) -> None:
    """`nohup make run` outlives its terminal."""
    stops = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {each: signal.getsignal(each) for each in stops}
    try:
        signal.signal(number, signal.SIG_IGN)
        with listen("127.0.0.1", 0) as listening, Supervisor([], listening) as supervisor:
            os.kill(os.getpid(), number)
            assert signal.getsignal(number) is signal.SIG_IGN
            supervisor.look()
            os.kill(os.getpid(), signal.SIGTERM)
            with pytest.raises(Stopped, match="SIGTERM"):
                supervisor.look()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        up = Up(tmp_path / "data", 0, "--port", str(port))  # which the variable of the environment is not
        assert up.process.wait(START_S) == 1
    assert f"port {port} cannot be used" in up.said
    assert f"--port {port + 1 if port < 65535 else 8000}" in up.said
    assert "Traceback" not in up.said


@pytest.mark.parametrize("port", ["0", "65536", "9" * 400, "-1", "http"])
def test_a_port_that_is_none(port: str) -> None:
    with pytest.raises(CommandError, match=r"--port: .* is not a port from 1 to 65535"):
        call_command("up", f"--port={port}")


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "up.lock").symlink_to("/dev/full")
    for data in (tmp_path / "file" / "data", tmp_path):
        with pytest.raises(Refused, match="Nothing can be written") as found, only_one(data, "here"):
            pass
        assert (found.value.code, bool(found.value.hint)) == ("web.data", True)


def test_the_data_are_its_owners_alone(tmp_path: Path) -> None:
    """Also those of an older version, and in a folder that somebody named and left open."""
    ours, theirs = tmp_path / ".spak/platform", tmp_path / "data"
    for data in (ours, theirs):
        data.mkdir(parents=True, mode=0o755)
        for name in ("spak.sqlite3", "spak.sqlite3-wal"):
            (data / name).touch(mode=0o644)
        with only_one(data, "here"):
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in data.glob("spak.*")}
            assert modes == {"spak.sqlite3": 0o600, "spak.sqlite3-wal": 0o600}
    modes = {str(path): stat.S_IMODE(path.stat().st_mode) for path in (ours.parent, ours, theirs)}
    assert list(modes.values()) == [0o700, 0o700, 0o755]


@pytest.mark.parametrize("host", ["0.0.0.0", "no.such.host.invalid"])
def test_the_demo_stays_on_this_machine(settings: Any, host: str) -> None:
    settings.HOST = host
    with pytest.raises(CommandError, match=r"public(.|\n)*fix: "):
        call_command("up", "--demo")


def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    more = {"SPAK_WEB_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    up = Up(tmp_path / "data", 0, "--demo", **more)
    assert up.process.wait(START_S) == 1
    assert "database cannot be used" in up.said
    assert "fix: " in up.said
    assert "Traceback" not in up.said


def test_an_answer_waits_for_no_acknowledgement() -> None:
    with (
        listen("127.0.0.1", 0) as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
