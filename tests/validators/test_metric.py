"""The Metric validator: its line, its bounds, its pairs, and commands and candidates that lie."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from spak.config import catalog
from spak.kernel.metric.decision import decide
from spak.lang import check, parse
from spak.lang.diagnostics import Diagnostic
from spak.ports import Measurement, Outcome, Stream, Subject
from spak.validators import metric
from spak.validators.cpu_build import Workshop
from spak.validators.metric import Metric
from validator_calls import call, codes, write

RULE = {"margin_num": 99, "margin_den": 100, "evidence": 20, "max_pairs": 80, "higher": 0}
MEASURE = """
import json, sys
given = json.loads(sys.stdin.readline())
number = float(open(given["candidate"]).read())
print("some words")
print(json.dumps({"nonce": given["nonce"], "metrics": {"cost": number, "quality": 1 / number}}))
"""


def measure(folder: Path, script: str = MEASURE, source: str = "4.0", **options: Any) -> Measurement:
    more = {name: options.pop(name) for name in ("rivals", "rule") if name in options}
    write(folder, measure__py=script, candidate__txt=source)
    given = {"cmd": "python measure.py", "source": "candidate.txt", "metric": "cost", "samples": 1, **options}
    return Metric().measure(call(folder, given, rule=more.get("rule", RULE), rivals=more.get("rivals", {})))


def rival(text: str, fixed: bytes = b"{}") -> Subject:
    return Subject({"source": text.encode(), "fixed": fixed})


@pytest.mark.sandbox
def test_a_candidate_alone(tmp_path: Path) -> None:
    result = measure(tmp_path, scale=1000, unit="points")
    assert (result.status, codes(result)) == ("measured", {})
    assert result.metrics["value"] == 4000
    assert result.metrics["cost"] == 4.0
    assert result.samples == {"candidate": (4000,)}
    assert result.subject.files["source"] == b"4.0"
    assert result.evidence["unit"] == "points"


@pytest.mark.sandbox
def test_temporary_files_in_a_place_that_a_sandbox_has_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`TMPDIR=/dev/shm`: the candidate could not be shown, and the run ended `validator.unavailable`."""
    monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
    result = measure(tmp_path)
    assert (result.status, codes(result)) == ("measured", {})
    workshop = Workshop()
    try:
        assert not workshop.folder.is_relative_to("/dev")
    finally:
        workshop.close()


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("metric_name", "higher", "mine", "other", "outcome"),
    [
        ("cost", 0, "3.0", "4.0", "improved"),
        ("cost", 0, "4.0", "4.0", "not_improved"),
        ("cost", 0, "5.0", "4.0", "undecided"),
        ("quality", 1, "3.0", "4.0", "improved"),
        ("quality", 1, "5.0", "4.0", "undecided"),
    ],
)
def test_pairs_that_the_kernel_decides_alike(
    tmp_path: Path, metric_name: str, higher: int, mine: str, other: str, outcome: str
) -> None:
    rule = RULE | {"higher": higher}
    result = measure(tmp_path, source=mine, metric=metric_name, rule=rule, rivals={"incumbent": rival(other)})
    assert (result.status, codes(result)) == ("measured", {})
    assert decide(result.pairs, rule, bool(higher)).outcome == outcome


NOISY = MEASURE.replace("number,", "number * (1 + given['seed'] % 97 / 97),")


