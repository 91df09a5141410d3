"""The lock files: for uv and pip, whole, hashed, without the address of a package server.

requirements.lock is what users need, requirements-dev.lock what tests and linters add,
requirements-uv.lock uv.

ADR 0002 says why. requirements-telemetry.lock is what the extra of that name adds to requirements.lock.
requirements-peers.lock, requirements-strategies.lock, requirements-libraries.lock,
requirements-links.lock, requirements-repair.lock,
requirements-selection.lock, requirements-codeipi.lock, requirements-repowise.lock,
requirements-code-review-graph.lock and requirements-agents.lock have the same form; only
`make bench ARGS=NAME` of that name installs what one pins.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import spak

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("requirements.lock", "requirements-dev.lock", "requirements-uv.lock", "requirements-peers.lock",
         "requirements-telemetry.lock", "requirements-strategies.lock",
         "requirements-libraries.lock",
         "requirements-links.lock", "requirements-repair.lock", "requirements-selection.lock",
         "requirements-codeipi.lock", "requirements-repowise.lock",
         "requirements-code-review-graph.lock", "requirements-agents.lock")  # fmt: skip
LOCKS = {name: (ROOT / name).read_text() for name in NAMES}
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
ENTRY = re.compile(r"^(\S+==[^\\\n]+)((?: *\\\n +--hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)


def pinned(*locks: str) -> dict[str, list[Requirement]]:
    pins: dict[str, list[Requirement]] = {}
    for lock in locks or NAMES[:2]:
        for text, _ in ENTRY.findall(LOCKS[lock]):
            requirement = Requirement(text)
            pins.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return pins


def version(requirement: Requirement) -> str:
    return str(requirement.specifier).removeprefix("==")


def wanted(*extras: str) -> list[Requirement]:
    return [Requirement(text) for extra in extras for text in PROJECT["optional-dependencies"][extra]]


def of_users() -> list[Requirement]:
    return [*map(Requirement, PROJECT["dependencies"]), *wanted("platform", "checks", "mcp", "build")]


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_every_line_is_a_pin_or_a_hash_of_one(lock: str) -> None:
    assert ENTRY.search(lock)
    assert ENTRY.sub("", lock).strip() == ""


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_it_names_no_server(lock: str) -> None:
    assert "://" not in lock
    assert "--index" not in lock
    assert "--find-links" not in lock


PEERS, STRATEGIES, LIBRARIES, LINKS, REPAIR, SELECTION, CODEIPI, REPOWISE, REVIEW_GRAPH, AGENTS = (
    [Requirement(text) for text in SETTINGS["dependency-groups"][group]]
    for group in (
        "peers",
        "strategies",
        "libraries",
        "links",
        "repair",
        "selection",
        "codeipi",
        "repowise",
        "code-review-graph",
        "agents",
    )
)


@pytest.mark.parametrize(
    ("lock", "asked"),
    [
        ("requirements.lock", of_users()),
        ("requirements-dev.lock", wanted("dev", "local")),  # of which users have some
        ("requirements-uv.lock", [Requirement("uv")]),
        ("requirements-peers.lock", PEERS),
        ("requirements-telemetry.lock", wanted("telemetry")),
        ("requirements-strategies.lock", STRATEGIES),
        ("requirements-libraries.lock", LIBRARIES),
        ("requirements-links.lock", LINKS),
        ("requirements-repair.lock", REPAIR),
        ("requirements-selection.lock", SELECTION),
        ("requirements-codeipi.lock", CODEIPI),
        ("requirements-repowise.lock", REPOWISE),
        ("requirements-code-review-graph.lock", REVIEW_GRAPH),
        ("requirements-agents.lock", AGENTS),
    ],
    ids=LOCKS,
)
def test_it_pins_what_is_asked_for(lock: str, asked: list[Requirement]) -> None:
    pins = pinned(*NAMES[:2]) if lock == "requirements-dev.lock" else pinned(lock)
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


@pytest.mark.parametrize("locks", [("requirements.lock",), NAMES[:2]], ids=["users", "all"])
def test_it_is_complete_here(locks: tuple[str, ...]) -> None:
    """Everything that the pinned packages need on this machine is pinned too, so nothing floats."""
    pins = pinned(*locks)
    for name in pins:
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # pinned for another system
        for need in map(Requirement, needs):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                assert canonicalize_name(need.name) in pins, f"{name} needs {need.name}"


def test_telemetry_is_what_the_tests_have() -> None:
    users, added = pinned("requirements.lock"), pinned("requirements-dev.lock")
    for name, pins in pinned("requirements-telemetry.lock").items():
        assert name not in users
        assert set(map(version, pins)) <= set(map(version, added[name])), name


def test_tests_add_and_change_nothing() -> None:
    """What both files name, for different systems, has the same versions."""
    users, added = (pinned(lock) for lock in NAMES[:2])
    for name in users.keys() & added.keys():
        assert set(map(version, added[name])) <= set(map(version, users[name])), name
        assert not set(map(str, added[name])) & set(map(str, users[name])), f"{name} is listed twice"


HEAVY = {
    "playwright",
    "xllamacpp",
    "mypy",
    "hypothesis",
    "agentdojo",
    "cedarpy",
    "datalog-conformance",
    "openai",
}


def test_users_get_no_tools_of_the_tests() -> None:
    assert not HEAVY & pinned("requirements.lock").keys()


def test_what_our_code_imports_is_what_users_have() -> None:
    """Except xllamacpp and opentelemetry, which are optional, and lark, which makes the tables of the
    parser (ADR 0004)."""
    optional = {"lark", "xllamacpp", "opentelemetry"}
    users = pinned("requirements.lock")
    owners = metadata.packages_distributions()
    missing: dict[str, str] = {}
    for path in [*(ROOT / "agents").rglob("*.py"), *(ROOT / "platform").rglob("*.py"), ROOT / "manage.py"]:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            else:
                continue
            for top in {name.partition(".")[0] for name in names} - optional - {"spak", "spakweb"}:
                if top not in sys.stdlib_module_names and not any(
                    canonicalize_name(owner) in users for owner in owners.get(top, ())
                ):
                    missing[top] = str(path.relative_to(ROOT))
    assert not missing


def test_what_is_installed_is_what_is_pinned() -> None:
    for name, requirements in pinned().items():
        for pin in requirements:
            if pin.marker is None or pin.marker.evaluate():
                assert metadata.version(name) == version(pin), f"{name}: run make setup"


def test_the_package_has_one_version() -> None:
    assert PROJECT["version"] == spak.__version__ == metadata.version("spak")
