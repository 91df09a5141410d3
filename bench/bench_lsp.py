"""The language server under a typist: from a keystroke to its diagnostic, and what else an editor waits for.

`rows()` gives one dict per figure: name, ours, floor, unit, aim. A real `spak lsp` process is spoken to over
its standard streams; the spec has 500 lines in both dialects. Wall time includes the pause that the server
waits for the next key; CPU time is the server's own, from the kernel's account of the process.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.bench_lang import text
from bench.sizes import sized

LINES = 500
KEYS = sized(30, 2)
URI = "untitled:bench.spak"
SERVER = (sys.executable, "-c", "from spak.cli import main; main()", "lsp")
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


class Server:
    """A server process and the little of the protocol that is needed."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number = 0

    def send(self, method: str, params: Any, answer: bool = False) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if answer:
            self.number += 1
            message["id"] = self.number
        body = json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        length = 0
        while (line := self.process.stdout.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        found: dict[str, Any] = json.loads(self.process.stdout.read(length))
        return found

    def ask(self, method: str, params: Any) -> Any:
        self.send(method, params, answer=True)
        while (found := self.receive()).get("id") != self.number:
            pass
        return found["result"]

    def diagnostics(self, version: int) -> list[Any]:
        while True:
            found = self.receive()
            if (
                found.get("method") == "textDocument/publishDiagnostics"
                and found["params"]["version"] == version
            ):
                return list(found["params"]["diagnostics"])

    def cpu_ms(self) -> float:
        """User and system time of the process so far, to a tick."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_bytes().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK_MS

    def end(self) -> None:
        self.ask("shutdown", None)
        self.send("exit", None)
        self.process.communicate(timeout=30)
        if self.process.returncode != 0:
            raise RuntimeError(f"the server ended with {self.process.returncode}")


def spec() -> str:
    """A spec of just over 500 lines; what this installation lacks of it is told at every key."""
    size = 4000
    while (found := text(size)).count("\n") < LINES:
        size += 1000
    return found


def rows() -> list[dict[str, Any]]:
    """Measure."""
    whole = spec()
    server = Server()
    server.ask("initialize", {"capabilities": {}, "processId": os.getpid(), "rootUri": None})
    started = server.cpu_ms()
    item = {"uri": URI, "languageId": "spak", "version": 0, "text": whole}
    server.send("textDocument/didOpen", {"textDocument": item})
    server.diagnostics(0)
    line = whole[: whole.index("GOAL")].count("\n")
    column = whole.splitlines()[line].index('"') + 1
    place = {"line": line, "character": column}
    waits, before = [], server.cpu_ms()
    for version in range(1, KEYS + 1):
        begun = time.perf_counter()
        edit = {"range": {"start": place, "end": place}, "text": "x"}
        named = {"uri": URI, "version": version}
        server.send("textDocument/didChange", {"textDocument": named, "contentChanges": [edit]})
        server.diagnostics(version)
        waits.append((time.perf_counter() - begun) * 1000)
    cpu = (server.cpu_ms() - before) / KEYS
    answers = []
    for version in range(KEYS + 1, 2 * KEYS + 1):
        named = {"uri": URI, "version": version}
        edit = {"range": {"start": place, "end": place}, "text": "x"}
        begun = time.perf_counter()
        server.send("textDocument/didChange", {"textDocument": named, "contentChanges": [edit]})
        where = {"textDocument": {"uri": URI}, "position": {"line": line, "character": 4}}
        server.ask("textDocument/completion", where)
        answers.append((time.perf_counter() - begun) * 1000)
    server.end()
    lines = f"{whole.count(chr(10))} lines"
    return [
        _row(f"lsp: keystroke to diagnostic, {lines}, wall", statistics.median(waits), "<= 100"),
        _row(f"lsp: keystroke to diagnostic, {lines}, CPU", cpu, "<= 100"),
        _row(f"lsp: keystroke to completion, {lines}, wall", statistics.median(answers), "<= 100"),
        _row("lsp: start to initialized, CPU", started, ""),
    ]


def _row(name: str, ours: float, aim: str) -> dict[str, Any]:
    return {"name": name, "ours": round(ours, 1), "floor": None, "unit": "ms", "aim": aim}
