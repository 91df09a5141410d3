"""requirements.lock: one file for uv and pip, whole, hashed, without the address of a package server.

ADR 0002 says why.
"""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import spak

ROOT = Path(__file__).resolve().parents[1]
LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ENTRIES = re.findall(r"^(\S+==[^\\\n]+)((?: *\\\n +--hash=sha256:[0-9a-f]{64})+)$", LOCK, re.MULTILINE)


def pinned() -> dict[str, list[Requirement]]:
    pins: dict[str, list[Requirement]] = {}
    for text, _ in ENTRIES:
        requirement = Requirement(text)
        pins.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return pins


def version(requirement: Requirement) -> str:
    return str(requirement.specifier).removeprefix("==")


def wanted() -> list[Requirement]:
    return [
        Requirement(text) for text in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    ]


def test_every_line_is_a_pin_or_a_hash_of_one() -> None:
    assert ENTRIES
    rest = LOCK
    for text, hashes in ENTRIES:
        rest = rest.replace(text + hashes, "", 1)
    assert rest.strip() == ""


def test_it_names_no_server() -> None:
    assert "://" not in LOCK
    assert "--index" not in LOCK
    assert "--find-links" not in LOCK


def test_it_pins_what_the_project_asks_for() -> None:
    pins = pinned()
    for requirement in wanted():
        found = pins.get(canonicalize_name(requirement.name), [])
        assert found, f"{requirement.name} is not in requirements.lock: see CONTRIBUTING.md, Dependencies"
        assert all(requirement.specifier.contains(version(pin)) for pin in found), requirement


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
