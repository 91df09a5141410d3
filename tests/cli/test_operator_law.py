"""The operator's law: `[policy] law`, and everything on the command line that judges by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_calls import Cli
from spak import config
from spak.datalog import PolicyError
from spak.errors import UsageError

STAMP = 'AGENT A LEVEL 2 { %s START -> t TASK t { step s: tool.write_file { path: "a.txt" content: "x" } } }'
DENIES = "forbidden(A) :- uses_path(A, /edits, _, P), !editable(P).\n" + 'editable("b.txt").\n'
BROKEN = "permitted(A) :- .\n"
UNKNOWN = 'allowed_program("simulate").\n'


def law(folder: Path, text: str, name: str = "law.mg") -> None:
    (folder / name).write_text(text)
    (folder / "spak.toml").write_text(f'[policy]\nlaw = ["{name}"]\n')


def code(folder: Path, **environment: str) -> str:
    """What the configuration of a folder is refused with; empty where there is a law."""
    try:
        config.law(config.settings(folder, environment))
    except (UsageError, PolicyError) as error:
        return error.code
    return ""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (UNKNOWN, ""),
        ("reachable_kind(/loopback).\n", ""),
        (BROKEN, "policy.invalid"),
        ("tool(/action, /run).\n", "policy.reserved"),
        ("Decl tool(A, B).\n", "policy.invalid"),
        ("", ""),
    ],
)
def test_a_law_loads_or_has_a_code(tmp_path: Path, text: str, wanted: str) -> None:
    law(tmp_path, text)
    assert code(tmp_path) == wanted


@pytest.mark.parametrize(
    "value", ['"law.mg"', "[1]", '[""]', '["missing.mg"]', '["."]', '["a/law.mg", "law.mg"]', "true"]
)
def test_a_setting_that_names_no_law_is_refused(tmp_path: Path, value: str) -> None:
    (tmp_path / "law.mg").write_text(UNKNOWN)
    (tmp_path / "spak.toml").write_text(f"[policy]\nlaw = {value}\n")
    assert code(tmp_path) == "usage.config"


def test_a_variable_names_files_too(tmp_path: Path) -> None:
    law(tmp_path, BROKEN)
    for name in ("a.mg", "b.mg"):
        (tmp_path / name).write_text(UNKNOWN)
    both = f"{tmp_path / 'a.mg'}:{tmp_path / 'b.mg'}"
    found = config.law(config.settings(tmp_path, {"SPAK_POLICY_LAW": both}))
    assert dict(found.operator) == {"a.mg": UNKNOWN, "b.mg": UNKNOWN}
    found = config.law(config.settings(tmp_path, {"SPAK_POLICY_LAW": f"spak:binaries:{both}:spak:flow"}))
    assert list(found.operator) == ["binaries.mg", "a.mg", "b.mg", "flow.mg"]
    assert code(tmp_path, SPAK_POLICY_LAW="") == "policy.invalid", "an empty variable counts as none"


def test_a_run_carries_the_law_and_replays_without_it(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.spak").write_text(STAMP % "")
    law(tmp_path, DENIES)
    first = cli("run", "a.spak", "--json")
    assert first.code == 5 and "policy.forbidden" in first.out
    people = cli("show", "latest", "--proof", "2")
    assert "operator/law.mg:1" in people.out, people.out
    lines = (tmp_path / ".spak/runs" / first.json["run"] / "trace.jsonl").read_text().splitlines()
    genesis = json.loads(lines[0])
    assert genesis["body"]["rules"]["policy"]["operator"] == {"law.mg": DENIES}
    for name in ("law.mg", "spak.toml"):
        (tmp_path / name).unlink()
    assert cli("replay", "latest", "--json").json["equal"] is True
    second = cli("run", "a.spak", "--json")
    assert second.code == 0, second.out


@pytest.mark.parametrize(
    "spec", ['editable("a.txt").', 'permitted(A) :- tool(A, /write_file). editable("a.txt").']
)
def test_a_spec_adds_nothing_to_the_operators_tables(cli: Cli, tmp_path: Path, spec: str) -> None:
    law(tmp_path, DENIES)
    (tmp_path / "a.spak").write_text(STAMP % f'POLICY """{spec}"""')
    for verb in ("check", "run"):
        done = cli(verb, "a.spak")
        assert done.code == 3 and "policy.closed" in done.err and "a.spak:1:" in done.err, done.err
    assert not (tmp_path / ".spak/runs").exists()


def test_a_broken_law_stops_everything_that_judges(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.spak").write_text(STAMP % "")
    law(tmp_path, BROKEN)
    for call in (("check", "a.spak"), ("run", "a.spak"), ("gate",), ("lsp",)):
        done = cli(*call)
        assert done.code == 3 and "operator/law.mg:1" in done.err, (call, done)
    assert not (tmp_path / ".spak/runs").exists()
    rows = {row["name"]: row for row in cli("doctor", "--json").json["checks"]}
    assert rows["operator's law"]["ok"] is False and "law.mg:1" in rows["operator's law"]["detail"]


def test_doctor_shows_the_law(cli: Cli, tmp_path: Path) -> None:
    law(tmp_path, UNKNOWN)
    rows = {row["name"]: row for row in cli("doctor", "--json").json["checks"]}
    assert rows["operator's law"]["ok"] is True
    assert rows["operator's law"]["detail"].endswith(config.law(config.settings(tmp_path, {})).hash)


def test_check_foresees_by_the_law(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.spak").write_text('task a { step s: tool.write_file { path: ".git/x" content: "x" } }')
    assert "lang.denied" in cli("check", "a.spak", "--strict").err
    law(tmp_path, "permitted(A) :- tool(A, /write_file).\n")
    assert cli("check", "a.spak").err.count("lang.denied") == 0


def test_the_gate_judges_by_the_law(cli: Cli, tmp_path: Path) -> None:
    line = json.dumps({"id": 1, "tool": "shell", "args": {"command": "simulate fast"}}).encode()
    assert json.loads(cli("gate", stdin=line).out)["decision"] == "ask"
    law(tmp_path, UNKNOWN)
    assert json.loads(cli("gate", stdin=line).out)["decision"] == "allow"


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("forbidden(A) :- tool(A, /run).", ("spec", "team", "operator")),
        ("permitted(A) :- tool(A, /run).", ("team", "operator")),
        ("reachable_kind(/loopback).", ("operator",)),
        ("tool(/action, /run).", ()),
    ],
)
def test_policy_check_says_at_which_level_a_text_loads(
    cli: Cli, tmp_path: Path, text: str, levels: tuple[str, ...]
) -> None:
    (tmp_path / "base.mg").write_text(text + "\n")
    for level in ("spec", "team", "operator"):
        done = cli("policy", "check", "base.mg", "--as", level, "--json")
        assert (done.code == 0) is (level in levels) and done.json["ok"] is (level in levels)
        codes = {item["code"] for item in done.json["diagnostics"] if item["severity"] == "error"}
        assert codes <= {"policy.closed", "policy.reserved"} and bool(codes) is (level not in levels)


def test_questions_to_a_policy_see_the_law(cli: Cli, tmp_path: Path) -> None:
    law(tmp_path, "permitted(A) :- tool(A, /deploy).\n")
    (tmp_path / "facts.mg").write_text("tool(/action, /deploy).\n")
    ask = ("facts.mg", "--query", "permitted(/action)")
    assert cli("policy", "why", *ask).code == 1
    assert "operator/law.mg:1" in cli("policy", "why", *ask, "--law").out
    assert cli("policy", "eval", *ask, "--law").out == "permitted(/action)\n"
    assert (
        "operator/law.mg:1" in cli("policy", "why-not", "facts.mg", "--query", "permitted(/x)", "--law").out
    )


def test_a_run_does_not_change_the_law_of_later_ones(cli: Cli, tmp_path: Path) -> None:
    """What a later run obeys comes home when a person says so."""
    spec = 'task T { step s: tool.write_file { path: "law.mg", content: "permitted(A) :- tool(A, _)." } }'
    (tmp_path / "a.spak").write_text(spec)
    law(tmp_path, UNKNOWN)
    (tmp_path / "law.mg").write_text("")
    done = cli("run", "a.spak", "--workspace", ".", "--in-place", "--json")
    assert [row["class"] for row in done.json["apply"]["held"]] == ["runs"]
    assert done.code == 4 and (tmp_path / "law.mg").read_text() == ""
