"""One request of the platform to a machine that a team named, with the walls of the tool `http_request`.

Takes an address, and what its host stands for; gives what was answered. Every address of the host is judged
by its kind, the connection goes to one that was judged, no redirect is followed, no proxy of the environment
is used, and time and size are bounded, also of slow answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from spak.policy import urls
from spak.ports import Call
from spak.tools.http_request import HttpRequest

WEB_PORTS, FIRST_FREE_PORT = (80, 443), 1024
"""Ports that a web server listens on; below the free ones all others are of other services, such as mail."""


def is_web_port(port: int) -> bool:
    """Whether a request may go to a port."""
    return port in WEB_PORTS or port >= FIRST_FREE_PORT


@dataclass(frozen=True, slots=True)
class Answer:
    """`status` is 0 where nothing was answered; `why` says why."""

    status: int
    body: bytes = b""
    why: str = ""
    code: str = ""
    """The code of `why`: http_request.*."""


def request(
    url: str,
    headers: Mapping[str, str],
    body: str = "",
    *,
    reach: Iterable[str],
    resolve: Callable[[str], Iterable[str]],
    method: str = "POST",
    most_bytes: int,
    timeout_s: float,
) -> Answer:
    """One request; `resolve` gives the addresses that a name stands for, `reach` the kinds that are taken."""
    parsed = urls.parse(url)
    host = "" if isinstance(parsed, urls.Trouble) else parsed.host
    if not isinstance(parsed, urls.Trouble) and not is_web_port(parsed.port):
        why = f"Port {parsed.port} is not one of the web: 80, 443, or {FIRST_FREE_PORT} and above."
        return Answer(0, why=why, code="http_request.url")
    given = {"body": body} if body else {}
    call = Call(
        "outgoing", "http_request",
        {"url": url, "method": method, "headers": dict(headers), "max_bytes": most_bytes,
         "timeout_s": timeout_s, **given},
        workspace=Path(), launcher=None, observed={"hosts": [[host, list(resolve(host))]]},
        reach=tuple(reach),
    )  # fmt: skip
    done = HttpRequest().run(call)
    status = int(done.key.get("status") or 0)
    if not status:
        first = done.diagnostics[0] if done.diagnostics else {"message": "The request failed.", "code": ""}
        return Answer(0, b"", str(first["message"]), str(first.get("code") or ""))
    return Answer(status, bytes(done.output).partition(b"\n\n")[2])
