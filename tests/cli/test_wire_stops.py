"""A run whose model gives no answer stops with exit 7 or 6, says what mends it, and goes on later."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_calls import Background, Cli
from llm_stub import MODEL, Stub
from process_kit import WAIT_S

TWICE = """
AGENT Twice LEVEL 4 {
  CONFIG { BUDGET { cost: COST } }
  START -> t
  TASK t {
    step one: llm.query { role: "coder" prompt: "Say one word." output_var: first }
    step keep: tool.write_file { path: "first.txt" content: first }
    step two: llm.query { role: "critic" prompt: "Say {{first}} again." output_var: second }
    step also: tool.write_file { path: "second.txt" content: second }
  }
}
"""
PRICES = f'["{MODEL}"]\ninput = 3000000\noutput = 15000000\ncached = 300000\n'


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as made:
        yield made


def configured(
    folder: Path, stub: Stub, cost: int = 0, more: str = "", mode: str = "openai_compatible"
) -> None:
    (folder / "twice.spak").write_text(TWICE.replace("COST", str(cost)))
    (folder / "prices.toml").write_text(PRICES)
    settings = f'mode = "{mode}"\nmodel = "{MODEL}"\nbase_url = "{stub.url}"\nretries = 0\nmax_tokens = 100\n'
    (folder / "spak.toml").write_text(f"[llm]\n{settings}{more}")


@pytest.mark.parametrize(
    ("word", "code"),
    [
        ("401", "llm.key_refused"),
        ("404", "llm.unknown_model"),
        ("429_bare", "llm.rate_limited"),
        ("500", "llm.server"),
        ("cut", "llm.cut"),
        ("garbage", "llm.protocol"),
        ("content_type", "llm.protocol"),
        ("utf8", "llm.protocol"),
        ("window", "llm.window"),
    ],
)
def test_no_answer_in_the_middle_of_a_run(
    cli: Cli, tmp_path: Path, runs: Path, stub: Stub, word: str, code: str
) -> None:
    configured(tmp_path, stub)
    stub.script = ["say hello", word]
    done = cli("run", "twice.spak", "--json")
    assert (done.code, done.error) == (7, code), done.out
    run = done.json["run"]
    assert "models: 1 answer, " in cli("show", run).err
    assert done.json["error"]["hint"] and f"spak resume {run}" in done.err
    assert (runs / run / "workspace/first.txt").read_text() == "hello"
    seen = cli("show", run, "--json").json
    assert seen["state"] == "waiting" and seen["waiting"]["step"] == "two"
    assert json.loads((runs / run / "context.json").read_text())["step_pointer"] == "two"
    count = seen["records"]
    stub.script = ["say hello again"]
    done = cli("resume", run, "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded")
    assert done.json["records"] > count
    assert (runs / run / "workspace/second.txt").read_text() == "hello again"
    assert cli("replay", run, "--json").json["equal"] is True


def test_a_person_answers_where_the_model_is_gone(cli: Cli, tmp_path: Path, stub: Stub) -> None:
    configured(tmp_path, stub)
    stub.script = ["say hello", "500"]
    run = cli("run", "twice.spak", "--json").json["run"]
    done = cli("step", run, "--answer", "by hand", "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_call(tmp_path: Path, stub: Stub, number: int) -> None:
    configured(tmp_path, stub)
    stub.script = ["say hello", "drip"]
    child = Background(tmp_path, "run", "twice.spak", "--json")
    child.until(lambda: len(stub.bodies()) == 2)
    child.kill(number)
    done = child.done()
    assert (done.code, done.json["state"]) == (6, "paused"), done
    assert stub.hung_up.wait(WAIT_S)


def test_the_timeout_ends_a_call(cli: Cli, tmp_path: Path, stub: Stub) -> None:
    configured(tmp_path, stub)
    stub.script = ["silent"]
    done = cli("run", "twice.spak", "--timeout", "1", "--json")
    assert (done.code, done.json["state"]) == (6, "paused")
    stub.script = ["say word"]
    assert cli("resume", done.json["run"], "--json").json["state"] == "succeeded"


def test_what_a_run_cost_is_shown_by_call_task_and_run(cli: Cli, tmp_path: Path, stub: Stub) -> None:
    configured(tmp_path, stub, 10_000, 'prices = "prices.toml"\n')
    stub.script = ["say word"]
    done = cli("run", "twice.spak", "--json")
    # 11 tokens in, 4 of them cached, 7 out: 7 * 3 + 4 * 0.3 + 7 * 15 micro-dollars
    one = 127_200
    metrics = done.json["metrics"]
    assert (metrics["calls"], metrics["tokens"], metrics["cost_nanousd"]) == (2, 36, 2 * one)
    assert metrics["by_task"] == {"t": {"calls": 2, "tokens": 36, "cost_nanousd": 2 * one}}
    assert metrics["allowance"] == {"cost_nanousd": 10_000_000}
    shown = cli("show", done.json["run"], "--costs", "--json").json
    assert [call["cost_nanousd"] for call in shown["calls"]] == [one, one]
    assert shown["cost_nanousd"] == 2 * one and shown["calls"][0]["cached"] == 4
    assert "36 tokens, $0.0002544 of $0.01" in cli("show", done.json["run"], "--costs").out
    assert "2 answers, 36 tokens, $0.0002544 of $0.01" in cli("show", done.json["run"]).err


def test_answers_without_a_price_are_not_said_to_be_free(cli: Cli, tmp_path: Path, stub: Stub) -> None:
    configured(tmp_path, stub)
    stub.script = ["say word"]
    cli("run", "twice.spak", "--json")
    assert "in all: 2 answers, 36 tokens, $0.00, 2 of them without a price" in cli("show", "--costs").out


def test_a_budget_of_money_ends_the_run_before_the_call(cli: Cli, tmp_path: Path, stub: Stub) -> None:
    configured(tmp_path, stub, 1_500, 'prices = "prices.toml"\n')  # max_tokens alone may cost as much
    stub.script = ["say word"]
    done = cli("run", "twice.spak", "--json")
    assert (done.code, done.json["refusal"]["codes"]) == (5, ["budget.cost"])
    assert stub.bodies() == []


def test_a_model_without_a_price_is_refused_before_the_run(
    cli: Cli, tmp_path: Path, runs: Path, stub: Stub
) -> None:
    configured(tmp_path, stub, 1_500)
    done = cli("run", "twice.spak", "--json")
    assert (done.code, done.error) == (7, "llm.no_price")
    assert stub.bodies() == [] and not list(runs.glob("*"))


@pytest.mark.parametrize("table", ["[llm.roles.critic]", "[llm.tasks.t]"])
def test_a_role_and_a_task_have_their_own_settings(cli: Cli, tmp_path: Path, stub: Stub, table: str) -> None:
    configured(tmp_path, stub, 0, f'{table}\nmodel = "other:latest"\ntemperature = 0\nmode = "ollama"\n')
    (tmp_path / "spak.toml").write_text((tmp_path / "spak.toml").read_text() + f'base_url = "{stub.url}"\n')
    stub.script = ["say word"]
    assert cli("run", "twice.spak", "--json").json["state"] == "succeeded"
    paths = [path for method, path, _, _ in stub.requests if method == "POST"]
    first = "/chat/completions" if "roles" in table else "/api/chat"
    assert paths == [first, "/api/chat"]
    assert stub.bodies()[1]["model"] == "other:latest"
