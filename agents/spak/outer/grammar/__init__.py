"""Grammar patches: new rules with their desugaring into the core language, and the gate's verdict on one.

rules      the grammar as rules, from grammar.lark
lalr       its tables, and for each conflict the two derivations that lead to it
patch      a patch as text: rules, templates, the new version
expand     a text of the extended language in the core language
sentences  random sentences
judge      the stage of the gate
"""

from spak.outer.grammar.judge import judged
from spak.outer.grammar.patch import GrammarPatch

__all__ = ["GrammarPatch", "judged"]
