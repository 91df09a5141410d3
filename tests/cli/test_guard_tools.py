"""Our tools for a guarded agent, by MCP, and what a person says while its session runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cli_calls import SPAK, Cli, Done
from guard_kit import AGENT, Model, tree

pytestmark = pytest.mark.sandbox

CLIENT = Path(__file__).parents[1] / "mcp_client.py"
LAW = 'forbidden(A) :- changed(A, "kept.txt", _).\nforbidden(A) :- tool(A, /run), !approved(A).\n'


def tool(name: str, args: Mapping[str, Any]) -> str:
    """A command of the agent that calls one of our tools."""
    return f"python3 mcp_client.py {name} '{json.dumps(args)}'"


@pytest.fixture
def project(tmp_path: Path, cli: Cli) -> Path:
    """A project with the agent, a client of MCP, a law, and a person who may approve."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    (folder / "kept.txt").write_text("kept\n")
    (folder / "law.mg").write_text(LAW)
    shutil.copy(AGENT, folder / "agent.py")
    shutil.copy(CLIENT, folder)
    home = {"XDG_CONFIG_HOME": str(tmp_path / "alice")}
    keys = cli("keys", "make", "alice", env=home, folder=folder)
    (folder / "spak.toml").write_text('[policy]\nlaw = ["law.mg"]\n' + keys.out)
    return folder


