"""HTTP as the backends speak it: one request, a bounded streamed reply, failures as `Trouble`.

Redirects are never followed, so that a key does not travel; a key goes over plain HTTP only to this machine.
Replies are read raw up to a limit and decoded strictly. What the other side says of an error is shown
shortened and without secrets.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from spak.errors import UnavailableError
from spak.llm import address_check
from spak.llm.retry import MAX_BYTES, Trouble, is_retried, pause
from spak.llm.settings import LOOPBACK, Choice
from spak.secrets.redact import Redactor

_ENDS = re.compile(rb"\r\n|\n|\r")

if TYPE_CHECKING:
    import httpx

MAX_ERROR = 64 << 10
_WINDOW_WORDS = ("context length", "context window", "context size", "prompt is too long", "too many tokens")


def guard(choice: Choice) -> None:
    """Raises: UnavailableError `llm.insecure` when a key would go over plain HTTP to another machine."""
    if choice.secret is not None and choice.base_url.startswith("http://") and choice.host not in LOOPBACK:
        raise UnavailableError(
            "llm.insecure",
            f"a key would go unencrypted to {choice.host}",
            "use https://, or take key_env and key_file out of [llm]",
        )


def client(choice: Choice) -> httpx.AsyncClient:
    """A client for one call, with the choice's limits and key."""
    import httpx

    headers = {"accept-encoding": "identity", "user-agent": "spak"}
    if choice.secret is not None:
        headers["authorization"] = f"Bearer {choice.secret.reveal()}"
    return httpx.AsyncClient(
        headers=headers,
        timeout=httpx.Timeout(choice.silence_s, connect=choice.connect_s),
        follow_redirects=False,
        trust_env=choice.host not in LOOPBACK,
        transport=address_check.transport(httpx, choice),
    )


@asynccontextmanager
async def streamed(
    choice: Choice, method: str, url: str, body: Any, kinds: tuple[str, ...]
) -> AsyncIterator[AsyncIterator[bytes]]:
    """The reply's lines, when it is a 200 of one of the content types. Raises: Trouble."""
    import httpx

    try:
        async with client(choice) as http:
            data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
            headers = {"content-type": "application/json"} if data is not None else {}
            async with http.stream(method, url, content=data, headers=headers) as response:
                if response.status_code != 200:
                    text = await _head(response)
                    raise refused(choice, response.status_code, response.headers, text)
                kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                if kind not in kinds:
                    raise protocol(choice, f"content type {kind[:60]!r} instead of {kinds[0]}")
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise protocol(choice, "a compressed reply, which was not asked for")
                yield lines_of(choice, response.aiter_raw())
    except httpx.HTTPError as error:
        raise broken(choice, error) from None
    except UnicodeDecodeError:
        raise protocol(choice, "bytes that are not UTF-8") from None


async def fetched(choice: Choice, url: str) -> Any:
    """The JSON of a GET. Raises: Trouble."""
    async with streamed(choice, "GET", url, None, ("application/json",)) as lines:
        text = b"\n".join([line async for line in lines])
    return parsed(choice, text)


def parsed(choice: Choice, data: bytes) -> Any:
    """A JSON value from the wire. Raises: Trouble `llm.protocol`."""
    try:
        return json.loads(data.decode())
    except UnicodeDecodeError:
        raise protocol(choice, "bytes that are not UTF-8") from None
    except (ValueError, RecursionError):
        raise protocol(choice, "what is not JSON") from None


def broken(choice: Choice, error: Exception) -> Trouble:
    """A failure of the transport, by the name of its kind: httpx and httpx2 share them."""
    name = type(error).__name__
    if name == "ConnectTimeout":
        return Trouble(
            "llm.unreachable",
            f"{where(choice)} did not answer within {choice.connect_s:g} s",
            _start(choice),
            retry=True,
        )
    if name.endswith("Timeout"):
        return Trouble(
            "llm.timeout",
            f"{where(choice)} was silent for {choice.silence_s:g} s",
            "raise [llm] silence_s, or see whether the server is overloaded",
        )
    if name in ("ConnectError", "UnsupportedProtocol", "ProxyError", "InvalidURL"):
        return Trouble(
            "llm.unreachable",
            f"{where(choice)} cannot be reached: {clean(choice, str(error))}",
            _start(choice),
            retry=name == "ConnectError",
        )
    return Trouble(
        "llm.cut",
        f"{where(choice)} broke off in the middle of its reply",
        "see the server's log",
        retry=True,
    )


