"""Grammar patches: tables beside Lark's, conflicts with both derivations, and what the gate lets through."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from bench.planted import work
from spak import config, data
from spak.errors import OuterError
from spak.lang import parse
from spak.lang.parser.automaton import tables
from spak.lang.settings import GRAMMAR_VERSION
from spak.outer.campaigns import Campaign, Judging, Pair, Plan, advance, verify
from spak.outer.gate import Candidate
from spak.outer.grammar import GrammarPatch, judged
from spak.outer.grammar.expand import expanded
from spak.outer.grammar.lalr import Automaton, automaton
from spak.outer.grammar.rules import Grammar, alternative, core
from spak.outer.grammar.sentences import Sentences

NEXT = GRAMMAR_VERSION + 1
ALWAYS = f'version {NEXT}\nnext: NEXT "->" NAME -> next_always\n  NEXT {{ success -> $3 }}\n'
KNOWN = {path.name: path.read_text() for path in data.path("specs/examples").glob("*.spak")}


def test_our_tables_are_those_that_lark_makes() -> None:
    """State by state along the same symbols; Lark has one more, in which it has accepted."""
    ours, theirs = automaton(core()).tables, tables()
    assert automaton(core()).conflicts() == []
    number = {name: index for index, name in enumerate(theirs.terminals)}
    pairs, waiting = {0: 0}, [0]
    for mine in waiting:
        row = {number[ours.terminals[kind]]: action for kind, action in ours.rows[mine].items()}
        known = theirs.rows[pairs[mine]]
        assert row.keys() == known.keys()
        targets = [
            (ours.gotos[mine][origin], theirs.gotos[pairs[mine]][origin]) for origin in ours.gotos[mine]
        ]
        for kind, action in row.items():
            if action >= 0:
                targets.append((action, known[kind]))
                continue
            assert ours.rules[~action] == theirs.rules[~known[kind]]
            assert ours.builders[~action] == theirs.builders[~known[kind]]
        for target, other in targets:
            if target not in pairs:
                pairs[target] = other
                waiting.append(target)
            assert pairs[target] == other
    assert len(pairs) == len(ours.rows) == len(theirs.rows) - 1


@pytest.mark.parametrize(
    ("origin", "text", "terminal", "rules"),
    [
        ("edge", 'NAME "->" NAME -> go', ",", ["edge: NAME -> NAME .", "edge: NAME -> NAME ."]),
        ("value", "NAME -> bare", "$END", ["scalar: NAME .", "value: NAME ."]),
        ("value", 'value "->" value -> arrow', "->", ["value: value . -> value", "value: value -> value ."]),
        ("entry", "NAME value value -> twice", "NAME", ["value: . NAME map", "entry: NAME value ."]),
    ],
)
def test_a_conflict_is_told_with_both_derivations(
    origin: str, text: str, terminal: str, rules: list[str]
) -> None:
    grammar = core()
    found = Automaton(Grammar((*grammar.rules, alternative(origin, text)), grammar.keywords)).conflicts()
    assert found
    shown = [item.derivations for item in found]
    ends = [{lines[-1].strip() for lines in pair} for pair in shown]
    assert any(set(rules) <= end for end in ends), ends
    for first, second in shown:
        for lines in (first, second):
            assert " . " in lines[0] or lines[0].strip().startswith(".")
            assert lines[1].strip().startswith("start:"), "from the start down to the rule"
    assert terminal in {item.terminal for item in found}


def test_a_new_way_of_writing_that_has_a_template_passes() -> None:
    found = judged(ALWAYS, KNOWN, sentences=40)
    assert (found.verdict, found.why.split()[0]) == ("pass", str(len(KNOWN)))
    assert found.evidence["conflicts"] == []
    assert found.evidence["version"] == NEXT
    keyword = f'version {NEXT}\ntask_item: "UNTIL" disjunction -> until\n  SUCCESS: $2\n'
    found = judged(keyword, KNOWN, sentences=40)
    assert (found.verdict, found.evidence["keywords"]) == ("pass", ["UNTIL"])


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        (ALWAYS.replace(f"version {NEXT}", f"version {GRAMMAR_VERSION}"), "the next one is"),
        (ALWAYS.replace(f"version {NEXT}", f"version {NEXT + 1}"), "the next one is"),
        (ALWAYS.replace(f"version {NEXT}\n", ""), "first line"),
        (ALWAYS.replace("  NEXT { success -> $3 }\n", ""), "no template"),
        (ALWAYS.replace("$3", "$4"), "names a symbol"),
        (ALWAYS.replace("success -> $3", "success $3"), "gives no text of the core language"),
        (ALWAYS.replace("-> next_always", "-> next"), "no name of its own"),
        (ALWAYS.replace("next: NEXT", "nothing: NEXT"), "not an origin"),
        (ALWAYS.replace("next: NEXT", "edge_list: NEXT"), "not an origin"),
        (f'version {NEXT}\nedge: NAME "->" NAME -> go\n  $1 -> $3\n', "conflicts"),
        (f'version {NEXT}\nedge: "ELSE" "->" NAME -> other\n  fail -> $3\n', "means something else"),
        (f'version {NEXT}\nstep: "TOOL" NAME -> bare\n  STEP one: $2 }}\n', "core language"),
        ("", "empty"),
    ],
)
def test_a_patch_that_is_no_conservative_extension_is_refused(patch: str, why: str) -> None:
    found = judged(patch, KNOWN, sentences=40)
    assert found.verdict == "fail"
    assert why in found.why, found.why


def test_a_spec_whose_meaning_changes_refuses_a_patch() -> None:
    """A spec that has the new keyword's word as the name of a trigger."""
    patch = f'version {NEXT}\nedge: "ELSE" "->" NAME -> other\n  fail -> $3\n'
    text = "task a { NEXT { else -> b } } task b { NEXT { done -> a } }"
    found = judged(patch, {"mine.spak": text}, sentences=0)
    assert (found.verdict, found.evidence["changed"]) == ("fail", ["mine.spak"])
    other = judged(patch, {"other.spak": text.replace("else", "fail")}, sentences=0)
    assert "changed" not in other.evidence


