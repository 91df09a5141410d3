"""Where a model's server may be: its address is judged when it is connected to, and it is that one.

Takes a Choice; gives a transport for httpx or httpx2 (the library is an argument: the SDKs bring their own).
A name is looked up once for a call, all its addresses are judged, and the connection goes to one of them: the
name cannot stand for another machine in between. What `base_url` writes out itself is the operator's word: an
address, or `localhost`. A name leads to public addresses alone, unless `[network] models` names more. Where
the environment sets a proxy, that one looks names up; what is written out is judged all the same.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any
from urllib.request import getproxies, proxy_bypass

from spak.llm.retry import Trouble
from spak.llm.settings import LOOPBACK, Choice
from spak.policy import urls


def allowed(choice: Choice, host: str) -> frozenset[str]:
    """The kinds of addresses that a connection to the host may go to."""
    own = {"loopback"} if choice.mode == "local" else set[str]()
    if choice.reach:
        return frozenset({*choice.reach, *own})
    written = "loopback" if host in LOOPBACK else urls.reach_of(host)
    return frozenset({"public", *own, written} - {"malformed", "metadata"})


def judge(choice: Choice, host: str, addresses: Sequence[str]) -> None:
    """Raises: Trouble `llm.address` when one of the addresses is of a kind that is not reached."""
    kinds = allowed(choice, host)
    for address in addresses:
        kind = urls.reach_of(address)
        if kind not in kinds:
            raise Trouble(
                "llm.address",
                f"{host} is at {address}, which is {kind}, and no model is asked there",
                f'if this is intended, the operator sets [network] models = ["public", "{kind}"]',
            )


def proxied(choice: Choice) -> bool:
    """Whether the environment sends calls of this server through a proxy."""
    if choice.host in LOOPBACK:
        return False
    scheme = choice.base_url.partition(":")[0]
    found = getproxies()
    return bool(found.get(scheme) or found.get("all")) and not proxy_bypass(choice.host)


def transport(library: Any, choice: Choice) -> Any:
    """A transport that connects to judged addresses; None where a proxy connects. Raises: Trouble."""
    if _is_address(choice.host):
        judge(choice, choice.host, [choice.host])
    if proxied(choice):
        return None

    class Pinned(library.AsyncHTTPTransport):  # type: ignore[misc]
        async def handle_async_request(self, request: Any) -> Any:
            host, url = request.url.host, request.url
            addresses = await _looked_up(library, choice, host, request)
            judge(choice, host, addresses)
            if not _is_address(host):
                request.extensions = {**request.extensions, "sni_hostname": host}
            for left, address in reversed(list(enumerate(reversed(addresses)))):
                request.url = url.copy_with(host=address)
                try:
                    return await super().handle_async_request(request)
                except (library.ConnectError, library.ConnectTimeout):
                    if not left:
                        raise
            raise AssertionError("a name without an address")

    return Pinned(trust_env=choice.host not in LOOPBACK)


async def _looked_up(library: Any, choice: Choice, host: str, request: Any) -> list[str]:
    if _is_address(host):
        return [host]
    asking = asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    try:
        rows = await asyncio.wait_for(asking, choice.connect_s)
    except TimeoutError as error:
        raise library.ConnectTimeout("its name was not looked up in time", request=request) from error
    except (OSError, UnicodeError) as error:
        raise library.ConnectError(str(error), request=request) from error
    return list(dict.fromkeys(str(row[4][0]) for row in rows))


def _is_address(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
