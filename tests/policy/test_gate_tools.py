"""Calls of every tool of a run: the shipped examples' own are permitted, others only within their rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gate_calls import CHECKED, DENIED, HELD, ORDINARY, REQUEST, SIGNED, call, fact
from gate_kit import constitution, workspace, world
from spak import data
from spak.datalog import Fact, Name, load
from spak.policy.actions import Action, World
from spak.policy.facts import ACTION, facts
from spak.policy.judge import decide, judge
from spak.tools import TOOLS

EXAMPLES = data.path("specs/examples")


def test_every_tool_of_the_catalog_is_known_to_the_facts(tmp_path: Path) -> None:
    eyes = world(workspace(tmp_path))
    for name in TOOLS:
        known = {pred for pred, _ in facts(call(name), eyes)}
        assert "unknown_tool" not in known, name


@pytest.mark.parametrize(
    ("changes", "paths", "named", "cut"),
    [
        (2, ["a.py", "b.py"], ["a.py", "b.py"], False),
        (300, ["a.py"], ["a.py"], True),
        (1, ["a" * 401], [], True),
        (0, [], [], True),
    ],
)
def test_what_a_guarded_agent_changed_is_stated(
    tmp_path: Path, changes: int, paths: list[str], named: list[str], cut: bool
) -> None:
    found = facts(call("contained", root="r", changes=changes, paths=paths), world(workspace(tmp_path)))
    stated = [args[1:] for pred, args in found if pred == "argument"]
    assert stated == [("changes", changes), *(("paths", path) for path in named)]
    assert (("cut_argument", (ACTION, "paths")) in found) is cut


@pytest.mark.parametrize("args", [{"changes": 1, "paths": "a.py"}, {"changes": "1", "paths": []}, {}])
def test_what_is_no_list_of_changes_is_denied(tmp_path: Path, args: dict[str, Any]) -> None:
    decision = judge(constitution(), call("contained", root="r", **args), world(workspace(tmp_path)), HELD)
    assert decision.decision == "deny"


@pytest.mark.parametrize("action", ORDINARY, ids=lambda action: action.tool)
def test_an_ordinary_call_is_permitted_in_a_sandbox(action: Action, tmp_path: Path) -> None:
    decision = judge(constitution(), action, world(workspace(tmp_path)), HELD)
    assert decision.decision == "allow", decision.reason


def test_the_patch_of_the_example_is_permitted_by_content_and_by_paths(tmp_path: Path) -> None:
    from spak.tools.observe.paths import Observer

    eyes = Observer((EXAMPLES / "build_feature").resolve())
    action = call("apply_patch", patch=(EXAMPLES / "fix.patch").read_text(), protect=["tests/"])
    for read in (eyes.read, None):
        assert judge(constitution(), action, World(eyes.look, eyes.spread, read)).decision == "allow"


@pytest.mark.parametrize("action", DENIED, ids=lambda action: action.tool + str(action.args)[:40])
def test_what_no_rule_permits_is_denied(action: Action, tmp_path: Path) -> None:
    decision = judge(constitution(), action, world(workspace(tmp_path)), HELD)
    assert decision.decision == "deny" and decision.reason and decision.why_not


def test_a_patch_judged_by_its_paths_may_not_leave_either(tmp_path: Path) -> None:
    eyes = world(workspace(tmp_path))
    blind = World(eyes.look, eyes.spread, None)
    for path in ("link_dir/canary.txt", ".git/config", "hardlink", ".env"):
        patch = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-c\n+d\n"
        assert judge(constitution(), call("apply_patch", patch=patch), blind).decision == "deny", path


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_a_tool_that_starts_programs_needs_a_sandbox(tool: str, tmp_path: Path) -> None:
    eyes = world(workspace(tmp_path))
    action = next(item for item in (*ORDINARY, *SIGNED) if item.tool == tool)
    signed: list[Fact] = [("signed_approval", (ACTION, "ada"))] if action in SIGNED else []
    sandboxed = TOOLS[tool].entry.sandboxed
    for level in ("none", "restricted", "docker", "gpu", "gvisor"):
        known: list[Fact] = [("sandboxed", (ACTION, Name("/" + level))), CHECKED, *signed]
        allowed = judge(constitution(), action, eyes, known).decision == "allow"
        assert allowed is (not sandboxed or level != "none"), level
    assert (judge(constitution(), action, eyes, [CHECKED, *signed]).decision == "allow") is not sandboxed


def test_a_task_that_names_its_tools_uses_no_other(tmp_path: Path) -> None:
    eyes = world(workspace(tmp_path))
    named: list[Fact] = [("declared_tool", (Name("/cc"),)), ("declared_tool", (Name("/write_file"),))]
    assert judge(constitution(), call("write_file", path="a", content=""), eyes, named).decision == "allow"
    assert judge(constitution(), call("read_file", path="a"), eyes, named).decision == "deny"


@pytest.mark.parametrize("who", ["signed_approval", "admin_override"])
def test_an_approval_permits_what_is_not_forbidden(who: str, tmp_path: Path) -> None:
    eyes = world(workspace(tmp_path))
    given: list[Fact] = [*HELD, (who, (ACTION, "ada"))]
    write = call("write_file", path=".gitmodules/../.env", content="")
    assert judge(constitution(), write, eyes, HELD).decision == "deny"
    assert judge(constitution(), write, eyes, given).decision == "allow"
    for never in (call("read_file", path="link_abs"), call("run", cmd=[])):
        assert judge(constitution(), never, eyes, given).code == "policy.forbidden"


def test_a_push_needs_a_signature_and_an_address_that_is_reached(tmp_path: Path) -> None:
    [push], eyes = SIGNED, world(workspace(tmp_path))
    signed: list[Fact] = [*HELD, ("signed_approval", (ACTION, "ada"))]

    def decided(action: Action, known: Iterable[Fact], address: str = "93.184.216.34") -> str:
        looking = replace(eyes, resolve=lambda host: (address,))
        return judge(constitution(), action, looking, known).decision

    assert decided(push, signed) == "allow"
    assert decided(push, HELD) == "deny"
    for address in ("127.0.0.1", "10.1.2.3", "169.254.169.254"):
        assert decided(push, signed, address) == "deny"
    with_token = call("git_push", **push.args, token="secret://TOKEN")
    assert decided(with_token, signed) == "deny"
    assert decided(with_token, [*signed, ("secret_may_go", ("TOKEN", Name("/git_push"), "token"))]) == "allow"
    elsewhere = call("git_push", **push.args, commit="secret://TOKEN")
    assert decided(elsewhere, [*signed, ("secret_may_go", ("TOKEN", Name("/git_push"), "token"))]) == "deny"


def test_a_tunnel_goes_to_the_port_that_the_law_names_at_an_address_that_is_reached(tmp_path: Path) -> None:
    eyes = world(workspace(tmp_path))
    named = [*HELD, ("allowed_port", ("db.example.org", 5432))]

    def decided(host: str, port: int, address: str = "93.184.216.34") -> str:
        looking = replace(eyes, resolve=lambda host: (address,))
        return judge(constitution(), call("tunnel", host=host, port=port), looking, named).decision

    assert decided("db.example.org", 5432) == "allow"
    assert decided("db.example.org", 443) == "deny"
    assert decided("packages.example", 5432) == "deny"
    assert decided("db.example.org", 5432, "10.0.0.1") == "deny"
    request = call("http_request", url="https://db.example.org:5432/")
    assert judge(constitution(), request, eyes, named).decision == "deny"


def test_what_would_run_by_itself_is_pushed_by_a_signature_that_names_it(tmp_path: Path) -> None:
    [push], eyes = SIGNED, world(workspace(tmp_path))
    eyes = replace(eyes, resolve=lambda host: ("93.184.216.34",))
    shipped = {file.name: file.read_text() for file in sorted(data.path("specs/policy").glob("*.mg"))}
    law = load({**shipped, "law.mg": "permitted(A) :- tool(A, /git_push)."})
    named = call("git_push", **push.args, runs=["conftest.py", "Makefile"])
    signed: list[Fact] = [*HELD, ("signed_approval", (ACTION, "ada"))]
    assert judge(law, push, eyes, HELD).decision == "allow"
    assert judge(law, named, eyes, HELD).decision == "deny"
    assert judge(law, named, eyes, signed).decision == "allow"
    for odd in ("conftest.py", [7], {"sha256": "x"}):
        twisted = call("git_push", **push.args, runs=odd)
        assert judge(law, twisted, eyes, signed).decision == "deny"


@pytest.mark.parametrize("what", ["requests", "request_bytes", "tokens", "steps"])
def test_no_budget_is_overdrawn(what: str, tmp_path: Path) -> None:
    eyes = world(workspace(tmp_path))
    action = call("http_request", url="https://packages.example/simple/x/", method="GET")

    def allowed(spent: int, most: int) -> bool:
        known: list[Fact] = [
            ("spent", (Name("/" + what), spent)),
            ("allowance", (Name("/" + what), most)),
        ]
        return judge(constitution(), action, eyes, known).decision == "allow"

    assert allowed(0, 100) and not allowed(101, 100)
    assert allowed(100, 100) is (what in ("tokens", "steps"))


def test_a_policy_may_permit_a_tool_that_it_names(tmp_path: Path) -> None:
    from spak.datalog import load

    texts = {file.name: file.read_text() for file in data.path("specs/policy").glob("*.mg")}
    texts["own.mg"] = 'permitted(A) :- tool(A, /deploy), argument(A, "target", "staging").\n'
    own, eyes = load(texts), world(workspace(tmp_path))
    assert judge(own, call("deploy", target="staging"), eyes).decision == "allow"
    assert judge(own, call("deploy", target="production"), eyes).decision == "deny"
    assert judge(own, call("deploy", target="staging", key="secret://K"), eyes).decision == "deny"
    assert judge(own, call("deploy2", target="staging"), eyes).decision == "deny"


def test_a_fault_of_the_judgement_is_a_denial(tmp_path: Path) -> None:
    def broken(path: str) -> Any:
        raise KeyError(path)

    eyes = world(workspace(tmp_path))
    blind = World(broken, eyes.spread, eyes.read)
    decision = judge(constitution(), call("read_file", path="a"), blind)
    assert (decision.decision, decision.code) == ("deny", "policy.bug") and "KeyError" in decision.reason
    assert decide(constitution(), [("tool", 7)]).code == "policy.bug"  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("action", "known", "reason"),
    [
        (call("cc", source="a.c"), [], "no sandbox"),
        (call("cc", source="a.c"), [fact("sandboxed", ACTION, "/none")], "no sandbox"),
        (call("read_file", path="a"), [fact("declared_tool", "/cc")], "TOOLS"),
        (call("read_file", path="a"), [fact("spent", "/steps", 2), fact("allowance", "/steps", 1)], "budget"),
        (
            call("write_file", path="a", content="secret://K"),
            [],
            'secret_may_go("K", /write_file, "content").',
        ),
        (call("write_file", path="a", content="AKIA" + "Q" * 16), [], "value of a secret (cloud_key)"),
        (REQUEST, [fact("unresolved", ACTION, "packages.example")], "has no address"),
        (
            REQUEST,
            [fact("host_address", ACTION, "10.0.0.1", "/private")],
            "10.0.0.1, an address that is private; an operator's law reaches it: reachable_kind(/private).",
        ),
        (REQUEST, [fact("host_address", ACTION, "224.0.0.1", "/multicast")], "that is multicast ("),
        (call("deploy"), [fact("sandboxed", ACTION, "/none")], "not known to the policy"),
        (call("read_file", path=".env"), [], "secret"),
    ],
)
def test_a_denial_says_why(action: Action, known: list[Fact], reason: str, tmp_path: Path) -> None:
    decision = judge(constitution(), action, world(workspace(tmp_path)), known)
    assert decision.decision == "deny" and reason in decision.reason, decision.reason


def test_a_rule_of_ones_own_that_forbids_is_told_as_such(tmp_path: Path) -> None:
    from spak.datalog import load

    texts = {file.name: file.read_text() for file in data.path("specs/policy").glob("*.mg")}
    own = load({**texts, "own.mg": "forbidden(A) :- tool(A, /read_file).\n"})
    decision = judge(own, call("read_file", path="a"), world(workspace(tmp_path)))
    assert decision.reason == "own.mg:1 forbids it: forbidden(A) :- tool(A, /read_file)"
