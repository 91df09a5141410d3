"""Text to the tree of `spak.datalog.syntax` and back: tokens, terms, declarations, clauses, their layout."""
