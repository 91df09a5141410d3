"""`spak outer`: candidates from real runs, the gate on one, a campaign that is stopped and verified."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from cli_calls import Cli

pytestmark = pytest.mark.sandbox

SPEC = """
task Reads {
  step one: tool.read_file { path: "a.txt" }
  step two: tool.read_file { path: "a.txt" }
  step keep: tool.write_file { path: "out.txt" content: "done" }
}
"""


@pytest.fixture
def suite(cli: Cli, tmp_path: Path) -> Path:
    """A spec with a step that reads in vain, a recorded run of it, and a suite with gate cases."""
    (tmp_path / "a.spak").write_text(SPEC)
    (tmp_path / "given").mkdir()
    (tmp_path / "given/a.txt").write_text("text\n")
    assert cli("run", "a.spak", "--workspace", "given").code == 0
    for number in range(20):
        more = ("--seed", str(number), "--workspace", "given", "--tag", "golden", "--json")
        done = cli("suite", "add", f"c{number}", "--suite", "s", *more)
        assert done.code == 0, done.err
        if done.json["splits"]["gate"]:
            return tmp_path / "s"
    raise AssertionError("no case was drawn into the split gate")


def test_a_finding_becomes_a_candidate_that_is_fit_for_review(cli: Cli, suite: Path, tmp_path: Path) -> None:
    proposed = cli("outer", "propose", "a.spak", "--suite", "s", "--json").json
    assert [item["edits"] for item in proposed["candidates"]] == [
        [{"op": "remove_step", "task": "Reads", "step": "two"}]
    ]
    done = cli("outer", "campaign", "a.spak", "--suite", "s", "--json")
    assert done.code == 0, done.err
    found = done.json
    assert (found["counts"], found["stopped"]) == ({"tried": 1, "fit": 1}, "proposals")
    assert [stage["stage"] for stage in found["candidates"][0]["stages"]] == [
        "form", "privileges", "counterfactual", "golden",
    ]  # fmt: skip
    assert (tmp_path / "a.spak").read_text() == SPEC, "a verdict changes no spec"
    checked = cli("outer", "campaign", "--verify", found["campaign"], "--json")
    assert (checked.code, checked.json["ok"]) == (0, True)
    again = cli("outer", "campaign", "--resume", found["campaign"], "--json")
    assert again.json["counts"] == {"tried": 1, "fit": 1}


def test_the_gate_judges_a_patch(cli: Cli, suite: Path, tmp_path: Path) -> None:
    def verdict(value: object, *more: str) -> tuple[int, str]:
        (tmp_path / "patch.json").write_text(json.dumps(value))
        done = cli("outer", "gate", "a.spak", "patch.json", "--pairs", "1", *more, "--json")
        return done.code, done.json.get("verdict", "") or done.error

    assert verdict([{"op": "remove_step", "task": "Reads", "step": "two"}], "--suite", "s") == (0, "fit")
    assert verdict([{"op": "remove_step", "task": "Reads", "step": "keep"}]) == (5, "privileged")
    assert verdict([{"op": "set_start", "task": "Reads"}])[0] in (1, 5)
    assert verdict([{"op": "remove_step", "task": "Reads", "step": "none"}]) == (1, "rejected")
    assert verdict([{"op": "merge"}])[0] == 1
    assert verdict({"edits": 3}) == (2, "outer.candidate")
    for more in ({"records": [1]}, {"records": {"r": 5}}, {"records": {"r": ["x"]}}, {"rationale": 1}):
        assert verdict({"edits": [], **more}) == (2, "outer.candidate")
    assert cli("outer", "campaign", "--resume", "none", "--json").error == "outer.campaign"


def test_the_run_that_a_gate_or_sealed_case_was_kept_from_is_not_read(
    cli: Cli, suite: Path, tmp_path: Path
) -> None:
    assert len(cli("outer", "propose", "a.spak", "--suite", "s", "--json").json["candidates"]) == 1
    for number in range(20):
        folder = f"kept{number}"
        split = cli("suite", "keep", "latest", "--suite", folder, "--name", "k", "--json").json["added"][
            "split"
        ]
        found = cli("outer", "propose", "a.spak", "--suite", folder, "--json").json
        assert (len(found["candidates"]), len(found["withheld"])) == ((1, 0) if split == "train" else (0, 1))
        if split != "train":
            return
    raise AssertionError("every case was drawn into the split train")


def test_a_campaign_that_is_stopped_between_two_pairs_names_the_command_that_goes_on(
    cli: Cli, suite: Path
) -> None:
    from spak.evolve.campaigns import campaign

    def breaking() -> None:
        real = campaign.Writer.put

        def put(self: campaign.Writer, kind: str, body: dict[str, object]) -> None:
            if kind == "pair":
                raise KeyboardInterrupt
            real(self, kind, body)

        campaign.Writer.put = put  # type: ignore[method-assign, assignment]

    done = cli("outer", "campaign", "a.spak", "--suite", "s", before=breaking)
    name = done.err.partition("campaign ")[2].partition(":")[0]
    assert (done.code, f"next: spak outer campaign --resume {name}" in done.err) == (6, True)
    assert cli("outer", "campaign", "--resume", name, "--json").json["counts"] == {"tried": 1, "fit": 1}


def test_a_campaign_goes_on_as_it_was_planned(cli: Cli, suite: Path) -> None:
    name = cli("outer", "campaign", "a.spak", "--suite", "s", "--json").json["campaign"]
    for given in (
        ("--pairs", "500"),
        ("--margin", "5"),
        ("--candidates", "99"),
        ("--suite", "s"),
        ("a.spak",),
    ):
        refused = cli("outer", "campaign", *given, "--resume", name, "--json")
        assert (refused.code, refused.error) == (2, "usage.arguments")


def test_a_model_has_to_be_named(cli: Cli, suite: Path) -> None:
    done = cli("outer", "propose", "a.spak", "--proposer", "model", "--json")
    assert (done.code, done.error) == (7, "unavailable.backend")


def test_a_suite_without_a_gate_case_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.spak").write_text(SPEC)
    for number in range(20):
        done = cli("suite", "add", f"c{number}", "--suite", f"s{number}", "--seed", str(number), "--json")
        if not done.json["splits"]["gate"]:
            found = cli("outer", "campaign", "a.spak", "--suite", f"s{number}", "--json")
            assert (found.code, found.error) == (2, "outer.no_cases")
            return
    raise AssertionError("every case was drawn into the split gate")


def test_a_spec_with_imports_and_a_policy_file_goes_through_the_gate(
    cli: Cli, suite: Path, tmp_path: Path
) -> None:
    (tmp_path / "more.spak").write_text(SPEC)
    (tmp_path / "law.mg").write_text("forbidden(Action) :- tool(Action, /http_request).\n")
    (tmp_path / "b.spak").write_text('AGENT B { IMPORT "more.spak" POLICY "law.mg" START -> Reads }\n')
    ran = cli("run", "b.spak", "--workspace", "given", "--json")
    assert ran.code == 0, ran.err
    (tmp_path / "patch.json").write_text(json.dumps([{"op": "remove_step", "task": "Reads", "step": "two"}]))
    done = cli("outer", "gate", "b.spak", "patch.json", "--suite", "s", "--pairs", "2", "--json")
    stages = {item["stage"]: item["verdict"] for item in done.json["stages"]}
    assert (done.code, done.json["verdict"]) == (0, "fit"), done.json
    assert stages["golden"] == "pass", "the candidate's runs found the policy's file"
    assert done.json["stages"][2]["evidence"]["unusable"] == []
    assert done.json["stages"][2]["evidence"]["runs"] == 1, "the recorded run of the same imports"


def test_evolution_runs_training_cases_and_the_gate_judges_on_others(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.spak").write_text(SPEC)
    (tmp_path / "given").mkdir()
    (tmp_path / "given/a.txt").write_text("text\n")
    splits = {"train": 0, "gate": 0}
    for number in range(30):
        more = ("--seed", str(number), "--workspace", "given", "--tag", "golden", "--json")
        splits = cli("suite", "add", f"c{number}", "--suite", "s", *more).json["splits"]
        if splits["train"] and splits["gate"]:
            break
    budget = str(8 * splits["train"])
    made = cli(
        "outer",
        "propose",
        "a.spak",
        "--suite",
        "s",
        "--proposer",
        "evolution",
        "--evolve-runs",
        budget,
        "--json",
    )
    assert made.code == 0, made.err
    (one,) = made.json["candidates"]
    assert one["proposer"] == "evolution"
    assert one["edits"] == [{"op": "remove_step", "task": "Reads", "step": "two"}]
    more = ("--proposer", "evolution", "--evolve-runs", budget, "--pairs", "1", "--json")
    done = cli("outer", "campaign", "a.spak", "--suite", "s", *more)
    assert done.json["counts"]["tried"] == 1, done.err
    assert done.json["candidates"][0]["verdict"] in ("fit", "not_shown")
    assert done.json["violations"] == []
    none = cli("outer", "propose", "a.spak", "--proposer", "evolution", "--json")
    assert (none.code, none.error) == (2, "outer.no_cases")


def test_a_model_that_breaks_the_contract_is_asked_again_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spak.cli import outer_runs
    from spak.errors import OuterError
    from spak.evolve.propose import Training
    from spak.ports import Answer, Prompt

    edit = '{"op": "remove_step", "task": "Reads", "step": "two"}'
    good = f'{{"grammar_patch": "", "rationale": "known", "dsl_patch": [{edit}]}}'
    asked: list[Prompt] = []

    class Model:
        def __init__(self, *answers: str) -> None:
            self.answers = list(answers)

        def answer(self, prompt: Prompt) -> Answer:
            asked.append(prompt)
            return Answer(self.answers.pop(0))

    def proposed(*answers: str) -> list[str]:
        asked.clear()
        model = Model(*answers)
        monkeypatch.setattr("spak.llm.open_backend", lambda *given, **more: model)
        found = outer_runs.proposals("model", "stub", SPEC, Training({}), ["an earlier one: lost"])
        return [item.rationale for item in found]

    assert proposed(f"Sure! {good}", '{"dsl_patch": []}', good) == ["known"]
    assert len(asked) == 3
    last = " ".join(str(item) for item in asked[-1].items)
    assert "an earlier one: lost" in last
    assert last.count("outer.contract") == 2
    with pytest.raises(OuterError) as caught:
        proposed("no", "no", "no")
    assert (caught.value.code, len(asked)) == ("outer.contract", 3)


@pytest.mark.findings("S5.6")
def test_runs_that_are_withheld_for_want_of_a_suite_are_told(cli: Cli, suite: Path, tmp_path: Path) -> None:
    given = ("--split", "train", "--split", "gate", "--split", "sealed")
    assert cli("eval", "a.spak", "--suite", "s", *given).code == 0
    many = len(list((tmp_path / ".spak/runs").iterdir())) - 1
    done = cli("outer", "propose", "a.spak")
    assert f"{many} run{'' if many == 1 else 's'} of cases withheld: name the suite" in done.err
    assert "withheld: name" not in cli("outer", "propose", "a.spak", "--suite", "s").err


@pytest.mark.findings("E9")
def test_a_campaign_that_its_budget_ended_takes_more(cli: Cli, suite: Path, tmp_path: Path) -> None:
    (tmp_path / "b.spak").write_text('SYSTEM_MODEL M { HEURISTIC "One." HEURISTIC "Two." }\n' + SPEC)
    (tmp_path / "patch.json").write_text(
        json.dumps([{"op": "remove_model_item", "kind": "heuristic", "number": 1}])
    )
    begun = cli("outer", "gate", "b.spak", "patch.json", "--suite", "s", "--pairs", "4", "--json",
                before=stopping)  # fmt: skip
    assert begun.code == 6, begun.err
    name = begun.json["campaign"]
    few = cli("outer", "campaign", "--resume", name, "--budget-runs", "4", "--json")
    assert (few.json["stopped"], few.json["runs"]) == ("runs", 4), few.err
    assert f"--resume {name} --budget-runs N" in few.err
    assert cli("outer", "campaign", "--resume", name, "--json").json["runs"] == 4, "a limit holds on"
    more = cli("outer", "campaign", "--resume", name, "--budget-runs", "60", "--json")
    assert more.json["counts"] == {"not_shown": 1, "tried": 1}, more.err
    assert cli("outer", "campaign", "--verify", name).code == 0


def stopping() -> None:
    """Interrupt a campaign at its first pair."""
    from spak.cli import outer_runs

    def interrupted(*given: object) -> None:
        raise KeyboardInterrupt

    outer_runs._Pairs.pair = interrupted  # type: ignore[method-assign, assignment]


def test_a_candidate_is_a_diff_of_two_names_or_a_whole_spec(cli: Cli, suite: Path, tmp_path: Path) -> None:
    """As `diff -u OLD NEW` writes it, and `spak diff` takes it too."""
    base = (tmp_path / "a.spak").read_text()
    step = next(line for line in base.splitlines(keepends=True) if "step two" in line)
    (tmp_path / "b.spak").write_text(base.replace(step, ""))
    diff = ["diff", "-u", "a.spak", "b.spak"]
    text = subprocess.run(diff, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=False).stdout
    (tmp_path / "a.diff").write_text(text)
    said = [cli("diff", "a.spak", new, "--json").json["changes"] for new in ("b.spak", "a.diff")]
    assert said[0] == said[1] and len(said[0]) > 0
    for candidate in ("b.spak", "a.diff"):
        done = cli("outer", "gate", "a.spak", candidate, "--pairs", "1", "--suite", "s", "--json")
        assert (done.code, done.json["verdict"]) == (0, "fit")
    (tmp_path / "a.diff").write_text(text.replace("-", "~"))
    assert cli("diff", "a.spak", "a.diff").code == 3
    assert "outer.untyped" in cli("outer", "gate", "a.spak", "a.diff").err
