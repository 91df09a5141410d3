"""spak.toml and SPAK_*: what is set has an effect, what is wrong is told, and the page names everything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli_calls import ASK, HELLO, Cli
from spak import config

PAGE = (Path(__file__).resolve().parents[2] / "docs/configuration.md").read_text(encoding="utf-8")


def test_the_page_names_every_setting_and_no_other() -> None:
    listed = set(re.findall(r"^\| `\[(\w+)\]` \| `(\w+)` \|", PAGE, re.MULTILINE))
    assert listed == {(table, key) for table, keys in config._KNOWN.items() for key in keys}


def test_the_page_names_every_variable_and_no_other() -> None:
    listed = set(re.findall(r"`(SPAK_\w+)`", PAGE))
    read = {*config._ENVIRONMENT, *read_by_the_command()}
    assert listed == read
    for name, (table, key) in config._ENVIRONMENT.items():
        assert re.search(rf"^\| `\[{table}\]` \| `{key}` \| `{name}` \|", PAGE, re.MULTILINE), name


def read_by_the_command() -> set[str]:
    source = Path(config.__file__).parent / "cli"
    text = "".join(path.read_text(encoding="utf-8") for path in source.glob("*.py"))
    return set(re.findall(r'environ[.\w]*[\[(]"(SPAK_\w+)"', text))


@pytest.mark.parametrize(
    "text",
    [
        "[llm",
        "llm = 3",
        "[model]\nname = 'x'",
        "[llm]\nmodus = 'manual'",
        "[llm]\nmode = 3",
        "[execution]\nmode = 'wild'",
        "[execution]\nsteps = 'three'",
        "[execution]\nsteps = true",
        "[execution]\nsteps = -1",
        "[sandbox]\nwall_s = 'long'",
        "[sandbox]\nwall_s = 0",
        "[sandbox]\nwall_s = nan",
        "[sandbox]\nwall_s = inf",
        "[sandbox]\nmemory_mib = -5",
        "[sandbox]\nprocesses = 0",
        "[sandbox]\noutput_kib = 0",
        "[sandbox]\nbinds = [3]",
        "[sandbox]\nbinds = ['relative']",
        "[sandbox]\nbinds = ['/no/such/folder']",
        "[runs]\ndir = ''",
        "\x00",
        f"[llm]\nseed = {'9' * 5000}",
        f"[llm]\nmodel = {'[' * 3000}{']' * 3000}",
    ],
)
def test_a_bad_file_stops_before_a_run(cli: Cli, tmp_path: Path, text: str) -> None:
    (tmp_path / "spak.toml").write_text(text)
    for argv in (("run", HELLO), ("runs",), ("show",)):
        done = cli(*argv, "--json")
        assert (done.code, done.error) == (2, "usage.config"), argv
    assert not (tmp_path / ".spak").exists()


def test_files_that_are_no_toml(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "spak.toml").write_bytes(b"\xff\xfe")
    assert cli("runs", "--json").error == "usage.config"
    (tmp_path / "spak.toml").unlink()
    (tmp_path / "spak.toml").mkdir()
    assert cli("runs", "--json").error == "usage.config"


@pytest.mark.parametrize(
    ("name", "value", "code", "error"),
    [
        ("SPAK_EXECUTION_MODE", "wild", 2, "usage.config"),
        ("SPAK_EXECUTION_STEPS", "three", 2, "usage.config"),
        ("SPAK_EXECUTION_STEPS", "-3", 2, "usage.config"),
        ("SPAK_LLM_MODE", "nobody", 7, "unavailable.backend"),
        ("SPAK_SANDBOX_LAUNCHER", "nobody", 7, "unavailable.sandbox"),
    ],
)
def test_a_bad_variable_stops_before_a_run(
    cli: Cli, tmp_path: Path, name: str, value: str, code: int, error: str
) -> None:
    done = cli("run", HELLO, "--json", env={name: value})
    assert (done.code, done.error) == (code, error)
    assert not (tmp_path / ".spak").exists()


def test_an_empty_variable_is_none(cli: Cli) -> None:
    empty = dict.fromkeys(config._ENVIRONMENT, "")
    assert cli("run", HELLO, "--json", env=empty).code == 0


def test_the_environment_goes_before_the_file_and_a_flag_before_both(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "spak.toml").write_text('[runs]\ndir = "file"\n[llm]\nmode = "nobody"\n')
    (tmp_path / "ask.spak").write_text(ASK)
    assert cli("run", "ask.spak", "--json").error == "unavailable.backend"
    done = cli("run", "ask.spak", "--json", env={"SPAK_LLM_MODE": "manual", "SPAK_RUNS_DIR": "variable"})
    assert (done.code, done.json["state"]) == (4, "waiting")
    assert len(list((tmp_path / "variable").iterdir())) == 1
    done = cli("run", "ask.spak", "--json", "--backend", "manual", "--runs-dir", "flag")
    assert done.code == 4 and len(list((tmp_path / "flag").iterdir())) == 1


@pytest.mark.sandbox
def test_limits_reach_the_tools(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "spak.toml").write_text("[sandbox]\nwall_s = 0.5\nprocesses = 9\n")
    done = cli("sandbox", "probe", "--json", "--", "sleep", "30")
    assert (done.code, done.json["status"]) == (124, "timeout"), done.json["detail"]


@pytest.mark.sandbox
def test_a_bind_is_seen_inside_and_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit/tool.txt").write_text("seen")
    kit = tmp_path / "kit"
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == kit.stat().st_uid and folder != Path("/") and len(folder.parts) > 2:
            folder.chmod(folder.stat().st_mode | 0o055)
    assert cli("sandbox", "probe", "--", "cat", str(kit / "tool.txt")).code != 0
    (tmp_path / "spak.toml").write_text(f'[sandbox]\nbinds = ["{kit}"]\n')
    done = cli("sandbox", "probe", "--", "cat", str(kit / "tool.txt"))
    assert (done.code, done.out) == (0, "seen"), done.err
    assert cli("sandbox", "probe", "--", "touch", str(kit / "new")).code != 0
