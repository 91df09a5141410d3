"""The laws of specs/laws: each loads beside the one that ships, answers its cases, and holds in a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_kit import raw, spak
from spak import config
from spak.datalog import Policy
from spak.datalog.errors import PolicyError
from spak.errors import UsageError
from spak.ledger.chain import is_record_line
from spak.policy.history.trace import Trace, Verdict, read_events
from spak.policy.law import Law, compiled
from spak.records import decode
from spak.runner.genesis import all_shipped, constitution
from spak.tools import DECLARED

LAWS = sorted((Path(__file__).parents[2] / "specs/laws").glob("*.mg"))
WORLD = """
allowed_host("api.example.com").
allowed_host("git.example.com").
permitted(A) :- tool(A, /http_request), asks_url(A, "http", "api.example.com", 80).
permitted(A) :- tool(A, /deploy).
permitted(A) :- tool(A, /send_mail).
permitted(A) :- tool(A, /read_mail).
secret_may_go("DEPLOY_KEY", /deploy, "key").
"""
"""What an operator of these cases says besides."""
SETTINGS = {
    "checks_before_commit": 'must_pass("Tests").',
    "money_per_day": "money_per_day(/micro_dollars, 1000).",
    "flow": 'message_tool(/send_mail). untrusted_tool(/read_mail). untrusted_path("inbox/"). '
    "may_flow(/named, /commit).",
    "binaries": 'allowed_binary("pytest"). allowed_binary("bash").',
    "two_persons": 'release_tool(/deploy). release_program("twine").',
}


def policy(law: Path, text: str | None = None) -> Policy:
    own = {law.name: law.read_text() if text is None else text, "world.mg": WORLD}
    return compiled(Law(constitution(), {**own, "set.mg": SETTINGS.get(law.stem, "")}), "", {})


def verdicts(law: Path, made: Policy) -> list[Verdict]:
    return list(
        Trace(made, DECLARED).run(read_events(law.with_suffix(".cases.jsonl").read_text().splitlines()))
    )


def test_there_are_seven() -> None:
    assert len(LAWS) == 7


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.stem)
def test_a_law_loads_without_a_finding_and_answers_its_cases(law: Path) -> None:
    made = policy(law)
    own = {item.code for item in made.diagnostics if item.place.file.startswith("operator/")}
    assert own <= ({"policy.product"} if law.stem == "flow" else set()), "its tables are short"
    found = verdicts(law, made)
    assert {item.event.expect for item in found} >= {"allow", "deny"}
    assert [item.to_json() for item in found if not item.expected] == []


def rules(law: Path) -> list[int]:
    lines = law.read_text().replace("\n    ", " ").splitlines()
    return [number for number, line in enumerate(lines) if ":-" in line]


@pytest.mark.parametrize(
    ("law", "line"),
    [(law, line) for law in LAWS for line in rules(law)],
    ids=lambda value: value.stem if isinstance(value, Path) else str(value),
)
def test_every_rule_taken_away_changes_an_answer(law: Path, line: int) -> None:
    lines = law.read_text().replace("\n    ", " ").splitlines()
    head, body = lines[line].split(":-", 1)
    lines[line] = f"{head} :- tool(_, /never_asked), {body}"
    assert not all(item.expected for item in verdicts(law, policy(law, "\n".join(lines))))


def test_a_law_that_ships_is_named_in_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "spak.toml").write_text('[policy]\nlaw = ["spak:two_persons"]\n')
    assert list(config.law(config.settings(tmp_path, {})).operator) == ["two_persons.mg"]
    (tmp_path / "spak.toml").write_text('[policy]\nlaw = ["spak:../policy/base"]\n')
    with pytest.raises(UsageError) as caught:
        config.law(config.settings(tmp_path, {}))
    assert caught.value.code == "usage.config"


EDITS = """
AGENT Edits LEVEL 2 {
  START -> t
  TASK t {
    %s
    step new: tool.write_file { path: "new.txt" content: "n" }
    step again: tool.write_file { path: "new.txt" content: "m" }
    step old: tool.write_file { path: "old.txt" content: "o" }
  }
}
"""


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("first", "state"),
    [("", "refused"), ('step read: tool.read_file { path: "old.txt" }', "succeeded")],
    ids=["blind", "read"],
)
def test_a_run_under_a_law_that_ships(tmp_path: Path, first: str, state: str) -> None:
    (tmp_path / "spak.toml").write_text('[policy]\nlaw = ["spak:read_before_overwrite"]\n')
    (tmp_path / "work").mkdir()
    (tmp_path / "work/old.txt").write_text("old\n")
    (tmp_path / "edits.spak").write_text(EDITS % first)
    _, document = spak(tmp_path, "run", "edits.spak", "--workspace", "work", "--json")
    assert document["state"] == state, document
    assert spak(tmp_path, "replay", "latest", "--json")[0] == 0
    if state == "refused":
        (ledger,) = tmp_path.rglob("trace.jsonl")
        lines = ledger.read_bytes().splitlines(keepends=True)
        records = [decode(line) for line in lines if is_record_line(line)]
        denied = next(item.seq for item in records if item.kind == "permit" and not item.body["allow"])
        shown = raw(tmp_path, "show", "latest", "--proof", str(denied)).stdout
        assert 'no seen_file("old.txt")' in shown


FLOWS = """
AGENT Flows LEVEL 4 {
  %s
  START -> t
  TASK t {
    step read: tool.read_file { path: "inbox/1.txt" }
    step tell: tool.git_commit { message: "x" on_fail: continue }
  }
}
"""


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ("", "policy.forbidden"),
        ('POLICY """guard(/flow).\nuntrusted_path("inbox/")."""', "policy.forbidden"),
    ],
    ids=["unasked", "asked"],
)
def test_a_spec_turns_the_flow_of_text_on(tmp_path: Path, spec: str, code: str) -> None:
    """The commit is forbidden anyway, since nothing was checked; the proof says whether the flow does."""
    (tmp_path / "work/inbox").mkdir(parents=True)
    (tmp_path / "work/inbox/1.txt").write_text("one\n")
    (tmp_path / "flows.spak").write_text(FLOWS % spec)
    spak(tmp_path, "run", "flows.spak", "--workspace", "work", "--json")
    assert spak(tmp_path, "replay", "latest", "--json")[0] == 0
    (ledger,) = tmp_path.rglob("trace.jsonl")
    records = [decode(line) for line in ledger.read_bytes().splitlines(keepends=True) if is_record_line(line)]
    denied = next(item for item in records if item.kind == "permit" and not item.body["allow"])
    assert denied.body["code"] == code
    shown = raw(tmp_path, "show", "latest", "--proof", str(denied.seq)).stdout
    assert ("tainted(/named" in shown) is bool(spec), shown
    monitors = spak(tmp_path, "show", "latest", "--json")[1]["monitors"]
    assert [item["fold"] for item in monitors] == (["tainted"] if spec else [])


LISTED = """
AGENT Listed LEVEL 2 {
  START -> t
  TASK t {
    step list: tool.run { cmd: ["bash", "-c", "cat old.txt | wc -l"] }
    step other: tool.run { cmd: ["bash", "-c", "wc -l old.txt; %s"] }
  }
}
"""


@pytest.mark.sandbox
@pytest.mark.parametrize(("more", "state"), [("wc -c old.txt", "succeeded"), ("head -1 old.txt", "refused")])
def test_a_line_of_a_run_starts_only_programs_that_are_listed(tmp_path: Path, more: str, state: str) -> None:
    (tmp_path / "spak.toml").write_text('[policy]\nlaw = ["spak:binaries", "mine.mg"]\n')
    (tmp_path / "mine.mg").write_text(
        "".join(f'allowed_binary("{name}").\n' for name in ("bash", "cat", "wc"))
    )
    (tmp_path / "work").mkdir()
    (tmp_path / "work/old.txt").write_text("old\n")
    (tmp_path / "listed.spak").write_text(LISTED % more)
    _, document = spak(tmp_path, "run", "listed.spak", "--workspace", "work", "--json")
    assert document["state"] == state, document
    if state == "refused":
        assert "the law does not list the program 'head'" in json.dumps(document)


def test_a_guard_that_an_operator_named_stands_once() -> None:
    text = (LAWS[0].parent / "flow.mg").read_text()
    made = compiled(Law(all_shipped(), {"flow.mg": text}), "guard(/flow).", {})
    assert {clause.place.file for clause in made.clauses if clause.head.pred == "leaves"} == {
        "operator/flow.mg"
    }
    assert "tainted" not in {fold.name for fold in compiled(Law(all_shipped()), "", {}).folds.values()}


@pytest.mark.parametrize("own", ["may_flow(/named, /commit).", "feed_tainted(/web) :- event(E), tool(E, /x).",
                                 "approved(A) :- tool(A, /git_commit)."])  # fmt: skip
def test_a_spec_that_asks_for_a_guard_does_not_open_it(own: str) -> None:
    with pytest.raises(PolicyError) as caught:
        compiled(Law(all_shipped()), f"guard(/flow).\n{own}", {})
    assert caught.value.code == "policy.closed"


@pytest.mark.parametrize(
    "own", ["guard (/flow).", "guard\n(/flow).", "guard(X) :- X = /flow.", "guard(X) :- one(X). one(/flow)."]
)
def test_a_guard_stands_however_it_is_written(own: str) -> None:
    assert "tainted" in {fold.name for fold in compiled(Law(all_shipped()), own, {}).folds.values()}


def test_a_guard_adds_no_rows_to_what_the_levels_above_rest_on() -> None:
    """Its rules are the shipped ones, but the level that asks for it chose that they stand."""
    operator = "permitted(A) :- tool(A, /deploy), reads_all(A).\nreads_all(A) :- tool(A, /x)."
    lifted = "forbidden(A) :- tool(A, /deploy), !leaves(A, /network).\nleaves(A, /x) :- tool(A, /x)."
    for law, spec in (
        (Law(all_shipped(), {"op.mg": operator}), "guard(/flow)."),
        (Law(all_shipped(), {}, {"rules.mg": operator}), "guard(/flow)."),
        (Law(all_shipped(), {"op.mg": lifted}), "guard(/flow)."),
        (Law(all_shipped(), {"op.mg": lifted}, {"rules.mg": "guard(/flow)."}), ""),
    ):
        with pytest.raises(PolicyError) as caught:
            compiled(law, spec, {})
        assert caught.value.code == "policy.closed"
    assert compiled(Law(all_shipped(), {"op.mg": operator + "guard(/flow)."}), "guard(/flow).", {})