def refused(choice: Choice, status: int, headers: Mapping[str, str], body: str) -> Trouble:
    """What a status other than 200 means."""
    message = f"{where(choice)} answered {status}"
    detail = clean(choice, _message(body))
    if detail:
        message += f": {detail}"
    if 300 <= status < 400:
        return Trouble(
            "llm.redirect",
            f"{where(choice)} sends elsewhere ({status}); that is not followed",
            "set [llm] base_url to the final address",
        )
    if status in (401, 403):
        return Trouble("llm.key_refused", message, "check the key, and what it is allowed to do")
    if any(word in body.lower() for word in _WINDOW_WORDS):
        return Trouble("llm.window", message, "set [llm] window, or a smaller budget of context")
    if status == 404:
        return Trouble(
            "llm.unknown_model", message, "`spak models` lists what is there; check [llm] model and base_url"
        )
    if status == 429:
        return Trouble("llm.rate_limited", message, "wait, or ask for a higher limit", True, pause(headers))
    if is_retried(status):
        return Trouble("llm.server", message, "try again later", True, pause(headers))
    return Trouble("llm.rejected", message, "the engine does not take this request; docs/models.md says more")


def complained(choice: Choice, value: Mapping[str, Any]) -> Trouble:
    """What an error in the middle of a reply means: `value` is the object that holds it."""
    message = clean(choice, _message(json.dumps(value))) or "an error without a message"
    return Trouble("llm.server", f"{where(choice)} broke off: {message}", "see the server's log", retry=True)


def protocol(choice: Choice, what: str) -> Trouble:
    """The trouble of a reply that is not of the protocol."""
    return Trouble(
        "llm.protocol",
        f"{where(choice)} sent {what}",
        "check [llm] base_url: this does not speak the protocol that was asked for",
    )


def too_large(choice: Choice) -> Trouble:
    """The trouble of a reply past MAX_BYTES."""
    return Trouble(
        "llm.too_large", f"{where(choice)} sent more than {MAX_BYTES >> 20} MiB", "ask for a shorter answer"
    )


def cut(choice: Choice) -> Trouble:
    """The trouble of a reply that ended too early; it may be tried again."""
    return Trouble("llm.cut", f"{where(choice)} ended its reply before its end", "see the server's log", True)


async def lines_of(choice: Choice, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of a reply without their ends; also the last one, when it has no end.

    They end with LF, CRLF or CR alone, and one byte order mark may stand before the first.
    Source: WHATWG HTML, "Parsing an event stream".
    """
    size, rest, marked, returned = 0, bytearray(), True, False
    async for chunk in chunks:
        size += len(chunk)
        if size > MAX_BYTES:
            raise too_large(choice)
        rest += chunk[1:] if returned and chunk.startswith(b"\n") else chunk
        returned = chunk.endswith(b"\r") or (returned and not chunk)
        if marked and (len(rest) >= len(BOM_UTF8) or not BOM_UTF8.startswith(rest)):
            rest, marked = rest.removeprefix(BOM_UTF8), False
        if not marked and (b"\n" in chunk or b"\r" in chunk):
            *whole, last = _ENDS.split(rest)
            for line in whole:
                yield bytes(line)
            rest = bytearray(last)
    if rest:
        yield bytes(rest)


async def _head(response: httpx.Response) -> str:
    """As much of an error's body as is worth reading."""
    found = bytearray()
    async for chunk in response.aiter_raw():
        found += chunk
        if len(found) >= MAX_ERROR:
            break
    return found[:MAX_ERROR].decode("utf-8", "replace")


def _message(body: str) -> str:
    """What an error's body says, in the shapes that the engines use."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return body
    found = value.get("error", value) if isinstance(value, dict) else value
    if isinstance(found, dict):
        found = found.get("message", found.get("type", ""))
    return found if isinstance(found, str) else ""


def clean(choice: Choice, text: str) -> str:
    """Text of others for a message of ours: one line, short, printable, without secrets."""
    secrets = [choice.secret] if choice.secret is not None and len(choice.secret.reveal()) >= 6 else []
    line = " ".join(Redactor(secrets).text(text[:2000].encode("utf-8", "replace").decode()).split())
    return "".join(letter if letter.isprintable() else "?" for letter in line)[:200]


def where(choice: Choice) -> str:
    """The server, for a message; without a key that stands in its address."""
    return clean(choice, f"{choice.mode} at {choice.base_url}")


def _start(choice: Choice) -> str:
    if choice.mode == "local":
        return "the engine has died (for want of memory?); spak resume starts it again"
    if choice.mode == "ollama" and choice.host in LOOPBACK:
        return "start it: ollama serve"
    return "start the server, or set [llm] base_url"