@pytest.mark.sandbox
@pytest.mark.parametrize(("script", "again"), [(MEASURE, False), (NOISY, True)])
def test_a_final_value_has_an_interval_and_is_taken_again_while_it_spreads(
    tmp_path: Path, script: str, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With inputs that are always the same: of eight that are drawn, one in nineteen spreads too little."""
    monkeypatch.setattr(metric.secrets, "randbits", lambda bits: 1)
    rivals = {"baseline": rival("40.0")}
    result = measure(tmp_path, script=script, role="final", rivals=rivals, scale=1000, wall_s=600)
    assert result.status == "measured", result.checks
    metrics, rounds = result.metrics, result.evidence["rounds"]
    assert (len(rounds) > 1) is again and metrics["rounds"] == len(rounds)
    assert rounds[-1]["candidate"]["median"] == metrics["value"]
    assert metrics["value_low"] <= metrics["value"] <= metrics["value_high"] < metrics["baseline_value_low"]


@pytest.mark.sandbox
def test_a_broken_constraint_is_no_improvement(tmp_path: Path) -> None:
    bounds = {"quality": {"at_least": 0.3}}
    result = measure(tmp_path, source="4.0", constraints=bounds, rivals={"incumbent": rival("9.0")})
    assert (result.status, codes(result)) == ("checked", {"constraint.quality": "constraint"})
    assert result.pairs == ()
    assert codes(measure(tmp_path, constraints={"speed": {"at_most": 1}})) == {
        "constraint.speed": "no_metric"
    }


@pytest.mark.sandbox
def test_files_that_must_stay_are_compared_with_the_rival(tmp_path: Path) -> None:
    first = measure(tmp_path, fixed=["measure.py"])
    same = rival("4.0", first.subject.files["fixed"])
    assert codes(measure(tmp_path, fixed=["measure.py"], rivals={"incumbent": same})) == {}
    eased = MEASURE.replace("float(", "0.5 * float(")
    result = measure(tmp_path, script=eased, fixed=["measure.py"], rivals={"incumbent": same})
    assert codes(result) == {"fixed": "changed"}


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("import sys; sys.exit(3)", {"exit": "exit_mismatch"}),
        ('print(\'{"metrics": {"cost": 1}}\')', {"metric": "no_line"}),
        (
            MEASURE + "print(json.dumps({'nonce': given['nonce'], 'metrics': {'cost': 1}}))",
            {"metric": "two_lines"},
        ),
        (MEASURE.replace("number,", "float('nan'),"), {"metric": "not_finite"}),
        (MEASURE.replace("number,", "0,"), {"metric": "not_positive"}),
        (MEASURE.replace("number,", "True,"), {"metric": "not_a_number"}),
        ("print('x' * 10_000_000)" + MEASURE + "print('x' * 10_000_000)", {"metric": "no_line"}),
        ("import time; time.sleep(60)", {"ran": "timeout"}),
    ],
)
def test_lines_that_are_none(tmp_path: Path, script: str, expected: dict[str, str]) -> None:
    timeout_s = 0.5 if "sleep" in script else 20
    result = measure(tmp_path, script=script, timeout_s=timeout_s)
    assert codes(result) == expected
    assert result.status == ("timeout" if "sleep" in script else "checked")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('{"nonce": "N", "metrics": {"a": 1e999}}', "not_finite"),
        ('{"nonce": "N", "metrics": {"a": Infinity}}', "not_finite"),
        (f'{{"nonce": "N", "metrics": {{"a": {"9" * 400}}}}}', "not_finite"),
        (f'{{"nonce": "N", "metrics": {{"a": -{"9" * 400}}}}}', "not_finite"),
        ('{"nonce": "N", "metrics": {"a": "1"}}', "not_a_number"),
        ('{"nonce": "N", "metrics": {"größe": 1}}', "not_a_name"),
        ('{"nonce": "N", "metrics": {"a\\ud800": 1}}', "not_a_name"),
        ('{"nonce": "N", "metrics": {"a\\u0000": 1}}', "not_a_name"),
        ('{"nonce": "N", "metrics": {"": 1}}', "not_a_name"),
        (f'{{"nonce": "N", "metrics": {{"{"a" * 65}": 1}}}}', "not_a_name"),
        ('{"nonce": "N", "metrics": {"a": 1, "a": 2}}', "twice"),
        ('{"nonce": "N", "metrics": {"a": 1}, "metrics": {"a": 2}}', "twice"),
        ('{"nonce": "N", "metrics": [1]}', "not_metrics"),
        ('{"x": "N"}', "not_metrics"),
        ("N " + "[" * 10_000, "not_json"),
        ("N" + " " * 70_000, "too_large"),
    ],
)
def test_reading_a_line(line: str, code: str) -> None:
    with pytest.raises(metric._Failed) as failed:
        metric.read(Outcome("exited", stdout=Stream(line.encode())), "N")
    assert failed.value.code == code


@pytest.mark.sandbox
def test_a_rival_that_fails_makes_the_measurement_void(tmp_path: Path) -> None:
    result = measure(tmp_path, rivals={"incumbent": rival("no number")})
    assert (result.status, codes(result)) == ("void", {"rival.incumbent": "exit_mismatch"})


@pytest.mark.sandbox
def test_the_code_of_a_candidate_cannot_tell_which_side_it_is(tmp_path: Path) -> None:
    """An incumbent that finds itself replaced in the workspace would slow itself down for its successor."""
    spy = """
import json, sys
from pathlib import Path
given = json.loads(sys.stdin.readline())
mine, shown = Path(given["candidate"]).read_text(), Path("candidate.txt").read_text()
print(json.dumps({"nonce": given["nonce"], "metrics": {"cost": 2.0 if mine.strip() in shown else 1.0}}))
"""
    result = measure(tmp_path, script=spy, source="4.0", rivals={"incumbent": rival("5.0")})
    assert {
        value for pair in result.pairs for side in ("candidate", "incumbent") for value in pair[side]
    } == {1_000_000}


@pytest.mark.sandbox
def test_the_workspace_is_read_only_and_both_sides_get_one_seed(tmp_path: Path) -> None:
    script = """
import json, sys
given = json.loads(sys.stdin.readline())
try:
    open("kept", "w")
except OSError:
    print(json.dumps({"nonce": given["nonce"], "metrics": {"cost": given["seed"] % 1000 + 1}}))
"""
    result = measure(tmp_path, script=script, scale=1, rivals={"incumbent": rival("5.0")})
    assert codes(result) == {}
    assert all(pair["candidate"] == pair["incumbent"] for pair in result.pairs)
    assert len({pair["candidate"][0] for pair in result.pairs}) > 1


@pytest.mark.sandbox
def test_time_is_taken_outside(tmp_path: Path) -> None:
    burn = MEASURE + "\nimport time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass\n"
    lie = burn.replace('"cost": number', '"cpu_ms": 1')
    result = measure(tmp_path, script=lie, metric="cpu_ms")
    assert result.metrics["value"] >= 150


@pytest.mark.sandbox
def test_a_source_that_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    for name in ("missing.txt", "link", "../x"):
        assert codes(measure(tmp_path, source="1.0") if name == "" else _with(tmp_path, name)) == {
            "source": "unreadable"
        }


def _with(folder: Path, name: str) -> Measurement:
    write(folder, measure__py=MEASURE)
    return Metric().measure(
        call(folder, {"cmd": "python measure.py", "source": name, "metric": "cost"}, rule=RULE)
    )


@pytest.mark.parametrize("bound", ["{}", "{ at_last: 1 }"])
def test_a_constraint_without_a_bound_is_refused(bound: str) -> None:
    """It would take every candidate, also one that does less."""
    options = f'cmd: "true" source: "a" metric: "cost" constraints: {{ quality: {bound} }}'
    assert "lang.argument" in [item.code for item in _errors(options)]
    assert _errors(options.replace(bound, "{ at_least: 1 }")) == []


def _errors(options: str) -> list[Diagnostic]:
    task = f"TASK t {{ VALIDATOR Metric {{ {options} }} RULE {{ better: higher }} }}"
    found = check(parse(f"AGENT A LEVEL 5 {{ START -> t {task} }}"), catalog())
    return [item for item in found if item.severity == "error"]


def test_bounds_that_cross_are_refused() -> None:
    options = 'cmd: "true" source: "a" metric: "cost" constraints: { fit: { at_least: LOW at_most: 0.5 } }'
    (error,) = _errors(options.replace("LOW", "0.9"))
    assert error.code == "lang.argument" and "constraints.fit" in error.message
    assert "0.9" in error.message and "0.5" in error.message
    assert _errors(options.replace("LOW", "0.5")) == []


def test_bounds_that_cross_in_the_run_fail_before_anything_runs(tmp_path: Path) -> None:
    result = measure(tmp_path, script="", constraints={"quality": {"at_least": 2, "at_most": 1}})
    assert codes(result) == {"constraint.quality": "crossed"}
