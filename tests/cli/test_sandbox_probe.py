"""`spak sandbox probe`: one command as a tool would run it; its exit code, its output, its limits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_calls import Cli, gone

DOCUMENT = {"launcher", "status", "exit", "stdout", "stderr", "wall_ms", "cpu_ms", "detail"}

pytestmark = pytest.mark.sandbox


@pytest.mark.parametrize("code", [0, 1, 2, 3, 7, 124, 125, 255])
def test_the_exit_code_is_the_commands(cli: Cli, code: int) -> None:
    done = cli("sandbox", "probe", "--launcher", "restricted", "--", "sh", "-c", f"exit {code}")
    assert done.code == code


def test_output_comes_through_and_nothing_else(cli: Cli) -> None:
    done = cli("sandbox", "probe", "--", "sh", "-c", "echo out; echo err >&2")
    assert (done.code, done.out, done.err) == (0, "out\n", "err\n")


def test_the_document(cli: Cli) -> None:
    done = cli("sandbox", "probe", "--json", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.code, set(done.json)) == (3, DOCUMENT)
    found = {name: done.json[name] for name in ("launcher", "status", "exit", "stdout", "stderr")}
    assert found == {
        "launcher": "restricted", "status": "exited", "exit": 3, "stdout": "out\n", "stderr": "err\n",
    }  # fmt: skip


def test_flags_behind_the_dashes_are_the_commands(cli: Cli) -> None:
    done = cli("sandbox", "probe", "--", "echo", "--json", "--launcher", "x", "-h", "--", "--workspace")
    assert (done.code, done.out) == (0, "--json --launcher x -h -- --workspace\n")


def test_a_command_that_is_not_there_ends_as_in_a_shell(cli: Cli) -> None:
    done = cli("sandbox", "probe", "--json", "--", "no-such-program-anywhere")
    assert (done.code, done.json["exit"]) == (127, 127)
    assert "no-such-program-anywhere" in done.json["stderr"]
    assert cli("sandbox", "probe", "--", "/etc/passwd").code == 126


def test_125_when_the_launcher_could_not_start_it(cli: Cli) -> None:
    done = cli("sandbox", "probe", "--json", "--", "echo", "x" * 300_000)
    assert (done.code, done.json["status"]) == (125, "launcher")
    assert done.json["detail"]
    people = cli("sandbox", "probe", "--", "echo", "x" * 300_000)
    assert people.code == 125 and people.out == "" and "spak: launcher: " in people.err


def test_a_death_by_signal(cli: Cli) -> None:
    done = cli("sandbox", "probe", "--json", "--", "sh", "-c", "kill -SEGV $$")
    assert (done.code, done.json["status"]) == (139, "crash")


def test_a_command_that_does_not_end(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "spak.toml").write_text("[sandbox]\nwall_s = 0.5\n")
    marker = "86399.125"
    done = cli("sandbox", "probe", "--json", "--", "sleep", marker)
    assert (done.code, done.json["status"]) == (124, "timeout")
    assert gone(f"sleep {marker}")


def test_the_workspace_is_the_folder_that_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/given.txt").write_text("given")
    code = "import os; print(open('given.txt').read()); open('made.txt', 'w').write('made')"
    done = cli("sandbox", "probe", "--workspace", "ws", "--", "python3", "-c", code)
    assert (done.code, done.out) == (0, "given\n"), done.err
    assert (tmp_path / "ws/made.txt").read_text() == "made"
    for missing in ("missing", "ws/given.txt"):
        wrong = cli("sandbox", "probe", "--workspace", missing, "--json", "--", "true")
        assert wrong.code == 2 and wrong.error in ("usage.workspace", "usage.arguments")


def test_without_a_workspace_it_works_in_an_empty_one(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    done = cli("sandbox", "probe", "--", "ls", "-A")
    assert (done.code, done.out) == (0, "")


def test_bytes_that_are_no_text(cli: Cli) -> None:
    done = cli("sandbox", "probe", "--json", "--", "printf", "\\377\\376ok")
    assert done.json["stdout"].endswith("ok") and json.dumps(done.json)


def test_no_command_is_wrong_usage(cli: Cli) -> None:
    done = cli("sandbox", "probe", "--json")
    assert (done.code, done.error) == (2, "usage.arguments")


@pytest.mark.parametrize("launcher", ["restricted"])
def test_files_of_secrets_are_masked_and_no_setuid_mode_is_made(
    cli: Cli, tmp_path: Path, launcher: str
) -> None:
    for folder in (".ssh", ".m2"):
        (tmp_path / "ws" / folder).mkdir(parents=True)
    others = ("env.bak", ".env1", "tokens.json", ".m2/settings.xml", "secrets.yaml.j2", "prod.tfvars")
    for name in (".env", ".ssh/id_rsa", "shown.pem", *others):
        (tmp_path / "ws" / name).write_text("PASSWORD=hunter22\n")
    (tmp_path / "spak.toml").write_text('[sandbox]\nshown_secrets = ["shown.*"]\n')

    def probe(text: str) -> int:
        done = cli("sandbox", "probe", "--launcher", launcher, "--workspace", "ws", "--", "sh", "-c", text)
        return int(done.code)

    assert probe("grep -q hunter22 shown.pem && test -f .env && test -d .ssh") == 0
    for text in (
        "grep -rq hunter22 .env .ssh",
        f"grep -rq hunter22 {' '.join(others)}",
        "tar cf - .env .ssh | grep -aq hunter22",
        "cp .env copy && grep -q hunter22 copy",
        "cp /bin/sh own && chmod u+s own",
        "install -m 2755 /bin/sh group",
    ):
        assert probe(text) == 1, text
