"""Command lines as data: what a line of shell would run, without a shell.

Takes the text of a command line; gives a Line that shows every simple command in it (also those inside
pipelines, lists, subshells, loops, substitutions, here-documents and redirection targets), or raises a typed
error for a text that it cannot fully understand. It runs nothing and expands nothing: a Word has a `value`
only where no shell would have anything to expand.
"""

from spak.shell.line import (
    Arithmetic,
    Assignment,
    Command,
    Line,
    Part,
    Redirection,
    Substitution,
    Text,
    Variable,
    Word,
)
from spak.shell.read import parse
from spak.shell.words import argv

__all__ = [
    "Arithmetic",
    "Assignment",
    "Command",
    "Line",
    "Part",
    "Redirection",
    "Substitution",
    "Text",
    "Variable",
    "Word",
    "argv",
    "parse",
]
