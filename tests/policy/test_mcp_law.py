"""The rules about tools of MCP servers (specs/policy/guards/mcp.mg): who may permit, and what is decided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spak.datalog import PolicyError
from spak.datalog.values import Name
from spak.lang.catalog import ToolEntry
from spak.policy.actions import Action
from spak.policy.history.trace import BLIND
from spak.policy.judge import Decision, judge
from spak.policy.law import Law, compiled
from spak.runner.genesis import all_shipped, of_servers
from spak.runner.laws import for_spec

USES = {
    "secret://": "text",
    "mcp://small/say": "pin=p",
    "mcp://small": "stdio=i",
    "mcp://?destructive": "text",
}
LISTED = ("small", "", Name("/listed"), "p")
MAY = 'mcp_may("small", "say").'
FLOWS = ("", 'mcp_flow("small", "example.org").')
SIGNED = [("signed_approval", (Name("/action"), "alice"))]


def decided(law: str, *rows: tuple[Any, ...], known: Any = (), team: str = "", spec: str = "") -> Decision:
    """What is decided on a call of `small__say`, where the server lists these rows."""
    whole = Law(all_shipped(), {"law.mg": law} if law else {}, {"team.mg": team} if team else {})
    policy = compiled(of_servers(whole), spec, {})

    def answers(requests: list[Any]) -> list[Any]:
        return [list(rows) if one.pred == "mcp_listed" else [] for one in requests]

    world = replace(BLIND, declared={"small__say": USES})
    return judge(policy, Action("small__say", {"text": "hi"}), world, known, answers)


def test_a_rule_or_a_signature_permits_a_server_that_is_as_it_was_approved() -> None:
    assert decided(MAY, LISTED).decision == "allow"
    assert decided("", LISTED, team=MAY).decision == "allow"
    assert decided("", LISTED, known=SIGNED).decision == "allow"
    assert decided("", LISTED).decision == "deny"
    assert decided(MAY).decision == "deny", "it listed nothing"


@pytest.mark.parametrize("state", ["changed", "gone", "unavailable"])
def test_a_server_that_is_another_one_is_denied_whatever_permits_it(state: str) -> None:
    row = ("small", "other_tool", Name(f"/{state}"), "description")
    for known in ((), SIGNED):
        found = decided(MAY, row, LISTED, known=known)
        assert found.decision == "deny"
        assert found.code == ("policy.forbidden" if state == "unavailable" else "mcp.changed")
    wide = "permitted(A) :- tool(A, /small__say)."
    assert decided(wide, row, LISTED).decision == "deny"
    assert decided(wide, LISTED).decision == "deny", "no rule names server and tool"


def test_a_tool_that_came_denies_no_other() -> None:
    assert decided(MAY, ("small", "more", Name("/new"), ""), LISTED).decision == "allow"


def test_a_law_may_be_stricter_by_what_a_server_says_of_its_tool() -> None:
    strict = "forbidden(A) :- tool(A, T), mcp_hint(T, /destructive), !approved(A)."
    assert decided(MAY + strict, LISTED).decision == "deny"
    assert decided(MAY + strict, LISTED, known=SIGNED).decision == "allow"


@pytest.mark.parametrize("text", [MAY, 'mcp_flow("a", "b").', "mcp_pin_ok(A) :- tool(A, _)."])
def test_a_spec_permits_nothing(text: str) -> None:
    with pytest.raises(PolicyError) as found:
        decided("", LISTED, spec=text)
    assert found.value.code == "policy.closed"


def test_no_text_states_what_a_tool_is_or_what_a_server_lists() -> None:
    stated = 'mcp_tool(/x, "a", "b", "c").', 'mcp_listed("a", "", /new, "").'
    for text, code in zip(stated, ("reserved", "invalid"), strict=True):
        with pytest.raises(PolicyError) as found:
            decided(text, LISTED)
        assert found.value.code == f"policy.{code}"


def test_the_rules_are_part_of_the_law_of_specs_that_name_such_a_tool_alone() -> None:
    law = Law(all_shipped())
    served = ToolEntry("small__say", 1, "", {}, arguments=USES)
    tools = {"small__say": served, "grep": ToolEntry("grep", 1, "", {})}
    assert for_spec(law, "TOOLS [grep]", tools) is law
    assert "mcp.mg" in for_spec(law, "TOOLS [small__say]", tools).shipped


def test_data_of_a_server_goes_to_no_host_but_by_a_rule() -> None:
    url = "https://example.org/?q=1"
    actions = [Action("http_request", {"url": url}), Action("tunnel", {"host": "example.org", "port": 443})]
    world = replace(BLIND, resolve=lambda host: ("93.184.216.34",))
    answered = [("mcp_answered", ("small", 1))]
    for law in FLOWS:
        texts = {"law.mg": 'allowed_host("example.org").\n' + law}
        policy = compiled(of_servers(Law(all_shipped(), texts)), "", {})
        for action in actions:
            assert judge(policy, action, world).decision == "allow"
            found = judge(policy, action, world, answered)
            assert found.decision == ("allow" if law else "deny"), (law, action)
            assert law or 'mcp_flow("small", "example.org").' in found.reason
            assert judge(policy, action, world, [*answered, *SIGNED]).decision == "allow"
