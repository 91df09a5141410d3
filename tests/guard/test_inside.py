"""An agent's processes are held still, also one that another has just woken."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from types import SimpleNamespace
from typing import Any, cast

import pytest

from process_kit import until
from spak.guard import inside
from spak.sandbox import procfs


def test_one_that_was_stopped_and_is_woken_meanwhile_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    state, woken = inside._state, list[int]()

    def seen(pid: int) -> str:
        """The state; another process of the agent wakes it at once."""
        found = state(pid)
        if found == "T" and not woken:
            woken.append(pid)
            os.kill(pid, signal.SIGCONT)
        return found

    with (
        subprocess.Popen(["/bin/sh", "-c", "sleep 1000; true"], start_new_session=True) as shell,
        socket.socket() as listener,
    ):
        until(lambda: len(procfs.tree(shell.pid)) == 2)
        (sleeper,) = procfs.tree(shell.pid)[1:]
        os.kill(sleeper, signal.SIGSTOP)
        until(lambda: state(sleeper) == "T")
        monkeypatch.setattr(inside, "_state", seen)
        with inside.Agent(cast(Any, SimpleNamespace(pid=shell.pid)), listener).frozen():
            until(lambda: state(sleeper) == "T")
        assert woken == [sleeper]
        os.killpg(shell.pid, signal.SIGKILL)
