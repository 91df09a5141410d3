"""The bench's own arithmetic: verdicts against aims, and modules that say what they measure."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_main", BENCH / "__main__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("ours", "floor", "aim", "verdict"),
    [
        (1.1, 1.0, "<= 1.1", "PASS"),
        (1.2, 1.0, "<= 1.1", "MISSED"),
        (20_000, None, ">= 20,000", "PASS"),
        (0.5, 1.0, ">= 0.8 of floor", "MISSED"),
        (0.9, 1.0, ">= 0.8 of floor, 2 MB/s", "PASS"),
        (0.5, 1.0, "< 0.5", "MISSED"),
        (7, 7, "", ""),
        (None, None, "<= 1.5 of floor", "NOT MEASURED"),
    ],
)
def test_a_verdict_compares_with_the_aim(
    bench: ModuleType, ours: float | None, floor: float | None, aim: str, verdict: str
) -> None:
    assert bench.verdict({"name": "x", "ours": ours, "floor": floor, "aim": aim}) == verdict


def test_an_aim_that_is_no_comparison_is_an_error(bench: ModuleType) -> None:
    with pytest.raises(ValueError, match="about 3"):
        bench.verdict({"name": "x", "ours": 1, "floor": 1, "aim": "about 3"})


def test_a_table_has_a_line_per_figure(bench: ModuleType) -> None:
    row = {
        "name": "replay",
        "ours": 32547.0,
        "floor": None,
        "unit": "records/s",
        "aim": ">= 1",
        "verdict": "PASS",
    }
    lines = bench.table([row]).splitlines()
    assert len(lines) == 2
    assert lines[1].split() == ["replay", "32,547", "-", "records/s", ">=", "1", "PASS"]


def test_a_quick_bench_does_not_say_that_nothing_missed(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPAK_BENCH_QUICK", "1")
    row = {"name": "slow", "ours": 3, "floor": 1, "unit": "ms", "aim": "<= 2"}
    told = bench.summary([{**row, "verdict": bench.verdict(row)}], [])
    assert told == "\n1 figures, held to no aim, 0 not measured"


def test_what_is_missed_is_told_again(bench: ModuleType) -> None:
    figures: list[tuple[str, float | None, str]] = [
        ("fast", 1, "<= 2"),
        ("slow", 3, "<= 2"),
        ("away", None, "<= 2"),
    ]
    rows = [{"name": name, "ours": ours, "floor": 1, "unit": "ms", "aim": aim} for name, ours, aim in figures]
    rows = [{**row, "verdict": bench.verdict(row)} for row in rows]
    told = bench.summary(rows, ["broken"]).splitlines()
    assert told[1] == "3 figures, 1 missed, 1 not measured"
    assert told[2:] == [
        "  MISSED  slow: <= 2, 3 beside 1 ms",
        "  NOT MEASURED  away: <= 2",
        "  FAILED  bench_broken: its words are above",
    ]


@pytest.mark.parametrize("failure", ["raise ValueError", "import time; time.sleep(60)", "print('no rows')"])
def test_a_module_that_fails_costs_no_other(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    """In a folder that has the bench with two modules of its own."""
    row = {"name": "x", "ours": 1, "floor": 1, "unit": "ms", "aim": ""}
    for name, text in (
        ("__init__", ""),
        ("__main__", (BENCH / "__main__.py").read_text()),
        ("sizes", (BENCH / "sizes.py").read_text()),
        ("bench_bad", f"def rows():\n    {failure}\n"),
        ("bench_good", f"def rows():\n    return [{row}]\n"),
    ):
        (tmp_path / "bench").mkdir(exist_ok=True)
        (tmp_path / "bench" / f"{name}.py").write_text(text)
    monkeypatch.setattr(bench, "HERE", tmp_path / "bench")
    monkeypatch.setattr(bench, "MOST_S", 0.5 if "sleep" in failure else 60)
    assert bench.measure("bad") is None
    monkeypatch.setattr(bench, "MOST_S", 60)
    assert bench.measure("good") == [{"bench": "good", **row, "verdict": ""}]


def test_figures_of_a_story(record_property: Any) -> None:
    """What a story measured of itself reaches the table; the inner test is this one."""
    for name, value in (("seconds", 61), ("setup_s", 30), ("megabytes", 200)):
        record_property(name, value)
    if "--fresh-clone" in sys.argv:
        return
    start = importlib.import_module("bench.bench_start")
    rows = start.first_hour("tests/test_bench.py::test_figures_of_a_story")
    assert [row["ours"] for row in rows] == [61, 30, 200]


def test_a_module_that_has_ended_is_ended_again(bench: ModuleType) -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"], start_new_session=True)
    process.wait()
    bench._end(process)


def test_the_platform_does_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `platform` and `peers` measure, with one run of two steps."""
    code = "from bench import bench_platform as b; b.RUNS = b.THREADS = 1; b.STEPS = 2; print(b.whole())"
    monkeypatch.syspath_prepend(str(BENCH.parent))
    environment = importlib.import_module("bench.bench_platform")._environment(tmp_path, {})
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=BENCH.parent, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "'steps_per_s': " in done.stdout


