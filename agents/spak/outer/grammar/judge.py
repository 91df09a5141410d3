"""The gate's stage for grammar patches: a new rule may add a way of writing, never a meaning.

In order: the patch reads, and names the next version of the grammar; its tables have no conflict; every known
spec parses to the same hash by the new tables, and so do random sentences in which words that become
keywords are names; every random sentence through a new rule has a text of the core language that parses,
whose formatting is a fixpoint and means the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from spak.errors import UserError
from spak.lang import parse
from spak.lang.format import format_text
from spak.lang.parser import hash_by
from spak.lang.settings import GRAMMAR_VERSION
from spak.outer.gate.stage import Stage
from spak.outer.grammar.expand import expanded
from spak.outer.grammar.lalr import Automaton, automaton
from spak.outer.grammar.patch import GrammarPatch
from spak.outer.grammar.rules import Grammar, core
from spak.outer.grammar.sentences import Sentences

SENTENCES = 200
"""Of the core language, and through each new rule."""
NAMED = 5
NAME = "grammar"


def judged(text: str, known: Mapping[str, str], sentences: int = SENTENCES, seed: int = 1) -> Stage:
    """The verdict on a patch; `known` are the specs, by name, that have to mean what they did."""
    grammar = core()
    try:
        patch = GrammarPatch.read(text, grammar)
    except UserError as error:
        return Stage(NAME, "fail", error.message)
    if patch.version != GRAMMAR_VERSION + 1:
        why = f"it makes version {patch.version}, and the next one is {GRAMMAR_VERSION + 1}"
        return Stage(NAME, "fail", why)
    found = automaton(patch.extended(grammar))
    conflicts = found.conflicts()
    if conflicts:
        return Stage(
            NAME, "fail", f"{len(conflicts)} conflicts: {conflicts[0].first} or {conflicts[0].second}",
            {"conflicts": [str(item) for item in conflicts]},
        )  # fmt: skip
    evidence: dict[str, Any] = {
        "version": patch.version, "rules": [str(rule) for rule in patch.rules], "conflicts": [],
        "keywords": list(patch.keywords(grammar)), "states": len(found.kernels),
    }  # fmt: skip
    changed, same = _known(known, found, patch)
    if changed:
        return Stage(NAME, "fail", f"{changed[0]} no longer means what it did", {"changed": changed})
    draw = Random(seed)
    samples = _samples(grammar, tuple(word.lower() for word in patch.keywords(grammar)), draw, sentences)
    changed, held = _known(dict(zip(samples, samples, strict=True)), found, patch)
    if changed:
        why = f"a text that parses today means something else: {changed[0][:200]}"
        return Stage(NAME, "fail", why, {"text": changed[0]})
    new = Sentences(found.grammar, draw)
    for rule in patch.rules:
        for _ in range(sentences):
            sentence = new.text(rule)
            why = _round_trip(sentence, found, patch)
            if why:
                return Stage(NAME, "fail", f"{rule.alias}: {why}: {sentence[:200]}", {"text": sentence})
    summary = f"{same} known specs and {held} sentences mean the same; {len(patch.rules)} rules by templates"
    return Stage(NAME, "pass", summary, {**evidence, "specs": same, "sentences": sentences})


def _samples(grammar: Grammar, words: tuple[str, ...], draw: Random, many: int) -> list[str]:
    """Sentences of today's language, of them NAMED through each rule with a name, all names being words that
    become keywords."""
    mixed = Sentences(grammar, draw, ("alpha", "beta", *words))
    made = [mixed.text() for _ in range(many)]
    named = Sentences(grammar, draw, words)
    for rule in grammar.rules:
        if words and "NAME" in rule.symbols:
            made += [named.text(rule) for _ in range(NAMED)]
    return list(dict.fromkeys(made))


def _known(texts: Mapping[str, str], found: Automaton, patch: GrammarPatch) -> tuple[list[str], int]:
    """The names of texts whose hash changes, and how many have one; what does not parse today has none."""
    changed, same, tables = [], 0, found.tables
    for name, text in texts.items():
        parsed = parse(text)
        if not parsed.ok:
            continue
        if expanded(text, found, patch) != text or hash_by(tables, text) != parsed.spec.hash:
            changed.append(name)
        same += 1
    return changed, same - len(changed)


def _round_trip(sentence: str, found: Automaton, patch: GrammarPatch) -> str:
    """What is wrong with a sentence of the extended language; empty where nothing is."""
    plain = expanded(sentence, found, patch)
    if plain is None:
        return "it does not parse by the new tables"
    parsed = parse(plain)
    if not parsed.ok:
        return f"its template gives no text of the core language ({parsed.diagnostics[0].message})"
    formatted = format_text(plain).text
    if parse(formatted).spec.hash != parsed.spec.hash or format_text(formatted).text != formatted:
        return "formatting what it expands to changes it"
    return ""
