"""`http_request`: one request to a host that was judged, at the address that was judged.

The address is the one observed when the call was permitted (`Call.observed`): the name is not looked up
again, so that it cannot stand for another machine in between. The name still is what TLS checks and what
`Host` says. No proxy and no password of the environment is used, no redirect is followed (its target is told;
asking for it is a new call, judged anew), nothing is unpacked. Time and size are bounded, slow replies too.
It runs on the host: the sandbox has no network.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from spak import canon
from spak import schema_parts as parts
from spak.cancel import TURN_S, Cancel, apart, check
from spak.errors import UsageError
from spak.lang.catalog import ToolEntry
from spak.policy import urls
from spak.ports import Call, ToolResult
from spak.tools import results

if TYPE_CHECKING:
    import httpx

MAX_BYTES = 256 << 10
MOST_BYTES = 4 << 20
TIMEOUT_S = 30.0
CONNECT_S = 10.0
_NOT_YOURS = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "keep-alive",
        "accept-encoding",
    }
)
"""Headers that say how the message is read; the tool writes them itself."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}\Z")
_VALUE = re.compile(r"[\x20-\x7e\t]{0,4096}\Z")


class HttpRequest:
    """The tool `http_request`."""

    entry = ToolEntry(
        name="http_request",
        version=1,
        summary="Sends one HTTP request to a permitted host; redirects are told and not followed.",
        schema=parts.members(
            ["url"],
            url=parts.text("https://host/path?query", urls.MAX_URL, least=0),
            method=parts.choice(
                "The method of the request.",
                ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"),
                "GET",
            ),
            headers=parts.mapping("Headers by name.", {"type": "string", "maxLength": 4096}),
            body=parts.text("What is sent.", 1 << 20, least=0),
            max_bytes=parts.whole("How much of the reply is kept.", 1, MOST_BYTES, MAX_BYTES),
            timeout_s=parts.seconds("Seconds for the whole of it.", most=300, default=TIMEOUT_S),
        ),
        on_fail="continue",
        sandboxed=False,
        writes=False,
        arguments={
            "url": "host",
            "method": "text",
            "headers": "text",
            "body": "text",
            "max_bytes": "text",
            "timeout_s": "text",
        },
    )

    def run(self, call: Call) -> ToolResult:
        return results.guarded(lambda call: apart(lambda: ask(call), call.cancel), call)


def ask(call: Call) -> ToolResult:
    """The reply to one request, whose members are the arguments of the call. Raises: UsageError."""
    import httpx

    args = call.args
    url = urls.parse(str(args["url"]), bare_hosts=True)
    if isinstance(url, urls.Trouble):
        raise UsageError("http_request.url", url.detail, "write https://host/path")
    if url.scheme not in ("https", "http"):
        raise UsageError("http_request.url", f"the scheme {url.scheme} is not spoken here", "use https")
    headers = {**_key(call), **_headers(args.get("headers", {}))}
    addresses = addresses_of(call, url.host)
    limit = int(args.get("max_bytes", MAX_BYTES))
    sent = 0
    try:
        timeout = min(float(args.get("timeout_s", TIMEOUT_S)), call.limits.wall_s)
        ends = time.monotonic() + timeout
        with client_of(timeout) as client, watched(ends, call.cancel) as watch:
            request = client.build_request(
                str(args.get("method", "GET")),
                at_address(url, addresses[0]),
                headers={**headers, "host": host_header(url), "accept-encoding": "identity"},
                content=str(args["body"]).encode() if "body" in args else None,
                extensions={"sni_hostname": url.host, "trace": watch},
            )
            sent = _size(request)
            response = client.send(request, stream=True)
            try:
                result = _result(str(args["url"]), response, limit, ends)
                return replace(result, requests=1, request_bytes=sent)
            finally:
                response.close()
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, UnicodeEncodeError) as error:
        late = isinstance(error, (httpx.TimeoutException, TimeoutError)) or time.monotonic() >= ends
        failed = results.failed(
            "http_request.timeout" if late else "http_request.failed",
            f"no reply from {url.host} in time" if late else f"{url.host}: {str(error)[:200] or 'no reply'}",
            "try again later, or give timeout_s" if late else "is the host up?",
            exit=2,
        )
        return replace(failed, requests=1, request_bytes=sent) if sent else failed


def _size(request: httpx.Request) -> int:
    """Bytes of a request as it is sent: its first line, its headers, its body."""
    head = (
        len(request.method) + len(request.url.raw_path) + sum(len(k) + len(v) for k, v in request.headers.raw)
    )
    return head + len(request.content)


def _key(call: Call) -> dict[str, str]:
    """A request that changes something has a key of idempotency: the same when the effect is done again."""
    if call.args.get("method", "GET") not in ("POST", "PUT", "PATCH", "DELETE"):
        return {}
    return {"idempotency-key": canon.content_hash([call.id, call.args])}