# ---- peers


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH.parent))
    return importlib.import_module("bench.bench_peers")


def test_systems_work_in_turn_and_each_begins_a_round(peers: ModuleType, tmp_path: Path) -> None:
    turns: list[tuple[str, str]] = []

    def turn(name: str) -> Any:
        return lambda folder, address: turns.append((folder.name.partition("-")[0], name)) or len(turns)

    named = {name: turn(name) for name in "abc"}
    seen = peers.measured(named, {"SQLite": ""}, tmp_path, rounds=3)
    assert "".join(name for _, name in turns) == "abcbcacab"
    assert seen == {"SQLite": {"a": [1, 6, 8], "b": [2, 4, 9], "c": [3, 5, 7]}}


def test_ratios_compare_turns_of_one_round(bench: ModuleType, peers: ModuleType) -> None:
    speeds = {peers.OURS: [100, 10, 300], peers.STEPS_ONLY: [200, 40, 600], "Other 1.0": [50, 10, 100]}
    rows = {row["name"]: row["ours"] for row in peers.compared("SQLite", speeds)}
    assert rows == {
        "SQLite: SPAK, 200 runs of 20 steps (10 to 300 in 3 rounds)": 100,
        "SQLite: SPAK, steps only, 200 runs of 20 steps (40 to 600 in 3 rounds)": 200,
        "SQLite: Other 1.0, 200 runs of 20 steps (10 to 100 in 3 rounds)": 50,
        "SQLite: SPAK, over Other 1.0 (1 to 3 in 3 rounds)": 2,
        "SQLite: SPAK, steps only, over Other 1.0 (4 to 6 in 3 rounds)": 4,
    }
    assert all(bench.verdict(row) in ("", "PASS") for row in peers.compared("SQLite", speeds))


