"""The layout of policies: same clauses, same comments, and laid out once is laid out for good."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from cli_kit import raw, spak
from policy_kit import LAW, random_program, text_of
from spak.datalog.text.layout import format_text
from spak.datalog.text.parse import parse
from spak.datalog.text.scan import comments

ROOT = Path(__file__).resolve().parents[2]
MESSY = """# about
Decl user_intent(
  ID.Type<n>,
  Verb.Type<n>, # /explain
  Target.Type<string> # the last
).


block_commit :-   diagnostic(\\_, *, 'Error'), # first
   # second
   Count == 3.   # behind
p(/a). p(/b).   # two
n(K,N):-q(K,V)|>do fn:group_by(K),let N=fn:count().
"""
NEAT = """# about
Decl user_intent(
    ID,
    Verb,  # /explain
    Target  # the last
) bound [/name, /name, /string].

block_commit() :-
    diagnostic(_, _, "Error"),  # first
    # second
    Count = 3.  # behind
p(/a).
p(/b).   # two
n(K, N) :- q(K, V) |> do fn:group_by(K), let N = fn:count().
"""


def test_the_layout() -> None:
    assert format_text(MESSY).text == NEAT
    assert format_text(NEAT).text == NEAT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only this",
        "p(1).",
        'Decl p(X) descr [doc("what"), external(), mode("+")] bound [fn:Union(/a, fn:List(/string))].',
        "Decl p(X) bound [/a] inclusion [q(X, _)].\nDecl q(X, Y).",
        "Decl p(X) bound [.Struct</a : /string>].",
        'p("\\b\\f\\u{1f600} # no comment", `raw # too`). # yes',
        "p(X) :- # a\n # b\n q(X), # c\n !r(X) |> # d\n do fn:group_by(X), let N = fn:count() # e\n . # f",
        "p( # a\n /b # c\n). # d",
        "p(X) :- q(X).\n\n\n\n# apart\n\n\np(1).",
        "f(/b).\nf(/b). # said twice\n",
    ],
)
def test_it_is_read_as_before_and_stays(text: str) -> None:
    first = format_text(text)
    assert first.ok
    again, before = parse(first.text), parse(text)
    assert (again.clauses, again.decls) == (before.clauses, before.decls)
    assert sorted(said for _, said in comments(first.text)) == sorted(said for _, said in comments(text))
    assert format_text(first.text).text == first.text
    assert "\n\n\n" not in first.text


def test_what_is_no_policy_is_left() -> None:
    assert format_text("p(X :- q(X).").text == "p(X :- q(X)."
    assert not format_text("p(X :- q(X).").ok


@LAW
@drawn(seed=st.integers(0, 10**6), data=st.data())
def test_any_spacing_and_any_comments_come_to_one_layout(seed: int, data: st.DataObject) -> None:
    rules, _ = random_program(seed)
    draw = random.Random(seed)
    text = ""
    spaces = [" ", " ", "\n", "\n\n", " # said\n", "\n# alone\n", "\t"]
    for token in text_of(rules).replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split():
        text += token.replace("!", "! ") + draw.choice(spaces)
    text = text.replace(" .", ".") + data.draw(st.sampled_from(["", "\n", "# end"]))
    first = format_text(text)
    assert first.ok
    assert parse(first.text).clauses == parse(text).clauses
    assert first.text.count("#") == text.count("#")
    assert format_text(first.text).text == first.text


@LAW
@drawn(value=st.text(), name=st.text(max_size=20))
def test_any_text_survives_as_it_is(value: str, name: str) -> None:
    from spak.datalog import Name, PolicyError, load
    from spak.datalog.values import encode, show

    source = f"p({show(encode(value))})."
    made = format_text(source)
    assert made.ok
    assert load({"a.mg": made.text}).session().query("p") == [(value,)]
    try:
        found = load({"a.mg": f"p(/{name})."}).session().query("p")
    except PolicyError:
        return
    assert all(isinstance(row[0], Name) for row in found)


def test_fmt_writes_policies_in_place(tmp_path: Path) -> None:
    (tmp_path / "a.mg").write_text(MESSY)
    assert spak(tmp_path, "fmt", "--check", "a.mg")[0] == 1
    assert spak(tmp_path, "fmt", ".")[0] == 0
    assert (tmp_path / "a.mg").read_text() == NEAT
    assert spak(tmp_path, "fmt", "--check", "a.mg")[0] == 0


def test_fmt_goes_on_after_a_file_that_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.mg").write_text("p(X :- .\n")
    (tmp_path / "b.mg").write_bytes(b"p(\xe9).")
    (tmp_path / "c.mg").write_text("p( 1 ).")
    (tmp_path / "d.mg").write_text("p( 1 ).")
    (tmp_path / "e.mg").hardlink_to(tmp_path / "d.mg")
    code, found = spak(tmp_path, "fmt", "a.mg", "b.mg", "d.mg", "none.mg", "c.mg", "--json")
    assert code == 3
    assert [(item["file"], item["ok"], item.get("error", {}).get("code")) for item in found["files"]] == [
        ("a.mg", False, None),
        ("b.mg", False, "usage.file"),
        ("d.mg", False, "usage.file"),
        ("none.mg", False, "usage.file"),
        ("c.mg", True, None),
    ]
    assert (tmp_path / "c.mg").read_text() == "p(1).\n"
    assert (tmp_path / "d.mg").read_text() == "p( 1 )."
    (tmp_path / "c.mg").write_text("p( 1 ).")
    done = raw(tmp_path, "fmt", "none.mg", "c.mg")
    assert done.returncode == 2
    assert "none.mg" in done.stderr
    assert (tmp_path / "c.mg").read_text() == "p(1).\n"
    assert spak(tmp_path, "fmt", "a.mg")[0] == 3
    assert "a.mg:1:5: error" in raw(tmp_path, "fmt", "a.mg").stderr


def test_the_shipped_policies_are_laid_out() -> None:
    assert spak(ROOT, "fmt", "--check", "specs/policy")[0] == 0
