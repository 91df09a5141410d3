"""`spak eval` and `spak outer` with a model that goes away and comes back: nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli_calls import ASK, Cli
from llm_stub import MODEL, Stub

pytestmark = pytest.mark.sandbox

ALL = ("--split", "train", "--split", "gate", "--split", "sealed", "--json")
OTHER = ASK.replace("Say one word.", "Say one good word.")


def asks(folder: Path, stub: Stub) -> None:
    """Name the stub as the model that answers, without a second try."""
    (folder / "spak.toml").write_text(
        f'[llm]\nmode = "openai_compatible"\nmodel = "{MODEL}"\nbase_url = "{stub.url}/v1"\nretries = 0\n'
    )


@pytest.fixture
def suite(cli: Cli, tmp_path: Path) -> Path:
    """Four cases, and two specs that ask a model for the word that a case wants."""
    for number in range(4):
        more = ("--seed", str(number), "--check", "grep -q good word.txt")
        assert cli("suite", "add", f"c{number}", "--suite", "s", *more).code == 0
    (tmp_path / "base.spak").write_text(ASK)
    (tmp_path / "new.spak").write_text(OTHER)
    return tmp_path / "s"


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.findings("E2")
@pytest.mark.parametrize("jobs", ["1", "3"])
def test_an_experiment_pauses_while_its_model_is_away(
    cli: Cli, suite: Path, tmp_path: Path, jobs: str
) -> None:
    with Stub() as stub:
        asks(tmp_path, stub)
        stub.script = ["say good"] * 3 + ["gone"]
        done = cli("eval", "base.spak", "new.spak", "--suite", "s", "--jobs", jobs, *ALL)
    outcomes = [row["outcome"] for row in done.json["cells"]]
    assert (done.code, set(outcomes)) == (7, {"pass", "missing"}), done.err
    assert done.json["stopped"].startswith("llm.")
    name = done.json["experiment"]
    assert f"next: spak eval --resume {name}" in done.err
    assert done.json["comparison"]["verdict"] in ("no_difference", "no_result")
    assert cli("eval", "--resume", name, "--json").code == 7, "it is still away"
    with Stub(stub.port) as stub:
        stub.script = ["say good"]
        done = cli("eval", "--resume", name, "--json")
    assert [row["outcome"] for row in done.json["cells"]] == ["pass"] * 8, done.err
    assert (done.code, done.json["stopped"], done.json["comparison"]["ties"]) == (0, "", 4)
    begun = [item["body"]["run"] for item in records(tmp_path / ".spak/evals" / name / "trace.jsonl")
             if item["kind"] == "start"]  # fmt: skip
    assert len(begun) == len(set(begun)) == 8, "a run that was under way goes on"


@pytest.fixture
def gate(cli: Cli, tmp_path: Path) -> None:
    """A suite with a case that judges, and a spec."""
    for number in range(30):
        more = ("--seed", str(number), "--check", "grep -q good word.txt", "--json")
        if cli("suite", "add", f"c{number}", "--suite", "s", *more).json["splits"]["gate"]:
            break
    (tmp_path / "base.spak").write_text('SYSTEM_MODEL M { HEURISTIC "Be brief." }\n' + ASK)


@pytest.mark.findings("E1")
def test_a_campaign_pauses_while_its_model_is_away(cli: Cli, gate: None, tmp_path: Path) -> None:
    edits = [{"op": "add_model_item", "kind": "heuristic", "text": "Look twice."}]
    (tmp_path / "patch.json").write_text(json.dumps(edits))
    with Stub() as stub:
        asks(tmp_path, stub)
        stub.script = ["say good"] * 3 + ["gone"]
        done = cli("outer", "gate", "base.spak", "patch.json", "--suite", "s", "--pairs", "4", "--json")
    name = done.json["campaign"]
    assert (done.code, done.json["verdict"]) == (7, ""), done.err
    assert f"next: spak outer campaign --resume {name}" in done.err
    found = records(tmp_path / ".spak/campaigns" / name / "trace.jsonl")
    assert [item["body"]["outcome"] for item in found if item["kind"] == "pair"] == [0]
    assert found[-1]["kind"] == "stop" and found[-1]["body"]["why"].startswith("llm.")
    away = cli("outer", "campaign", "--resume", name, "--json")
    assert (away.code, away.json["stopped"].partition(":")[0]) == (7, "llm.unreachable")
    with Stub(stub.port) as stub:
        stub.script = ["say good"]
        done = cli("outer", "campaign", "--resume", name, "--json")
    (tested,) = done.json["candidates"]
    assert (done.code, tested["verdict"]) == (1, "not_shown"), done.err
    assert tested["why"].startswith("0 won, 0 lost, 4 equal")
    assert cli("outer", "campaign", "--verify", name).code == 0


@pytest.mark.findings("E1")
def test_a_campaign_pauses_while_the_model_that_proposes_is_away(
    cli: Cli, gate: None, tmp_path: Path
) -> None:
    with Stub() as stub:
        asks(tmp_path, stub)
    given = ("--suite", "s", "--proposer", "model", "--backend", "openai_compatible", "--pairs", "0")
    done = cli("outer", "campaign", "base.spak", *given, "--json")
    assert (done.code, done.json["stopped"].partition(":")[0]) == (7, "llm.unreachable"), done.err
    with Stub(stub.port) as stub:
        edit = '{"op": "add_model_item", "kind": "heuristic", "text": "Look twice."}'
        stub.script = [f'say {{"grammar_patch": "", "rationale": "it may help", "dsl_patch": [{edit}]}}']
        more = ("--backend", "openai_compatible", "--json")
        done = cli("outer", "campaign", "--resume", done.json["campaign"], *more)
    assert (done.code, done.json["counts"]) == (1, {"not_shown": 1, "tried": 1}), done.err


@pytest.mark.findings("E2")
def test_void_cells_run_again_on_resume_and_are_no_result_before(
    cli: Cli, suite: Path, tmp_path: Path
) -> None:
    """Without a model the runs wait for a person, whom nobody lets answer."""
    done = cli("eval", "base.spak", "new.spak", "--suite", "s", *ALL)
    assert {row["outcome"] for row in done.json["cells"]} == {"void"}
    assert all("nobody answers" in row["why"] for row in done.json["cells"])
    compared = done.json["comparison"]
    assert (compared["verdict"], compared["losses"], len(compared["unpaired"])) == ("no_result", 0, 8)
    assert done.code == 1 and f"--resume {done.json['experiment']}" in done.err
    with Stub() as stub:
        asks(tmp_path, stub)
        stub.script = ["say good"]
        done = cli("eval", "--resume", done.json["experiment"], "--json")
    assert [row["outcome"] for row in done.json["cells"]] == ["pass"] * 8, done.err


@pytest.mark.findings("B2")
def test_an_answer_of_a_person_is_no_result_of_an_experiment(cli: Cli, suite: Path, tmp_path: Path) -> None:
    with Stub() as stub:
        asks(tmp_path, stub)
        stub.script = ["gone"]
        done = cli("eval", "base.spak", "--suite", "s", *ALL)
    name = done.json["experiment"]
    (run,) = [item["body"]["run"] for item in records(tmp_path / ".spak/evals" / name / "trace.jsonl")
              if item["kind"] == "start"]  # fmt: skip
    assert cli("step", run, "--answer", "good").code == 0
    with Stub(stub.port) as stub:
        stub.script = ["say good"]
        rows = cli("eval", "--resume", name, "--json").json["cells"]
    assert sorted(row["outcome"] for row in rows) == ["pass"] * 3 + ["void"]
    assert [row["why"] for row in rows if row["run"] == run] == [
        "a person answered it: nobody answers a run of an experiment"
    ]
