"""Settings: what is refused and how, what production means, what `check --deploy` says."""

from __future__ import annotations

import os
import re
import runpy
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection
from kombu.exceptions import OperationalError

from platform_kit import ROOT, manage
from spak.lang.limits import MAX_BYTES
from spakweb.ground import environment as reading
from spakweb.ground.database.settings import Limits, database
from spakweb.ground.environment import BadSetting
from spakweb.ground.web.csp import policy

DOCS = (ROOT / "docs" / "settings.md").read_text()
FILE = ROOT / "platform" / "spakweb" / "settings.py"
SETTINGS = FILE.read_text()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """`read(SPAK_WEB_PORT="0")`: the settings that a process with these variables would have."""
    for name in [name for name in os.environ if name.startswith("SPAK_")]:
        monkeypatch.delenv(name)

    def run(**more: str) -> dict[str, Any]:
        for name, value in {"SPAK_WEB_DATA": str(tmp_path / "data"), **more}.items():
            monkeypatch.setenv(name, value)
        return runpy.run_path(str(FILE))

    return run


def documented() -> dict[str, str]:
    """The production settings that docs/settings.md shows."""
    block = DOCS.split("## In production")[1].split("```")[1]
    found = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
    return {key.removeprefix("export ").strip(): value.strip().strip('"') for key, value in found.items()}


