"""What a search begins with: the default strategy of its time and a prior, both kept in genesis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli_kit import EXAMPLES, spak
from host_kit import TUNING, catalog, reopen, start
from spak.errors import UsageError
from spak.kernel.replay import replay
from spak.lang import parse
from spak.ledger.files import FileLedgers
from spak.program import compile as compile_program
from spak.records import Record
from spak.runner.searches import Earlier, begun, earlier

TEXTS = ", ".join(f'"{"x" * length}"' for length in range(20, 500, 24))


def spec(options: str = "", texts: str = TEXTS) -> str:
    """A search for the shortest of twenty texts; the grade changes nothing."""
    search = f'PROPOSER tuner {{ tool: "write", args: {{ path: "c.txt" }}, params_key: ""{options} }}'
    space = f"SPACE {{ text: [{texts}] grade: range(1, 6) }}"
    longer = TUNING.replace("patience: 4, evaluations: 12", "patience: 20, evaluations: 20")
    return longer.replace("PROPOSER shrink", f"{search}\n    {space}")


def program(options: str = "", texts: str = TEXTS) -> Any:
    return compile_program(parse(spec(options, texts)), catalog(), {})


def records(folder: Path, run: str) -> list[Record]:
    return [record for record, _ in FileLedgers(folder).reader(run).read()]


def lengths(found: list[Record]) -> list[tuple[int, int]]:
    """The points that were proposed, in order."""
    points = [record.body["candidates"][0]["params"] for record in found if record.kind == "plan"]
    return [(len(point["text"]), point["grade"]) for point in points]


def ran(folder: Path, run: str, text: str, searches: dict[str, dict[str, Any]] | None = None) -> list[Record]:
    held = start(folder, text, run, searches=searches)
    held.advance("full_auto")
    held.close()
    found = records(folder, run)
    assert replay(found).difference is None
    return found


def test_a_run_keeps_the_strategy_that_it_began_with(tmp_path: Path) -> None:
    named = {name: lengths(ran(tmp_path, name, spec(f', strategy: "{name}"'))) for name in ("bayes", "climb")}
    assert named["bayes"] != named["climb"]
    new = begun(program())
    assert new == {"tune": {"defaults": {"strategy": "bayes"}}}
    assert lengths(ran(tmp_path, "new", spec(), new)) == named["bayes"]
    other = {"tune": {"defaults": {"strategy": "climb"}}}  # as if that had been the default when it began
    assert lengths(ran(tmp_path, "other", spec(), other)) == named["climb"]
    assert begun(program(', strategy: "climb"')) == {}


def test_a_prior_comes_first_and_is_in_genesis(tmp_path: Path) -> None:
    first = ran(tmp_path, "first", spec(), begun(program()))
    found = earlier(first)
    assert set(found) == {"tune"} and len(found["tune"].trials) == len(lengths(first))
    searches = begun(program(), prior=found)
    best = sorted(length for length, _ in lengths(first))[:3]
    second = ran(tmp_path, "second", spec(), searches)
    assert [length for length, _ in lengths(second)[:3]] == best
    assert second[0].body["rules"]["searches"] == searches
    assert lengths(second) != lengths(first)


def test_a_run_with_a_prior_goes_on_without_the_earlier_one(tmp_path: Path) -> None:
    """Stopped after each step and taken up by another process: the same records, to the bit."""
    searches = begun(program(), prior=earlier(ran(tmp_path, "first", spec(), begun(program()))))
    whole = ran(tmp_path / "whole", "run-1", spec(), searches)
    held = start(tmp_path / "cut", spec(), searches=searches)
    for _ in range(6):
        held.advance("stepwise")
        held.close()
        held = reopen(tmp_path / "cut")
    held.advance("full_auto")
    held.close()
    cut = records(tmp_path / "cut", "run-1")
    assert [record.body for record in cut if record.kind == "plan"] == [
        record.body for record in whole if record.kind == "plan"
    ]
    assert replay(cut).state.summary == replay(whole).state.summary


OTHER = TEXTS.replace('"xxxxxxxxxxxxxxxxxxxx", ', "", 1)
REFUSED: dict[str, tuple[str, str, dict[str, Earlier], str]] = {
    "another space": ("", OTHER, {}, "SPACE"),
    "another direction": (', better: "higher"', TEXTS, {}, "lower"),
    "a strategy that takes none": (', strategy: "climb"', TEXTS, {}, "climb"),
    "nothing tried": (
        "",
        TEXTS,
        {"tune": Earlier(program().tasks["tune"].proposing.space, "lower", ())},
        "tried",
    ),
    "another task": ("", TEXTS, {"other": Earlier({}, "lower", ())}, "other"),
    "no search": ("", TEXTS, {"": Earlier({}, "lower", ())}, "no task"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_prior_that_does_not_fit_is_refused(name: str, tmp_path: Path) -> None:
    options, texts, given, said = REFUSED[name]
    prior = given or earlier(ran(tmp_path, "first", spec(), begun(program())))
    with pytest.raises(UsageError) as caught:
        begun(program(options, texts), prior=prior)
    assert caught.value.code == "tuner.prior" and said in caught.value.message


def test_the_command_refuses_before_anything_runs(tmp_path: Path) -> None:
    example = str(EXAMPLES / "gemm_tuner.spak")
    code, seen = spak(tmp_path, "run", example, "--prior", "latest", "--json")
    assert (code, seen["error"]["code"]) == (2, "usage.run")
    code, seen = spak(tmp_path, "run", str(EXAMPLES / "hello.spak"), "--json")
    assert code == 0
    code, seen = spak(tmp_path, "run", example, "--prior", "latest", "--json")
    assert (code, seen["error"]["code"]) == (2, "tuner.prior")
    assert len(list((tmp_path / ".spak/runs").iterdir())) == 1
