"""A grammar patch as text, read and put to a grammar.

    version 2
    next: NEXT "->" NAME -> next_always
      NEXT { success -> $3 }

The first line is the version of the grammar that the patch makes. Each rule is a new alternative of an origin
of grammar.lark, with a name of its own; the indented lines below are its template: text of the core language
that stands for it, in which `$3` is what the third symbol took. So whatever the new rule writes could be
written without it, and a patch can add no meaning. A word in quotes and capitals is a new keyword.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from spak.errors import OuterError
from spak.outer.grammar.rules import Grammar, Rule, alternative

MAX_PATCH = 16_384
MAX_RULES = 16
PUNCTUATION = frozenset("{}[](),:=") | {"->"}

_KEYWORD = re.compile(r"[A-Z][A-Z_]{1,30}")
_HOLE = re.compile(r"\$(\d+)")


@dataclass(frozen=True, slots=True)
class GrammarPatch:
    """`rules` with the template of each; `version` is that of the grammar afterwards."""

    version: int
    rules: tuple[Rule, ...]
    templates: tuple[str, ...]

    @classmethod
    def read(cls, text: str, grammar: Grammar) -> GrammarPatch:
        """Raises: OuterError `outer.grammar`."""
        lines = [line for line in text[:MAX_PATCH].splitlines() if line.strip()]
        if len(text) > MAX_PATCH or not lines:
            raise broken(f"it is empty, or longer than {MAX_PATCH} characters")
        head = re.fullmatch(r"version ([1-9][0-9]{0,5})", lines[0])
        if head is None:
            raise broken("its first line is not `version N`")
        rules: list[Rule] = []
        templates: list[list[str]] = []
        for line in lines[1:]:
            if line[0].isspace():
                if not rules:
                    raise broken("a template comes before its rule")
                templates[-1].append(line)
                continue
            origin, colon, body = line.partition(":")
            try:
                rules.append(alternative(origin.strip(), body if colon else ""))
            except ValueError as error:
                raise broken(str(error)) from error
            templates.append([])
        made = cls(
            int(head[1]),
            tuple(rules),
            tuple(textwrap.dedent("\n".join(item)).strip() for item in templates),
        )
        made._check(grammar)
        return made

    def _check(self, grammar: Grammar) -> None:
        origins, aliases = grammar.origins, {rule.alias for rule in grammar.rules}
        if not self.rules or len(self.rules) > MAX_RULES:
            raise broken(f"it has no rule, or more than {MAX_RULES}")
        for rule, template in zip(self.rules, self.templates, strict=True):
            if rule.origin not in origins or rule.origin == "start" or rule.origin.endswith("_list"):
                raise broken(f"{rule.origin} is not an origin that can get an alternative")
            if not rule.symbols or not rule.alias or rule.alias in aliases:
                raise broken(f"{rule} is empty, or has no name of its own")
            aliases.add(rule.alias)
            for symbol in rule.symbols:
                known = symbol in origins or symbol in grammar.terminals or symbol in PUNCTUATION
                if not known and not _KEYWORD.fullmatch(symbol):
                    raise broken(f"{symbol} in {rule} is no rule, no terminal and no keyword in capitals")
            if not template:
                raise broken(f"{rule.alias} has no template: it would add meaning to the core language")
            if any(not 1 <= int(hole) <= len(rule.symbols) for hole in _HOLE.findall(template)):
                raise broken(f"the template of {rule.alias} names a symbol that the rule has not")

    def extended(self, grammar: Grammar) -> Grammar:
        """The grammar with the new alternatives and keywords."""
        return Grammar((*grammar.rules, *self.rules), (*grammar.keywords, *self.keywords(grammar)))

    def keywords(self, grammar: Grammar) -> tuple[str, ...]:
        """Words that become keywords."""
        known = {*grammar.terminals, *grammar.origins, *PUNCTUATION}
        found = [symbol for rule in self.rules for symbol in rule.symbols if symbol not in known]
        return tuple(dict.fromkeys(found))

    def filled(self, alias: str, parts: list[str]) -> str:
        """The template of a rule with what its symbols took."""
        number = next(index for index, rule in enumerate(self.rules) if rule.alias == alias)
        return _HOLE.sub(lambda hole: parts[int(hole[1]) - 1], self.templates[number])


def broken(why: str) -> OuterError:
    """The error of a grammar patch that cannot be read."""
    return OuterError(
        "outer.grammar", f"the grammar patch is none: {why}", "docs/outer-loop.md#grammar-patches"
    )
