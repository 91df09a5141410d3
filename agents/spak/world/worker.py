"""Parsing in a process with limits: a hostile file costs that process, and the file is then unknown.

    python -c ... the worker: frames on standard input and output, one file at a time

Takes a language and bytes; gives the facts as two JSON texts. The process opens nothing; its memory and
output are limited, and a file that takes more than CPU_S seconds ends it. `Parsers` starts another one for
the next file.
"""

from __future__ import annotations

import contextlib
import json
import re
import resource
import signal
import struct
import subprocess
import sys
from types import TracebackType
from typing import Any

import orjson

MEMORY_BYTES = 3 << 30
CPU_S = 10.0
"""Seconds of one file: a thousand times what a large one takes."""
MAX_ROWS, MAX_TEXT = 1001, 400
_REQUEST = struct.Struct(">16sI")
_REPLY = struct.Struct(">II")
_START = "import json,sys;sys.path[:]=json.loads(sys.argv[1]);from spak.world.worker import serve;serve()"

Parsed = tuple[bytes, bytes]
"""Face and body of a file, as JSON."""


class Parsers:
    """A worker that is started when it is first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Parsers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def parse(self, language: str, data: bytes) -> Parsed | None:
        """The facts of a file; None where the parser gave up on it."""
        return self._asked(language, data)

    def search(self, language: str, pattern: str, data: bytes) -> bytes | None:
        """The matches of a pattern, as JSON; None where the parser gave up on the file."""
        head = pattern.encode()
        found = self._asked(f"?{language}", struct.pack(">I", len(head)) + head + data)
        return found[0] if found else None

    def _asked(self, language: str, data: bytes) -> Parsed | None:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _START, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(_REQUEST.pack(language.encode(), len(data)) + data)
            process.stdin.flush()
            head = process.stdout.read(_REPLY.size)
            if len(head) == _REPLY.size:
                sizes = _REPLY.unpack(head)
                reply = process.stdout.read(sum(sizes))
                if len(reply) == sum(sizes):
                    return (reply[: sizes[0]], reply[sizes[0] :]) if sizes[0] else None
        except BrokenPipeError:
            pass
        self._end()
        return None

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        process.wait()


def facts_of(language: str, data: bytes) -> Parsed:
    """The facts of a file, in this process."""
    from spak.world.extract import extract

    face, body = extract(language, data)
    return orjson.dumps(face), orjson.dumps(body)


def matches_of(language: str, data: bytes) -> Parsed:
    """The matches of a pattern that is before the bytes: line, last line, text, variables."""
    from ast_grep_py import SgRoot

    size = struct.unpack_from(">I", data)[0]
    pattern, text = data[4 : 4 + size].decode(), data[4 + size :].decode("utf-8", "replace")
    variables = re.findall(r"\$(\$\$)?([A-Z_][A-Z_0-9]*)", pattern)
    rows: list[list[object]] = []
    root = SgRoot(text, {"cuda": "cpp"}.get(language, language)).root()
    wanted: Any = {"pattern": pattern}
    if language in ("c", "cpp", "cuda") and pattern.rstrip().endswith(")"):  # else it reads as a declaration
        wanted = {"pattern": {"context": f"int f() {{ {pattern}; }}", "selector": "call_expression"}}
    for found in root.find_all(**wanted):
        names = {}
        for many, name in variables:
            nodes = found.get_multiple_matches(name) if many else [found.get_match(name)]
            nodes = [node for node in nodes if node is not None]
            if nodes:
                at = nodes[0].range().start.index, nodes[-1].range().end.index
                names[name] = text[at[0] : at[1]][:MAX_TEXT]
        where = found.range()
        rows.append([where.start.line + 1, where.end.line + 1, found.text()[:MAX_TEXT], names])
        if len(rows) > MAX_ROWS:
            break
    return orjson.dumps(rows), b""


def serve() -> None:
    """The worker's loop."""
    import gc

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.disable()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while len(head := source.read(_REQUEST.size)) == _REQUEST.size:
        language, size = _REQUEST.unpack(head)
        data = source.read(size)
        signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S)  # its signal ends the process
        try:
            name = language.rstrip(b"\0").decode()
            face, body = matches_of(name[1:], data) if name[0] == "?" else facts_of(name, data)
        except (MemoryError, RecursionError):
            face, body = b"", b""
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        sink.write(_REPLY.pack(len(face), len(body)) + face + body)
        sink.flush()
