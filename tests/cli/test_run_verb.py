"""`spak run`: the document, the exit code of every end, where each mode stops."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cli_calls import ASK, HELLO, Cli

DOCUMENT = {
    "run", "state", "task", "summary_hash", "chain_head", "records",
    "metrics", "artifacts", "waiting", "refusal", "recorded",
}  # fmt: skip


def run(cli: Cli, folder: Path, text: str, *flags: str) -> tuple[int, dict[str, object]]:
    (folder / "spec.spak").write_text(text)
    done = cli("run", "spec.spak", *flags, "--json")
    assert set(done.json) == DOCUMENT, done.out
    return done.code, done.json


def test_a_run_that_succeeds(cli: Cli, runs: Path) -> None:
    done = cli("run", HELLO, "--json")
    assert (done.code, set(done.json)) == (0, DOCUMENT)
    assert (done.json["state"], done.json["task"]) == ("succeeded", "Hello")
    assert done.json["metrics"]["steps"] == 3 and done.json["metrics"]["elapsed_ms"] >= 0
    folder = runs / done.json["run"]
    (made,) = done.json["artifacts"]
    assert made["name"] == "hello.txt" and made["size"] == 35
    assert made["path"] == str(Path(".spak/runs") / done.json["run"] / "workspace/hello.txt")
    lines = (folder / "trace.jsonl").read_text().splitlines()
    assert done.json["records"] == len(lines)
    assert done.json["chain_head"] == json.loads(lines[-1])["#"]
    assert json.loads((folder / "context.json").read_text())["task_state"] == "SUCCESS"
    assert json.loads((folder / "metrics.json").read_text())["steps"] == 3


def test_for_people_nothing_goes_to_standard_output(cli: Cli) -> None:
    done = cli("run", HELLO)
    assert (done.code, done.out) == (0, "")
    assert "succeeded" in done.err and "next: spak replay" in done.err


SEARCH = """
AGENT Search LEVEL 5 {
  CONFIG { MODE full_auto }
  START -> write
  TASK write {
    GOAL "Write something."
    TOOLS [write_file]
    PROPOSER tuner { tool: "write_file" params_key: "" args: { path: "a.txt" } }
    SPACE { content: ["x"] }
    step draft: llm.plan { role: "tuner" }
  }
}
"""


@pytest.mark.parametrize("verb", ["run", "resume"])
@pytest.mark.parametrize(
    ("flags", "shown"),
    [((), True), (("--json",), False), (("--json", "--progress"), True), (("--no-progress",), False)],
)
def test_progress_is_shown_for_people_and_where_it_is_asked_for(
    cli: Cli, tmp_path: Path, verb: str, flags: tuple[str, ...], shown: bool
) -> None:
    (tmp_path / "spec.spak").write_text(SEARCH)
    if verb == "resume":
        cli("run", "spec.spak", "--timeout", "0", "--json")
    done = cli(*(("run", "spec.spak") if verb == "run" else ("resume",)), *flags)
    assert done.code == 0, done.err
    assert ("  1 ✓ done            content=x" in done.err) is shown
    assert bool(done.out) is ("--json" in flags)


def test_progress_of_a_run_elsewhere_is_asked_for_in_another_way(cli: Cli, tmp_path: Path) -> None:
    done = cli("run", "team/spec", "--server", "http://127.0.0.1:9", "--progress", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "usage.arguments")


def test_the_same_seed_gives_the_same_summary(cli: Cli, ended: str) -> None:
    summary = cli("show", ended, "--json").json["summary_hash"]
    assert cli("run", HELLO, "--seed", "7", "--json").json["summary_hash"] == summary
    assert cli("run", HELLO, "--seed", "8", "--json").json["summary_hash"] != summary


@pytest.mark.parametrize(
    ("text", "code", "state", "reason"),
    [
        (
            'task T { step a: tool.run { cmd: "false" } success: exit_code(a) == 0 }',
            1, "failed", "run.success_unmet",
        ),
        ('task T { step a: tool.read_file { path: "gone" } }', 1, "failed", "tool.exit"),
        (
            'AGENT A LEVEL 2 { CONFIG { BUDGET { steps: 2 } } START -> a '
            'TASK a { step s: tool.run { cmd: "true" } step t: tool.run { cmd: "true" } '
            'step u: tool.run { cmd: "true" } } }',
            5, "refused", "budget.steps",
        ),
        (
            'AGENT A LEVEL 5 { CONFIG { BUDGET { watchdog: 3 } } START -> a '
            'TASK a { step s: tool.run { cmd: "true" } NEXT { success -> b } } '
            'TASK b { step s: tool.run { cmd: "true" } NEXT { success -> a } } }',
            1, "failed", "run.watchdog_loop",
        ),
        (
            'AGENT A LEVEL 2 { START -> a '
            'TASK a { step s: tool.read_file { path: "gone" } NEXT { success -> b } } '
            'TASK b { step s: tool.run { cmd: "true" } } }',
            1, "failed", "tool.exit",
        ),
    ],
)  # fmt: skip
def test_ends_that_are_no_success(
    cli: Cli, tmp_path: Path, text: str, code: int, state: str, reason: str
) -> None:
    found, document = run(cli, tmp_path, text)
    assert (found, document["state"]) == (code, state), document
    refusal = document["refusal"]
    assert isinstance(refusal, dict)
    assert set(refusal) == {"state", "codes", "sentence", "cause", "evidence", "records", "knob", "error"}
    assert refusal["codes"] == [reason] and refusal["evidence"]
    assert document["waiting"] is None
    people = cli("run", "spec.spak")
    assert people.code == code and reason in people.err and "next: spak show" in people.err
    looked = cli("show", "latest").err
    assert f"next: spak explain {reason}" in looked and "--as events" in looked
    assert cli("resume", "latest", "--json").code == code
    assert cli("replay", "latest", "--json").json["equal"] is True


def test_stepwise_waits_at_the_question(cli: Cli, tmp_path: Path) -> None:
    for flags in ([], ["--mode", "stepwise"], ["--mode", "full_auto"], ["--backend", "manual"]):
        code, document = run(cli, tmp_path, ASK, *flags)
        assert (code, document["state"]) == (4, "waiting"), flags
        assert isinstance(document["waiting"], dict)
        assert document["waiting"]["prompt"] == "Say one word."
        assert set(document["waiting"]) == {"kind", "task", "step", "role", "id", "prompt", "items"}
        names = [item["name"] for item in document["artifacts"]]  # type: ignore[attr-defined]
        assert names == ["before.txt"]


def test_a_workspace_is_copied_and_in_place_comes_home(cli: Cli, tmp_path: Path, runs: Path) -> None:
    for name in ("copied", "own"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.txt").write_text("mine")
    done = cli("run", HELLO, "--workspace", "copied", "--json")
    assert [item["name"] for item in done.json["artifacts"]] == ["hello.txt"]
    assert [path.name for path in (tmp_path / "copied").iterdir()] == ["mine.txt"]
    assert (runs / done.json["run"] / "workspace/mine.txt").read_text() == "mine"
    done = cli("run", HELLO, "--workspace", "own", "--in-place", "--json")
    assert (done.code, done.json["apply"]["applied"]) == (0, [{"path": "hello.txt", "class": "ordinary"}])
    assert (tmp_path / "own/hello.txt").exists()


def test_the_folder_beside_a_spec_is_its_workspace(cli: Cli, tmp_path: Path, runs: Path) -> None:
    (tmp_path / "beside.spak").write_text(
        'task B { step a: tool.run { cmd: "cat given.txt" } success: exit_code(a) == 0 }'
    )
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside/given.txt").write_text("given")
    assert cli("run", "beside.spak", "--json").code == 0


def test_runs_dir_by_flag_environment_and_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "spak.toml").write_text('[runs]\ndir = "by file"\n')
    assert cli("run", HELLO, "--json").code == 0
    assert cli("run", HELLO, "--json", env={"SPAK_RUNS_DIR": "by environment"}).code == 0
    assert cli("run", HELLO, "--json", "--runs-dir", "by flag", env={"SPAK_RUNS_DIR": "not here"}).code == 0
    for name in ("by file", "by environment", "by flag"):
        assert len(list((tmp_path / name).iterdir())) == 1, name
    assert not (tmp_path / "not here").exists() and not (tmp_path / ".spak").exists()


def test_names_of_runs_are_in_the_order_of_time() -> None:
    from spak.cli.common import run_id

    names = [run_id() for _ in range(2000)]
    times = [name[: len("20260101-000000-abc")] for name in names]
    assert times == sorted(times) and len(set(times)) > 1


LEVELED = 'AGENT A LEVEL {level} {{ START -> a TASK a {{ step s: tool.run {{ cmd: "true" }} }} }}'


@pytest.mark.parametrize(
    ("level", "mode", "code"),
    [(2, "stepwise", 0), (2, "semi_auto", 2), (3, "semi_auto", 0), (3, "full_auto", 2), (4, "full_auto", 0)],
)
def test_a_mode_beyond_the_level_of_the_agent_is_refused(
    cli: Cli, tmp_path: Path, level: int, mode: str, code: int
) -> None:
    (tmp_path / "a.spak").write_text(LEVELED.format(level=level))
    done = cli("run", "a.spak", "--mode", mode, "--json")
    assert done.code == code
    assert code == 0 or done.error == "usage.mode"
    again = cli("run", "a.spak", "--mode", mode, "--backend", "manual", "--json")
    assert again.code == code, "a person who answers changes nothing"


def test_resuming_in_a_mode_beyond_the_level_is_refused(cli: Cli, tmp_path: Path) -> None:
    text = 'AGENT A LEVEL 2 { START -> a TASK a { step q: llm.query { role: "coder" prompt: "?" } } }'
    (tmp_path / "a.spak").write_text(text)
    assert cli("run", "a.spak", "--json").code == 4
    done = cli("resume", "latest", "--mode", "full_auto", "--json")
    assert (done.code, done.error) == (2, "usage.mode")
    assert cli("show", "latest", "--json").json["state"] == "waiting"


POLICED = r'''
AGENT A LEVEL 2 {
  POLICY """
    forbidden(Action) :- uses_path(Action, /edits, _, "b.txt").
  """
  SYSTEM_MODEL M {
    AXIOM "Write little."
    AXIOM "forbidden(Action) :- uses_path(Action, /edits, _, \"c.txt\")."
  }
  START -> t
  TASK t {
    step a: tool.write_file { path: "NAME" content: "x" }
  }
}
'''


@pytest.mark.parametrize(
    ("name", "code", "rule"),
    [
        ("a.txt", "", "permitted"),
        ("b.txt", "policy.forbidden", "POLICY:1"),
        ("c.txt", "policy.forbidden", "axiom.2:1"),
    ],
)
def test_a_run_obeys_its_policy_and_its_axioms_and_shows_why(
    cli: Cli, tmp_path: Path, name: str, code: str, rule: str
) -> None:
    (tmp_path / "a.spak").write_text(POLICED.replace("NAME", name))
    done = cli("run", "a.spak", "--json")
    assert done.json["state"] == ("refused" if code else "succeeded")
    assert (tmp_path / ".spak/runs" / done.json["run"] / "workspace" / name).exists() == (not code)
    shown = cli("show", "latest", "--proof", "2", "--json").json
    assert (shown["allow"], shown["code"]) == (not code, code)
    assert (shown["decision"], "why_not" in shown) == (("deny", True) if code else ("allow", False))
    people = cli("show", "latest", "--proof", "2")
    assert people.code == 0 and rule in people.out, people.out
    assert cli("show", "latest", "--proof", "1", "--json").error == "usage.record"
    assert cli("replay", "latest").code == 0


def test_a_policy_that_does_not_load_is_told_where_it_stands(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.spak").write_text(POLICED.replace(":- uses_path", ": uses_path", 1))
    for verb in ("check", "run"):
        done = cli(verb, "a.spak")
        assert done.code == 3 and "a.spak:4:23: error" in done.err, done.err
    (tmp_path / "rules.mg").write_text('in_task("x").\n')
    (tmp_path / "a.spak").write_text(
        'AGENT A LEVEL 2 { POLICY "rules.mg" START -> t TASK t { step a: tool.run { cmd: "true" } } }'
    )
    done = cli("check", "a.spak")
    assert done.code == 3 and "rules.mg:1:1: error" in done.err and "policy.reserved" in done.err, done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts the sandbox as another user")
def test_files_go_back_to_their_owner_at_each_stop(cli: Cli, tmp_path: Path, runs: Path) -> None:
    spec = 'task A { step a: tool.run { cmd: "touch a/made.txt" } '
    spec += 'step q: llm.query { prompt: "?" output_var: b } step c: tool.run { cmd: "touch c.txt" } }'
    (tmp_path / "owned.spak").write_text(spec)
    own = tmp_path / "own"
    (own / ".git").mkdir(parents=True)
    (own / "a").mkdir()
    (own / "link").symlink_to("/etc/passwd")
    for path in (own, *own.rglob("*")):
        os.chown(path, 4711, 4712, follow_symlinks=False)

    def owners(folder: Path) -> set[tuple[int, int]]:
        found = [path.lstat() for path in (folder, *folder.rglob("*"))]
        return {(info.st_uid, info.st_gid) for info in found}

    assert cli("run", "owned.spak", "--workspace", "own", "--in-place", "--json").code == 4
    assert owners(own) == {(4711, 4712)} and (own / "a/made.txt").exists()
    assert cli("step", "--answer", "x", "--json").json["state"] == "succeeded"
    assert owners(own) == {(4711, 4712)} and (own / "c.txt").exists()
    assert Path("/etc/passwd").stat().st_uid == 0
    copy = cli("run", "owned.spak", "--workspace", "own", "--json").json["run"]
    assert cli("step", "--answer", "x", "--json").json["state"] == "succeeded"
    assert owners(runs / copy / "workspace") == {(0, 0)}


def test_context_has_what_the_last_tool_wrote_whether_or_not_the_spec_reads_it(
    cli: Cli, tmp_path: Path, runs: Path
) -> None:
    program = "print('x' * 20000)"
    steps = 'step a: tool.run { cmd: "echo first" } step q: llm.query { prompt: "?" output_var: x } '
    steps += f'step b: tool.run {{ cmd: "python3 -c \\"{program}\\"" }} '
    steps += 'step r: llm.query { prompt: "??" } step c: tool.run { cmd: "ls missing" on_fail: continue }'
    (tmp_path / "w.spak").write_text(f"task A {{ {steps} }}")

    def written(run: str) -> str:
        return str(json.loads((runs / run / "context.json").read_text())["last_tool_output"])

    run = cli("run", "w.spak", "--json").json["run"]
    assert written(run) == "first\n"
    assert cli("step", "--answer", "x", "--json").json["state"] == "waiting"
    assert written(run) == "x" * 20_000 + "\n"
    cli("step", "--answer", "x", "--json")
    assert "missing" in written(run)
