"""The installed `gemini` command as a backend: the prompt on its standard input, its events on its output.

Started without a shell, as a process group of its own that is killed when the call ends in any way, in an
empty folder whose settings give it no tools: what it says is a proposal, and it is to do nothing itself. It
uses its own login and keys. It has no way to mask an answer: the caller's validation decides. Events are
those of `--output-format stream-json`.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from spak.cancel import Cancel
from spak.errors import UnavailableError
from spak.files.scratch import Scratch
from spak.lang.catalog import NamedEntry
from spak.llm import http, retry
from spak.llm.retry import Put, Reply, Trouble
from spak.llm.settings import Choice
from spak.ports import Answer, Prompt

CHUNK = 65_536
NO_TOOLS: Mapping[str, Mapping[str, list[str]]] = {"tools": {"core": []}, "mcp": {"allowed": []}}
_EXITS: Mapping[int, tuple[str, str, bool]] = {
    41: ("llm.no_key", "log in by starting `gemini` once, or export GEMINI_API_KEY=...", False),
    42: ("llm.rejected", "see its message; check [llm] model", False),
    53: ("llm.rejected", "it needed more turns than it may take", False),
}


class GeminiCli:
    """The Gemini command line as a backend, one process for each answer."""

    entry = NamedEntry("gemini_cli", "the installed `gemini` command")

    def __init__(self, choice: Choice | None = None) -> None:
        self.choice = choice or Choice(mode="gemini_cli")

    def check(self) -> None:
        """Raises: UnavailableError `llm.unreachable` when the command is not installed."""
        self._program()

    def answer(
        self, prompt: Prompt, on_text: Callable[[str], None] | None = None, cancel: Cancel | None = None
    ) -> Answer:
        argv = [self._program(), "--output-format", "stream-json"]
        if prompt.model or self.choice.model:
            argv += ["--model", prompt.model or self.choice.model]
        asked = prompt.text.encode("utf-8", "replace")

        async def attempt(put: Put) -> Reply:
            return await self._attempt(argv, asked, put)

        return retry.ask(attempt, prompt, self.choice, {}, on_text, cancel)

    def _program(self) -> str:
        command = self.choice.command
        found = shutil.which(self.choice.path(command).absolute() if "/" in command else command)
        if found is None:
            raise UnavailableError(
                "llm.unreachable",
                f"there is no command {self.choice.command!r}",
                "npm install -g @google/gemini-cli, or set [llm] command",
            )
        return found

    async def _attempt(self, argv: list[str], asked: bytes, put: Put) -> Reply:
        text: list[str] = []
        model, ended = "", False
        usage: Mapping[str, int] = {}
        async with _started(argv, asked) as (process, errors):
            assert process.stdout is not None
            async for line in http.lines_of(self.choice, self._chunks(process.stdout)):
                event = _event(line)
                match event.get("type"):
                    case "init":
                        model = str(event.get("model") or "")
                    case "message" if event.get("role") == "assistant":
                        piece = event.get("content")
                        if not isinstance(piece, str):
                            raise self._protocol("a message in another shape")
                        text.append(piece)
                        put(piece)
                    case "result":
                        ended = event.get("status", "success") == "success"
                        usage = _usage(event.get("stats"))
            code, stderr = await process.wait(), await errors
        if code != 0:
            kind, hint, retry = _EXITS.get(code, ("llm.server", "try it by hand: gemini -p hello", True))
            raise Trouble(kind, f"gemini ended with {code}: {http.clean(self.choice, stderr)}", hint, retry)
        if not ended:
            raise Trouble(
                "llm.cut", "gemini ended before its result", "try it by hand: gemini -p hello", True
            )
        return Reply("".join(text), "stop", model, usage)

    async def _chunks(self, stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
        while True:
            try:
                chunk = await asyncio.wait_for(stream.read(CHUNK), self.choice.silence_s)
            except TimeoutError:
                silent = f"gemini was silent for {self.choice.silence_s:g} s"
                raise Trouble("llm.timeout", silent, "raise [llm] silence_s") from None
            if not chunk:
                return
            yield chunk

    def _protocol(self, what: str) -> Trouble:
        return Trouble("llm.protocol", f"gemini sent {what}", "update it: npm install -g @google/gemini-cli")


@asynccontextmanager
async def _started(
    argv: list[str], asked: bytes
) -> AsyncIterator[tuple[asyncio.subprocess.Process, asyncio.Task[str]]]:
    """The command in an empty folder and a group of its own, being fed; and what it says of errors.

    Nothing of the group is left afterwards.
    """
    with Scratch("gemini") as folder:
        own = folder / ".gemini"
        own.mkdir()
        (own / "settings.json").write_text(json.dumps(NO_TOOLS))
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None and process.stderr is not None
        feed = asyncio.create_task(_feed(process, asked))
        errors = asyncio.create_task(_tail(process.stderr))
        try:
            yield process, errors
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
            feed.cancel()
            errors.cancel()
            await asyncio.wait((feed, errors))
            ends = [asyncio.create_task(_tail(stream)) for stream in (process.stdout, process.stderr)]
            await asyncio.wait(ends, timeout=1)  # what left the group may hold the pipes open
            await process.wait()


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    """The prompt on standard input; a command that does not read it to the end is its own affair."""
    assert process.stdin is not None
    try:
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        pass


async def _tail(stream: asyncio.StreamReader) -> str:
    """The end of what goes to standard error, all of it read."""
    kept = b""
    while chunk := await stream.read(CHUNK):
        kept = (kept + chunk)[-4096:]
    return kept.decode("utf-8", "replace")


def _event(line: bytes) -> Mapping[str, Any]:
    """A line's event; lines that are none are banners of the command."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _usage(stats: object) -> Mapping[str, int]:
    if not isinstance(stats, dict):
        return {}
    return retry.tokens(
        input=stats.get("input_tokens"), output=stats.get("output_tokens"), cached=stats.get("cached")
    )
