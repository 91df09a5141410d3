"""Policies over events: cases as data, each wrong line refused, and what an answer says of the past."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli_kit import raw, spak
from spak.datalog import PolicyError, load
from spak.errors import UsageError
from spak.policy.history.trace import Trace, Verdict, read_events
from spak.policy.law import Law, compiled
from spak.runner.genesis import constitution

CASES = Path(__file__).parent / "cases/history"
POLICIES = sorted(CASES.glob("*.mg"))


def verdicts(policy: Path, lines: list[str] | None = None) -> list[Verdict]:
    text = (policy.with_suffix("").with_suffix(".cases.jsonl")).read_text().splitlines()
    made = load({policy.name: policy.read_text()})
    return list(Trace(made).run(read_events(text if lines is None else lines)))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda path: path.stem)
def test_each_request_is_answered_as_expected(policy: Path) -> None:
    found = verdicts(policy)
    assert len([item for item in found if item.event.expect]) >= 10
    assert [item.to_json() for item in found if not item.expected] == []


DONE = """
Decl event(E) bound [/name].
Decl tool(E, Tool) bound [/name, /name].
Decl times(N) descr [fold("count"), counts("done")] bound [/number].
feed_times() :- event(E), tool(E, /send).
permitted(A) :- tool(A, /send).
forbidden(A) :- tool(A, /send), times(N), 1 <= N.
"""


def test_what_was_done_counts_though_no_rule_reads_an_answer() -> None:
    request = '{{"action": "send", "id": "{0}", "input": {{}}, "expect": "{1}"}}'
    lines = [
        *(request.format("a", "allow"), request.format("b", "allow")),
        '{"kind": "error", "action": "send", "id": "b"}',
        *(request.format("c", "allow"), '{"kind": "response", "action": "send", "id": "a", "output": {}}'),
        request.format("d", "deny"),
    ]
    found = Trace(load({"done.mg": DONE})).run(read_events(lines))
    assert [item.to_json() for item in found if not item.expected] == []


def rules(policy: Path) -> list[tuple[Path, int]]:
    text = policy.read_text().replace("\n    ", " ").splitlines()
    return [(policy, line) for line, rule in enumerate(text) if ":-" in rule]


@pytest.mark.parametrize(
    ("policy", "line"),
    [pair for policy in POLICIES for pair in rules(policy)],
    ids=lambda value: value.stem if isinstance(value, Path) else str(value),
)
def test_every_rule_taken_away_changes_an_answer(policy: Path, line: int) -> None:
    text = policy.read_text().replace("\n    ", " ").splitlines()
    body = text[line].split(":-", 1)
    text[line] = f"{body[0]} :- tool(_, /never_asked), {body[1]}"  # the rule stays, and never holds
    made = load({policy.name: "\n".join(text)})
    lines = policy.with_suffix("").with_suffix(".cases.jsonl").read_text().splitlines()
    assert not all(item.expected for item in Trace(made).run(read_events(lines)))


def test_a_reason_names_records_and_ages() -> None:
    lines = [
        '{"at": 0, "action": "approve", "input": {"to": "B"}}',
        '{"kind": "response", "action": "approve", "output": {"ok": true}}',
        '{"at": 2460000, "action": "transfer", "input": {"to": "B", "amount": 1}}',
    ]
    last = verdicts(CASES / "transfers.mg", lines)[-1].decision
    assert last.reason == (
        'transfers.mg:26 comes closest to permitting it: it lacks approval("B"); '
        "approval: within 30m: the last is 41 minutes old, record 2"
    )
    lines[2:] = [
        '{"action": "transfer", "input": {"to": "B", "amount": 4000}}',
        '{"action": "approve", "id": "a2", "input": {"to": "B"}}',
        '{"kind": "response", "id": "a2", "output": {"ok": true}}',
        '{"action": "transfer", "id": "t2", "input": {"to": "B", "amount": 1001}}',
    ]
    last = verdicts(CASES / "transfers.mg", lines)[-1].decision
    assert last.reason.startswith("transfers.mg:30 forbids it: forbidden(A) :- tool(A, /transfer)")
    assert last.reason.endswith('; moved of "B" within 1d is 4000: record 3')


BAD = [
    ("[]", "no JSON object"),
    ("{", "no JSON"),
    ('{"action": "a", "what": 1}', "no event has a member 'what'"),
    ('{"kind": "asked", "action": "a"}', "a kind is one of request, response, error"),
    ("{}", "a request names its action"),
    ('{"kind": "response"}', "an answer names its call"),
    ('{"kind": "response", "id": "x"}', "no call of x is under way"),
    ('{"action": "a", "at": "soon"}', "at is a date"),
    ('{"action": "a", "at": -1}', "at is a date"),
    ('{"action": "a", "at": "1914-01-01"}', "at is before 1970"),
    ('{"action": "a", "input": []}', "input is an object"),
    ('{"action": 1}', "action is a string"),
    ('{"action": "a", "expect": "maybe"}', "a request expects allow or deny"),
    ('{"case": ""}', "a case is a name alone"),
    ('{"case": "x", "action": "a"}', "a case is a name alone"),
    ('{"action": "' + "a" * (1 << 20) + '"}', "more than 1048576 characters"),
]


@pytest.mark.parametrize(("line", "message"), BAD, ids=lambda value: value[:40])
def test_a_line_that_is_no_event_is_refused_by_its_number(line: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        verdicts(CASES / "at_once.mg", ["", line])
    assert caught.value.code == "policy.events"
    assert caught.value.message.startswith(f"line 2: {message}")


def test_the_same_call_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="a call named a is under way already"):
        verdicts(CASES / "at_once.mg", ['{"action": "work", "id": "a", "input": {"n": 1}}'] * 2)


def test_a_question_about_the_world_is_a_denial() -> None:
    made = load(
        {"a.mg": 'Decl w(X) bound [/name] descr [external(), mode("+")]. permitted(A) :- tool(A, _), w(A).\n'}
    )
    (found,) = Trace(made).run(read_events(['{"action": "a"}']))
    assert (found.decision.decision, found.decision.code) == ("deny", "policy.incomplete")


def test_the_example_of_the_page_answers_as_it_says() -> None:
    page = (Path(__file__).parents[2] / "docs/history.md").read_text()
    (found,) = re.findall(r"```mangle\n(.*?)```\n```\n(.*?)```", page, re.S)
    verdicts_ = list(Trace(load({"page.mg": found[0]})).run(read_events(found[1].splitlines())))
    assert len(verdicts_) == 3 and all(item.event.expect and item.expected for item in verdicts_)


def test_a_spec_feeds_no_fold_of_the_law() -> None:
    """One more row could free what the fold holds back: a negative amount, a newer value."""
    law = Law(constitution(), operator={"a.mg": COUNTED})
    with pytest.raises(PolicyError) as caught:
        compiled(law, "feed_asked(T) :- tool(_, T).", {})
    assert caught.value.code == "policy.closed"
    own = COUNTED.replace("asked", "mine").replace("Decl event(E) bound [/name].", "")
    assert len(compiled(law, own, {}).folds) == 2


COUNTED = """
Decl asked(Tool, N) bound [/name, /number] descr [fold("count")].
feed_asked(T) :- event(E), tool(E, T).
forbidden(A) :- tool(A, T), asked(T, N), 3 <= N.
"""


# ---- the command -------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for file in CASES.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_policy_test_runs_the_cases_beside_a_policy(folder: Path) -> None:
    done = raw(folder, "policy", "test", "transfers.mg", "at_once.mg")
    assert done.returncode == 0 and "8 cases, " in done.stderr and done.stderr.endswith(" 0 wrong\n")
    text = (folder / "at_once.cases.jsonl").read_text()
    (folder / "at_once.cases.jsonl").write_text(text.replace('"deny"', '"allow"', 1))
    done = raw(folder, "policy", "test", "at_once.mg")
    assert done.returncode == 1
    assert done.stdout.startswith("at_once.cases.jsonl:5: expected allow: three of 2,000 at once")
    code, document = spak(folder, "policy", "test", "at_once.mg", "--json")
    assert (code, document["ok"], [item["line"] for item in document["files"][0]["wrong"]]) == (1, False, [5])


def test_policy_check_prints_the_bound_of_each_fold(folder: Path) -> None:
    code, document = spak(folder, "policy", "check", "transfers.mg", "--json")
    assert (code, [item["name"] for item in document["folds"]]) == (0, ["approval", "moved"])
    assert all(10_000 < item["bytes"] < 500_000 for item in document["folds"])
    assert "fold moved: sum, at most " in raw(folder, "policy", "check", "transfers.mg").stderr


def test_policy_eval_answers_a_file_of_events(folder: Path) -> None:
    events = ("--events", "transfers.cases.jsonl")
    code, document = spak(folder, "policy", "eval", "transfers.mg", *events, "--json")
    first = document["requests"][0]
    assert (code, first["line"], first["decision"], first["ok"]) == (0, 2, "deny", True)
    done = raw(folder, "policy", "eval", "transfers.mg", *events, "--why")
    assert "  approval: nothing fed it yet" in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        (["test", "missing.mg"], 2, "usage.file"),
        (["test", "alone.mg"], 2, "usage.file"),
        (["test", "empty.mg"], 2, "policy.events"),
        (["eval", "alone.mg"], 2, "usage.arguments"),
        (["eval", "alone.mg", "--query", "p(X)", "--events", "x"], 2, "usage.arguments"),
        (["eval", "alone.mg", "--query", "p(X)", "--why"], 2, "usage.arguments"),
        (["eval", "alone.mg", "--events", "missing.jsonl"], 2, "usage.file"),
    ],
)
def test_bad_use_is_told(folder: Path, args: list[str], code: int, error: str) -> None:
    (folder / "alone.mg").write_text("p(/a).\n")
    (folder / "empty.mg").write_text("p(/a).\n")
    (folder / "empty.cases.jsonl").write_text('{"action": "a"}\n')
    found, document = spak(folder, "policy", *args, "--json")
    assert (found, document["error"]["code"]) == (code, error)