@pytest.fixture
def person(project: Path, tmp_path: Path) -> Callable[..., Done]:
    """What a person says from another terminal while the session runs."""
    env = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "alice")}

    def says(*line: str) -> Done:
        done = subprocess.run(
            [SPAK, *line], cwd=project, env=env, capture_output=True, text=True, check=False
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return says


def guard(cli: Cli, model: Model, project: Path) -> Done:
    line = ("guard", "--json", "--wait", "0", "--", sys.executable, "agent.py", "work")
    return cli(*line, env=model.env, folder=project)


def test_a_call_is_a_transaction_of_the_run_and_the_copy_follows(
    cli: Cli, project: Path, person: Callable[..., Done]
) -> None:
    texts = [
        "python3 mcp_client.py",
        f"echo two >> a.txt; {tool('read_file', {'path': 'a.txt'})}",
        f"{tool('write_file', {'path': 'b.txt', 'content': 'new'})}; cat b.txt; chmod +x a.txt",
        f"{tool('write_file', {'path': 'kept.txt', 'content': 'x'})}; cat kept.txt; ls -l a.txt",
        f"{tool('http_request', {'url': 'https://example.org/'})}; {tool('write_file', {'pth': 1})};"
        f" {tool('nothing', {})}",
    ]
    with Model(texts).serving() as model:
        done = guard(cli, model, project)
    assert done.code == 0, done.err
    listed = json.loads(model.said(1).partition("\n")[0])["tools"]
    names = {one["name"] for one in listed}
    assert {"read_file", "write_file", "run", "http_request", "git_commit", "ask_person"} <= names
    assert not names & {"contained", "model_request"}
    assert "done: one\ntwo\n" in model.said(2)
    assert "done: b.txt" in model.said(3) and "new" in model.said(3)
    assert "failed: " in model.said(4) and "law.mg:1" in model.said(4) and "\nkept\n" in model.said(4)
    assert "-rwxr-xr-x" in model.said(4), "what the agent changed itself is kept"
    said = model.said(5)
    assert "policy.approval_later" in said, "a person may allow the host"
    assert "schema.required" in said and "there is no tool 'nothing'" in said
    name = done.json["run"]
    records = (project / ".spak/runs" / name / "trace.jsonl").read_text()
    assert '"hosts":{"example.org"' not in records and '["example.org"' not in records, "nobody looked it up"
    assert cli("ledger", "verify", name, folder=project).code == 0
    assert cli("replay", name, folder=project).code == 0
    assert person("apply", name, "--allow-runs", "a.txt").code == 0
    assert (project / "b.txt").read_text() == "new" and os.access(project / "a.txt", os.X_OK)


def test_an_approval_that_comes_later_is_found_and_counts_once(
    cli: Cli, project: Path, person: Callable[..., Done]
) -> None:
    command = tool("run", {"cmd": ["touch", "made"]})
    other = tool("run", {"cmd": ["touch", "other"]})
    said: list[Done] = []
    with Model([command, other, command, command, other]).serving() as model:
        model.before[2] = lambda: said.extend(
            (
                person("guard", "asks", "latest", "--json"),
                person("approve", "latest"),
                person("approve", "latest", "--of", json.loads(said_first(person))["of"]),
            )
        )
        model.before[4] = lambda: said.append(
            person("approve", "latest", "--deny", "--of", newest(person, "other"))
        )
        done = guard(cli, model, project)
    assert done.code == 0, done.err
    waiting, several, approved, denied = said
    assert [one["args"]["cmd"][1] for one in waiting.json["approvals"]] == ["made", "other"]
    assert several.code != 0 and "guard.which" in several.err
    assert approved.code == 0 and '"made"' in approved.err, approved.err
    assert denied.code == 0, denied.err
    assert "policy.approval_later" in model.said(1) and "policy.approval_later" in model.said(2)
    assert "done:" in model.said(3)
    assert "policy.approval_later" in model.said(4), "an approval counts once"
    assert "policy.approval_denied" in model.said(5)
    place = project / ".spak/runs" / done.json["run"] / "workspace"
    assert (place / "made").exists() and not (place / "other").exists()
    assert cli("replay", done.json["run"], folder=project).code == 0


def said_first(person: Callable[..., Done]) -> str:
    return json.dumps(person("guard", "asks", "latest", "--json").json["approvals"][0])


def newest(person: Callable[..., Done], word: str) -> str:
    found = person("guard", "asks", "latest", "--json").json["approvals"]
    return str([one["of"] for one in found if word in one["args"]["cmd"]][-1])


def test_a_question_is_answered_when_it_is_asked_again(
    cli: Cli, project: Path, person: Callable[..., Done]
) -> None:
    question = tool("ask_person", {"question": "Which?"})
    said: list[Done] = []
    with Model([question, question, question]).serving() as model:
        model.before[1] = lambda: said.extend(
            (person("guard", "asks", "latest"), person("guard", "answer", "latest", "q1", "the second"))
        )
        model.before[2] = lambda: said.append(person("guard", "answer", "latest", "q1", "again"))
        done = guard(cli, model, project)
    assert done.code == 0, done.err
    assert 'answer   q1  "Which?"' in said[0].out and "spak guard answer" in said[0].err
    assert said[1].code == 0
    assert "guard.no_question" in said[2].err
    assert "waiting (q1)" in model.said(1)
    assert "done: the second" in model.said(2)
    assert "waiting (q2)" in model.said(3)
    after = person("guard", "asks", done.json["run"])
    assert after.code != 0 and "guard.not_running" in after.err


def test_what_other_rules_would_have_done_is_said_without_the_agent(cli: Cli, project: Path) -> None:
    write = tool("write_file", {"path": "b.txt", "content": "new"})
    with Model(["echo two >> a.txt", write, tool("read_file", {"path": "a.txt"})]).serving() as model:
        done = guard(cli, model, project)
    assert done.code == 0, done.err
    (project / "new.mg").write_text(
        'forbidden(A) :- changed(A, "a.txt", _).\nforbidden(A) :- tool(A, /read_file).\n'
    )
    name = done.json["run"]
    found = cli("guard", "replay", name, "--policy", "new.mg", "--json", folder=project)
    assert found.code == 1, found.err
    (kept,) = found.json["taken_back"]
    assert (kept["tool"], kept["paths"]) == ("contained", ["a.txt"]) and "new.mg:1" in kept["reason"]
    assert [one["name"] for one in found.json["denied"]] == ["read_file"]
    assert found.json["transactions"] == 2 and found.json["permitted"] == found.json["unknown"] == []
    said = cli("guard", "replay", name, "--policy", "new.mg", folder=project)
    assert "contained: would be taken back (a.txt)" in said.out
    (project / "new.mg").write_text("# nothing\n")
    assert cli("guard", "replay", name, "--policy", "new.mg", folder=project).code == 0


ORDER = """
Decl tested(What) descr [fold("open"), counts("done")] bound [/string].
feed_tested("src") :- event(E), tool(E, /run), runs_words(E, 1, "true"), result(E, "exit", 0).
close_tested("src") :- event(E), argument(E, "paths", P), :string:ends_with(P, ".py").
forbidden(A) :- changed(A, "VERSION", _), !tested("src").
"""


def test_a_law_knows_what_the_agent_changed_by_itself_since(cli: Cli, project: Path) -> None:
    (project / "law.mg").write_text(ORDER)
    texts = [
        "echo 1 > VERSION",
        f"{tool('run', {'cmd': ['true']})}; echo 2 > VERSION",
        "(sleep 0.1; echo x > a.py) & wait",
        "echo 3 > VERSION",
        "cat VERSION",
    ]
    with Model(texts).serving() as model:
        done = guard(cli, model, project)
    assert done.code == 0, done.err
    assert "(VERSION) were taken back" in model.said(1)
    assert "were taken back" not in model.said(2) + model.said(3)
    assert "(VERSION) were taken back" in model.said(4)
    assert "2\nexit 0" in model.said(5)
    assert cli("replay", done.json["run"], folder=project).code == 0


def test_a_thousand_questions_wait_for_nobody(cli: Cli, project: Path) -> None:
    many = (
        "for i in $(seq 20); do "
        + tool("ask_person", {"question": "N"}).replace('"N"', "\"'$i'\"")
        + "; done"
    )
    with Model([many]).serving() as model:
        done = guard(cli, model, project)
    assert done.code == 0, done.err
    assert model.said(1).count("waiting (q") == 16 and model.said(1).count("guard.questions") == 4


def test_a_person_takes_back_what_came_after_a_record(
    cli: Cli, project: Path, person: Callable[..., Done]
) -> None:
    look = "find . -path ./.git -prune -o -printf '%p %y %m %s %l\\n' | sort; cat a.txt kept.txt"
    spoil = "rm a.txt; mkdir -p deep/er; ln -s a.txt link; chmod +x law.mg; echo more > new.txt"
    back = f"while [ -e new.txt ]; do sleep 0.05; done; {look}"
    texts = [look, "echo two >> a.txt", look, spoil, "rm -r deep", back]
    said: list[Done] = []
    records: list[int] = []
    asking = threading.Thread(target=lambda: said.append(person("guard", "back", "latest", str(records[0]))))

    def record() -> None:
        trace = next(project.glob(".spak/runs/*/trace.jsonl"))
        records.append(json.loads(trace.read_bytes().splitlines()[-1])["seq"])

    with Model(texts).serving() as model:
        model.before[3] = record
        model.before[5] = asking.start  # it is done once this answer has ended
        done = guard(cli, model, project)
    asking.join()
    assert done.code == 0, done.err
    assert said[0].code == 0 and "a.txt" in said[0].out, said[0].err
    after = model.asked[6]["messages"][-2]["content"]
    assert after == model.said(3), "byte for byte, with modes, links, folders"
    assert "A person took changes back" in model.said(6)
    place = project / ".spak/runs" / done.json["run"] / "workspace"
    assert (place / "a.txt").read_text() == "one\ntwo\n" and "link" not in tree(place)
    assert cli("replay", done.json["run"], folder=project).code == 0
    assert "guard.not_running" in person("guard", "back", done.json["run"], "3").err