def test_packages_are_installed_once_for_each_lock(
    peers: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(peers.venv, "create", lambda place, **options: (place / "bin").mkdir(parents=True))
    monkeypatch.setattr(peers.subprocess, "run", lambda words, **options: calls.append(words))
    lock, place = tmp_path / "a.lock", tmp_path / "place"
    for text, installs in (("one", 1), ("one", 1), ("two", 2)):
        lock.write_text(text)
        assert peers.installed(place, lock) == place / "bin" / "python"
        (place / "bin" / "python").touch()
        assert len(calls) == installs
    assert calls[-1][-3:] == ["--require-hashes", "-r", str(lock)]


def test_an_interrupted_installation_is_made_again(
    peers: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(words: list[str], **options: object) -> None:
        raise subprocess.CalledProcessError(1, words)

    monkeypatch.setattr(peers.venv, "create", lambda place, **options: (place / "bin").mkdir(parents=True))
    monkeypatch.setattr(peers.subprocess, "run", fails)
    (tmp_path / "a.lock").write_text("one")
    for _ in range(2):
        with pytest.raises(subprocess.CalledProcessError):
            peers.installed(tmp_path / "place", tmp_path / "a.lock")
        (tmp_path / "place" / "bin" / "python").touch()


def test_without_a_name_nothing_is_installed(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    monkeypatch.setattr(bench, "measure", lambda name: measured.append(name) or [])
    monkeypatch.setattr(sys, "argv", ["bench"])
    assert bench.main() == 0
    assert {"platform", "run"} <= set(measured) and "peers" not in measured


def test_versions_are_those_of_the_lock(peers: ModuleType) -> None:
    for package in peers.PEERS.values():
        assert peers._version(package)[0].isdigit()


@pytest.mark.parametrize(("aim", "failing", "code"), [("20", False, 0), ("25", False, 1), ("20", True, 1)])
def test_whole_demos_and_their_median(
    aim: str, failing: bool, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each with its interval, then the median beside the aim; a failed one is not left out silently."""
    monkeypatch.syspath_prepend(str(BENCH.parent))
    demos = importlib.import_module("bench.demos")
    speedups = {1: 26.5, 2: 14.2, 3: 23.0, 4: 30.0}

    def whole(seed: int) -> dict[str, Any]:
        if failing and seed == 4:
            raise RuntimeError("the demo ended with 7")
        metrics = {
            "speedup": speedups[seed], "speedup_low": 13.0, "speedup_high": 27.4, "spread_ppm": 41_000,
            "baseline_spread_ppm": 12_000, "baseline_ms": 22.0, "best_ms": 0.9, "evaluations": 60,
        }  # fmt: skip
        return {"metrics": metrics, "cpu_s": 90.0, "wall_s": 200.0}

    monkeypatch.setattr(demos, "whole", whole)
    monkeypatch.setattr(sys, "argv", ["demos", "--aim", aim, "4" if failing else "3"])
    assert demos.main() == code
    said = capsys.readouterr()
    assert "seed  2   14.2x (13.0 to 27.4)  22.00 to 0.900 ms, spread 4.1 %, 60 evaluations" in said.out
    assert f"median of 3: 23.0x over naive -O2 (floor 1), from 14.2 to 26.5; aim >= {aim}: " in said.out
    assert ("seed 4: the demo ended with 7" in said.err) == failing


def test_the_walls_of_a_step_are_on_and_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from spak.runner.secret_guard import SecretGuard
    from spak.workspace.lock import WorkspaceLock

    step_walls = importlib.import_module("bench.step_walls")
    bench_run = importlib.import_module("bench.bench_run")
    met: list[str] = []
    look, compare = SecretGuard.look, WorkspaceLock._check
    monkeypatch.setattr(
        SecretGuard, "look", lambda *given, **more: (met.append("look"), look(*given, **more))
    )
    monkeypatch.setattr(WorkspaceLock, "_check", lambda *given: (met.append("fence"), compare(*given)))
    with step_walls._walls():
        bench_run.run(tmp_path, "change", 2, mark="-with")
    assert {"look", "fence"} <= set(met)
    assert int((tmp_path / "change-2-with/store/fence").read_text()) == step_walls.FENCE
    met.clear()
    with step_walls._no_walls():
        bench_run.run(tmp_path, "change", 2, mark="-without")
    assert met == []
    monkeypatch.setattr(step_walls, "PAIRS", 3)
    monkeypatch.setattr(step_walls, "STEPS", 2)
    middle, least, most = step_walls.cpu(tmp_path, "write")
    assert 0 < least <= middle <= most


@pytest.mark.parametrize(("count", "rank"), [(3, 1), (6, 1), (9, 2), (15, 4), (20, 6), (25, 8)])
def test_the_interval_of_a_median_is_that_of_the_published_ranks(count: int, rank: int) -> None:
    bench_eval = importlib.import_module("bench.bench_eval")
    seen = [float(number) for number in range(count, 0, -1)]
    assert bench_eval.interval(seen) == (rank, count + 1 - rank)
