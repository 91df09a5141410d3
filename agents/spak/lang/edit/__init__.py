"""Typed edits of a spec's text: operations as data, each a minimal patch with its inverse.

The graph editor, the outer loop, the language server and `spak edit` all use these; docs/typed-edits.md lists
them.
"""

from spak.errors import EditRefused
from spak.lang.edit.apply import Edited, apply, apply_all
from spak.lang.edit.fixes import operation
from spak.lang.edit.ops import OPS, Change, Op, Patch, from_json, ops_from_json, to_json
from spak.lang.edit.syntax import read

__all__ = [
    "OPS",
    "Change",
    "EditRefused",
    "Edited",
    "Op",
    "Patch",
    "apply",
    "apply_all",
    "from_json",
    "operation",
    "ops_from_json",
    "read",
    "to_json",
]