def _headers(given: Mapping[str, Any]) -> dict[str, str]:
    for name, value in given.items():
        if not _NAME.match(name) or not _VALUE.match(str(value)):
            raise UsageError("http_request.header", f"{name[:70]!a} is no header of one line of ASCII")
        if name.lower() in _NOT_YOURS or name.lower().startswith("proxy-"):
            raise UsageError("http_request.header", f"the header {name} is the tool's own", "leave it out")
    return {"user-agent": "spak", **{name.lower(): str(value) for name, value in given.items()}}


def addresses_of(call: Call, host: str) -> list[str]:
    """The addresses of the host as they were judged. Raises: UsageError when none was, or when one is where
    the operator lets no request go, whatever a policy permits."""
    for item in call.observed.get("hosts", ()):
        if item[0] == host and item[1]:
            found = [str(address) for address in item[1]]
            for address in found:
                if (kind := urls.reach_of(address)) not in call.reach:
                    raise UsageError(
                        "http_request.reach",
                        f"{host} is at {address}, which is {kind}, and no request goes there",
                        f'the operator lets it with [network] requests = ["public", "{kind}"]',
                    )
            return found
    raise UsageError(
        "http_request.address",
        f"no address of {host} was judged",
        "the tool does not look names up by itself",
    )


def at_address(url: urls.Url, address: str) -> str:
    """The URL with the address for the host; what is behind # stays here."""
    place = f"[{address}]" if ":" in address else address
    query = f"?{url.query}" if url.query else ""
    return f"{url.scheme}://{place}:{url.port}{url.path or '/'}{query}"


def host_header(url: urls.Url) -> str:
    """What `Host` says of the URL: its host, with the port where it is not the scheme's own."""
    host = f"[{url.host}]" if ":" in url.host else url.host
    return host if url.port == {"https": 443, "http": 80}[url.scheme] else f"{host}:{url.port}"


def client_of(timeout: float) -> httpx.Client:
    """A client for requests of at most `timeout` seconds, without proxies or passwords of the environment."""
    import httpx

    return httpx.Client(
        timeout=httpx.Timeout(timeout, connect=min(timeout, CONNECT_S)),
        trust_env=False,
        follow_redirects=False,
        http2=False,
    )


@contextmanager
def watched(ends: float, cancel: Cancel | None) -> Iterator[Any]:
    """A trace that remembers the connection, and its end when the time is over or the request cancelled: slow
    replies end too, and what was cancelled while it connected is not sent."""
    sockets: list[socket.socket] = []
    over = threading.Event()

    def trace(event: str, info: Mapping[str, Any]) -> None:
        check(cancel)
        stream = info.get("return_value")
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")) and stream is not None:
            sockets.append(stream.get_extra_info("socket"))

    def cut() -> None:
        while not over.wait(min(TURN_S, max(ends - time.monotonic(), 0))):
            if time.monotonic() >= ends or (cancel is not None and cancel.is_set()):
                break
        for found in () if over.is_set() else sockets:
            try:
                found.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    threading.Thread(target=cut, name="spak-http", daemon=True).start()
    try:
        yield trace
    finally:
        over.set()


def _result(asked: str, response: httpx.Response, limit: int, ends: float) -> ToolResult:
    """The reply: its first line, where it sends to, its body as far as it is kept."""
    data, size = bytearray(), 0
    for chunk in response.iter_raw():
        size += len(chunk)
        data += chunk[: max(limit - len(data), 0)]
        if size > limit or time.monotonic() >= ends:
            break
    if time.monotonic() >= ends:
        raise TimeoutError
    status, kind = response.status_code, _plain(response.headers.get("content-type", ""))
    head = f"{status} {kind}".rstrip() + "\n"
    notes = []
    key: dict[str, Any] = {"exit": 0 if 200 <= status < 300 else 1, "status": status}
    if response.has_redirect_location:
        target = _plain(urljoin(asked, response.headers["location"]))
        head += f"redirect: {target}\n"
        notes.append(
            results.diagnostic(
                "warning", "http_request.redirect", f"it sends on to {target}; ask for that itself"
            )
        )
    coding = response.headers.get("content-encoding", "identity").lower()
    if coding != "identity":
        notes.append(
            results.diagnostic("warning", "http_request.coded", f"the body is coded: {_plain(coding)}")
        )
    body = bytes(data)
    output = head.encode() + b"\n" + body
    key["sha256"] = canon.digest(body)
    return ToolResult(
        "exited",
        key["exit"],
        output,
        len(head) + 1 + size,
        canon.digest(output),
        size > limit,
        key,
        tuple(notes),
    )


def _plain(text: str) -> str:
    return "".join(sign for sign in text[: urls.MAX_URL] if " " <= sign <= "~")
