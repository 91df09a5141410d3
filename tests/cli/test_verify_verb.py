"""`spak verify`: an artifact against the axioms of a spec; what is not checked does not count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_calls import Cli

SPEC = """
system_model Rules {
  axiom: "Inputs are contiguous."
  axiom: "It never sleeps." CHECK not_contains { text: "sleep" }
  axiom: "It exports attention." CHECK exports_symbol { symbol: ["attention"] }
}
task T { step a: tool.run { cmd: "true" } }
"""
GOOD = "void attention(void) { }\n"
BAD = "int helper(void) {\n  return sleep(1);\n}\n"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "rules.spak"
    path.write_text(SPEC)
    return path


def test_an_artifact_that_complies(cli: Cli, spec: Path, tmp_path: Path) -> None:
    (tmp_path / "good.c").write_text(GOOD)
    done = cli("verify", "--artifact", "good.c", "--spec", "rules.spak", "--json")
    assert (done.code, done.json) == (
        0,
        {
            "artifact": "good.c",
            "spec": "rules.spak",
            "passed": True,
            "violations": [],
            "unchecked": ["Inputs are contiguous."],
            "held": ["It never sleeps.", "It exports attention."],
            "judged": [],
            "axioms": [
                {"index": 1, "axiom": "Inputs are contiguous.", "kind": "prompt", "holds": None},
                {"index": 2, "axiom": "It never sleeps.", "kind": "checked", "holds": True},
                {"index": 3, "axiom": "It exports attention.", "kind": "checked", "holds": True},
            ],
        },
    )
    people = cli("verify", "--artifact", "good.c", "--spec", "rules.spak")
    assert people.code == 0 and "unchecked, only given to a model: Inputs are contiguous." in people.err


def test_an_artifact_that_does_not(cli: Cli, spec: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.c").write_text(BAD)
    done = cli("verify", "--artifact", "bad.c", "--spec", "rules.spak", "--json")
    assert (done.code, done.json["passed"], done.json["held"]) == (1, False, [])
    first, second = done.json["violations"]
    assert first == {
        "index": 2,
        "axiom": "It never sleeps.",
        "check": "not_contains",
        "code": "forbidden_text",
        "message": "contains 'sleep'",
        "line": 2,
    }
    assert (second["index"], second["code"]) == (3, "missing_symbol")
    people = cli("verify", "--artifact", "bad.c", "--spec", "rules.spak")
    assert people.code == 1 and "bad.c:2: contains 'sleep' [forbidden_text]" in people.err


def test_what_is_not_checked_has_not_passed(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "plain.spak").write_text(
        'system_model M { axiom: "Be good." } task T { step a: tool.run { cmd: "true" } }'
    )
    (tmp_path / "good.c").write_text(GOOD)
    done = cli("verify", "--artifact", "good.c", "--spec", "plain.spak", "--json")
    assert (done.code, done.json["passed"], done.json["unchecked"]) == (1, False, ["Be good."])
    assert "nothing was checked" in cli("verify", "--artifact", "good.c", "--spec", "plain.spak").err


@pytest.mark.parametrize(
    ("check", "code"),
    [
        ("no_such_check { x: 1 }", "unknown_check"),
        ("max_lines", "bad_argument"),
        ("max_lines { lines: -1 }", "bad_argument"),
        ('contains { text: "a" more: 1 }', "bad_argument"),
    ],
)
def test_a_check_that_cannot_be_done_does_not_hold(cli: Cli, tmp_path: Path, check: str, code: str) -> None:
    (tmp_path / "odd.spak").write_text(
        f'system_model M {{ axiom: "A." CHECK {check} }} task T {{ step a: tool.run {{ cmd: "true" }} }}'
    )
    (tmp_path / "a.txt").write_text("a")
    done = cli("verify", "--artifact", "a.txt", "--spec", "odd.spak", "--json")
    found = done.json.get("violations") or done.json["diagnostics"]
    assert done.code in (1, 3) and (done.code == 3 or found[0]["code"] == code)


def test_files_that_cannot_be_read(cli: Cli, spec: Path, tmp_path: Path) -> None:
    (tmp_path / "good.c").write_text(GOOD)
    (tmp_path / "broken.spak").write_text("task {")
    for artifact, name, code, error in (
        ("missing.c", "rules.spak", 2, "usage.file"),
        (".", "rules.spak", 2, "usage.file"),
        ("good.c", "missing.spak", 2, "usage.file"),
        ("good.c", "broken.spak", 3, "lang.invalid"),
    ):
        done = cli("verify", "--artifact", artifact, "--spec", name, "--json")
        assert (done.code, done.error) == (code, error), (artifact, name)
    broken = cli("verify", "--artifact", "good.c", "--spec", "broken.spak", "--json")
    assert broken.json["diagnostics"]
    assert cli("verify", "--artifact", "good.c", "--json").error == "usage.arguments"


def test_any_bytes_are_an_artifact(cli: Cli, spec: Path, tmp_path: Path) -> None:
    (tmp_path / "odd.c").write_bytes(bytes(range(256)) * 100)
    done = cli("verify", "--artifact", "odd.c", "--spec", "rules.spak", "--json")
    assert done.code == 1 and done.json["violations"][0]["code"] == "missing_symbol"


RULES = """
system_model Rules {
  axiom: "forbidden(A) :- uses_path(A, /edits, _, \\"src/x.c\\")."
  axiom: "It never sleeps." CHECK not_contains { text: "sleep" }
  axiom: "AXIOM"
}
task T { step a: tool.run { cmd: "true" } }
"""


def test_an_axiom_that_is_a_rule_is_told_apart_and_has_to_load(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "good.c").write_text(GOOD)
    spec = tmp_path / "rules.spak"
    spec.write_text(RULES.replace("AXIOM", "permitted(A) :- no_such(A)"))
    done = cli("verify", "--artifact", "good.c", "--spec", "rules.spak", "--json")
    assert [item["kind"] for item in done.json["axioms"]] == ["rule", "checked", "prompt"]
    assert (done.code, [item["holds"] for item in done.json["axioms"]]) == (0, [True, True, None])
    assert "a rule of every run" in cli("verify", "--artifact", "good.c", "--spec", "rules.spak").err
    spec.write_text(RULES.replace("AXIOM", "permitted(A) :- tool(A)."))
    done = cli("verify", "--artifact", "good.c", "--spec", "rules.spak", "--json")
    assert (done.code, done.json["passed"], done.json["axioms"][2]["holds"]) == (1, False, False)
    assert [(item["index"], item["check"], item["code"]) for item in done.json["violations"]] == [
        (3, "rule", "policy.invalid")
    ]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("forbidden(A) :- tool(A, /deploy).", True),
        ("mine(/a). mine(/b).", False),
        ("Decl mine(A).", False),
        ("Tests are not edited.", False),
        ("safe.", False),
        ("Use f(x).", False),
        ("not forbidden(A)", False),
        ("forbidden(A) :- tool(A, /deploy). And be nice.", False),
        ('forbidden(A) :- tool(A, "x").', True),
        ("forbidden(A) :- tool(A, .", False),
        ("", False),
        ("(" * 5000 + ".", False),
    ],
)
def test_only_whole_clauses_are_rules(text: str, rule: bool) -> None:
    from spak.policy.law import is_clause, rules_of

    assert is_clause(text) is rule
    assert rules_of(["Be good.", text]) == ({"axiom.2": text} if rule else {})


def test_a_rule_is_read_beside_the_policy_of_the_spec(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "good.c").write_text(GOOD)
    (tmp_path / "own.mg").write_text("Decl mine(Path) bound [/string].\n")
    (tmp_path / "rules.spak").write_text(
        'AGENT A LEVEL 2 {\n  POLICY "own.mg"\n  SYSTEM_MODEL M {\n'
        '    AXIOM "forbidden(A) :- uses_path(A, /edits, _, P), !mine(P)."\n'
        '    AXIOM "It never sleeps." CHECK not_contains { text: "sleep" }\n  }\n'
        '  START -> t\n  TASK t { step a: tool.run { cmd: "true" } }\n}\n'
    )
    done = cli("verify", "--artifact", "good.c", "--spec", "rules.spak", "--json")
    assert (done.code, done.json["violations"]) == (0, [])


JUDGED = """
system_model Rules {
  axiom: "It never sleeps." CHECK not_contains { text: "sleep" }
  axiom: "It is kind." CHECK judge { rubric: "No comment blames a person." }
}
task T { step a: tool.run { cmd: "true" } }
"""


def with_model(tmp_path: Path, answer: str, spec: str = JUDGED) -> tuple[str, ...]:
    (tmp_path / "judged.spak").write_text(spec)
    (tmp_path / "good.c").write_text(GOOD)
    (tmp_path / "spak.toml").write_text('[llm]\nmode = "recorded"\nrecording = "answers.jsonl"\n')
    (tmp_path / "answers.jsonl").write_text(json.dumps({"text": answer}) + "\n")
    return ("verify", "--artifact", "good.c", "--spec", "judged.spak", "--json")


@pytest.mark.parametrize(
    ("answer", "code", "codes", "holds"),
    [
        ('{"pass": true, "reasons": ["no comment at all"]}', 0, [], True),
        ('{"pass": false, "reasons": ["line 1", "line 2"]}', 1, ["judge.failed"], False),
        ("It is very kind.", 1, ["judge.malformed"], False),
        ('{"pass": true, "reasons": ["x"], "score": 9}', 1, ["judge.malformed"], False),
        ('{"pass": "true", "reasons": ["x"]}', 1, ["judge.malformed"], False),
    ],
)
def test_a_configured_model_is_asked_for_its_opinion(
    cli: Cli, tmp_path: Path, answer: str, code: int, codes: list[str], holds: bool
) -> None:
    done = cli(*with_model(tmp_path, answer))
    assert (done.code, [item["code"] for item in done.json["violations"]]) == (code, codes)
    assert done.json["held"] == ["It never sleeps."]
    assert done.json["judged"] == (["It is kind."] if holds else [])
    assert done.json["axioms"][1] == {"index": 2, "axiom": "It is kind.", "kind": "judged", "holds": holds}


def test_an_opinion_alone_passes_nothing(cli: Cli, tmp_path: Path) -> None:
    alone = JUDGED.replace(' CHECK not_contains { text: "sleep" }', "")
    done = cli(*with_model(tmp_path, '{"pass": true, "reasons": ["fine"]}', alone))
    assert (done.code, done.json["passed"], done.json["judged"]) == (1, False, ["It is kind."])


def test_without_a_model_nobody_judges(cli: Cli, tmp_path: Path) -> None:
    arguments = with_model(tmp_path, "")
    (tmp_path / "spak.toml").unlink()
    done = cli(*arguments)
    assert (done.code, done.json["unchecked"], done.json["axioms"][1]["holds"]) == (0, ["It is kind."], None)
    assert "no model is configured to judge it: It is kind." in cli(*arguments[:-1]).err
