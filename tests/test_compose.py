"""compose.yaml, the Dockerfile, the settings and docs/deploy.md agree; what is hard stays hard.

It is read as YAML; compose_spec holds it to the compose specification, compose_lint to what is known to be
dangerous, and the rest of the tests to each other what a specification cannot know. No engine is asked.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyCompose

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "compose.yaml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DEPLOY = (ROOT / "docs/deploy.md").read_text()
SETTINGS = (ROOT / "docs/settings.md").read_text() + (ROOT / "docs/configuration.md").read_text()
OURS = {"setup", "web", "worker", "gpu-worker", "beat"}
SOCKET = "docker.sock"
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}
LEFT = {
    (
        "worker",
        "CL-0001",
    ),  # whoever starts sandboxes has the engine's socket: docs/deploy.md says what that means
    ("gpu-worker", "CL-0001"),
    *((name, "CL-0004") for name in OURS),  # SPAK_IMAGE names the version; the default is what was just built
    ("redis", "CL-0019"),  # without a registry no digest could be looked up
    ("db", "CL-0019"),
}
"""Findings of compose_lint that stay, and why."""


def filled(text: str) -> dict[str, Any]:
    """The file as compose has it when nothing but what must be is set in the environment."""
    text = re.sub(r"\$\{[A-Z_]+:-([^}]*)\}", r"\1", text)
    found: dict[str, Any] = yaml.safe_load(re.sub(r"\$\{[A-Z_]+:\?[^}]*\}", "given", text))
    return {key: value for key, value in found.items() if not key.startswith("x-")}


def test_it_keeps_to_the_compose_specification() -> None:
    found = PyCompose.from_json(json.dumps(filled(TEXT)))
    assert set(found.service_names()) == set(SERVICES)
    again = PyCompose.from_json(found.to_json())
    assert again == found and len(again) == len(SERVICES)


@pytest.mark.parametrize(
    ("was", "wrong"),
    [
        ("read_only: true", "read_onyl: true"),
        ("restart: unless-stopped", "restart: sometimes"),
        ("stop_grace_period: 30s", "stop_grace_period: a while"),
        ("start_period: 30s", "strat_period: 30s"),
        ("memory: 4g", "memroy: 4g"),
        ("127.0.0.1:", "127.0.0.1:ninety:"),
        ("\nservices:", "\nservcies:"),
    ],
)
def test_what_does_not_keep_to_it_is_found(was: str, wrong: str) -> None:
    assert was in TEXT
    with pytest.raises(ValueError):
        PyCompose.from_json(json.dumps(filled(TEXT.replace(was, wrong))))


def test_nothing_else_is_known_to_be_dangerous() -> None:
    line = [sys.executable, "-m", "compose_lint", "check", "--no-env", "--format", "json", "compose.yaml"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["findings"]
    assert {(item["service"], item["rule_id"]) for item in found} == LEFT, done.stderr


def test_the_services() -> None:
    assert set(SERVICES) == {*OURS, "redis", "db"}
    top = {key for key in COMPOSE if not key.startswith("x-")}
    assert top == {"name", "services", "networks", "volumes", "secrets"}


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_well_formed(name: str) -> None:
    service = SERVICES[name]
    for other, how in service.get("depends_on", {}).items():
        assert other in SERVICES and how["condition"] in CONDITIONS
        assert how["condition"] != "service_healthy" or "healthcheck" in SERVICES[other]
        assert how["condition"] != "service_completed_successfully" or SERVICES[other]["restart"] == "no"
    assert set(service["networks"]) <= set(COMPOSE["networks"])
    assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"])
    for volume in service.get("volumes", ()):
        source = volume.rpartition(":")[0]
        assert source.startswith(("/", "${")) or source.partition(":")[0] in COMPOSE["volumes"]
    if name != "setup":
        assert service["healthcheck"]["test"][0] == "CMD"
        assert service["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_hardened(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True and not re.match(r"0\b|root", service["user"])
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}
    assert service["logging"]["options"]["max-size"]
    reaches = any(SOCKET in volume for volume in service.get("volumes", ()))
    assert reaches == (name in ("worker", "gpu-worker"))
    for port in service.get("ports", ()):
        assert port.startswith("127.0.0.1:")


def test_only_what_must_be_is_reached() -> None:
    assert COMPOSE["networks"]["inside"]["internal"] is True
    outward = {name for name in SERVICES if "front" in SERVICES[name]["networks"]}
    assert outward == {"web", "worker", "gpu-worker"}
    assert {name for name in SERVICES if SERVICES[name].get("ports")} == {"web"}


def test_secrets_are_files_and_never_values() -> None:
    assert all(set(secret) == {"file"} for secret in COMPOSE["secrets"].values())
    used = {name for service in SERVICES.values() for name in service.get("secrets", ())}
    assert used == set(COMPOSE["secrets"])
    for service in SERVICES.values():
        for key, value in service.get("environment", {}).items():
            if re.search("KEY|PASSWORD|TOKEN|DATABASE_URL", key):
                assert key.endswith("_FILE") and Path(value).name in service["secrets"]
    assert "/secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    assert "install -d -m 700 secrets" in DEPLOY.splitlines()


@pytest.mark.parametrize("name", sorted(OURS))
def test_its_settings_are_those_that_are_documented(name: str) -> None:
    for key in SERVICES[name]["environment"]:
        if key.startswith("SPAK_"):
            assert f"`{key.removesuffix('_FILE')}`" in SETTINGS, key


def test_what_is_put_in_is_documented() -> None:
    asked = set(re.findall(r"\$\{([A-Z_]+)", TEXT))
    assert {word for word in asked if f"`{word}`" not in DEPLOY} == set()
    for name in (*SERVICES, *COMPOSE["secrets"]):
        assert f"`{name}`" in DEPLOY or f"secrets/{name}" in DEPLOY, name


@pytest.mark.parametrize("name, queue", [("worker", "default"), ("gpu-worker", "gpu")])
def test_each_queue_has_a_worker(name: str, queue: str) -> None:
    line = SERVICES[name]["command"]
    assert line[line.index("-Q") + 1] == queue and line[line.index("-P") + 1] == "threads"
    from spak.sandbox import LAUNCHERS

    assert SERVICES[name]["environment"]["SPAK_SANDBOX_LAUNCHER"] in LAUNCHERS


def test_the_settings_load_as_the_containers_have_them(tmp_path: Path) -> None:
    """Django itself, with the environment of `web` and the secrets that docs/deploy.md makes."""
    values = {"secret_key": "k3y-0f-many-s1gns" * 4, "database_url": "postgresql://spak:word@db:5432/spak"}
    values["worker_token"] = "a token"
    env = {"PATH": os.environ["PATH"]}
    for key, value in SERVICES["worker"]["environment"].items():
        value = re.sub(r"\$\{SPAK_DATA:-[^}]*\}", str(tmp_path), value)
        value = re.sub(r"\$\{SPAK_WEB_HOSTS:\?[^}]*\}", "spak.example.org", value)
        value = re.sub(r"\$\{[A-Z_]+:-([^}]*)\}", r"\1", value)
        if key.endswith("_FILE"):
            file = tmp_path / Path(value).name
            file.write_text(values[file.name])
            value = str(file)
        env[key] = value
    line = [
        sys.executable,
        "-W",
        "ignore",
        str(ROOT / "manage.py"),
        "check",
        "--deploy",
        "--fail-level",
        "WARNING",
    ]
    done = subprocess.run(
        line, env={**env, "TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_any_other_setting_reaches_every_part() -> None:
    for name in OURS:
        assert SERVICES[name]["env_file"] == [{"path": "./spak.env", "required": False}]
    assert "`spak.env`" in DEPLOY and "spak.env" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_dockerfile() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert all((ROOT / word).exists() for word in copied)
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert let_in == set(copied)
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users == [SERVICES["web"]["user"]]
    assert any("--require-hashes" in line for line in lines)
