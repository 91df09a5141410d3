"""Where a model's server may be: the address that is judged is the one that is connected."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from llm_stub import Stub
from spak import config
from spak.errors import UnavailableError, UsageError
from spak.llm import BACKENDS, address_check, open_backend, settings
from spak.llm.settings import Choice
from spak.policy import urls
from spak.ports import Prompt

NAME = "models.example"
PROMPT = Prompt("1", ({"role": "user", "name": "goal", "text": "say"},))
MODES = ("ollama", "openai_compatible", "anthropic")


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("93.184.216.34", "public"), ("10.1.2.3", "private"), ("127.9.9.9", "loopback"), ("::1", "loopback"),
        ("169.254.1.1", "link_local"), ("169.254.169.254", "metadata"),
        ("::ffff:169.254.169.254", "metadata"),
        ("fd00:ec2::254", "metadata"), ("fd00::1", "private"), ("168.63.129.16", "metadata"),
        ("::ffff:127.0.0.1", "loopback"), ("fe80::1%eth0", "link_local"), ("localhost", "malformed"),
        ("2606:2800:220:1:248:1893:25c8:1946", "public"), ("64:ff9b::7f00:1", "loopback"),
        # of IPv4 within IPv6, however it is written
        ("::127.0.0.1", "loopback"), ("::ffff:0:127.0.0.1", "loopback"), ("::a9fe:a9fe", "metadata"),
        ("64:ff9b::a9fe:a9fe", "metadata"), ("64:ff9b::a83f:8110", "metadata"),
        ("2002:6464:64c8::1", "metadata"), ("64:ff9b::5db8:d822", "public"),
        # of networks that are nobody's in public
        ("64:ff9b:1::7f00:1", "private"), ("fec0::1", "private"), ("5f00::1", "private"),
        ("3fff::1", "private"), ("::", "unspecified"), ("0.0.0.0", "unspecified"), ("ff02::1", "multicast"),
        # what only a resolver takes for an address
        ("2130706433", "malformed"), ("0x7f.1", "malformed"), ("0177.0.0.1", "malformed"),
    ],
)  # fmt: skip
def test_kinds_of_addresses(address: str, kind: str) -> None:
    assert urls.reach_of(address) == kind


@pytest.mark.parametrize(
    ("base_url", "address", "named", "fits"),
    [
        ("http://127.0.0.1:11434", "127.0.0.1", (), True),
        ("http://localhost:11434", "::1", (), True),
        ("http://localhost:11434", "10.0.0.1", (), False),
        ("http://10.0.0.9:8000", "10.0.0.9", (), True),
        ("https://api.example", "93.184.216.34", (), True),
        ("https://api.example", "127.0.0.1", (), False),
        ("https://api.example", "10.0.0.9", (), False),
        ("https://api.example", "10.0.0.9", ("public", "private"), True),
        ("https://api.example", "127.0.0.1", ("public", "private"), False),
        ("http://127.0.0.1:11434", "127.0.0.1", ("public",), False),
        ("http://169.254.169.254", "169.254.169.254", (), False),
        ("http://metadata.google.internal", "169.254.169.254", ("link_local",), False),
        ("http://metadata.google.internal", "169.254.169.254", ("metadata",), True),
    ],
)
def test_what_a_server_may_be_at(base_url: str, address: str, named: tuple[str, ...], fits: bool) -> None:
    choice = Choice(mode="openai_compatible", base_url=base_url, reach=named)
    if fits:
        address_check.judge(choice, choice.host, [address])
        return
    with pytest.raises(Exception, match="no model is asked there") as caught:
        address_check.judge(choice, choice.host, ["93.184.216.34", address])
    assert getattr(caught.value, "code", "") == "llm.address"


def test_the_engine_of_this_installation_is_always_reached() -> None:
    address_check.judge(Choice(mode="local", reach=("public",)), "127.0.0.1", ["127.0.0.1"])


# ---- against a real server


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server() -> Iterator[Any]:
    with Stub() as found:
        yield found


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where the name is, one answer for each time that it is looked up; the last one stays."""
    answers = ["127.0.0.1"]
    whole = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **more: Any) -> Any:
        if host != NAME:
            return whole(host, *args, **more)
        return whole(answers.pop(0) if len(answers) > 1 else answers[0], *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answers


def port(server: Stub) -> int:
    return int(server.url.rpartition(":")[2])


def asked(mode: str, base_url: str, named: list[str]) -> str:
    values = {"mode": mode, "base_url": base_url, "model": "stub-1", "retries": 0}
    found = settings.read(values, None, {})
    backend = open_backend(mode, replace(found, base=replace(found.base, reach=tuple(named))))
    answer = backend.answer(PROMPT)
    assert answer is not None
    return answer.text


def test_a_name_that_leads_to_this_machine_is_not_asked(mode: str, server: Any, named: list[str]) -> None:
    with pytest.raises(UnavailableError) as caught:
        asked(mode, f"http://{NAME}:{port(server)}", [])
    assert caught.value.code == "llm.address" and server.requests == []


def test_the_judged_address_is_connected_under_the_name(mode: str, server: Any, named: list[str]) -> None:
    named[:] = ["127.0.0.1", "192.0.2.1"]  # it is elsewhere when it is looked up again
    assert asked(mode, f"http://{NAME}:{port(server)}", ["loopback"])
    headers = {name.lower(): value for name, value in dict(server.requests[0][2]).items()}
    assert headers["host"] == f"{NAME}:{port(server)}"


def test_an_address_that_is_written_out_is_asked(mode: str, server: Any) -> None:
    assert asked(mode, f"http://127.0.0.1:{port(server)}", [])
    assert asked(mode, f"http://localhost:{port(server)}", []), "the first of its addresses may not answer"


def test_a_name_that_nobody_knows_is_not_reached(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*args: Any, **more: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(UnavailableError) as caught:
        asked(mode, f"http://{NAME}:1", [])
    assert caught.value.code == "llm.unreachable"


def test_what_is_written_out_is_judged_behind_a_proxy_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with pytest.raises(UnavailableError) as caught:
        asked("ollama", "http://169.254.169.254", [])
    assert caught.value.code == "llm.address"


# ---- settings


def test_the_operator_names_kinds(tmp_path: Any) -> None:
    (tmp_path / "spak.toml").write_text(
        '[network]\nrequests = ["public", "private"]\nmodels = ["loopback"]\n'
    )
    found = config.settings(tmp_path, {})
    assert found.reach == ("public", "private") and found.llm.base.reach == ("loopback",)
    assert found.llm.choice(mode="ollama", task="x").reach == ("loopback",)
    found = config.settings(
        tmp_path, {"SPAK_NETWORK_REQUESTS": "public, loopback", "SPAK_NETWORK_MODELS": "private"}
    )
    assert found.reach == ("public", "loopback") and found.llm.base.reach == ("private",)
    assert config.settings(None, {}).reach == ("public",)


@pytest.mark.parametrize(
    "text", ['requests = ["everything"]', "requests = [1]", 'models = "public"', "more = []"]
)
def test_kinds_that_nobody_knows_are_refused(tmp_path: Any, text: str) -> None:
    (tmp_path / "spak.toml").write_text(f"[network]\n{text}\n")
    with pytest.raises(UsageError) as caught:
        config.settings(tmp_path, {})
    assert caught.value.code == "usage.config"


def test_every_backend_that_asks_a_server_has_a_case() -> None:
    assert set(BACKENDS) - set(MODES) == {"manual", "recorded", "gemini_cli", "local"}