def test_templates_are_put_in_from_the_inside_out() -> None:
    patch = GrammarPatch.read(f'version {NEXT}\nnegation: "UNLESS" negation -> unless\n  NOT $2\n', core())
    found = automaton(patch.extended(core()))
    text = 'task a { SUCCESS: UNLESS unless file_exists("x") AND file_exists("y") // why\n}'
    plain = expanded(text, found, patch)
    assert plain == 'task a { SUCCESS: NOT NOT file_exists("x") AND file_exists("y") // why\n}'
    assert parse(plain).ok
    assert expanded("task a { NEXT }", found, patch) is None


def test_sentences_parse_and_go_through_the_rule_that_was_asked_for() -> None:
    made = Sentences(core(), Random(3))
    rule = next(rule for rule in core().rules if rule.alias == "heuristic_when")
    for _ in range(40):
        assert parse(made.text()).ok
        text = made.text(rule)
        assert parse(text).ok
        assert "WHEN" in text


def test_what_is_no_rule_is_refused() -> None:
    for text in ("version 2\n  x\n", "version 2\nnext: [ -> x\n  y\n", "x" * 20_000):
        with pytest.raises(OuterError) as found:
            GrammarPatch.read(text, core())
        assert found.value.code == "outer.grammar"


@pytest.mark.parametrize(
    ("patch", "verdict"), [(ALWAYS, "privileged"), (ALWAYS.replace("$3", "$9"), "rejected")]
)
def test_the_gate_judges_a_grammar_patch_and_leaves_it_to_a_person(
    tmp_path: Path, patch: str, verdict: str
) -> None:
    def pair(case: str, k: int, text: str) -> Pair:
        raise AssertionError("no run is made for it")

    base = work()
    found = Campaign.create(tmp_path, "c", Plan("a.spak", base, "s", "h", (), ("c0",)))
    made = Candidate((), "model", "shorter", grammar_patch=patch)
    advance(found, tmp_path, lambda current: [made], Judging(config.catalog(), (), pair, known=KNOWN))
    (tested,) = found.tested
    assert (tested.verdict, list(tested.stages)) == (verdict, ["form", "privileges", "grammar"])
    assert verify(Campaign.read(tmp_path, "c"), config.catalog()) == []
