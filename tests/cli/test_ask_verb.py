"""`spak ask`: the strategy and why, its run, and what it refuses. Every strategy that ships is run here, or
where ELSEWHERE says."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

import migrate_kit
from cli_calls import Cli
from cli_kit import spak
from repair_kit import CLAMP, project
from spak.strategies import shipped

RUN = {"tdd_repair", "survey", "project_init", "migrate", "migrate_django"}
ELSEWHERE = {"first_tests"}  # tests/cli/test_guarded_runs.py, with the guard that it opens


def test_every_strategy_that_ships_is_run_below() -> None:
    assert {one.name for one in shipped()} == RUN | ELSEWHERE


@pytest.mark.sandbox
def test_fix_mends_a_planted_bug(tmp_path: Path) -> None:
    folder = project(tmp_path / "work")
    code, seen = spak(tmp_path, "ask", "fix test_numbers.py", "--workspace", "work", "--json")
    assert (code, seen["state"], seen["strategy"]) == (0, "succeeded", "tdd_repair")
    assert seen["intent"] == {
        "category": "mutation", "verb": "fix", "target": "test_numbers.py", "kind": "test_file",
        "voter": "typed",
    }  # fmt: skip
    assert seen["why"]["nodes"][-1]["text"].startswith("strategy(/tdd_repair)")
    assert [check["ok"] for check in seen["repair"]["checks"]] == [True] * 5
    assert (folder / "numbers_.py").read_text() == CLAMP, "it works in a copy"
    (first,) = (path.read_text().splitlines()[0] for path in tmp_path.glob(".spak/runs/*/trace.jsonl"))
    assert json.loads(first)["body"]["rules"]["policy"]["operator"] == {"asked.mg": "guard(/symbols).\n"}
    assert spak(tmp_path, "replay", "latest", "--json")[1]["equal"]
    assert spak(tmp_path, "apply", "latest", "--check")[0] == 0


@pytest.mark.sandbox
def test_explore_prints_the_map_of_a_large_folder(cli: Cli, tmp_path: Path) -> None:
    files = {f"m{number}.py": f"def f{number}(x):\n    return x\n" for number in range(101)}
    project(tmp_path / "work", files)
    done = cli("ask", "explore", "--workspace", "work")
    assert done.code == 0, done.err
    assert "m100.py:\n  1: function f100(x)\n" in done.out and "covers: 101 indexed" in done.out
    assert "101 > 100" in done.err
    (first,) = (path.read_text().splitlines()[0] for path in tmp_path.glob(".spak/runs/*/trace.jsonl"))
    assert "operator" not in json.loads(first)["body"]["rules"]["policy"], "it changes nothing"


@pytest.mark.sandbox
def test_scaffold_begins_a_project(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    seen = cli("ask", "scaffold", "shop", "--workspace", "work", "--json").json
    assert (seen["state"], seen["strategy"]) == ("succeeded", "project_init")
    names = {"shop.spak", "shop/prices.py", "shop/tests/test_prices.py"}
    allowed = [word for name in sorted(names) for word in ("--allow-runs", name)]
    assert cli("apply", "latest", *allowed).code == 0
    made = {path.relative_to(tmp_path / "work").as_posix() for path in (tmp_path / "work").rglob("*")}
    assert names <= made
    assert cli("check", "work/shop.spak").code == 0


@pytest.mark.sandbox
def test_fix_of_a_schema_writes_a_migration_that_runs_on_the_database(cli: Cli, tmp_path: Path) -> None:
    folder = project(
        tmp_path / "work", {"schema.sql": "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT);"}
    )
    with sqlite3.connect(folder / "app.db") as db:
        db.executescript("CREATE TABLE users(id INTEGER PRIMARY KEY); INSERT INTO users VALUES (7);")
    db.close()
    done = cli("ask", "fix", "schema.sql", "--workspace", "work", "--json")
    seen = done.json
    assert (seen["state"], seen["strategy"], seen["intent"]["kind"]) == ("succeeded", "migrate", "schema")
    assert [check["ok"] for check in seen["migrate"]["checks"]] == [True] * 5
    assert cli("replay", "latest", "--json").json["equal"]
    made = [f"migrations/0001_change_users/{name}.sql" for name in ("up", "down")]
    assert cli("apply", "latest", *(word for name in made for word in ("--allow-runs", name))).code == 0
    with sqlite3.connect(folder / "app.db") as db:
        db.executescript((folder / made[0]).read_text())
        assert list(db.execute("SELECT id, name FROM users")) == [(7, None)]
    db.close()
    (folder / "schema.sql").write_text("CREATE TABLE users(name TEXT);")
    refused = cli("ask", "migrate", "schema.sql", "--workspace", "work")
    assert refused.code == 5 and "users.id (1 row) [migrate.loss]" in refused.err


@pytest.mark.sandbox
def test_migrate_of_models_has_django_write_a_migration(cli: Cli, tmp_path: Path) -> None:
    models = migrate_kit.project(tmp_path / "work") / "shop/models.py"
    models.write_text(models.read_text() + "    color = models.CharField(default='red', max_length=9)\n")
    seen = cli("ask", "migrate", "shop/models.py", "--workspace", "work", "--json").json
    assert (seen["state"], seen["strategy"]) == ("succeeded", "migrate_django")
    assert seen["intent"]["kind"] == "models"
    assert [check["ok"] for check in seen["migrate_django"]["checks"]] == [True] * 6
    assert cli("replay", "latest", "--json").json["equal"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("fix",), "ask.no_strategy", "no file of tests"),
        (("fxi", "a.py"), "ask.verb", "did you mean fix?"),
        (("refactor", "a.py"), "ask.no_strategy", "no strategy that ships serves this verb"),
    ],
)
def test_what_nothing_serves_is_refused(
    cli: Cli, tmp_path: Path, words: tuple[str, ...], code: str, said: str
) -> None:
    project(tmp_path / "work", {"a.py": "x = 1\n"})
    done = cli("ask", *words, "--workspace", "work")
    assert done.code == 5 and f"[{code}]" in done.err and said in done.err
    document = cli("ask", *words, "--workspace", "work", "--json")
    assert (document.code, document.json["strategy"]) == (5, None)
    assert document.json["refusal"]["code"] == code
    assert not (tmp_path / ".spak").exists()


def test_check_starts_nothing(cli: Cli, tmp_path: Path) -> None:
    project(tmp_path / "work")
    seen = cli("ask", "fix", "--workspace", "work", "--check", "--json").json
    assert (seen["strategy"], seen["intent"]["kind"]) == ("tdd_repair", "none")
    assert "strategy tdd_repair" in cli("ask", "/fix", "--workspace", "work", "--check").err
    assert not (tmp_path / ".spak").exists()


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("fix", "--workspace", "nowhere"), "usage.workspace"),
        (("fix", "../x"), "ask.target"),
        (("fix", "x" * 5000), "ask.target"),
        (("fix", "x/" * 2500), "ask.target"),
        (("scaffold", "a b"), "usage.arguments"),
    ],
)
def test_wrong_usage(cli: Cli, args: tuple[str, ...], code: str) -> None:
    done = cli("ask", *args)
    assert done.code == 2 and f"[{code}]" in done.err and len(done.err) < 1000


@pytest.mark.sandbox
def test_a_refused_patch_is_printed_with_what_would_help(cli: Cli, tmp_path: Path) -> None:
    wrong = "def area(w, h):\n    return 'no'\n"
    tests = "from mod import area\n\n\ndef test_a():\n    assert area(2, 3) == 6\n"
    project(tmp_path / "work", {"mod.py": wrong, "test_mod.py": tests})
    done = cli("ask", "fix", "--workspace", "work")
    assert done.code == 5 and "no patch:" in done.err and "[repair." in done.err


@pytest.mark.sandbox
def test_a_patch_that_the_guard_denies_names_the_symbol_and_both_commands(cli: Cli, tmp_path: Path) -> None:
    uses = "from numbers_ import clamp\n\n\ndef percent(x):\n    return clamp(x, 0, 100)\n"
    (project(tmp_path / "work") / "uses.py").write_text(uses)
    code, seen = spak(tmp_path, "ask", "fix", "--workspace", "work", "--json")
    assert (code, seen["refusal"]["codes"]) == (1, ["run.rollbacks"])
    assert seen["unsafe"] == {"path": "numbers_.py", "symbols": {"py:uses.py#percent": "untested"}}
    home = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    (tmp_path / "spak.toml").write_text(cli("keys", "make", "alice", env=home).out)
    done = cli("ask", "fix", "--workspace", "work")
    assert done.code == 4 and "numbers_.py: py:uses.py#percent (untested)\n" in done.err
    assert "write the tests first: spak ask generate_test numbers_.py --workspace work\n" in done.err
    assert cli(*done.err.rpartition("sign the risk: spak ")[2].split(), env=home).code == 0
