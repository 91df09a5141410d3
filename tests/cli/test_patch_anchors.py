"""A patch without hashes is held to the files that its author could see, and the ledger has their hashes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli_calls import Cli, Done
from spak import canon

BEFORE = "one\ntwo\n"
FIX = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
SPEC = """
task Fix {
  step make: tool.write { path: "a.txt" content: "one\\ntwo\\n" }
  step ask: llm.query { prompt: "A patch?" output_var: fix }
  STEPS
  step apply: tool.apply_patch { patch: PATCH on_fail: continue }
  success: file_contains("a.txt", "three")
}
"""
LONGER = 'step change: tool.write { path: "a.txt" content: "one\\ntwo\\nfour\\n" }'
SAME = 'step change: tool.write { path: "b.txt" content: "other" }'
BACK = LONGER + ' step back: tool.write { path: "a.txt" content: "one\\ntwo\\n" }'
ASKED_AGAIN = LONGER + ' step more: llm.query { prompt: "Good?" output_var: good }'


def run(cli: Cli, folder: Path, steps: str, *answers: str, patch: str = "fix", spec: str = SPEC) -> Done:
    (folder / "fix.spak").write_text(spec.replace("STEPS", steps).replace("PATCH", patch))
    done = cli("run", "fix.spak", "--seed", "1", "--json")
    for answer in answers:
        assert done.json["state"] == "waiting", done.out
        done = cli("step", "--answer", answer, "--json")
    return done


def acts(runs: Path, run: str) -> list[dict[str, Any]]:
    lines = (runs / run / "trace.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return [item["body"] for item in records if item["kind"] == "act" and item.get("step") == "apply"]


def anchored(content: str, patch: str = FIX) -> str:
    """The patch with the hash of what the file is when it is applied."""
    head, _, rest = patch.partition("@@")
    return f"{head}before-hash {canon.digest(content.encode())}\n@@{rest}"


@pytest.mark.parametrize("steps", ["", SAME, BACK], ids=["at_once", "another_file", "as_it_was"])
def test_a_patch_is_applied_to_the_file_that_was_asked_about(
    cli: Cli, tmp_path: Path, runs: Path, steps: str
) -> None:
    done = run(cli, tmp_path, steps, FIX)
    assert done.json["state"] == "succeeded", done.out
    (act,) = acts(runs, done.json["run"])
    assert act["anchors"] == [["a.txt", canon.digest(BEFORE.encode())]]
    assert cli("replay", "--json").json["equal"] is True


@pytest.mark.parametrize(
    ("steps", "answers", "patch"),
    [
        (LONGER, (FIX,), "fix"),
        (ASKED_AGAIN, (FIX, "yes"), "fix"),
        (LONGER, (FIX.removeprefix("---"),), '"---{{fix}}"'),
    ],
    ids=["changed", "another_question_between", "within_a_text"],
)
def test_a_file_that_has_changed_since_is_not_patched(
    cli: Cli, tmp_path: Path, runs: Path, steps: str, answers: tuple[str, ...], patch: str
) -> None:
    done = run(cli, tmp_path, steps, *answers, patch=patch)
    assert done.json["state"] == "failed"
    (act,) = acts(runs, done.json["run"])
    assert act["exit"] == 1 and "patch.drift" in act["out"] and "a.txt" in act["out"]
    assert "changed since" in act["out"] and "before-hash" in act["out"] and "anchors" not in act
    assert (runs / done.json["run"] / "workspace/a.txt").read_text() == "one\ntwo\nfour\n"


def test_a_file_that_was_not_there_is_not_patched(cli: Cli, tmp_path: Path, runs: Path) -> None:
    steps = 'step change: tool.write { path: "new.txt" content: "one\\ntwo\\n" }'
    done = run(cli, tmp_path, steps, FIX.replace("a.txt", "new.txt"))
    (act,) = acts(runs, done.json["run"])
    assert "patch.unseen" in act["out"] and "did not exist" in act["out"]


def test_a_patch_with_hashes_of_its_own_needs_no_other(cli: Cli, tmp_path: Path, runs: Path) -> None:
    longer = "one\ntwo\nfour\n"
    done = run(cli, tmp_path, LONGER, anchored(longer, FIX.replace("1,2 +1,2", "1,3 +1,3") + " four\n"))
    assert done.json["state"] == "succeeded", done.out
    (act,) = acts(runs, done.json["run"])
    assert act["anchors"] == [["a.txt", canon.digest(longer.encode())]]
    done = run(cli, tmp_path, LONGER, anchored(BEFORE))
    assert "patch.hash" in acts(runs, done.json["run"])[0]["out"]


def test_hunks_with_hashes_need_no_other(cli: Cli, tmp_path: Path) -> None:
    hunk = {"before": "two\n", "after": "three\n"}
    hunk |= {f"{name}_hash": canon.digest(text.encode()) for name, text in hunk.items()}
    done = run(cli, tmp_path, LONGER, json.dumps({"path": "a.txt", "hunks": [hunk]}))
    assert done.json["state"] == "succeeded", done.out


def test_a_patch_of_the_spec_itself_is_applied_to_what_is_there(cli: Cli, tmp_path: Path) -> None:
    literal = f'"""\n{FIX.replace("1,2 +1,2", "1,3 +1,3")} four\n"""'
    assert run(cli, tmp_path, LONGER, "no", patch=literal).json["state"] == "succeeded"


def test_whoever_made_the_patch_is_asked_again(cli: Cli, tmp_path: Path) -> None:
    spec = SPEC.replace(" on_fail: continue", "")
    done = run(cli, tmp_path, LONGER, FIX, spec=spec)
    assert done.json["state"] == "waiting"
    error = cli("show", "--json").json["registers"]["R4"]
    assert error["code"] == "patch.drift" and "changed since" in error["hint"]


def test_a_patch_of_a_file_with_any_name_is_recorded(cli: Cli, tmp_path: Path, runs: Path) -> None:
    """Member names of records are ASCII; the paths of anchors are values."""
    spec = SPEC.replace("a.txt", "d \u00e4 b.txt")
    name = '"a/d \\303\\244 b.txt"', '"b/d \\303\\244 b.txt"'
    patch = FIX.replace("a/a.txt", name[0]).replace("b/a.txt", name[1])
    done = run(cli, tmp_path, "", patch, spec=spec)
    assert done.json["state"] == "succeeded", done.out
    (act,) = acts(runs, done.json["run"])
    assert act["anchors"] == [["d \u00e4 b.txt", canon.digest(BEFORE.encode())]]
    assert cli("replay", "--json").json["equal"] is True


WRONG_COUNT = "--- a/a.txt\n+++ b/a.txt\n@@ -1,9 +1,2 @@\n one\n-two\n+three\n"


def test_a_patch_that_cannot_be_read_has_its_own_code_everywhere(
    cli: Cli, tmp_path: Path, runs: Path
) -> None:
    asked = SPEC.replace("on_fail: continue", "")
    done = run(cli, tmp_path, "", WRONG_COUNT, spec=asked)
    assert done.json["state"] == "waiting", done.out
    r4 = cli("show", "--json").json["registers"]["R4"]
    assert (r4["code"], r4["expected"]) == ("patch.hunk", "a patch that can be read")
    denied = [
        record["body"]
        for record in map(json.loads, (runs / done.json["run"] / "trace.jsonl").read_text().splitlines())
        if record["kind"] == "permit" and record["body"]["allow"] is False
    ]
    assert [body["code"] for body in denied] == ["patch.hunk"]
    for _ in range(2):
        done = cli("step", "--answer", WRONG_COUNT, "--json")
    assert done.json["state"] == "failed"
    shown = cli("show")
    assert "(patch.hunk)" in shown.err and "policy.forbidden" not in shown.err
    assert cli("replay", "--json").json["equal"] is True


def test_a_fixed_patch_that_cannot_be_read_is_refused_with_its_code_and_no_knob(
    cli: Cli, tmp_path: Path
) -> None:
    done = run(cli, tmp_path, "", "yes", patch='"no patch"')
    assert done.code == 5
    assert done.json["refusal"]["codes"] == ["patch.empty"] and not done.json["refusal"]["knob"]
    assert "apply_patch was denied: " in done.json["refusal"]["cause"]
