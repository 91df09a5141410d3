"""Secrets: filled in just before a tool is called, in no record, and only where the policy lets them go."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from host_kit import PERMITS, start
from spak import config
from spak.errors import RunError, UnavailableError, UsageError
from spak.kernel.replay import replay
from spak.runner import Host, Run
from spak.runner.secrets import Secrets
from spak.secrets.redact import Redactor
from spak.secrets.secret import Secret

VALUE = "hunter2-and-more"
MAY = PERMITS + 'secret_may_go("KEY", /write, "text"). secret_may_go("KEY", /look, "text").'
ONE = 'task T { step a: tool.write { path: "a" text: "k=secret://KEY" } }'


def run_of(folder: Path, spec: str, law: str = MAY, **values: str) -> Run:
    run = start(folder, spec, law=law)
    held = {name: Secret(value) for name, value in values.items()}
    run.performer.host = replace(run.performer.host, secrets=Secrets(held), redactor=Redactor(held.values()))
    return run


def kept(folder: Path) -> bytes:
    files = [path for path in (folder / "run-1").rglob("*") if path.is_file()]
    return b"".join(path.read_bytes() for path in files if "workspace" not in path.parts)


def test_the_tool_gets_the_value_and_the_records_only_the_name(tmp_path: Path) -> None:
    spec = 'task T { step a: tool.look { text: "Bearer secret://KEY" } }'
    run = run_of(tmp_path, spec, KEY=VALUE)
    assert run.advance("full_auto") == "ended" and run.state.status == "succeeded"
    records = [record for record, _ in run.ledger.read()]
    (act,) = [record for record in records if record.kind == "act"]
    assert act.body["out"] == "Bearer [redacted:key]"
    (permit,) = [record for record in records if record.kind == "permit"]
    assert permit.body["args"] == {"text": "Bearer secret://KEY"}
    assert replay(iter(records)).difference is None
    run.close()
    assert VALUE.encode() not in kept(tmp_path) and b"secret://KEY" in kept(tmp_path)


def test_a_tool_that_writes_gets_it_too(tmp_path: Path) -> None:
    run = run_of(tmp_path, ONE, KEY=VALUE)
    assert run.advance("full_auto") == "ended"
    assert (tmp_path / "run-1/workspace/a").read_text() == f"k={VALUE}"
    run.close()


def test_the_policy_says_where_one_may_go(tmp_path: Path) -> None:
    run = run_of(tmp_path, ONE, law=PERMITS, KEY=VALUE)
    assert run.advance("full_auto") == "ended" and run.state.r7.codes == ("policy.forbidden",)
    assert not (tmp_path / "run-1/workspace/a").exists()
    run.close()


def test_a_secret_that_is_not_there_leaves_the_workspace_as_it_was(tmp_path: Path) -> None:
    run = run_of(tmp_path, ONE, OTHER=VALUE)
    assert run.advance("full_auto") == "ended" and run.state.status == "failed"
    assert run.state.r4 is not None and run.state.r4["code"] == "secret.unknown"
    assert run.state.r4["received"].startswith("there is no secret ")
    assert list((tmp_path / "run-1/workspace").iterdir()) == []
    assert replay(record for record, _ in run.ledger.read()).difference is None
    run.close()


@pytest.mark.parametrize("kind", ["paths", "hosts"])
def test_what_was_judged_by_its_name_takes_no_value(kind: str) -> None:
    secrets = Secrets({"KEY": Secret("../../etc/passwd")})
    observed: dict[str, Any] = {kind: [["x/secret://KEY", "inside"]]}
    with pytest.raises(RunError) as caught:
        secrets.filled({"path": "x/secret://KEY"}, observed)
    assert caught.value.code == "secret.judged"
    assert secrets.filled({"path": "x"}, observed) == {"path": "x"}


def test_names_are_found_as_the_policy_finds_them_and_nothing_is_filled_twice() -> None:
    secrets = Secrets({"A": Secret("secret://B"), "B": Secret("value-of-b")})
    args = {"list": ["secret://A", {"x": "'secret://B'"}], "n": 1, "secret://B": "key"}
    assert secrets.filled(args, {}) == {
        "list": ["secret://B", {"x": "'value-of-b'"}],
        "n": 1,
        "secret://B": "key",
    }
    with pytest.raises(RunError, match="no secret B&x=1"):
        secrets.filled({"url": "https://a.example/?k=secret://B&x=1"}, {})
    assert "value-of-b" not in repr(secrets)


def test_configured_ones_come_from_variables_and_private_files(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("file-value\n")
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "spak.toml").write_text(
        '[secrets]\nA = { env = "A_VAR" }\nB = { file = "key" }\nC = { env = "C_VAR" }\n'
    )
    chosen = config.settings(tmp_path, {})
    made = config.knowing(Host(), chosen, {"A_VAR": "env-value"}, tmp_path)
    assert made.secrets.filled({"x": "secret://A secret://B"}, {}) == {"x": "env-value file-value"}
    with pytest.raises(RunError, match="no secret C"):
        made.secrets.filled({"x": "secret://C"}, {})
    assert made.redactor is not None and "file-value" not in made.redactor.text("say file-value")
    (tmp_path / "key").chmod(0o644)
    with pytest.raises(UnavailableError):
        config.knowing(Host(), chosen, {}, tmp_path)
    with pytest.raises(UsageError, match="at least 6"):
        config.knowing(Host(), chosen, {"A_VAR": "short"}, tmp_path)


@pytest.mark.parametrize(
    "table",
    ["secrets = 1", "[secrets]\nA = 1", '[secrets]\n"a b" = { env = "X" }', "[secrets]\nA = { env = 1 }"],
)
def test_a_table_that_makes_no_sense_is_told(tmp_path: Path, table: str) -> None:
    (tmp_path / "spak.toml").write_text(table)
    with pytest.raises(UsageError) as caught:
        config.settings(tmp_path, {})
    assert caught.value.code == "usage.config"
