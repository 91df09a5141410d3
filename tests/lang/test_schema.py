"""The pinned schema dialect against python-jsonschema as an independent judge."""

from __future__ import annotations

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spak.errors import SpecError
from spak.lang.schema import MAX_VIOLATIONS, UNKNOWN, check_schema, violations

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-4, 4),
    st.sampled_from([0.5, 1.0, -2.0, 2.5]),
    st.text("abé", max_size=4),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from("abcd"), inner, max_size=4)
    ),
    max_leaves=8,
)
types = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])


def schemas_over(inner: st.SearchStrategy[dict]) -> st.SearchStrategy[dict]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.one_of(types, st.lists(types, min_size=1, max_size=3, unique=True)),
            "enum": st.lists(values, min_size=1, max_size=3),
            "const": values,
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            "required": st.lists(st.sampled_from("abcd"), max_size=2, unique=True),
            "additionalProperties": st.one_of(st.booleans(), inner),
            "items": inner,
            "minItems": st.integers(0, 3),
            "maxItems": st.integers(0, 3),
            "minimum": st.integers(-2, 2),
            "maximum": st.integers(-2, 2),
            "minLength": st.integers(0, 3),
            "maxLength": st.integers(0, 3),
            "pattern": st.sampled_from(["^a", "b+$", "[ab]{2}", "é"]),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
        },
    )


schemas = st.recursive(schemas_over(st.just({})), schemas_over, max_leaves=4)


@settings(max_examples=600, deadline=None)
@given(schemas, values)
def test_agrees_with_jsonschema(schema, value):
    check_schema(schema)
    ours = {item.path for item in violations(schema, value)}
    oracle = jsonschema.Draft202012Validator(schema)
    theirs = ["".join(f"/{part}" for part in error.absolute_path) for error in oracle.iter_errors(value)]
    assert bool(ours) == bool(theirs)
    # A member too many is reported at the member, not at the object; types hide what follows from them.
    for path in ours:
        assert path in theirs or path.rpartition("/")[0] in theirs


STRING = {"type": "string", "maxLength": 10}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (STRING, {"$blob": "x" * 43, "size": 12}),
        (STRING, {"$text": ["a", {"$blob": "y", "size": 3}]}),
        ({"type": ["string", "null"]}, {"$text": []}),
        ({}, {"$blob": "x", "size": 1}),
        ({"type": "object", "properties": {"a": STRING}}, {"a": {"$text": []}}),
        ({"anyOf": [{"type": "integer"}, STRING]}, {"$text": []}),
        ({"type": "integer"}, UNKNOWN),
        ({"type": "array", "items": {"type": "integer"}}, [1, UNKNOWN]),
    ],
)
def test_stand_ins_pass_where_a_string_is_wanted(schema, value):
    assert violations(schema, value) == []


@pytest.mark.parametrize(
    ("schema", "value", "code"),
    [
        ({"type": "integer"}, {"$text": []}, "schema.type"),
        (STRING, {"$blob": "x", "size": 41}, "schema.max_length"),
        ({"type": "string", "minLength": 9}, {"$blob": "x", "size": 8}, "schema.min_length"),
        ({"type": "string", "enum": ["a"]}, {"$blob": "x", "size": 70000}, "schema.enum"),
        (STRING, {"$blob": "x", "size": 1, "more": 2}, "schema.type"),
    ],
)
def test_stand_ins_do_not_pass_elsewhere(schema, value, code):
    assert [item.code for item in violations(schema, value)] == [code]


def test_a_violation_says_where_what_and_how_to_mend():
    schema = {
        "type": "object",
        "properties": {
            "flags": {"type": "array", "items": {"enum": ["-O2", "-O3"]}},
            "out": {"type": "string"},
        },
        "required": ["out"],
        "additionalProperties": False,
    }
    found = violations(schema, {"flags": ["-O2", "-o3"], "outt": 1})
    assert [(item.path, item.code, item.hint) for item in found] == [
        ("", "schema.required", "add 'out'"),
        ("/flags/1", "schema.enum", "did you mean '-O3'?"),
        ("/outt", "schema.unknown_member", "did you mean 'out'?"),
    ]


def test_a_flood_of_violations_is_cut():
    assert len(violations({"items": {"type": "null"}}, [1] * 1000)) == MAX_VIOLATIONS


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"type": "file"},
        {"pattern": "(?=a)"},
        {"properties": {"a": {"format": "uri"}}},
        {"items": {"oneOf": []}},
        {"anyOf": []},
        {"minimum": "1"},
        {"maxItems": -1},
        {"required": "a"},
        [],
    ],
)
def test_keywords_outside_the_dialect_are_refused(schema, capfd):
    with pytest.raises(SpecError) as caught:
        check_schema(schema)
    assert caught.value.code == "lang.schema"
    assert capfd.readouterr().err == ""
