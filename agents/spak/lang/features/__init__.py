"""What an editor asks of a spec: completion, hover, names, symbols, folds, colours; pure functions of a View.

The language server and the web editor both stand on these; offsets are in characters of the text.
"""

from spak.lang.features.complete import Completion, complete
from spak.lang.features.highlight import Mark, marks
from spak.lang.features.hover import Hover, hover
from spak.lang.features.names import (
    Renaming,
    definition,
    occurrences,
    prepare_rename,
    references,
    rename,
)
from spak.lang.features.structure import Fold, Symbol, folds, symbols
from spak.lang.features.view import Occurrence, Place, View, Word

__all__ = [
    "Completion",
    "Fold",
    "Hover",
    "Mark",
    "Occurrence",
    "Place",
    "Renaming",
    "Symbol",
    "View",
    "Word",
    "complete",
    "definition",
    "folds",
    "hover",
    "marks",
    "occurrences",
    "prepare_rename",
    "references",
    "rename",
    "symbols",
]
