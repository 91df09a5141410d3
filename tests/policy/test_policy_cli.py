"""`spak policy`: exit codes, documents, texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_kit import raw, spak

POLICY = """
Decl safe(A).
Decl bad(A).
safe(/read). safe(/write). bad(/write).
permitted(A) :- safe(A), !forbidden(A).
forbidden(A) :- bad(A).
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.mg").write_text(POLICY)
    (tmp_path / "bad.mg").write_text("p(X) :- q(Y).\n")
    return tmp_path


def test_check_gives_findings_and_the_hash(folder: Path) -> None:
    code, document = spak(folder, "policy", "check", "a.mg", "--json")
    assert (code, document["ok"], document["diagnostics"]) == (0, True, [])
    assert len(document["policy"]) == 43
    code, document = spak(folder, "policy", "check", "bad.mg", "--json")
    assert (code, document["ok"], document["policy"]) == (3, False, None)
    assert {item["code"] for item in document["diagnostics"]} >= {"policy.unsafe", "policy.undeclared"}
    assert "bad.mg:1:1: error" in raw(folder, "policy", "check", "bad.mg").stderr


def test_what_a_run_states_need_not_be_declared_but_checked_under_the_law(folder: Path) -> None:
    rule = 'permitted(A) :- tool(A, /deploy), argument(A, "target", "staging"), mine(A).\n'
    (folder / "law.mg").write_text(rule)
    code, document = spak(folder, "policy", "check", "law.mg", "--json")
    hints = {item["message"].split()[-1]: (item["hint"], item["fix"]) for item in document["diagnostics"]}
    of_runs = ("a run states it: `spak policy check --as operator` checks the text under the law", "")
    assert code == 0 and hints["tool/2"] == hints["argument/3"] == of_runs
    assert hints["mine/1"] == ("declare it, or state or derive it", "Decl mine(A1).")


def test_eval_prints_rows_in_order(folder: Path) -> None:
    assert spak(folder, "policy", "eval", "a.mg", "--query", "safe(X)") == (0, "safe(/read)\nsafe(/write)\n")
    code, document = spak(folder, "policy", "eval", "a.mg", "--query", "permitted(X)", "--json")
    assert (code, document["rows"]) == (0, [[{"name": "/read"}]])
    code, document = spak(folder, "policy", "eval", "a.mg", "--query", "permitted(X, Y)", "--json")
    assert (code, document["rows"]) == (0, [])


def test_why_prints_a_proof(folder: Path) -> None:
    code, text = spak(folder, "policy", "why", "a.mg", "--query", "permitted(/read)")
    assert code == 0
    assert text.splitlines() == [
        "permitted(/read)  (rule a.mg:5)",
        "  safe(/read)  (stated a.mg:4)",
        "  no forbidden(/read)",
    ]
    code, document = spak(folder, "policy", "why", "a.mg", "--query", "permitted(/write)", "--json")
    assert (code, document["error"]["code"]) == (1, "policy.no_proof")


def test_why_not_names_the_rule_that_forbids(folder: Path) -> None:
    code, text = spak(folder, "policy", "why-not", "a.mg", "--query", "permitted(/write)")
    assert code == 0
    assert "against it: forbidden(/write) (a.mg:6)" in text
    _, document = spak(folder, "policy", "why-not", "a.mg", "--query", "permitted(/other)", "--json")
    assert [item["atom"] for item in document["attempts"][0]["missing"]] == ["safe(/other)"]


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["check", "none.mg"], 2, "usage.file"),
        (["check"], 2, "usage.arguments"),
        (["eval", "a.mg", "--query", "p(X) :- q(X)"], 3, "policy.query"),
        (["eval", "bad.mg", "--query", "p(X)"], 3, "policy.invalid"),
        (["why", "latin.mg", "--query", "p(X)"], 2, "usage.file"),
    ],
)
def test_wrong_input_is_an_error_with_a_code(
    folder: Path, arguments: list[str], code: int, error: str
) -> None:
    (folder / "latin.mg").write_bytes(b"p(\xe9).")
    found, document = spak(folder, "policy", *arguments, "--json")
    assert (found, document["error"]["code"]) == (code, error)


def test_the_workspace_answers_what_a_policy_asks_of_the_world(folder: Path) -> None:
    (folder / "ask.mg").write_text(
        'Decl dependency_link(A, B, C) descr [external(), mode("-", "-", "-")]\n'
        "    bound [/string, /string, /string].\n"
        "rests(A, B) :- dependency_link(A, B, _).\n"
    )
    (folder / "ws").mkdir()
    (folder / "ws/a.py").write_text("import b\n")
    (folder / "ws/b.py").write_text("")
    asked = ("ask.mg", "--query", "rests(X, Y)")
    assert spak(folder, "policy", "eval", *asked, "--workspace", "ws") == (0, 'rests("a.py", "b.py")\n')
    code, text = spak(folder, "policy", "why", *asked, "--workspace", "ws")
    assert code == 0 and 'dependency_link("a.py", "b.py", "b")' in text
    assert raw(folder, "policy", "eval", *asked).returncode == 3
    assert "policy.incomplete" in raw(folder, "policy", "eval", *asked).stderr
    assert raw(folder, "policy", "eval", *asked, "--workspace", "none").returncode == 2


def test_verify_takes_a_proof_and_no_other(folder: Path) -> None:
    _, proof = spak(folder, "policy", "why", "a.mg", "--query", "permitted(/read)", "--json")
    (folder / "proof.json").write_text(json.dumps(proof))
    assert spak(folder, "policy", "verify", "proof.json", "a.mg") == (0, "ok: permitted(/read)\n")
    code, document = spak(folder, "policy", "verify", "proof.json", "a.mg", "--json")
    assert (code, document["ok"], document["root"]) == (0, True, proof["root"])
    (folder / "b.mg").write_text(POLICY + "safe(/more).\n")
    changed = {**proof, "nodes": [{**node, "pred": "safe"} for node in proof["nodes"]]}
    (folder / "changed.json").write_text(json.dumps(changed))
    for args in (("changed.json", "a.mg"), ("proof.json", "b.mg")):
        code, document = spak(folder, "policy", "verify", *args, "--json")
        assert (code, document["error"]["code"]) == (1, "policy.no_proof"), args
    (folder / "odd.json").write_text("{")
    assert spak(folder, "policy", "verify", "odd.json", "a.mg", "--json")[1]["error"]["code"] == "usage.file"
