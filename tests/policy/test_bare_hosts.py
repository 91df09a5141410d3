"""Addresses and short names as hosts: read in their one plain form, where they are asked for."""

from __future__ import annotations

import ipaddress
import random

import pytest

from spak.policy import urls
from spak.policy.actions import Action, Seen, World
from spak.policy.facts import facts

BLIND = World(lambda path: Seen("inside", path), lambda pattern: (), None)


@pytest.mark.findings("S5.2")
@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://127.0.0.1:8451/x", "127.0.0.1", 8451),
        ("http://10.0.0.7/", "10.0.0.7", 80),
        ("http://LOCALHOST:80", "localhost", 80),
        ("http://api:8000/v1", "api", 8000),
        ("https://my-service-2/", "my-service-2", 443),
        ("http://[::1]:8451/x", "::1", 8451),
        ("http://[fd00::2]", "fd00::2", 80),
        ("https://docs.python.org/3/", "docs.python.org", 443),
    ],
)
def test_a_plain_form_is_read(url: str, host: str, port: int) -> None:
    found = urls.parse(url, bare_hosts=True)
    assert isinstance(found, urls.Url) and (found.host, found.port) == (host, port)
    strict = urls.parse(url)
    assert isinstance(strict, urls.Trouble) is urls.is_bare(host)


@pytest.mark.findings("S5.2")
@pytest.mark.parametrize(
    "host",
    [
        "127.1",
        "0127.0.0.1",
        "127.0.0.01",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0x",
        "1",
        "127.0.0.1.",
        "localhost.",
        "api.",
        "-api",
        "api-",
        "a_b",
        "[127.0.0.1]",
        "[::1",
        "::1",
        "[::1]x",
        "[::1]]",
        "[]",
        "[0:0:0:0:0:0:0:1]",
        "[::01]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[fe80::1%25eth0]",
        "[localhost]",
        "[::1].example",
        "256.1.1.1",
        "1.2.3.4.5",
        "user@127.0.0.1",
        "127.0.0.1:080",
        "[::1]:",
        "[::1]:x",
        "a" * 64,
    ],
)
def test_what_two_readers_may_take_in_two_ways_is_refused(host: str) -> None:
    assert isinstance(urls.parse(f"http://{host}/", bare_hosts=True), urls.Trouble)


def test_no_other_form_of_an_address_is_read() -> None:
    """Whatever passes and leads the resolver to an address is that address as it is written."""
    draw = random.Random(30)
    signs = "0123456789.:x[]af"
    for _ in range(20_000):
        host = draw.choice(("", "127.0.0.", "[::", "10.")) + "".join(
            draw.choice(signs) for _ in range(draw.randint(1, 8))
        )
        found = urls.parse(f"http://{host}/", bare_hosts=True)
        if isinstance(found, urls.Url) and urls.is_bare(found.host) and {".", ":"} & {*found.host}:
            assert str(ipaddress.ip_address(found.host)) == found.host and found.host in host


@pytest.mark.findings("S5.2")
def test_the_facts_of_a_bare_host_say_what_it_is() -> None:
    call = Action("http_request", {"url": "http://127.0.0.1:8451/x"})
    names = {fact[0] for fact in facts(call, BLIND)}
    assert {"asks_url", "url_trouble"} <= names
