"""Which launcher a run gets: never one below its SANDBOX, and of equals the one that SANDBOX names."""

from __future__ import annotations

from typing import Any

import pytest

from host_kit import catalog
from spak import config
from spak.errors import UnavailableError
from spak.lang import parse
from spak.lang.catalog import NamedEntry
from spak.program import compile as compile_program


def made(name: str) -> Any:
    class Launcher:
        entry = NamedEntry(name, "a stand-in")

        def probe(self) -> str:
            return ""

    return Launcher


@pytest.fixture
def all_four(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("restricted", "docker", "gpu", "gvisor")
    monkeypatch.setattr("spak.sandbox.LAUNCHERS", {name: made(name) for name in names})


def program(sandbox: str) -> Any:
    task = "START -> t TASK t { step a: tool.look { } }"
    text = f"AGENT A LEVEL 2 {{ CONFIG {{ SANDBOX {sandbox} }} {task} }}"
    known = catalog()
    launchers = {name.lower(): NamedEntry(name.lower(), "") for name in config.RANKS}
    return compile_program(parse(text), type(known)(tools=known.tools, launchers=launchers), {})


@pytest.mark.usefixtures("all_four")
@pytest.mark.parametrize("sandbox", ["RESTRICTED", "DOCKER", "GPU", "GVISOR"])
def test_a_run_gets_what_its_sandbox_names(sandbox: str) -> None:
    found = config.launcher(config.Settings(), program(sandbox))
    assert found.entry.name == sandbox.lower()


@pytest.mark.usefixtures("all_four")
@pytest.mark.parametrize(
    ("chosen", "sandbox"), [("restricted", "DOCKER"), ("docker", "GVISOR"), ("gpu", "GVISOR")]
)
def test_a_weaker_one_is_refused_though_it_was_asked_for(chosen: str, sandbox: str) -> None:
    """The fact `sandboxed` of a run rests on this."""
    with pytest.raises(UnavailableError) as caught:
        config.launcher(config.Settings(launcher=chosen), program(sandbox))
    assert caught.value.code == "unavailable.sandbox"


@pytest.mark.usefixtures("all_four")
@pytest.mark.parametrize(
    ("sandbox", "least", "found"),
    [
        ("RESTRICTED", "docker", "docker"),
        ("DOCKER", "restricted", "docker"),
        ("GPU", "docker", "gpu"),
        ("DOCKER", "gvisor", "gvisor"),
    ],
)
def test_who_starts_a_run_can_ask_for_more(sandbox: str, least: str, found: str) -> None:
    assert config.launcher(config.Settings(least=least), program(sandbox)).entry.name == found
    for launcher, least, used in (("docker", "gvisor", "gvisor"), ("gpu", "docker", "gpu")):
        asked = config.Settings(least=least, launcher=launcher)
        assert config.launcher(asked, program(sandbox)).entry.name == used


def test_what_cannot_be_measured_in_a_container_does_not_begin() -> None:
    from spak.sandbox import Docker

    class Container(Docker):
        def __init__(self) -> None:
            """Without an engine."""

    text = "AGENT A LEVEL 5 { START -> t TASK t { VALIDATOR CpuProfiler } }"
    measured = compile_program(parse(text), config.catalog(), {})
    config.measurable(program("DOCKER"), Container())
    config.measurable(measured, made("restricted")())
    with pytest.raises(UnavailableError) as caught:
        config.measurable(measured, Container())
    assert "CpuProfiler" in caught.value.message and "restricted" in caught.value.hint
