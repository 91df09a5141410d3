"""What a denial says: what its proof rests on or what the closest rule lacks, and what lifts it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gate_kit import workspace, world
from spak.datalog import load
from spak.datalog.values import Fact, Name
from spak.policy.actions import Action
from spak.policy.facts import ACTION
from spak.policy.history.trace import Trace, read_events
from spak.policy.judge import judge
from spak.policy.law import Law, compiled
from spak.runner.genesis import constitution

pytestmark = pytest.mark.findings("S5.3")

RUN: list[Fact] = [("act", (ACTION, Name("/tool"))), ("sandboxed", (ACTION, Name("/restricted")))]
AFTER_A_READ = """
Decl read_private(Ago) bound [/number] descr [fold("seen"), within("5m")].
feed_read_private() :- event(E), uses_path(E, /reads, _, "notes/private.txt").
forbidden(A) :- tool(A, /http_request), read_private(_).
allowed_host("api.example.com").
"""


def why(
    folder: Path, tool: str, own: str = "", known: list[Fact] = RUN, level: str = "operator", **args: Any
) -> str:
    law = Law(constitution(), {"own.mg": own}) if level == "operator" else Law(constitution())
    made = compiled(law, own if level == "spec" else "", {})
    decision = judge(made, Action(tool, args), world(workspace(folder)), known)
    assert decision.decision == "deny"
    return decision.reason


def test_a_rule_about_the_past_is_told_and_not_what_is_odd_otherwise() -> None:
    made = compiled(Law(constitution(), {"own.mg": AFTER_A_READ}), "", {})
    lines = [
        '{"action": "http_request", "input": {"url": "https://api.example.com/x"}, "expect": "allow"}',
        '{"action": "read_file", "input": {"path": "notes/private.txt"}}',
        '{"action": "http_request", "input": {"url": "https://api.example.com/x"}, "expect": "deny"}',
    ]
    found = list(Trace(made).run(read_events(lines)))
    assert all(item.expected for item in found)
    assert found[-1].decision.reason.startswith(
        "operator/own.mg:4 forbids it: forbidden(A) :- tool(A, /http_request), read_private(_)"
    )


URL = "https://api.example.com/v1"
NAMED = 'allowed_host("api.example.com").'
CASES = [
    ("http_request", {"url": URL}, "", "the host api.example.com is not allowed", "guards.mg", True),
    (
        "http_request",
        {"url": URL, "method": "POST"},
        NAMED,
        "the method POST does more than read",
        "network.mg",
        False,
    ),
    (
        "http_request",
        {"url": URL, "body": "x"},
        NAMED,
        "a body or other arguments could",
        "network.mg",
        False,
    ),
    (
        "http_request",
        {"url": URL, "headers": {"X-Y": "z"}},
        NAMED,
        "the header 'x-y' could",
        "network.mg",
        False,
    ),
    (
        "http_request",
        {"url": "http://api.example.com/v1"},
        NAMED,
        "only https at its own port",
        "network.mg",
        False,
    ),
    ("http_request", {"url": f"{URL}?q=cGFzc3dvcmQ9aHVudGVyMg"}, NAMED, "looks encoded", "network.mg", False),
    (
        "http_request",
        {"url": "http://api:8000/"},
        NAMED,
        'a short name: allowed_host("api").',
        "guards.mg",
        True,
    ),
    (
        "http_request",
        {"url": "http://api:8000/"},
        'allowed_host("api").',
        "api is an address or a short name [host]",
        "network.mg",
        False,
    ),
    ("write_file", {"path": ".git/config", "content": ""}, "", "a path that is git's own", "files.mg", False),
    ("write_file", {"path": "../x", "content": ""}, "", "outside of the workspace", "base.mg", False),
]


@pytest.mark.parametrize(
    ("line", "words", "row"),
    [
        ("sudo ls", "'sudo' does more than read, and the law does not name it", 'allowed_program("sudo").'),
        ("rm -rf / && make", "'make' does more", 'allowed_program("make"). allowed_program("rm").'),
        ("A=1 make", "does more than read", ""),
        ("ls > out.txt", "it redirects its output to 'out.txt', a path that is in the workspace", ""),
        ("$X src", "does more than read", ""),
    ],
)
def test_a_question_names_programs_paths_and_the_row_that_would_allow(
    tmp_path: Path, line: str, words: str, row: str
) -> None:
    law = compiled(Law(constitution()), "", {})
    found = judge(law, Action("shell", {"command": line}), world(workspace(tmp_path))).to_json()
    assert found["decision"] == "ask" and words in found["reason"] and found["row"] == row, found
    assert set(found) == {"decision", "reason", "programs", "paths", "row", "why_not"}
    if row:
        law = compiled(Law(constitution(), {"own.mg": row}), "", {})
        again = judge(law, Action("shell", {"command": line}), world(workspace(tmp_path / "again")))
        assert again.decision == "allow"


@pytest.mark.parametrize(("tool", "args", "own", "words", "rule", "signed"), CASES)
def test_a_denial_of_the_shipped_law_names_its_rule_and_what_lifts_it(
    tmp_path: Path, tool: str, args: dict[str, Any], own: str, words: str, rule: str, signed: bool
) -> None:
    found = why(tmp_path, tool, own, **args)
    assert words in found and f"{rule}:" in found, found
    assert found.endswith("; a signature lifts that (APPROVALS ask)") is signed, found


@pytest.mark.parametrize(("level", "file"), [("operator", "operator/own.mg"), ("spec", "POLICY")])
def test_a_rule_of_another_level_is_told_as_it_is_written(tmp_path: Path, level: str, file: str) -> None:
    rule = 'forbidden(A) :- uses_path(A, /edits, _, P), :string:starts_with(P, "src/").'
    found = why(tmp_path, "write_file", f"\n{rule}\n", level=level, path="src/a.py", content="")
    assert found == f"{file}:2 forbids it: {rule.removesuffix('.')}"


def test_a_rule_that_almost_permits_is_told_with_what_it_lacks(tmp_path: Path) -> None:
    own = 'permitted(A) :- tool(A, /deploy), argument(A, "target", "staging").'
    found = why(tmp_path, "deploy", own, target="production")
    assert found == (
        'operator/own.mg:1 comes closest to permitting it: it lacks argument(/action, "target", "staging")'
    )
    assert "not known to the policy" in why(tmp_path / "b", "launch", own, target="staging")


def test_a_tool_that_no_rule_permits_says_that_a_person_may_sign(tmp_path: Path) -> None:
    known: list[Fact] = [*RUN, ("host_address", (ACTION, "1.1.1.1", Name("/public")))]
    found = why(
        tmp_path, "git_push", 'allowed_host("git.example.com").', known, url="https://git.example.com/a.git"
    )
    assert found == "no rule of the policy permits it but by a signature (APPROVALS ask)"


def test_without_the_shipped_law_it_says_that(tmp_path: Path) -> None:
    own = load({"rules.mg": "permitted(A) :- tool(A, /read_file)."})
    for tool, args in (("write_file", {"path": "a", "content": ""}), ("http_request", {"url": URL})):
        found = judge(own, Action(tool, args), world(workspace(tmp_path / tool)))
        assert found.reason == "no rule permits it (the shipped law is not loaded)"


def test_a_long_rule_is_cut(tmp_path: Path) -> None:
    own = "forbidden(A) :- tool(A, /read_file), !no(A" + ', "' + "x" * 2000 + '").\nDecl no(A, B).'
    assert len(why(tmp_path, "read_file", own, path="src/a.py")) < 500


def test_of_several_rules_the_one_that_no_signature_lifts_is_told(tmp_path: Path) -> None:
    """A commit after a failed check is forbidden by two: that nothing passed, and that something failed."""
    failed: list[Fact] = [*RUN, ("checks_ran", ("PyTest", Name("/fail")))]
    found = why(tmp_path / "a", "git_commit", known=failed, message="x")
    assert found.startswith("the check PyTest did not pass: fix what it found before a commit (guards.mg:")
    assert "APPROVALS" not in found
    opinion: list[Fact] = [*RUN, ("checks_ran", ("Judge", Name("/success")))]
    found = why(tmp_path / "b", "git_commit", known=opinion, message="x")
    assert found.startswith("Judge gave an opinion, which is no check") and found.endswith("(APPROVALS ask)")
