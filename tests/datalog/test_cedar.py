"""Permit and forbid mean what they mean in Cedar: random policies, asked of both engines.

A clause of a policy has conditions on attributes of the request. Here they are literals over facts, there
expressions over the context; an attribute that a request does not have is no row here and absent there.
"""

from __future__ import annotations

import cedarpy
from hypothesis import given
from hypothesis import strategies as st

from policy_kit import LAW
from spak.datalog import Fact, Name, load

A = Name("/action")
ATTRIBUTES = ("tool", "place", "label")
VALUES = ("a", "b", "c")
FORMS = {
    "is": ("{attr}(A, /{value})", '(context has {attr} && context.{attr}.contains("{value}"))'),
    "is_not": ("!{attr}(A, /{value})", '!(context has {attr} && context.{attr}.contains("{value}"))'),
    "has": ("{attr}(A, _)", "(context has {attr} && !context.{attr}.isEmpty())"),
    "lacks": ("!{attr}(A, _)", "!(context has {attr} && !context.{attr}.isEmpty())"),
}
"""A condition as a literal, and as an expression of Cedar."""
CLAUSES = st.lists(
    st.tuples(
        st.sampled_from(["permit", "forbid"]),
        st.lists(
            st.tuples(st.sampled_from(sorted(FORMS)), st.sampled_from(ATTRIBUTES), st.sampled_from(VALUES)),
            max_size=3,
        ),
    ),
    max_size=6,
)
REQUESTS = st.dictionaries(
    st.sampled_from(ATTRIBUTES), st.lists(st.sampled_from(VALUES), unique=True, max_size=3)
)
Clauses = list[tuple[str, list[tuple[str, str, str]]]]
DECLS = "Decl asked(A). Decl permitted(A). Decl forbidden(A). " + " ".join(
    f"Decl {attr}(A, V)." for attr in ATTRIBUTES
)


def ours(clauses: Clauses, request: dict[str, list[str]]) -> bool:
    rules = [DECLS]
    for effect, conditions in clauses:
        literals = [FORMS[form][0].format(attr=attr, value=value) for form, attr, value in conditions]
        head = "permitted" if effect == "permit" else "forbidden"
        rules.append(f"{head}(A) :- {', '.join(['asked(A)', *literals])}.")
    facts: list[Fact] = [("asked", (A,))]
    facts += [(attr, (A, Name("/" + value))) for attr, values in request.items() for value in values]
    session = load({"a.mg": "\n".join(rules)}).session(facts)
    return session.holds("permitted", A) and not session.holds("forbidden", A)


def cedars(clauses: Clauses, request: dict[str, list[str]]) -> bool:
    policies = []
    for effect, conditions in clauses:
        tests = [FORMS[form][1].format(attr=attr, value=value) for form, attr, value in conditions]
        policies.append(f"{effect}(principal, action, resource) when {{ {' && '.join(tests) or 'true'} }};")
    asked = {
        "principal": 'User::"u"',
        "action": 'Action::"x"',
        "resource": 'Thing::"t"',
        "context": request,
    }
    found = cedarpy.is_authorized(asked, "\n".join(policies), [])
    assert not found.diagnostics.errors
    return found.allowed


@LAW
@given(clauses=CLAUSES, request=REQUESTS)
def test_a_decision_is_the_one_that_cedar_makes(clauses: Clauses, request: dict[str, list[str]]) -> None:
    assert ours(clauses, request) == cedars(clauses, request)
