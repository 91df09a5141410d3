"""Tools that hang, fork, flood, eat memory or crash: the step ends in a typed way, nothing of it lives on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_calls import Cli, gone, processes

LIMITS = "[sandbox]\nwall_s = 1\nmemory_mib = 96\nprocesses = 40\noutput_kib = 64\n"

HANG = """
import signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
open("mess.txt", "w").write("mess")
while True:
    time.sleep(60)
"""
FORK = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
FLOOD = """
import sys
while True:
    sys.stdout.write("flood " * 1000)
"""
EAT = """
held = []
while True:
    held.append(bytearray(b"x" * (1 << 20)))
"""
CRASH = """
import os, signal
open("mess.txt", "w").write("mess")
os.kill(os.getpid(), signal.SIGSEGV)
"""
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(300)
    os._exit(0)
print("left one behind")
"""
LOUD = """
for number in range(200_000):
    print("line", number)
"""


def spec(tmp_path: Path, script: str) -> str:
    """A spec that runs the script and then looks round; gives the marker that names its processes."""
    marker = f"hostile-{abs(hash(str(tmp_path)))}"
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool/tool.py").write_text(script)
    (tmp_path / "tool.spak").write_text(
        f'task T {{ step a: tool.run {{ cmd: "python3 tool.py {marker}" output_var: said }}\n'
        '  step b: tool.run { cmd: "ls" } }'
    )
    (tmp_path / "spak.toml").write_text(LIMITS)
    return marker


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("script", "codes"),
    [
        pytest.param(HANG, {"tool.timeout"}, id="hangs"),
        pytest.param(FORK, {"tool.timeout", "tool.oom"}, id="forks"),  # whichever limit it meets first
        pytest.param(FLOOD, {"tool.timeout"}, id="floods"),
        pytest.param(EAT, {"tool.oom"}, id="eats"),
        pytest.param(CRASH, {"tool.crash"}, id="crashes"),
    ],
)
def test_a_tool_that_is_ended_fails_the_run(
    cli: Cli, tmp_path: Path, runs: Path, script: str, codes: set[str]
) -> None:
    marker = spec(tmp_path, script)
    done = cli("run", "tool.spak", "--json")
    assert gone(marker), processes(marker)
    assert (done.code, done.json["state"]) == (1, "failed")
    refusal = done.json["refusal"]
    assert refusal["error"]["code"] in codes and refusal["codes"] == [refusal["error"]["code"]]
    assert refusal["error"]["hint"] and refusal["knob"]
    folder = runs / done.json["run"]
    assert not (folder / "workspace/mess.txt").exists(), "its changes are undone"
    assert (folder / "trace.jsonl").stat().st_size < 100_000
    assert cli("replay", done.json["run"], "--json").json["equal"] is True
    assert cli("resume", done.json["run"], "--json").json["records"] == done.json["records"]


@pytest.mark.sandbox
def test_a_process_left_behind_is_ended_with_its_tool(cli: Cli, tmp_path: Path) -> None:
    marker = spec(tmp_path, DAEMON)
    done = cli("run", "tool.spak", "--json")
    assert gone(marker), processes(marker)
    assert (done.code, done.json["state"]) == (0, "succeeded")


@pytest.mark.sandbox
def test_much_output_is_kept_at_both_ends_and_counted_whole(cli: Cli, tmp_path: Path, runs: Path) -> None:
    spec(tmp_path, LOUD)
    done = cli("run", "tool.spak", "--json")
    assert done.code == 0
    folder = runs / done.json["run"]
    lines = [json.loads(line) for line in (folder / "trace.jsonl").read_text().splitlines()]
    loud = next(line for line in lines if line["kind"] == "act")
    whole = sum(len(f"line {number}\n") for number in range(200_000))
    assert loud["side"]["size"] == whole and loud["side"]["sha256"]
    blob = loud["body"]["out"]["$blob"]
    text = (folder / "blobs" / blob[:2] / blob).read_text()
    assert text.startswith("line 0\nline 1\n") and "line 199999\n" in text[-200:]
    assert len(text) < 80_000


@pytest.mark.sandbox
def test_an_edge_for_timeout_is_taken(cli: Cli, tmp_path: Path) -> None:
    spec(tmp_path, HANG)
    (tmp_path / "tool.spak").write_text(
        'AGENT A LEVEL 2 { START -> go '
        'TASK go { step a: tool.run { cmd: "python3 tool.py" } NEXT { success -> fine, timeout -> late } } '
        'TASK fine { step s: tool.run { cmd: "true" } } TASK late { step s: tool.run { cmd: "true" } } }'
    )  # fmt: skip
    done = cli("run", "tool.spak", "--json")
    assert (done.code, done.json["task"], done.json["state"]) == (0, "late", "succeeded"), done.out