def test_the_documented_production_settings_have_no_warning(tmp_path: Path) -> None:
    told = documented()
    assert told.pop("SPAK_WEB_SECRET_KEY_FILE")
    done = manage(
        tmp_path, "check", "--deploy", "--fail-level", "WARNING", **told,
        SPAK_WEB_SECRET_KEY="k3y-" + "abcdefghij0123456789" * 3,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "no issues (0 silenced)" in done.stdout


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"SPAK_WEB_PRODUCTION": "maybe"}, "SPAK_WEB_PRODUCTION"),
        ({"SPAK_WEB_PRODUCTION": "yes"}, "SPAK_WEB_SECRET_KEY"),
        ({"SPAK_WEB_PRODUCTION": "yes", "SPAK_WEB_SECRET_KEY": "short"}, "SPAK_WEB_SECRET_KEY"),
        ({"SPAK_WEB_PRODUCTION": "yes", "SPAK_WEB_SECRET_KEY": "abcdefghij" * 6}, "SPAK_WEB_HOSTS"),
        ({"SPAK_WEB_PRODUCTION": "yes", "SPAK_WEB_DEMO": "yes"}, "SPAK_WEB_DEMO"),
        ({"SPAK_WEB_HOSTS": "*"}, "SPAK_WEB_HOSTS"),
        ({"SPAK_WEB_ORIGINS": "spak.example.org"}, "SPAK_WEB_ORIGINS"),
        ({"SPAK_WEB_PORT": "0"}, "SPAK_WEB_PORT"),
        ({"SPAK_WEB_PORT": "9" * 400}, "SPAK_WEB_PORT"),
        ({"SPAK_WEB_REDIS_URL": "http://x"}, "SPAK_WEB_REDIS_URL"),
        ({"SPAK_WEB_DATABASE_URL": "mysql://x/y"}, "SPAK_WEB_DATABASE_URL"),
        ({"SPAK_WEB_OIDC_ISSUER": "https://x"}, "SPAK_WEB_OIDC_CLIENT_ID"),
        ({"SPAK_WEB_DATA": "/proc/nowhere"}, "SPAK_WEB_DATA"),
        ({"SPAK_WEB_UPLOAD_KB": str(MAX_BYTES // 1024 + 1)}, "SPAK_WEB_UPLOAD_KB"),
        ({"SPAK_WEB_LAW": "/proc/nowhere/law.mg"}, "SPAK_WEB_LAW"),
        ({"SPAK_WEB_LAW": str(FILE)}, "SPAK_WEB_LAW"),
        ({"SPAK_WEB_LAW": f"{FILE},{FILE}"}, "SPAK_WEB_LAW"),
        ({"SPAK_WEB_PACKAGES": "acme-of-nobody"}, "SPAK_WEB_PACKAGES"),
        ({"SPAK_WEB_JOB_QUEUE": "checks,default"}, "SPAK_WEB_JOB_QUEUE"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_value_is_refused(read: Callable[..., Any], more: dict[str, str], name: str) -> None:
    with pytest.raises(BadSetting) as refused:
        read(**more)
    said = str(refused.value)
    assert said.startswith(name)
    assert "expected: " in said
    assert "fix: " in said


def test_a_bad_value_stops_the_start(tmp_path: Path) -> None:
    done = manage(tmp_path, "check", SPAK_WEB_PORT="0")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("manage.py: SPAK_WEB_PORT")
    assert "expected: " in done.stderr
    assert "fix: " in done.stderr


def test_a_certificate_of_redis_is_asked_for(read: Callable[..., Any]) -> None:
    assert read(SPAK_WEB_REDIS_URL="rediss://h:6379/0")["CELERY_BROKER_USE_SSL"] == {
        "ssl_cert_reqs": ssl.CERT_REQUIRED
    }
    assert "CELERY_BROKER_USE_SSL" not in read(SPAK_WEB_REDIS_URL="redis://h:6379/0")


def test_who_starts_a_run_does_not_wait_for_a_redis_that_is_away(
    read: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "redis://127.0.0.1:1/0"
    options = read(SPAK_WEB_REDIS_URL=url)["CELERY_BROKER_TRANSPORT_OPTIONS"]
    monkeypatch.setattr("kombu.utils.functional.sleep", lambda pause: pytest.fail("it tries again"))
    with pytest.raises(OperationalError):
        Connection(url, transport_options=options).default_channel  # noqa: B018


def test_every_setting_is_documented() -> None:
    read = set(re.findall(r'"(SPAK_WEB_[A-Z_]+)"', SETTINGS))
    assert read == {name for name in re.findall(r"`(SPAK_WEB_[A-Z_]+)`", DOCS) if not name.endswith("_FILE")}


def test_the_typed_functions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("X", " On ")
    assert reading.flag("X", False)
    monkeypatch.setenv("X", "")
    assert not reading.flag("X", False)
    assert reading.number("X", 7, 1, 9) == 7
    assert reading.words("X", "a, b,,") == ["a", "b"]
    for value in ("-1", "10", "1.5", "१", "1_0"):
        monkeypatch.setenv("X", value)
        with pytest.raises(BadSetting):
            reading.number("X", 7, 1, 9)
    secret = tmp_path / "secret"
    secret.write_text("hidden\n")
    monkeypatch.setenv("X", "")
    monkeypatch.setenv("X_FILE", str(secret))
    assert reading.text("X") == "hidden"
    monkeypatch.setenv("X", "also")
    with pytest.raises(BadSetting) as refused:
        reading.text("X")
    assert "hidden" not in str(refused.value)
    assert "also" not in str(refused.value)


@pytest.mark.parametrize("kind", ["missing", "empty", "binary"])
def test_a_secret_file_that_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "secret"
    if kind != "missing":
        file.write_bytes(b"" if kind == "empty" else b"\xff\xfe\x00")
    monkeypatch.setenv("X_FILE", str(file))
    with pytest.raises(BadSetting, match="X_FILE"):
        reading.text("X")


@pytest.mark.parametrize(
    "address",
    ["postgres://", "postgresql:///", "mysql://a/b", "sqlite://x", "postgres://h:port/x", "http://[::1",
     "postgres://h/x?sslmode", "postgres://h/x?service=secret", "postgres://h/x?sslmode=require&secret=1"],
)  # fmt: skip
def test_a_bad_database_is_refused_without_its_password(address: str, tmp_path: Path) -> None:
    with pytest.raises(BadSetting) as refused:
        database(address.replace("://", "://u:secret@") if "://h" in address else address, tmp_path)
    assert "secret" not in str(refused.value)


def test_databases(tmp_path: Path) -> None:
    found = database("postgresql://me:p%40ss@db.example:5433/spak", tmp_path)
    assert (found["USER"], found["PASSWORD"], found["HOST"], found["PORT"], found["NAME"]) == (
        "me", "p@ss", "db.example", "5433", "spak",
    )  # fmt: skip
    assert "sslmode" not in found["OPTIONS"]
    said = found["OPTIONS"]["options"]
    assert (
        "-c lock_timeout=5000 -c statement_timeout=60000 -c idle_in_transaction_session_timeout=8000" in said
    )
    assert found["OPTIONS"]["tcp_user_timeout"] == 30000 and found["OPTIONS"]["keepalives_count"] == 3
    none = database("postgresql://h/spak", tmp_path, Limits(0, 0, 0, 0))["OPTIONS"]
    assert none == {"connect_timeout": 10}
    over_tls = database("postgresql://u:p@h/spak?sslmode=verify-full&sslrootcert=%2Fca.pem", tmp_path)
    assert over_tls["NAME"] == "spak" and over_tls["OPTIONS"]["sslmode"] == "verify-full"
    assert over_tls["OPTIONS"]["sslrootcert"] == "/ca.pem"
    own = database("", tmp_path)
    assert own["NAME"] == str(tmp_path / "spak.sqlite3")
    assert own["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "synchronous=FULL" in own["OPTIONS"]["init_command"]


@pytest.mark.parametrize("command", ["migrate", "rebuild", "up"])
def test_bringing_the_tables_up_to_date_may_take_any_time(
    command: str, read: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration of many rows thinks between its statements, on a busy host for seconds."""
    more = {"SPAK_WEB_DATABASE_URL": "postgresql://h/spak", "SPAK_WEB_DATABASE_IDLE_S": "2"}
    monkeypatch.setattr("sys.argv", ["manage.py", "serve"])
    said = read(**more)["DATABASES"]["default"]["OPTIONS"]["options"]
    assert "idle_in_transaction_session_timeout=2000" in said and "statement_timeout=60000" in said
    monkeypatch.setattr("sys.argv", ["manage.py", command])
    said = read(**more)["DATABASES"]["default"]["OPTIONS"]["options"]
    assert "idle_in" not in said and "statement" not in said and "lock_timeout=5000" in said


def test_the_policy_of_content(client: Any, db: None) -> None:
    header = client.get("/account/login/")["Content-Security-Policy"]
    assert "default-src 'none'" in header
    assert "unsafe" not in header
    assert "nonce" not in header
    assert policy({"style-src": ["'self'"]}, "abc") == "style-src 'self' 'nonce-abc'"


def test_the_key_is_made_once_and_kept_private(read: Callable[..., Any], tmp_path: Path) -> None:
    keys = {read()["SECRET_KEY"] for _ in range(2)}
    file = tmp_path / "data" / "secret_key"
    assert keys == {file.read_text()}
    assert len(file.read_text()) > 50
    assert file.stat().st_mode & 0o077 == 0


def test_migrations_are_made(db: None) -> None:
    from django.core.management import call_command

    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


def test_forms_may_lead_to_the_issuer_and_to_where_it_asks(read: Callable[..., Any]) -> None:
    client = {"SPAK_WEB_OIDC_CLIENT_ID": "spak", "SPAK_WEB_OIDC_CLIENT_SECRET": "secret"}
    found = read(SPAK_WEB_OIDC_ISSUER="https://id.example/realms/a;b", **client)
    assert found["SECURE_CSP"]["form-action"] == ["'self'", "https://id.example"]
    found = read(SPAK_WEB_OIDC_SIGN_IN="https://login.example:8443/x y", **client)
    assert found["SECURE_CSP"]["form-action"] == [
        "'self'",
        "https://id.example",
        "https://login.example:8443",
    ]


def test_people_behind_a_proxy_do_not_share_their_limits(read: Callable[..., Any]) -> None:
    assert read()["ALLAUTH_TRUSTED_PROXY_COUNT"] == 0
    found = read(SPAK_WEB_BEHIND_PROXY="true", SPAK_WEB_REDIS_URL="redis://redis:6379/0")
    assert found["ALLAUTH_TRUSTED_PROXY_COUNT"] == 1
    assert found["CACHES"]["default"]["LOCATION"] == "redis://redis:6379/0"


def test_the_operators_law_is_read_at_the_start(read: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "site.mg").write_text("reachable_kind(/private).\n")
    (tmp_path / "more.mg").write_text("permitted(A) :- tool(A, /deploy).\n")
    found = read(SPAK_WEB_LAW=f"{tmp_path / 'site.mg'}, {tmp_path / 'more.mg'}")
    assert list(found["LAW"]) == ["site.mg", "more.mg"] and "reachable_kind" in found["LAW"]["site.mg"]
