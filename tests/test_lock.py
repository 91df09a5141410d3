"""requirements.lock: one file for uv and pip, whole, hashed, without the address of a package server.

ADR 0002 says why. requirements-peers.lock has the same form; what it pins is installed by `make bench
ARGS=peers` alone.
"""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import spak

ROOT = Path(__file__).resolve().parents[1]
LOCKS = {name: (ROOT / name).read_text() for name in ("requirements.lock", "requirements-peers.lock")}
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
ENTRY = re.compile(r"^(\S+==[^\\\n]+)((?: *\\\n +--hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)


def pinned(lock: str = "requirements.lock") -> dict[str, list[Requirement]]:
    pins: dict[str, list[Requirement]] = {}
    for text, _ in ENTRY.findall(LOCKS[lock]):
        requirement = Requirement(text)
        pins.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return pins


def version(requirement: Requirement) -> str:
    return str(requirement.specifier).removeprefix("==")


def wanted() -> list[Requirement]:
    return [
        Requirement(text) for text in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    ]


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_every_line_is_a_pin_or_a_hash_of_one(lock: str) -> None:
    assert ENTRY.search(lock)
    assert ENTRY.sub("", lock).strip() == ""


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_it_names_no_server(lock: str) -> None:
    assert "://" not in lock
    assert "--index" not in lock
    assert "--find-links" not in lock


PEERS = [Requirement(text) for text in SETTINGS["dependency-groups"]["peers"]]


@pytest.mark.parametrize(
    ("lock", "asked"), [("requirements.lock", wanted()), ("requirements-peers.lock", PEERS)], ids=LOCKS
)
def test_it_pins_what_is_asked_for(lock: str, asked: list[Requirement]) -> None:
    pins = pinned(lock)
    for requirement in asked:
        found = pins.get(canonicalize_name(requirement.name), [])
        assert found, f"{requirement.name} is not in {lock}: see CONTRIBUTING.md, Dependencies"
        assert all(requirement.specifier.contains(version(pin)) for pin in found), requirement


def test_peers_have_the_versions_of_the_project() -> None:
    """What both use, such as the driver of PostgreSQL, is the same on both sides of a comparison."""
    ours = pinned()
    for name, pins in pinned("requirements-peers.lock").items():
        for pin in pins:
            assert name not in ours or version(pin) in map(version, ours[name]), name


def test_it_is_complete_here() -> None:
    """Everything that the pinned packages need on this machine is pinned too, so nothing floats."""
    pins = pinned()
    for name in pins:
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # pinned for another system
        for need in map(Requirement, needs):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                assert canonicalize_name(need.name) in pins, f"{name} needs {need.name}"


def test_what_is_installed_is_what_is_pinned() -> None:
    for name, requirements in pinned().items():
        for pin in requirements:
            if pin.marker is None or pin.marker.evaluate():
                assert metadata.version(name) == version(pin), f"{name}: run make setup"


def test_the_package_has_one_version() -> None:
    assert PROJECT["version"] == spak.__version__ == metadata.version("spak")
